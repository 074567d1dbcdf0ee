package gormplugin

import (
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gorm.io/gorm/clause"

	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/pgtext"
)

// How many rows are many, and how many values one list has. MariaDB makes a table of a
// list of 1,000 parameters.
const (
	manyRows       = 20
	valuesPerArray = 10_000
	valuesPerIn    = 900
)

// A plainness says which values a column stores as they are sent. On SQLite the column
// itself may convert them, but by its own rules in any statement.
type plainness uint8

const (
	plainText plainness = 1 << iota
	plainNumbers
)

// plainnessOf returns that of a column of a type that the catalog names. A text that has to
// be converted on MySQL cannot use the index.
func plainnessOf(name string, c *uniqueColumn) plainness {
	switch base, _, _ := strings.Cut(c.typ, "("); {
	case strings.HasSuffix(c.typ, "[]"):
		return 0
	case name == sqliteName:
		return plainText | plainNumbers
	case name == mysqlName && c.form.Whole, name == postgresName && (base == "bigint" || base == "integer" || base == "smallint"):
		return plainNumbers
	case name == mysqlName && (base == "char" || base == "varchar") && strings.HasPrefix(c.collate, "utf8mb4_"),
		name == postgresName && (base == "text" || base == "character varying"):
		return plainText
	default:
		return 0
	}
}

// plain returns v as a string or an int64, if a column that takes such values gets it from
// database/sql as it is.
func (p plainness) plain(v any) (_ any, ok bool) {
	if _, text := v.(string); !text {
		if !simple(v) {
			return nil, false
		}
		v, _ = driver.DefaultParameterConverter.ConvertValue(v)
	}
	switch known := v.(type) {
	case string:
		return v, p&plainText != 0 && utf8.ValidString(known) && strings.IndexByte(known, 0) < 0
	case int64:
		return v, p&plainNumbers != 0
	default:
		return nil, false
	}
}

// read returns a stored value as plain does one that was sent, or nil.
func (p plainness) read(v any) any {
	switch v := v.(type) {
	case string, int64:
		return v
	case uint64:
		if v <= math.MaxInt64 {
			return int64(v)
		}
	case []byte:
		switch p {
		case plainText:
			return string(v)
		case plainText | plainNumbers:
			return nil // a BLOB of SQLite, which equals no text
		}
		if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			return n
		}
	}
	return nil
}

// exact finds stored rows as look does, for rows of list that send a plain text or number
// in keys[0]. It does so only if that key has one column. It returns the other rows, and
// on most databases those that it has not found. They may equal a stored row all the
// same, by the rules of the column. look has to find that out.
//
// Nearly all stored rows that a large upsert meets are found here. The database gets a
// list of values, which is less work for it than the join of look. What it returns is
// compared byte by byte. Texts of equal bytes are equal in every collation. SQLite joins
// the list instead, by the rules of the column. Then the text need not come back.
func (r *reread) exact(list []int, keys []unique, f func(i int, stored []cell, same uint64)) (rest []int, err error) {
	key, name := keys[0], r.db.Name()
	if len(list) < manyRows || len(key.columns) != 1 || !key.everywhere() || name == mysqlName && key.index == "" {
		return list, nil
	}
	e := &exact{reread: r, keys: keys, joins: name == sqliteName, values: make([]any, 0, len(list)), rows: make([]int, 0, len(list))}
	if !e.joins {
		e.at, e.next = make(map[any]int, len(list)), make([]int, 0, len(list))
	}
	for _, i := range list {
		if v, ok := e.sent(i, key.columns[0]); ok {
			e.add(i, v)
		} else {
			rest = append(rest, i)
		}
	}
	e.compared()
	size := valuesPerArray
	if name == mysqlName {
		size = valuesPerIn
	}
	e.found = make([]bool, len(e.values))
	for first := 0; first < len(e.values); first += size {
		if err = e.each(first, min(first+size, len(e.values)), f); dialect.NoIndex(err) || err != nil && e.joins && strings.Contains(err.Error(), "json_each") {
			e.joins = false
			break // the index is invisible or ignored, or this SQLite has no JSON
		}
		if err != nil {
			return nil, err
		}
	}
	for n, found := range e.found {
		if !found && !e.joins {
			rest = append(rest, e.rows[n])
		}
	}
	return rest, nil
}

// everywhere reports whether the key covers all rows, and compares whole columns by the
// rules of these.
func (u *unique) everywhere() bool {
	return !u.hidden && u.where == nil && !slices.ContainsFunc(u.columns, func(c uniqueColumn) bool {
		return c.field == nil || c.plain == 0 || c.prefix > 0
	})
}

// An exact looks up rows by a list of values.
type exact struct {
	*reread
	keys   []unique       // the one that is listed, and others to compare
	joins  bool           // the list is joined
	fields []uniqueColumn // what is compared here; without a join, the listed column first
	places [][]int        // for each of keys, where its columns are in fields; nil: not compared

	values []any       // that are listed, in the order of rows
	rows   []int       // that send them
	at     map[any]int // without a join: for each value, its last place in values
	next   []int       // without a join: for each place, the one before with the same value, or -1
	found  []bool
}

// add adds v, which row i sends, to the list.
func (e *exact) add(i int, v any) {
	if !e.joins {
		before, met := e.at[v]
		if !met {
			before = -1
		}
		e.next = append(e.next, before)
		e.at[v] = len(e.values)
	}
	e.values, e.rows = append(e.values, v), append(e.rows, i)
}

// sent returns what row i sends for a column, if it is plain. pgx writes values of some
// types otherwise than database/sql does.
func (e *exact) sent(i int, c uniqueColumn) (any, bool) {
	if !e.gives(i, c.field) {
		return nil, false
	}
	v, _ := e.value(i, c.field)
	switch v.(type) {
	case nil: // of a map
		return nil, false
	case string, int64:
	default:
		if e.db.Name() == postgresName {
			if k, _ := pgtext.KindOf(reflect.TypeOf(v)); k == 0 {
				return nil, false
			}
		}
	}
	return c.plain.plain(v)
}

// compared chooses the columns to compare. There is no more than one bit for each of the
// first 62 keys.
func (e *exact) compared() {
	e.places = make([][]int, min(len(e.keys), 62))
	for k := range e.places {
		if key := e.keys[k]; key.everywhere() && !(k == 0 && e.joins) {
			for _, c := range key.columns {
				at := slices.IndexFunc(e.fields, func(other uniqueColumn) bool { return other.field == c.field })
				if at < 0 {
					at, e.fields = len(e.fields), append(e.fields, c)
				}
				e.places[k] = append(e.places[k], at)
			}
		}
	}
}

// query returns a SELECT of the rows that have one of values.
func (e *exact) query(values []any) *query {
	q, database, listed := e.reread.query(), e.db.Name(), &e.keys[0].columns[0]
	q.write("SELECT ")
	q.columns()
	if e.joins {
		q.write(",snowkey_place")
	}
	for _, c := range e.fields {
		typ := "text"
		if c.plain == plainNumbers {
			typ = "bigint"
		}
		q.write(",")
		q.column(c.field.DBName, typ)
	}
	q.write(" FROM ")
	if e.joins {
		// The plus takes value's affinity away. Else a number would equal no text.
		q.write("(SELECT key AS snowkey_place, +value AS snowkey_value FROM json_each(")
		q.AddVar(q, jsonArray(values))
		q.write(")) AS ", valuesName, " CROSS JOIN ") // SQLite keeps to this order
	}
	q.write(q.only(), q.table())
	if database == mysqlName {
		q.write(" FORCE INDEX (", clause.Column{Name: e.keys[0].index}, ")")
	}
	q.write(" WHERE ", clause.Column{Name: listed.field.DBName})
	if listed.collate != "" {
		q.write(" COLLATE ", listed.collate) // else the index is of no use
	}
	switch database {
	case postgresName:
		array, typ, name := []byte(nil), pgtext.Text, "text"
		if _, number := values[0].(int64); number {
			typ, name = pgtext.Int8, "bigint"
		}
		for _, v := range values {
			array, _ = typ.AppendValue(append(array, ','), v, pgtext.Array)
		}
		array[0] = '{'
		q.write(" = ANY (CAST(")
		q.AddVar(q, string(append(array, '}')))
		q.write(" AS ", name, "[]))")
	case sqliteName:
		q.write(" = snowkey_value")
	default:
		q.write(" IN (")
		for n, v := range values {
			if n > 0 {
				q.write(",")
			}
			q.AddVar(q, v)
		}
		q.write(")", e.lock())
	}
	return q
}

// jsonArray returns plain values as JSON.
func jsonArray(values []any) string {
	b := make([]byte, 0, 32*len(values))
	for n, v := range values {
		b = append(b, "[,"[min(n, 1)])
		switch v := v.(type) {
		case int64:
			b = strconv.AppendInt(b, v, 10)
		case string:
			if strings.ContainsFunc(v, func(c rune) bool { return c < ' ' || c == '"' || c == '\\' }) {
				escaped, _ := json.Marshal(v) // of a string: no error
				b = append(b, escaped...)
			} else { // as nearly all are
				b = append(append(append(b, '"'), v...), '"')
			}
		}
	}
	return string(append(b, ']'))
}

// each looks up the values from first on, before end. It calls f for each row and the
// stored row that equals it.
func (e *exact) each(first, end int, f func(i int, stored []cell, same uint64)) error {
	fixed := len(e.columns)
	if e.joins {
		fixed++
	}
	got := make([]any, fixed+len(e.fields))
	into := make([]any, len(got))
	for c := range got {
		into[c] = &got[c]
	}
	return e.query(e.values[first:end]).rows(func(rows *sql.Rows) error {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		compared := got[fixed:]
		for c, v := range compared {
			compared[c] = e.fields[c].plain.read(v)
		}
		stored := e.cells(got)
		met := func(n int) {
			e.found[n] = true
			f(e.rows[n], stored, e.same(e.rows[n], compared))
		}
		if e.joins {
			n, ok := got[fixed-1].(int64)
			if !ok {
				return fmt.Errorf("the place in the list is %T; want int64", got[fixed-1])
			}
			met(first + int(n))
			return nil
		}
		last, ok := e.at[compared[0]] // else it is equal by the rules of the column alone
		for n := last; ok && n >= 0; n = e.next[n] {
			met(n)
		}
		return nil
	})
}

// same returns a bit for each key in which row i equals the stored row. The first is one.
func (e *exact) same(i int, stored []any) uint64 {
	same := uint64(1)
	for k, places := range e.places {
		if k > 0 && len(places) > 0 && !slices.ContainsFunc(places, func(at int) bool {
			v, ok := e.sent(i, e.fields[at])
			return !ok || v != stored[at]
		}) {
			same |= 1 << k
		}
	}
	return same
}
