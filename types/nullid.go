package types

import (
	"context"
	"database/sql/driver"
	"io"
	"reflect"
)

// A NullID is an [ID] that may be absent: SQL NULL, JSON null. It is to ID what
// [NullSnowflake] is to [Snowflake], with the same methods and forms, and is the type for a
// reference that may be missing. The zero value is absent.
type NullID[T any] struct {
	ID    ID[T] // the ID; zero if Valid is false
	Valid bool  // whether the ID is present
}

// NullSnowflake returns the key without its mark.
func (n NullID[T]) NullSnowflake() NullSnowflake {
	return NullSnowflake{Snowflake: Snowflake(n.ID), Valid: n.Valid}
}

// GormDataType makes the column a bigint, as [Snowflake.GormDataType] does.
func (NullID[T]) GormDataType() string { return "bigint" }

// JSONSchemaAlias is the same as [NullSnowflake.JSONSchemaAlias].
func (NullID[T]) JSONSchemaAlias() any { return "" }

// IsZero reports whether n is absent, so that the JSON option omitzero omits it.
func (n NullID[T]) IsZero() bool { return !n.Valid }

// String returns the ID in decimal, or "NULL".
func (n NullID[T]) String() string { return n.NullSnowflake().String() }

// Value implements [driver.Valuer], as [NullSnowflake.Value] does.
func (n NullID[T]) Value() (driver.Value, error) {
	if !n.Valid {
		return nil, nil
	}
	return n.ID.Value()
}

// Scan implements [database/sql.Scanner], as [NullSnowflake.Scan] does.
func (n *NullID[T]) Scan(src any) error {
	to := n.receiver()
	return n.set(to, to.Scan(src))
}

// MarshalJSON returns null or a JSON string, as [NullSnowflake.MarshalJSON] does.
func (n NullID[T]) MarshalJSON() ([]byte, error) {
	b, err := n.NullSnowflake().MarshalJSON()
	return b, marked[T](err)
}

// UnmarshalJSON reads null, a JSON string or an integer, as [NullSnowflake.UnmarshalJSON]
// does.
func (n *NullID[T]) UnmarshalJSON(data []byte) error {
	to := n.receiver()
	return n.set(to, to.UnmarshalJSON(data))
}

// AppendText implements [encoding.TextAppender], as [NullSnowflake.AppendText] does.
func (n NullID[T]) AppendText(b []byte) ([]byte, error) {
	if !n.Valid {
		return b, nil
	}
	return n.ID.AppendText(b)
}

// MarshalText returns the ID in decimal, or an empty text when n is absent.
func (n NullID[T]) MarshalText() ([]byte, error) {
	return n.AppendText(make([]byte, 0, maxDigits))
}

// UnmarshalText reads decimal or an empty text, as [NullSnowflake.UnmarshalText] does.
func (n *NullID[T]) UnmarshalText(text []byte) error {
	to := n.receiver()
	return n.set(to, storeNull(to, text, "unmarshal text"))
}

// UnmarshalParam reads a parameter of gin or echo, as [NullSnowflake.UnmarshalParam] does.
func (n *NullID[T]) UnmarshalParam(param string) error {
	to := n.receiver()
	return n.set(to, storeNull(to, param, "unmarshal parameter"))
}

// Bind reads a query parameter of oapi-codegen, as [NullSnowflake.Bind] does.
func (n *NullID[T]) Bind(param string) error { return n.UnmarshalParam(param) }

// UnmarshalMapstructure copies a NullID of the same mark, and otherwise reads what
// [NullSnowflake.UnmarshalMapstructure] reads.
func (n *NullID[T]) UnmarshalMapstructure(input any) error {
	if v := reflect.Indirect(reflect.ValueOf(input)); n != nil && v.IsValid() {
		if same, ok := reflect.TypeAssert[NullID[T]](v); ok {
			*n = same
			return nil
		}
	}
	to := n.receiver()
	return n.set(to, to.UnmarshalMapstructure(input))
}

// MarshalGQLContext writes null or a string for gqlgen, as [NullSnowflake.MarshalGQLContext]
// does.
func (n NullID[T]) MarshalGQLContext(ctx context.Context, w io.Writer) error {
	return marked[T](n.NullSnowflake().MarshalGQLContext(ctx, w))
}

// UnmarshalGQLContext reads null, a string or an integer, as
// [NullSnowflake.UnmarshalGQLContext] does.
func (n *NullID[T]) UnmarshalGQLContext(ctx context.Context, input any) error {
	to := n.receiver()
	return n.set(to, to.UnmarshalGQLContext(ctx, input))
}

// receiver returns what a method of NullSnowflake reads into, or nil if n is.
func (n *NullID[T]) receiver() *NullSnowflake {
	if n == nil {
		return nil
	}
	return new(NullSnowflake)
}

// set takes over what a method of NullSnowflake has read, unless it is an error. to is nil if n
// is, so that the method answers for a nil receiver as well.
func (n *NullID[T]) set(to *NullSnowflake, err error) error {
	if err != nil {
		return marked[T](err)
	}
	if n != nil {
		*n = NullID[T]{ID: ID[T](to.Snowflake), Valid: to.Valid}
	}
	return nil
}
