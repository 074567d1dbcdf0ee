package sqlxhelper

import (
	"database/sql/driver"
	"fmt"
	"reflect"
	"time"

	"github.com/snowkey/snowkey/internal/base/pgtext"
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
	f := c.in(row)
	switch c.plain {
	case reflect.Int, reflect.Int64:
		return f.Int(), nil // as types.Snowflake.Value and database/sql have it
	case reflect.String:
		return f.String(), nil
	case reflect.Float64:
		return f.Float(), nil
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
	return pgtext.Value(f.Interface().(driver.Valuer))
}

func hides(k reflect.Kind) bool { return k == reflect.Pointer || k == reflect.Interface }

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

// sizeIn is sizeOf for what only some drivers take, as lists and maps. What a struct
// points to does not count, such as a time's location.
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
			size = sizeIn(v.Elem(), depth+1)
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() < reflect.Array { // a number or a bool
			return size + v.Len()*int(v.Type().Elem().Size())
		}
		for i := range v.Len() {
			size += sizeIn(v.Index(i), depth+1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.Kind() != reflect.Pointer && f.Kind() != reflect.Interface {
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
