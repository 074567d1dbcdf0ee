package gormplugin

import (
	"database/sql/driver"
	"reflect"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/snowkey/snowkey/internal/base/pgtext"
)

// arrays returns the text of an array for each column of values. It reports false if
// a value has to go by VALUES.
func arrays(t *pgtext.Table, stmt *gorm.Statement, values clause.Values) ([]string, bool) {
	for _, c := range values.Columns {
		if t.Columns[c.Name].Type == 0 || c != (clause.Column{Name: c.Name}) || strings.ContainsAny(c.Name, `".`) {
			return nil, false
		}
	}
	arrays := make([]string, len(values.Columns))
	var b []byte
	for i, c := range values.Columns {
		e := element{stmt: stmt, column: t.Columns[c.Name].Type, format: t.Array()}
		b = b[:0]
		for _, row := range values.Values {
			ok := i < len(row) && len(b) < maxArray
			if ok {
				b, ok = e.append(append(b, ','), row[i])
			}
			if !ok {
				return nil, false
			}
		}
		b[0] = '{'
		arrays[i] = string(append(b, '}'))
	}
	return arrays, true
}

// An element writes the values of one column. It knows the type of the last value,
// because most columns have values of one type.
type element struct {
	stmt   *gorm.Statement
	column pgtext.Type
	format pgtext.Format

	last    reflect.Type
	kind    pgtext.Kind
	pointer bool
	plain   bool // a type of driver.Value
	// inner writes what GORM asks a gorm.Valuer for.
	inner *element
}

// append appends v. It reports false if v has to go by VALUES.
func (e *element) append(b []byte, v any) (_ []byte, ok bool) {
	if v == nil {
		return pgtext.AppendNull(b, e.format), true
	}
	if t := reflect.TypeOf(v); t != e.last {
		e.learn(t, v)
	}
	switch {
	case e.inner != nil:
		return e.appendValuer(b, v)
	case e.plain:
		return e.column.AppendValue(b, v, e.format)
	case e.kind == pgtext.ValueKind:
		value, err := pgtext.Value(v.(driver.Valuer))
		text, isText := value.(string)
		if err != nil || isText && !e.column.TakesParsed(text) {
			return b, false // the driver decides, and has the same error
		}
		return e.column.AppendValue(b, value, e.format)
	case !e.column.Takes(e.kind):
		return b, false
	}
	f := reflect.ValueOf(v)
	if e.pointer {
		if f.IsNil() {
			return pgtext.AppendNull(b, e.format), true
		}
		f = f.Elem()
	}
	return e.column.AppendField(b, e.kind, f, e.format)
}

// learn finds out how values of type t are written, of which v is one. It tells by the
// interfaces as GORM does, in the same order.
func (e *element) learn(t reflect.Type, v any) {
	*e = element{stmt: e.stmt, column: e.column, format: e.format, last: t}
	switch v.(type) {
	case int64, int, float64, bool, string, []byte, time.Time:
		e.plain = true
	case gorm.Valuer:
		e.inner = &element{stmt: e.stmt, column: e.column, format: e.format}
	case clause.Interface, clause.Expression:
	case driver.Valuer:
		e.kind, _ = pgtext.KindOf(t)
	default:
		if e.kind, e.pointer = pgtext.KindOf(t); e.kind == pgtext.ValueKind {
			e.kind = 0 // only the pointer is a driver.Valuer
		}
	}
}

// appendValuer appends the value of a gorm.Valuer, if its expression is nothing else.
func (e *element) appendValuer(b []byte, v any) (_ []byte, ok bool) {
	if f := reflect.ValueOf(v); f.Kind() == reflect.Pointer && f.IsNil() {
		return pgtext.AppendNull(b, e.format), true
	}
	expr := v.(gorm.Valuer).GormValue(e.stmt.Context, e.stmt.DB)
	if expr.SQL != "?" || len(expr.Vars) != 1 {
		return b, false
	}
	return e.inner.append(b, expr.Vars[0])
}
