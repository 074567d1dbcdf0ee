package types

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"reflect"
	"strings"
)

// An ID is a [Snowflake] that names the table it is a key of, so that the key of a customer
// does not compile where that of an order is wanted:
//
//	type Order struct {
//		ID         types.ID[Order]
//		CustomerID types.ID[Customer]
//	}
//
// T is a mark: no value of it exists, and it is usually the model itself. ID has the methods
// and forms of Snowflake. types.ID[Order](s) makes an ID of a Snowflake or an int64, and
// [ID.Snowflake] is the way back. A conversion from one ID to another compiles as well, as does
// an untyped constant.
type ID[T any] int64

// Snowflake returns the key without its mark.
func (id ID[T]) Snowflake() Snowflake { return Snowflake(id) }

// Int64 returns id as an int64.
func (id ID[T]) Int64() int64 { return int64(id) }

// String returns id in decimal.
func (id ID[T]) String() string { return Snowflake(id).String() }

// IsZero reports whether id is zero, as [Snowflake.IsZero] does.
func (id ID[T]) IsZero() bool { return id == 0 }

// Compare returns -1, 0 or +1 if id is smaller than, equal to or greater than o.
func (id ID[T]) Compare(o ID[T]) int { return cmp.Compare(id, o) }

// Add returns id + d, as [Snowflake.Add] does.
func (id ID[T]) Add(d ID[T]) ID[T] { return id + d }

// GormDataType makes the column a bigint, as [Snowflake.GormDataType] does.
func (ID[T]) GormDataType() string { return "bigint" }

// JSONSchemaAlias describes id by its JSON form, as [Snowflake.JSONSchemaAlias] does.
func (ID[T]) JSONSchemaAlias() any { return "" }

// Value implements [driver.Valuer], as [Snowflake.Value] does.
func (id ID[T]) Value() (driver.Value, error) {
	if id < 0 {
		text, err := Snowflake(id).Value()
		return text, marked[T](err)
	}
	return int64(id), nil
}

// Scan implements [database/sql.Scanner], as [Snowflake.Scan] does. NULL is for a [NullID].
func (id *ID[T]) Scan(src any) error {
	return marked[T]((*Snowflake)(id).Scan(src))
}

// AppendText implements [encoding.TextAppender], as [Snowflake.AppendText] does.
func (id ID[T]) AppendText(b []byte) ([]byte, error) {
	b, err := Snowflake(id).AppendText(b)
	return b, marked[T](err)
}

// MarshalText returns id in decimal, as [Snowflake.MarshalText] does.
func (id ID[T]) MarshalText() ([]byte, error) {
	b, err := Snowflake(id).MarshalText()
	return b, marked[T](err)
}

// UnmarshalText reads decimal text, as [Snowflake.UnmarshalText] does.
func (id *ID[T]) UnmarshalText(text []byte) error {
	return marked[T]((*Snowflake)(id).UnmarshalText(text))
}

// UnmarshalJSON reads a JSON string or integer, as [Snowflake.UnmarshalJSON] does.
func (id *ID[T]) UnmarshalJSON(data []byte) error {
	return marked[T]((*Snowflake)(id).UnmarshalJSON(data))
}

// MarshalBinary returns id as 8 bytes, as [Snowflake.MarshalBinary] does.
func (id ID[T]) MarshalBinary() ([]byte, error) {
	b, err := Snowflake(id).MarshalBinary()
	return b, marked[T](err)
}

// AppendBinary implements [encoding.BinaryAppender], as [Snowflake.AppendBinary] does.
func (id ID[T]) AppendBinary(b []byte) ([]byte, error) {
	b, err := Snowflake(id).AppendBinary(b)
	return b, marked[T](err)
}

// UnmarshalBinary reads 8 bytes, as [Snowflake.UnmarshalBinary] does.
func (id *ID[T]) UnmarshalBinary(data []byte) error {
	return marked[T]((*Snowflake)(id).UnmarshalBinary(data))
}

// UnmarshalParam reads a parameter of gin or echo, as [Snowflake.UnmarshalParam] does.
func (id *ID[T]) UnmarshalParam(param string) error {
	return marked[T]((*Snowflake)(id).UnmarshalParam(param))
}

// Bind reads a query parameter of oapi-codegen, as [Snowflake.Bind] does.
func (id *ID[T]) Bind(param string) error { return id.UnmarshalParam(param) }

// UnmarshalMapstructure reads what mapstructure decodes, as [Snowflake.UnmarshalMapstructure]
// does.
func (id *ID[T]) UnmarshalMapstructure(input any) error {
	return marked[T]((*Snowflake)(id).UnmarshalMapstructure(input))
}

// MarshalGQLContext writes a string for gqlgen, as [Snowflake.MarshalGQLContext] does.
func (id ID[T]) MarshalGQLContext(ctx context.Context, w io.Writer) error {
	return marked[T](Snowflake(id).MarshalGQLContext(ctx, w))
}

// UnmarshalGQLContext reads a string or an integer, as [Snowflake.UnmarshalGQLContext] does.
func (id *ID[T]) UnmarshalGQLContext(ctx context.Context, input any) error {
	return marked[T]((*Snowflake)(id).UnmarshalGQLContext(ctx, input))
}

// Base62 returns the short form of [Snowflake.Base62]. A text is read by [ParseBase62].
func (id ID[T]) Base62() string { return Snowflake(id).Base62() }

// AppendBase62 appends the text of [ID.Base62] to b.
func (id ID[T]) AppendBase62(b []byte) []byte { return Snowflake(id).AppendBase62(b) }

// Base58 returns the short form of [Snowflake.Base58]. A text is read by [ParseBase58].
func (id ID[T]) Base58() string { return Snowflake(id).Base58() }

// AppendBase58 appends the text of [ID.Base58] to b.
func (id ID[T]) AppendBase58(b []byte) []byte { return Snowflake(id).AppendBase58(b) }

// Base32 returns the short form of [Snowflake.Base32]. A text is read by [ParseBase32].
func (id ID[T]) Base32() string { return Snowflake(id).Base32() }

// AppendBase32 appends the text of [ID.Base32] to b.
func (id ID[T]) AppendBase32(b []byte) []byte { return Snowflake(id).AppendBase32(b) }

// UUID returns the UUID of [Snowflake.UUID], which [FromUUID] reads.
func (id ID[T]) UUID() [16]byte { return Snowflake(id).UUID() }

// marked returns an error of Snowflake or NullSnowflake, or nil, as that of the marked type, such
// as ID[Order].
func marked[T any](err error) error {
	if err == nil {
		return nil
	}
	return renamed(err, (*T)(nil))
}

// renamed is marked for errors only, of a mark behind a pointer, so that what it allocates is not part of the methods' fast
// path.
func renamed(err error, mark any) error {
	var e *ValueError
	if !errors.As(err, &e) {
		return err
	}
	id := "ID[" + reflect.TypeOf(mark).Elem().Name() + "]"
	names := strings.NewReplacer("NullSnowflake", "Null"+id, "Snowflake", id)
	named := *e
	named.Op, named.Type, named.Want = names.Replace(e.Op), names.Replace(e.Type), names.Replace(e.Want)
	return &named
}
