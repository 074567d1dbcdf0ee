// Package keytype tells the types that hold a key apart from all others, and says how fields of
// such types hold one.
package keytype

import (
	"database/sql"
	"database/sql/driver"
	"reflect"
	"strings"

	"github.com/snowkey/snowkey/types"
)

// The types that hold a key without a mark.
var (
	Snowflake     = reflect.TypeFor[types.Snowflake]()
	NullSnowflake = reflect.TypeFor[types.NullSnowflake]()
	SQLNull       = reflect.TypeFor[sql.Null[types.Snowflake]]()

	pointer = reflect.PointerTo(Snowflake)
	valuer  = reflect.TypeFor[driver.Valuer]()
	scanner = reflect.TypeFor[sql.Scanner]()
)

// Untyped returns the type without a mark that has the memory layout of t: [types.Snowflake] for
// a [types.ID], [types.NullSnowflake] for a [types.NullID], and likewise for a pointer to an ID
// and for sql.Null. Any other type is returned unchanged.
//
// Instances of a generic type have nothing in common but their name. A method to recognize them
// by would be part of what users see of a key, and could be had by types of their own.
func Untyped(t reflect.Type) reflect.Type {
	switch t.Kind() {
	case reflect.Int64:
		if marked(t, "ID[") {
			return Snowflake
		}
	case reflect.Struct:
		switch {
		case marked(t, "NullID["):
			return NullSnowflake
		case t.PkgPath() == SQLNull.PkgPath() && strings.HasPrefix(t.Name(), "Null[") && Untyped(t.Field(0).Type) == Snowflake:
			return SQLNull
		}
	case reflect.Pointer:
		if t.PkgPath() == "" && t.Elem().Kind() == reflect.Int64 && Untyped(t.Elem()) == Snowflake {
			return pointer
		}
	}
	return t
}

func marked(t reflect.Type, prefix string) bool {
	return t.PkgPath() == Snowflake.PkgPath() && strings.HasPrefix(t.Name(), prefix)
}
