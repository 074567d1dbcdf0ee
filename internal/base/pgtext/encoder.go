package pgtext

import (
	"database/sql/driver"
	"reflect"
	"time"
)

// An Encoder writes values for one column as database/sql and the driver would store them. It
// remembers the type of the last value, because most columns have values of one type. It is not
// safe for concurrent use.
type Encoder struct {
	Type   Type
	Format Format

	last    reflect.Type
	kind    Kind
	isValue bool // a type of driver.Value
}

// Append appends v. If v has to be sent as a parameter, ok is false, and b may have grown.
func (e *Encoder) Append(b []byte, v any) (_ []byte, ok bool) {
	if t := reflect.TypeOf(v); t != e.last {
		e.learn(t, v)
	}
	switch {
	case v == nil || e.isValue:
		return e.Type.AppendValue(b, v, e.Format)
	case e.kind == ValueKind:
		value, err := Value(v.(driver.Valuer))
		text, isText := value.(string)
		if err != nil || isText && !e.Type.TakesParsed(text) {
			return b, false // the driver decides, and has the same error
		}
		return e.Type.AppendValue(b, value, e.Format)
	case !e.Type.Takes(e.kind):
		return b, false
	default:
		return e.Type.AppendField(b, e.kind, reflect.ValueOf(v), e.Format)
	}
}

// learn finds out how to write values of type t, such as v.
func (e *Encoder) learn(t reflect.Type, v any) {
	e.last, e.kind, e.isValue = t, 0, false
	switch v.(type) {
	case nil:
	case int64, int, float64, bool, string, []byte, time.Time:
		e.isValue = true
	case driver.Valuer:
		e.kind, _ = KindOf(t)
	default:
		if e.kind, _ = KindOf(t); e.kind == ValueKind {
			e.kind = 0 // only the pointer is a driver.Valuer
		}
	}
}
