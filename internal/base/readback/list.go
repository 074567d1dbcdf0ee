package readback

import (
	"database/sql"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/snowkey/snowkey/internal/base/dialect"
)

// manyRows is the number of rows from which a look by a list of values is worth it.
const manyRows = 20

// How many values one list has. MariaDB makes a table of a list of 1,000 parameters.
const (
	valuesPerArray = 10_000
	valuesPerIn    = 900
)

// The names of the values that a look joins with the table, and of their columns, before a number.
// No table has columns of these names, which keeps them from being ambiguous.
const (
	valuesName  = "snowkey_values"
	valueColumn = "snowkey_value"
	placeColumn = "snowkey_place"
)

// A verbatim says which values a column stores unchanged. SQLite may convert them, but by the same
// rules in every statement.
type verbatim uint8

const (
	verbatimText verbatim = 1 << iota
	verbatimNumbers
)

// sent returns v, which is sent, as a string or an int64, if the column stores it unchanged.
func (p verbatim) sent(v any) (_ any, ok bool) {
	if _, text := v.(string); !text {
		if v, ok = converted(v); !ok {
			return nil, false
		}
	}
	switch known := v.(type) {
	case string:
		return v, p&verbatimText != 0 && utf8.ValidString(known) && strings.IndexByte(known, 0) < 0
	case int64:
		return v, p&verbatimNumbers != 0
	default:
		return nil, false
	}
}

// read returns v, which was scanned, in the form that sent gives it, or nil.
func (p verbatim) read(v any) any {
	switch v := v.(type) {
	case string, int64:
		return v
	case uint64:
		if v <= math.MaxInt64 {
			return int64(v)
		}
	case []byte:
		switch p {
		case verbatimText:
			return string(v)
		case verbatimText | verbatimNumbers:
			return nil // a BLOB of SQLite, which equals no text
		}
		if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			return n
		}
	}
	return nil
}

// everywhere reports whether key covers all rows and compares whole columns, which store some
// values unchanged.
func (f *finder) everywhere(key *Key) bool {
	return !key.Hidden && key.Where == nil && !slices.ContainsFunc(key.Columns, func(c Column) bool { return c.verbatim == 0 || c.Prefix > 0 })
}

// A list looks rows up by a list of their values. That is less work for the database than a SELECT
// for each row, and finds nearly all rows of a large upsert. An upsert of 10,000 stored rows by a
// unique key of two columns takes 1.8 times the CPU time of bare GORM on PostgreSQL, 2.6 on MariaDB and
// 3.3 on SQLite; with SELECTs alone 3.2, 5.6 and 8.7 times.
//
// Texts of equal bytes are equal in every collation, so Find compares what the query returns byte
// by byte, unless the query returns the place of the row in the list.
type list struct {
	*Text
	f      *finder
	keys   []Key    // the one whose columns are listed, and others to compare
	fields []Column // the columns to compare here; the listed ones first, unless the database compares those
	places [][]int  // for each of keys, where its columns are in fields; nil: not compared

	rows   []int       // the rows to be listed
	values []any       // what they send for the columns of the key, row by row
	last   map[any]int // the last place in rows of each tuple; nil with listPlaces
	before []int       // for each place, the previous one with the same tuple, or -1
	found  []bool      // for each place
}

// byList is look for the rows of list that send texts and numbers which the columns of keys[0]
// store unchanged. It returns the other rows. They include the rows that were not found where Find
// compares the values, because a column may take two texts of different bytes for equal.
func (f *finder) byList(rows []int, keys []Key, found foundFunc) (rest []int, err error) {
	d, key := f.d, &keys[0]
	if len(rows) < manyRows || !f.everywhere(key) || d.forcesIndex && key.index == "" {
		return rows, nil
	}
	l := &list{f: f, keys: keys, values: make([]any, 0, len(rows)*len(key.Columns)), rows: make([]int, 0, len(rows))}
	if !d.listPlaces {
		l.last, l.before = make(map[any]int, len(rows)), make([]int, 0, len(rows))
	}
	for _, i := range rows {
		if !l.add(i) {
			rest = append(rest, i)
		}
	}
	l.chooseFields()
	l.found = make([]bool, len(l.rows))
	again := !d.listPlaces // whether rows that are not found have to be looked up again
	size := d.listSize / len(key.Columns)
	for first := 0; first < len(l.rows); first += size {
		err := l.lookUp(first, min(first+size, len(l.rows)), found)
		// The index is invisible or ignored, or this SQLite was built without JSON.
		if dialect.NoIndex(err) || err != nil && d.listPlaces && strings.Contains(err.Error(), "json_each") {
			again = true
			break
		}
		if err != nil {
			return nil, err
		}
	}
	for n, found := range l.found {
		if again && !found {
			rest = append(rest, l.rows[n])
		}
	}
	return rest, nil
}

// sent returns what row i sends for a column, if the column stores it unchanged.
func (l *list) sent(i int, c *Column) (any, bool) {
	v, known := l.f.value(i, c.Name)
	if known != Sent {
		return nil, false
	}
	switch v.(type) {
	case nil: // of a map
		return nil, false
	case string, int64:
	default:
		if sends := l.f.d.sends; sends != nil && !sends(v) {
			return nil, false
		}
	}
	return c.verbatim.sent(v)
}

// add adds row i to the list if the columns store what it sends unchanged.
func (l *list) add(i int) bool {
	first, columns := len(l.values), l.keys[0].Columns
	for c := range columns {
		v, ok := l.sent(i, &columns[c])
		if !ok {
			l.values = l.values[:first]
			return false
		}
		l.values = append(l.values, v)
	}
	if l.last != nil {
		tuple := tupleOf(l.values[first:])
		before, sent := l.last[tuple]
		if !sent {
			before = -1
		}
		l.before = append(l.before, before)
		l.last[tuple] = len(l.rows)
	}
	l.rows = append(l.rows, i)
	return true
}

// tupleOf returns values as one that can be compared: a value itself, and several as a text.
func tupleOf(values []any) any {
	if len(values) == 1 {
		return values[0]
	}
	var b []byte
	for _, v := range values {
		switch v := v.(type) {
		case int64:
			b = append(strconv.AppendInt(b, v, 10), ' ')
		case string:
			b = append(append(strconv.AppendInt(b, int64(len(v)), 10), ':'), v...)
		}
	}
	return string(b)
}

// chooseFields chooses the columns to compare. There are bits for the first 62 keys.
func (l *list) chooseFields() {
	l.places = make([][]int, min(len(l.keys), 62))
	for k := range l.places {
		if key := &l.keys[k]; l.f.everywhere(key) && !(k == 0 && l.last == nil) {
			for _, c := range key.Columns {
				at := slices.IndexFunc(l.fields, func(other Column) bool { return other.Name == c.Name })
				if at < 0 {
					at, l.fields = len(l.fields), append(l.fields, c)
				}
				l.places[k] = append(l.places[k], at)
			}
		}
	}
}

// compared writes a listed column, in the collation of its index.
func (l *list) compared(c *Column) {
	l.name(c.Name)
	if c.Collate != "" {
		l.write(" COLLATE ", c.Collate)
	}
}

// equalsListed writes the condition that the listed columns equal the values that are joined.
func (l *list) equalsListed() {
	for n := range l.keys[0].Columns {
		if n > 0 {
			l.write(" AND ")
		}
		l.compared(&l.keys[0].Columns[n])
		l.write(" = ", valueColumn, strconv.Itoa(n))
	}
}

// comparedColumns writes the listed columns as a row.
func (l *list) comparedColumns() {
	for n := range l.keys[0].Columns {
		l.write([...]string{"(", ", "}[min(n, 1)])
		l.compared(&l.keys[0].Columns[n])
	}
	l.write(")")
}

// lookUp looks up the rows in the list from first to before end, and calls found for each that sends
// the values of a stored row.
func (l *list) lookUp(first, end int, found foundFunc) error {
	l.Text = l.f.text()
	l.write("SELECT ")
	l.columns(l.f.d)
	fixed := len(l.f.Columns)
	if l.last == nil {
		l.write(", ", placeColumn)
		fixed++
	}
	for _, c := range l.fields {
		typ := "text"
		if c.verbatim == verbatimNumbers {
			typ = "bigint"
		}
		l.write(", ")
		l.result(l.f.d, c.Name, typ)
	}
	width := len(l.keys[0].Columns)
	l.f.d.listed(l, l.values[first*width:end*width])
	l.write(l.f.lock())

	got := make([]any, fixed+len(l.fields))
	into := make([]any, len(got))
	for c := range got {
		into[c] = &got[c]
	}
	return l.f.Query(l.Text, func(rows *sql.Rows) error {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		compared := got[fixed:]
		for c, v := range compared {
			compared[c] = l.fields[c].verbatim.read(v)
		}
		stored, err := l.f.keep(got[:len(l.f.Columns)])
		if err != nil {
			return err
		}
		meets := func(n int) {
			l.found[n] = true
			found(l.rows[n], stored, l.same(l.rows[n], compared))
		}
		if l.last == nil {
			n, ok := got[fixed-1].(int64)
			if !ok {
				return fmt.Errorf("the place in the list is %T; want int64", got[fixed-1])
			}
			meets(first + int(n) - 1)
			return nil
		}
		tuple := make([]any, width)
		for c, at := range l.places[0] {
			tuple[c] = compared[at]
		}
		n, ok := l.last[tupleOf(tuple)] // absent if only the rules of the columns make the two equal
		for ; ok && n >= 0; n = l.before[n] {
			meets(n)
		}
		return nil
	})
}

// same returns a bit for each key in which row i equals the stored row, as it does in the first.
func (l *list) same(i int, stored []any) uint64 {
	same := uint64(1)
	for k, places := range l.places {
		if k > 0 && len(places) > 0 && !slices.ContainsFunc(places, func(at int) bool {
			v, ok := l.sent(i, &l.fields[at])
			return !ok || v != stored[at]
		}) {
			same |= 1 << k
		}
	}
	return same
}
