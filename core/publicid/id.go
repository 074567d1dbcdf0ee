package publicid

import (
	"database/sql/driver"
	"fmt"
	"reflect"

	"github.com/snowkey/snowkey/types"
)

// A Kind is what the keys of a table are marked with, as in types.ID, if they have a public form. It
// is usually the model itself:
//
//	func (Order) PublicIDs() *publicid.Codec { return orderIDs }
//
// PublicIDs is called for the zero Order, and may be called at the same time by several goroutines.
type Kind interface{ PublicIDs() *Codec }

// An ID is a key in a request or a response. It is written as its public form in JSON, as a text and
// by fmt, and reads nothing else; T says which Codec does that, so that the ID of an order is never
// read as that of a customer:
//
//	type OrderView struct {
//		ID publicid.ID[Order] `json:"id"`
//	}
//
// [Of] makes an ID of a types.ID, and [ID.Key] is the way back; nothing else converts. IDs can be
// compared, and be the keys of maps, also in JSON. The zero value is the public form of key 0, which
// no row has: leave it out with the option omitzero, and use a pointer where JSON has null.
//
// An ID is never a column: with database/sql and what is built on it, storing or scanning one is an
// error. Encoders that look for fields rather than methods, such as gob, do not have the key, but fmt
// shows it for %d and %#v, and for an ID in an unexported field. Methods with a value receiver are
// safe for concurrent use.
type ID[T Kind] struct{ key types.ID[T] }

// Of returns the key as an ID.
func Of[T Kind](key types.ID[T]) ID[T] { return ID[T]{key} }

// Parse returns the ID with this public form. An error matches [ErrInvalid].
func Parse[T Kind](text string) (ID[T], error) {
	var id ID[T]
	err := id.UnmarshalParam(text)
	return id, err
}

// Key returns the key, with which rows are found.
func (id ID[T]) Key() types.ID[T] { return id.key }

// IsZero reports whether the key is zero, which means "not assigned yet". The JSON option omitzero
// calls it.
func (id ID[T]) IsZero() bool { return id.key == 0 }

// String returns the public form. No reader accepts that of a negative key.
func (id ID[T]) String() string {
	codec, err := codecOf[T]()
	if err != nil {
		return err.Error()
	}
	return codec.Encode(id.key.Snowflake())
}

// AppendText implements [encoding.TextAppender]: it appends the public form to b. A negative key
// returns b unchanged and an error that matches [types.ErrRange].
func (id ID[T]) AppendText(b []byte) ([]byte, error) {
	codec, err := codecOf[T]()
	if err != nil {
		return b, err
	}
	if id.key < 0 {
		return id.key.AppendText(b) // its error
	}
	return codec.append(b, id.key.Snowflake()), nil
}

// MarshalText returns the public form, as [ID.AppendText] does. JSON and keys of maps use it.
func (id ID[T]) MarshalText() ([]byte, error) {
	b, err := id.AppendText(make([]byte, 0, maxQuoted))
	if err != nil {
		return nil, err
	}
	return b, nil
}

// UnmarshalText reads a public form. An error matches [ErrInvalid] and leaves id unchanged.
func (id *ID[T]) UnmarshalText(text []byte) error { return id.UnmarshalParam(string(text)) }

// UnmarshalParam reads a parameter of the path, the query or a form, as [ID.UnmarshalText] does. gin
// and echo call it.
func (id *ID[T]) UnmarshalParam(param string) error {
	codec, err := codecOf[T]()
	if err != nil {
		return err
	}
	key, err := codec.Decode(param)
	if err != nil {
		return err
	}
	id.key = types.ID[T](key)
	return nil
}

// Bind is UnmarshalParam for query parameters in the code that oapi-codegen generates.
func (id *ID[T]) Bind(param string) error { return id.UnmarshalParam(param) }

// UnmarshalJSON reads a JSON string without escapes. As everywhere in encoding/json, null leaves id
// unchanged. An error matches [ErrInvalid] and leaves id unchanged too.
func (id *ID[T]) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	if n := len(data); n >= 2 && data[0] == '"' && data[n-1] == '"' {
		return id.UnmarshalText(data[1 : n-1])
	}
	return fmt.Errorf("%w %s: want a JSON string", ErrInvalid, quote(string(data)))
}

// JSONSchemaAlias makes github.com/invopop/jsonschema describe id by its JSON form, a string.
func (ID[T]) JSONSchemaAlias() any { return "" }

// Value is an error: an ID is never a column. Store id.Key(), in a column of 8 bytes that sorts.
func (id ID[T]) Value() (driver.Value, error) {
	err := noColumn[T]()
	// In a condition that is a map or a struct, GORM drops the error. It would take nil for NULL,
	// and find other rows, but it passes the ID to database/sql if there is a value.
	return err.Error(), err
}

// Scan is an error: an ID is never a column. Scan into a types.ID.
func (id *ID[T]) Scan(any) error { return noColumn[T]() }

func noColumn[T Kind]() error {
	name := nameOf[T]()
	return fmt.Errorf("publicid: ID[%s] is never a column: want a types.ID[%s], which ID.Key returns", name, name)
}

// codecOf returns the Codec of T, which a program may have forgotten to make.
func codecOf[T Kind]() (*Codec, error) {
	var t T
	if codec := t.PublicIDs(); codec != nil {
		return codec, nil
	}
	return nil, refuse(nameOf[T]()+".PublicIDs", "nil", "a Codec of publicid.New")
}

func nameOf[T Kind]() string { return reflect.TypeFor[T]().Name() }
