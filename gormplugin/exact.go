package gormplugin

import (
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gorm.io/gorm/clause"

	"github.com/snowkey/snowkey/internal/pgtext"
	"github.com/snowkey/snowkey/internal/sqlerror"
)

// How many rows are many, and how many values one list has. MariaDB makes a table of a
// list of 1,000 parameters.
const (
	manyRows       = 20
	valuesPerArray = 10_000
	valuesPerIn    = 900
)

// A plainness says which values a column stores as they are sent.
type plainness uint8

const (
	plainText plainness = 1 << iota
	plainNumbers
)

// plainnessOf returns that of a column of a type that the catalog names. castForm has
// been asked for MySQL. A text that has to be converted there cannot use the index.
func plainnessOf(dialect, typ string, c *uniqueColumn) plainness {
	switch base, _, _ := strings.Cut(typ, "("); {
	case strings.HasSuffix(typ, "[]"):
		return 0
	case dialect == sqliteName:
		return plainText | plainNumbers // which a value of SQLite tells itself
	case dialect == mysqlName && c.whole, dialect == postgresName && (base == "bigint" || base == "integer" || base == "smallint"):
		return plainNumbers
	case dialect == mysqlName && (base == "char" || base == "varchar") && strings.HasPrefix(c.collate, "utf8mb4 "),
		dialect == postgresName && (base == "text" || base == "character varying"):
		return plainText
	default:
		return 0
	}
}

// plain returns v, a string or an int64, if a column that takes such values gets it from
// database/sql as it is.
func (p plainness) plain(v any) (_ any, ok bool) {
	if _, text := v.(string); !text {
		if !simple(v, false) {
			return nil, false
		}
		v, _ = driver.DefaultParameterConverter.ConvertValue(v)
	}
	switch v := v.(type) {
	case string:
		return v, p&plainText != 0 && utf8.ValidString(v) && strings.IndexByte(v, 0) < 0
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

// exact finds stored rows as look does, if they have the very text or number of a row of
// list in keys[0]. It does so only if that key has one column. It returns the other rows.
// They may equal a stored row all the same, by the rules of the column. look has to find
// that out.
//
// Nearly all stored rows that a large upsert meets are found here. The database gets a
// list of values, which is less work for it than the join of look. What it returns is
// compared byte by byte. Texts of equal bytes are equal in every collation.
func (r *reread) exact(list []int, keys []unique, f func(i int, stored []cell, same uint64)) (rest []int, err error) {
	key, dialect := keys[0], r.db.Name()
	if len(list) < manyRows || len(key.columns) != 1 || !key.everywhere() || dialect == mysqlName && key.index == "" {
		return list, nil
	}
	e := &exact{reread: r, keys: keys, at: make(map[any]int, len(list))}
	for _, i := range list {
		v, ok := e.sent(i, key.columns[0])
		if !ok {
			rest = append(rest, i)
			continue
		}
		n, met := e.at[v]
		if !met {
			n = len(e.values)
			e.at[v] = n
			e.values, e.rows = append(e.values, v), append(e.rows, nil)
		}
		e.rows[n] = append(e.rows[n], i)
	}
	e.compared()
	size := valuesPerArray
	if dialect == mysqlName {
		size = valuesPerIn
	}
	e.found = make([]bool, len(e.values))
	for chunk := range slices.Chunk(e.values, size) {
		if err = e.each(chunk, f); sqlerror.NoIndex(err) || err != nil && dialect == sqliteName && strings.Contains(err.Error(), "json_each") {
			break // the index is invisible or ignored, or this SQLite has no JSON
		}
		if err != nil {
			return nil, err
		}
	}
	for n, found := range e.found {
		if !found {
			rest = append(rest, e.rows[n]...)
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
	fields []uniqueColumn // their columns, the listed one first
	places [][]int        // for each of keys, where its columns are in fields; nil: not compared

	values []any // that are sent, each once
	at     map[any]int
	rows   [][]int // for each value
	found  []bool  // for each value
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
		if key := e.keys[k]; key.everywhere() {
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
	q, dialect := e.reread.query(), e.db.Name()
	q.write("SELECT ")
	q.columns()
	for _, c := range e.fields {
		q.write(",", clause.Column{Name: c.field.DBName})
	}
	q.write(" FROM ", q.table())
	if dialect == mysqlName {
		q.write(" FORCE INDEX (", clause.Column{Name: e.keys[0].index}, ")")
	}
	q.write(" WHERE ", clause.Column{Name: e.fields[0].field.DBName})
	if name := e.fields[0].collate; name != "" {
		q.write(" COLLATE ", name) // else the index is of no use
	}
	switch dialect {
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
		array, _ := json.Marshal(values) // of strings and numbers: no error
		q.write(" IN (SELECT value FROM json_each(")
		q.AddVar(q, string(array))
		q.write("))")
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

// each looks up values, and calls f for each row that sends what is stored.
func (e *exact) each(values []any, f func(i int, stored []cell, same uint64)) error {
	got := make([]any, len(e.columns)+len(e.fields))
	into := make([]any, len(got))
	for c := range got {
		into[c] = &got[c]
	}
	return e.query(values).rows(func(rows *sql.Rows) error {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		compared := got[len(e.columns):]
		for c, v := range compared {
			compared[c] = e.fields[c].plain.read(v)
		}
		n, ok := e.at[compared[0]]
		if !ok {
			return nil // equal by the rules of the column alone
		}
		e.found[n] = true
		stored := e.cells(got)
		for _, i := range e.rows[n] {
			f(i, stored, e.same(i, compared))
		}
		return nil
	})
}

// same returns a bit for each key in which row i sends what is stored. It does so in the
// first.
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
