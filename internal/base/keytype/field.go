package keytype

import (
	"database/sql"
	"fmt"
	"reflect"

	"github.com/snowkey/snowkey/types"
)

// Also selects types that may hold a key beside those of package types.
type Also uint8

const (
	// Integers of 64 bits, sql.NullInt64 and sql.Null of such an integer.
	Integers Also = 1 << iota
	// Texts are strings, which hold the key in decimal.
	Texts
)

// A Field is how a field holds a key. The zero Field holds none.
type Field struct {
	form    form
	pointer bool
	signed  bool // it holds numbers below zero as well
}

type form uint8

const (
	number form = iota + 1 // types.Snowflake, types.ID, and integers
	text
	twin // a struct of a key and of whether there is one: types.NullSnowflake, types.NullID, sql.Null, sql.NullInt64
)

// A TypeError says why a type holds no key.
type TypeError struct {
	Type    reflect.Type
	Narrow  bool // an integer with fewer bits than a key
	Methods bool // an integer with a Value or Scan method, which may store or read something else
}

// Error implements the error interface.
func (e *TypeError) Error() string {
	switch {
	case e.Narrow:
		return fmt.Sprintf("%v cannot hold a key of 64 bits", e.Type)
	case e.Methods:
		return fmt.Sprintf("%v has a Value or Scan method, which may store or read something else than the key", e.Type)
	default:
		return fmt.Sprintf("%v holds no key", e.Type)
	}
}

// maxPointers bounds the pointers that lead to a key, because a type may point to itself.
const maxPointers = 8

// FieldOf returns how a field of type t holds a key: a types.Snowflake, a types.ID, a nullable
// form of one, a type of also, or a pointer to any of them. Other types have the zero Field.
func FieldOf(t reflect.Type, also Also) Field {
	at := pointee(t)
	form, _ := formOf(at, also)
	f := Field{form: form, pointer: form != 0 && at != t}
	if form == twin {
		at = at.Field(0).Type
	}
	f.signed = f.Number() && at.Kind() <= reflect.Int64 && Untyped(at) != Snowflake
	return f
}

// Check returns why a field of type t holds no key, or nil if it does.
func Check(t reflect.Type, also Also) *TypeError {
	form, why := formOf(pointee(t), also)
	if form != 0 {
		return nil
	}
	return &TypeError{t, why.Narrow, why.Methods}
}

func pointee(t reflect.Type) reflect.Type {
	for i := 0; t.Kind() == reflect.Pointer && i < maxPointers; i++ {
		t = t.Elem()
	}
	return t
}

func formOf(t reflect.Type, also Also) (form, TypeError) {
	switch untyped := Untyped(t); {
	case untyped == Snowflake:
		return number, TypeError{}
	case untyped == NullSnowflake, untyped == SQLNull:
		return twin, TypeError{}
	case also&Texts != 0 && t.Kind() == reflect.String:
		return text, TypeError{}
	case also&Integers == 0:
		return 0, TypeError{}
	case t.Kind() == reflect.Struct && t.PkgPath() == SQLNull.PkgPath() && t.NumField() == 2 && isInteger(t.Field(0).Type):
		_, e := formOf(t.Field(0).Type, also) // of Null and NullInt64, whose second field is Valid
		if e != (TypeError{}) {
			return 0, e
		}
		return twin, e
	case !isInteger(t):
		return 0, TypeError{}
	case hasOwnForm(t):
		return 0, TypeError{Methods: true}
	case t.Bits() != 64:
		return 0, TypeError{Narrow: true}
	default:
		return number, TypeError{}
	}
}

func isInteger(t reflect.Type) bool { return reflect.Int <= t.Kind() && t.Kind() <= reflect.Uint64 }

// hasOwnForm reports whether an integer type has a Value or Scan method, with which it may store
// and read something else than its number. Then the number that a plugin puts into a field is not
// the key of the row.
func hasOwnForm(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(valuer) || p.Implements(scanner)
}

// Holds reports whether f holds a key.
func (f Field) Holds() bool { return f.form != 0 }

// Number reports whether f holds a key as a number, which may be NULL.
func (f Field) Number() bool { return f.form != 0 && f.form != text }

// Text reports whether f holds a key as text.
func (f Field) Text() bool { return f.form == text }

// Pointer reports whether the key of f is behind a pointer, which other rows may share.
func (f Field) Pointer() bool { return f.pointer }

// Plain reports whether the field is a number that is never NULL, as a primary key is; see [At].
func (f Field) Plain() bool { return !f.pointer && f.form == number }

// Nullable reports whether the type of f tells zero from NULL by itself, as types.NullSnowflake
// does.
func (f Field) Nullable() bool { return f.form == twin }

// Fits reports whether the row of a field f may have the key id. One below zero is no key of a
// source, but a program may have keys of its own that are, as those of Telegram's groups. Integers
// with a sign hold them. A types.Snowflake does not, because it would not be read back, and neither
// does an unsigned integer, whose Key is below zero if it has the 64th bit.
func (f Field) Fits(id types.Snowflake) bool { return id >= 0 || f.signed }

// Scan returns the key that a database has returned for a field f that holds numbers, or null for
// NULL. One that does not fit matches [types.ErrRange].
func (f Field) Scan(stored any) (id types.Snowflake, null bool, err error) {
	if n, ok := stored.(int64); ok && n >= 0 { // as nearly all are, without the allocations of Scan
		return types.Snowflake(n), false, nil
	}
	var key types.NullSnowflake
	if err = key.Scan(stored); err != nil && f.signed {
		var own sql.NullInt64 // which is allocated
		if own.Scan(stored) == nil {
			return types.Snowflake(own.Int64), false, nil
		}
	}
	return key.Snowflake, !key.Valid, err
}

// Key returns the key in v, a field that holds numbers, or null if it is stored as NULL. It may be
// one that does not fit, see [Field.Fits].
func (f Field) Key(v reflect.Value) (id types.Snowflake, null bool) {
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return 0, true
		}
		v = v.Elem()
	}
	if f.form == twin {
		if !v.Field(1).Bool() {
			return 0, true
		}
		v = v.Field(0)
	}
	if v.CanUint() {
		return types.Snowflake(v.Uint()), false
	}
	return types.Snowflake(v.Int()), false
}

// Set sets v, an addressable field, to a key. It replaces a pointer and never writes through it,
// because other rows, or the parent as its key, may share the memory.
func (f Field) Set(v reflect.Value, id types.Snowflake) {
	switch v = f.Renew(v); f.form {
	case text:
		v.SetString(id.String())
		return
	case twin:
		v.Field(1).SetBool(true)
		v = v.Field(0)
	}
	if v.CanUint() {
		v.SetUint(uint64(id))
		return
	}
	v.SetInt(id.Int64())
}

// Renew returns the value that v, an addressable field, leads to by pointers of its own.
func (f Field) Renew(v reflect.Value) reflect.Value {
	for v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	return v
}

// At returns v, an addressable field that is [Field.Plain], as a key. A 64-bit number has the
// memory of a types.Snowflake.
func At(v reflect.Value) *types.Snowflake {
	return reflect.NewAt(Snowflake, v.Addr().UnsafePointer()).Interface().(*types.Snowflake)
}
