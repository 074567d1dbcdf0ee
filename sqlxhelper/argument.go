package sqlxhelper

import (
	"database/sql/driver"
	"fmt"
	"reflect"
	"time"

	"github.com/snowkey/snowkey/internal/pgtext"
)

// maxNesting is how far a value is looked into. Pointers may point to themselves,
// and lists be in themselves.
const maxNesting = 8

// argument returns what is bound for the column. row is addressable.
//
// A driver.Valuer is called here and not by database/sql. That would pass its panic
// on, and could not name the row and the field of its error. The other values go as
// they are, because drivers take more types than database/sql knows. So do the
// types of pgx. They have a Value method, but pgx reads more from them.
func (c *column) argument(row reflect.Value) (any, error) {
	f := row
	if len(c.index) == 1 {
		f = row.Field(c.index[0])
	} else {
		f = row.FieldByIndex(c.index)
	}
	if c.basic != notBasic {
		return c.basic.of(f), nil
	}
	if c.byAddress {
		f = f.Addr()
	}
	valuer, native := c.valuer, c.native
	// A pointer to a pointer and an interface may hide a Valuer. And lib/pq panics
	// for a nil pointer to a pointer.
	for depth := 0; f.Kind() == reflect.Interface || f.Kind() == reflect.Pointer && hides(f.Type().Elem().Kind()); depth++ {
		if f.IsNil() {
			return nil, nil
		}
		if depth == maxNesting {
			return nil, fmt.Errorf("%v with more than %d pointers to a value, or none", c.typ, maxNesting)
		}
		f = f.Elem()
		valuer, native = f.Type().Implements(valuerType), pgtext.IsNative(f.Type())
	}
	if !valuer || native {
		return f.Interface(), nil
	}
	if f.Kind() == reflect.Pointer && f.IsNil() && f.Type().Elem().Implements(valuerType) {
		return nil, nil // a method of the pointee, which is not there; database/sql does the same
	}
	return valueOf(f.Interface().(driver.Valuer))
}

// A basic is a type that most fields have. It needs no look at its methods, nor at
// what is behind a pointer.
type basic uint8

const (
	notBasic basic = iota
	integerBasic
	float64Basic
	boolBasic
	stringBasic
	bytesBasic
	timeBasic
)

var basics = map[reflect.Type]basic{
	snowflakeType:              integerBasic,
	reflect.TypeFor[int]():     integerBasic,
	reflect.TypeFor[int64]():   integerBasic,
	reflect.TypeFor[float64](): float64Basic,
	reflect.TypeFor[bool]():    boolBasic,
	reflect.TypeFor[string]():  stringBasic,
	reflect.TypeFor[[]byte]():  bytesBasic,
	timeType:                   timeBasic,
}

// of returns the value in a field.
func (b basic) of(f reflect.Value) any {
	switch b {
	case integerBasic:
		return f.Int() // as types.Snowflake.Value and database/sql have it
	case float64Basic:
		return f.Float()
	case boolBasic:
		return f.Bool()
	case stringBasic:
		return f.String()
	case bytesBasic:
		return f.Bytes()
	default:
		return f.Interface()
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

// fixedSize is the estimated size of a number in bytes, or of the escapes, the
// length and the type of a text.
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
			// What a struct points to does not count, such as a time's location.
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
