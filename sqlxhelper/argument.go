package sqlxhelper

import (
	"database/sql/driver"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"
	"unsafe"
)

// maxNesting is how far a value is looked into. Pointers may point to themselves,
// and lists be in themselves.
const maxNesting = 8

// argument returns what is bound for the column. row is addressable.
//
// A driver.Valuer is asked here and not left to database/sql: that one would
// pass its panic on, and could not say of which row and field its error is. The
// other values go as they are, because drivers take more types than database/sql
// knows. So do the types of pgx, which have a Value method and more to say.
func (c *column) argument(row reflect.Value) (any, error) {
	if c.basic != notBasic {
		return c.basic.in(c.at.in(row)), nil
	}
	f := row.FieldByIndex(c.index)
	if c.byAddress {
		f = f.Addr()
	}
	valuer, native := c.valuer, c.native
	// A pointer to a pointer and an interface are nothing themselves, and may
	// hide a Valuer; and lib/pq panics for a nil pointer to a pointer.
	for depth := 0; f.Kind() == reflect.Interface || f.Kind() == reflect.Pointer && hides(f.Type().Elem().Kind()); depth++ {
		if f.IsNil() {
			return nil, nil
		}
		if depth == maxNesting {
			return nil, fmt.Errorf("%v with more than %d pointers to a value, or none", c.typ, maxNesting)
		}
		f = f.Elem()
		valuer, native = f.Type().Implements(valuerType), isNative(f.Type())
	}
	if !valuer || native {
		return f.Interface(), nil
	}
	if f.Kind() == reflect.Pointer && f.IsNil() && f.Type().Elem().Implements(valuerType) {
		return nil, nil // a method of the pointee, which is not there; database/sql does the same
	}
	return valueOf(f.Interface().(driver.Valuer))
}

// isNative reports whether a type has a method that speaks of a package pgtype,
// as all types of such a package have that are a driver.Valuer, and types that
// embed one. pgx asks them by these methods, in all its versions, and not by
// Value, which loses something: a date becomes an instant in its time zone.
func isNative(t reflect.Type) bool {
	if known, ok := natives.Load(t); ok {
		return known.(bool)
	}
	native := false
	for i := range t.NumMethod() {
		method := t.Method(i).Type
		for j := range method.NumIn() {
			native = native || ofPgtype(method.In(j))
		}
		for j := range method.NumOut() {
			native = native || ofPgtype(method.Out(j))
		}
	}
	natives.Store(t, native)
	return native
}

// natives holds what isNative has found, because it is asked of the values in
// fields of interface types: reflect.Type to bool.
var natives sync.Map

func ofPgtype(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return strings.HasSuffix(t.PkgPath(), "/pgtype")
}

// A basic is a type that most fields have. They are read without reflection,
// which takes half the time.
type basic uint8

const (
	notBasic basic = iota
	snowflakeBasic
	intBasic
	int64Basic
	float64Basic
	boolBasic
	stringBasic
	bytesBasic
	timeBasic
)

var basics = map[reflect.Type]basic{
	snowflakeType:              snowflakeBasic,
	reflect.TypeFor[int]():     intBasic,
	reflect.TypeFor[int64]():   int64Basic,
	reflect.TypeFor[float64](): float64Basic,
	reflect.TypeFor[bool]():    boolBasic,
	reflect.TypeFor[string]():  stringBasic,
	reflect.TypeFor[[]byte]():  bytesBasic,
	timeType:                   timeBasic,
}

// in returns the value at p.
func (b basic) in(p unsafe.Pointer) any {
	switch b {
	case snowflakeBasic, int64Basic:
		return *(*int64)(p) // as types.Snowflake.Value says, without a call
	case intBasic:
		return int64(*(*int)(p)) // as database/sql makes of it, allocating it once more
	case float64Basic:
		return *(*float64)(p)
	case boolBasic:
		return *(*bool)(p)
	case stringBasic:
		return *(*string)(p)
	case bytesBasic:
		return *(*[]byte)(p)
	default:
		return *(*time.Time)(p)
	}
}

func hides(k reflect.Kind) bool { return k == reflect.Pointer || k == reflect.Interface }

// valueOf calls Value, and makes an error of a panic.
func valueOf(v driver.Valuer) (value any, err error) {
	defer func() {
		if p := recover(); p != nil {
			value, err = nil, fmt.Errorf("panic in Value: %v", p)
		}
	}()
	return v.Value()
}

// fixedSize is how many bytes a value is taken for, besides those that it has of
// its own: a number, or the escapes, the length and the type of a text.
const fixedSize = 16

// sizeOf estimates how many bytes a value takes in a statement.
func sizeOf(v any) int {
	switch v := v.(type) {
	case nil, int64, int, bool, float64, time.Time:
		return fixedSize
	case string:
		return fixedSize + len(v)
	case []byte:
		return fixedSize + len(v)
	}
	return sizeIn(reflect.ValueOf(v), 0)
}

// sizeIn is sizeOf for what only some drivers take, as lists and maps.
func sizeIn(v reflect.Value, depth int) int {
	size := fixedSize
	if depth == maxNesting {
		return size
	}
	switch v.Kind() {
	case reflect.String:
		size += v.Len()
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return sizeIn(v.Elem(), depth+1)
		}
	case reflect.Slice, reflect.Array:
		switch elem := v.Type().Elem(); elem.Kind() {
		case reflect.String, reflect.Pointer, reflect.Interface, reflect.Slice, reflect.Array, reflect.Map, reflect.Struct:
			for i := range v.Len() {
				size += sizeIn(v.Index(i), depth+1)
			}
		default:
			size += v.Len() * int(elem.Size())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			// What a struct points to is its own affair, as a time's location.
			switch f := v.Field(i); f.Kind() {
			case reflect.String, reflect.Slice, reflect.Struct:
				size += sizeIn(f, depth+1)
			}
		}
	case reflect.Map:
		for entries := v.MapRange(); entries.Next(); {
			size += sizeIn(entries.Key(), depth+1) + sizeIn(entries.Value(), depth+1)
		}
	}
	return size
}
