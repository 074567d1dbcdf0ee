package sqlxhelper

import (
	"bytes"
	"math/big"
	"reflect"
	"time"

	"github.com/snowkey/snowkey/internal/base/pgtext"
)

// A hold says what it takes to keep the value that a field has now. The memory of a row
// of a sequence is the program's again as soon as yield returns, so a copy of the struct
// is not enough.
type hold uint8

const (
	// asCopied: the copy of the struct has the whole value.
	asCopied hold = iota
	// byCopy: what the field refers to is copied too. The field stays one that
	// package pgtext reads by itself.
	byCopy
	// byArgument: the argument is made at once and kept beside the row. Only the Value
	// method of a driver.Valuer can tell what that refers to.
	byArgument
)

// holdOf returns how the values of a column are kept.
func holdOf(c *column) hold {
	switch {
	case c.kind != 0 && c.kind != pgtext.ValueKind:
		if refers(c.typ) {
			return byCopy
		}
		return asCopied
	// Value may read what is not in the field, unless we know the type. Drivers read
	// the types of pgx without it.
	case refers(c.typ) || c.valuer && !c.native && !isPlainValuer(c.typ):
		return byArgument
	}
	return asCopied
}

// isPlainValuer reports whether the Value method of t returns what is in t.
func isPlainValuer(t reflect.Type) bool {
	return t.PkgPath() == snowflakeType.PkgPath() || t.PkgPath() == "database/sql"
}

// refers reports whether a value of type t may refer to memory that others can change.
func refers(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface, reflect.Chan, reflect.Func, reflect.UnsafePointer:
		return true
	case reflect.Array:
		return refers(t.Elem())
	case reflect.Struct:
		if t == timeType {
			return false // nobody can change a time.Location
		}
		for i := range t.NumField() {
			if refers(t.Field(i).Type) {
				return true
			}
		}
	}
	return false
}

// A held value is the argument of a column of a row, or why there is none.
type held struct {
	value any
	err   error
}

// keep returns the argument of the column for a row, apart from the memory of the row.
func (c *column) keep(row reflect.Value) held {
	value, err := c.argument(row)
	switch v := value.(type) {
	case nil, int64, string, float64, bool:
	case []byte:
		value = bytes.Clone(v)
	default:
		value = apart(reflect.ValueOf(value), 0).Interface()
	}
	return held{value, err}
}

// apart returns a copy of v that shares no memory with it, as far as that can be seen
// from outside of its type. Fields that are not exported are copied as they are. A
// driver.Valuer is not affected, because keep has its value and not itself.
func apart(v reflect.Value, depth int) reflect.Value {
	if depth == maxNesting || !refers(v.Type()) {
		return v
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return v
		}
		switch p := v.Interface().(type) {
		case *big.Int: // as in pgtype.Numeric
			return reflect.ValueOf(new(big.Int).Set(p))
		case *time.Location: // which is known by its address
			return v
		}
		own := reflect.New(v.Type().Elem())
		own.Elem().Set(apart(v.Elem(), depth+1))
		return own.Convert(v.Type())
	case reflect.Interface:
		if v.IsNil() {
			return v
		}
		own := reflect.New(v.Type()).Elem()
		own.Set(apart(v.Elem(), depth+1))
		return own
	case reflect.Slice:
		if v.IsNil() {
			return v
		}
		own := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(own, v)
		if refers(v.Type().Elem()) {
			for i := range own.Len() {
				own.Index(i).Set(apart(v.Index(i), depth+1))
			}
		}
		return own
	case reflect.Array:
		own := reflect.New(v.Type()).Elem()
		for i := range own.Len() {
			own.Index(i).Set(apart(v.Index(i), depth+1))
		}
		return own
	case reflect.Map:
		if v.IsNil() {
			return v
		}
		own := reflect.MakeMapWithSize(v.Type(), v.Len())
		for entries := v.MapRange(); entries.Next(); {
			own.SetMapIndex(entries.Key(), apart(entries.Value(), depth+1))
		}
		return own
	case reflect.Struct:
		own := reflect.New(v.Type()).Elem()
		own.Set(v)
		for i := range own.NumField() {
			if f := own.Field(i); f.CanSet() {
				f.Set(apart(f, depth+1))
			}
		}
		return own
	}
	return v
}
