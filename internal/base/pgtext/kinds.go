package pgtext

import (
	"database/sql/driver"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/snowkey/snowkey/internal/base/keytype"
)

// A Kind classifies a Go type. The zero value is for types whose values this package does not write.
type Kind uint8

const (
	intKind Kind = iota + 1
	uintKind
	float32Kind
	float64Kind
	boolKind
	stringKind
	namedStringKind // a type whose underlying type is string
	bytesKind
	timeKind
	// ValueKind is a driver.Valuer or an any, whose kind depends on the value.
	ValueKind
)

// MayBeTime reports whether a value of the kind may be a time.
func (k Kind) MayBeTime() bool { return k == timeKind || k == ValueKind }

var (
	valuerType = reflect.TypeFor[driver.Valuer]()
	timeType   = reflect.TypeFor[time.Time]()
)

// kinds maps the kinds of reflect, for types without relevant methods.
var kinds = map[reflect.Kind]Kind{
	reflect.Int: intKind, reflect.Int8: intKind, reflect.Int16: intKind, reflect.Int32: intKind, reflect.Int64: intKind,
	reflect.Uint: uintKind, reflect.Uint8: uintKind, reflect.Uint16: uintKind, reflect.Uint32: uintKind, reflect.Uint64: uintKind,
	reflect.Float32: float32Kind, reflect.Float64: float64Kind, reflect.Bool: boolKind,
	reflect.String: namedStringKind,
}

// KindOf returns the kind of a type, or of what it points to if pointer is true.
func KindOf(t reflect.Type) (k Kind, pointer bool) {
	switch {
	case keytype.Untyped(t) == keytype.Snowflake:
		return intKind, false
	case IsValuer(t):
		if IsNative(t) {
			return 0, false
		}
		return ValueKind, false
	case t.Kind() == reflect.Interface:
		// Its methods may be those of a Valuer, or one that pgx looks for.
		if t.NumMethod() == 0 {
			return ValueKind, false
		}
		return 0, false
	case t.Kind() == reflect.Pointer:
		if t = t.Elem(); IsValuer(t) {
			return 0, false
		}
		pointer = true
	}
	switch {
	case t == timeType:
		return timeKind, pointer
	case namesItself(t) || namesItself(reflect.PointerTo(t)):
		return 0, false
	case t == reflect.TypeFor[string]():
		return stringKind, pointer
	case t == reflect.TypeFor[[]byte]():
		// Other slices may be json.RawMessage, which is text to pgx in some modes.
		return bytesKind, pointer
	}
	return kinds[t.Kind()], pointer
}

// Value returns what database/sql would take v for. A panic in Value is an error.
func Value(v driver.Valuer) (value any, err error) {
	// A method of the pointee, which is not there.
	if f := reflect.ValueOf(v); f.Kind() == reflect.Pointer && f.IsNil() && f.Type().Elem().Implements(valuerType) {
		return nil, nil
	}
	defer func() {
		if p := recover(); p != nil {
			value, err = nil, fmt.Errorf("panic in Value: %v", p)
		}
	}()
	return v.Value()
}

// IsValuer reports whether t, or a pointer to one, is a driver.Valuer.
func IsValuer(t reflect.Type) bool {
	return t.Implements(valuerType) || t.Kind() != reflect.Pointer && reflect.PointerTo(t).Implements(valuerType)
}

// IsNative reports whether a driver.Valuer, which may be t or a pointer to t, has a method with a
// type of a package pgtype in its signature. All driver.Valuers of such a package have one, and so
// have types that embed them. All versions of pgx call that method rather than Value, which loses
// information: a date becomes an instant in its time zone.
func IsNative(t reflect.Type) bool {
	if !t.Implements(valuerType) && t.Kind() != reflect.Pointer {
		t = reflect.PointerTo(t)
	}
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

// natives caches the results of IsNative by reflect.Type, because it is called for every value in a
// field of an interface type.
var natives sync.Map

func ofPgtype(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return strings.HasSuffix(t.PkgPath(), "/pgtype")
}

// namesItself reports whether a type has a method by which some mode or version of pgx reads its
// value: String, or the method of an interface in pgtype such as Int64Valuer.
func namesItself(t reflect.Type) bool {
	for i := range t.NumMethod() {
		if name := t.Method(i).Name; name == "String" || strings.HasSuffix(name, "Value") {
			return true
		}
	}
	return false
}
