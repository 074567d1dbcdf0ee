package types_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding"
	"encoding/json"
	"fmt"
	"io"
	"testing"

	"github.com/snowkey/snowkey/types"
)

// What github.com/invopop/jsonschema looks for.
type schemaAlias interface{ JSONSchemaAlias() any }

// A binder is what gin, echo, oapi-codegen and mapstructure look for by these names.
type binder interface {
	UnmarshalParam(param string) error
	Bind(param string) error
	UnmarshalMapstructure(input any) error
}

// What gqlgen looks for.
type (
	graphqlWriter interface {
		MarshalGQLContext(ctx context.Context, w io.Writer) error
	}
	graphqlReader interface {
		UnmarshalGQLContext(ctx context.Context, input any) error
	}
)

// What writes has value receivers, so that it works on map values and copies.
var (
	_ fmt.Stringer             = types.Snowflake(0)
	_ driver.Valuer            = types.Snowflake(0)
	_ encoding.TextAppender    = types.Snowflake(0)
	_ encoding.TextMarshaler   = types.Snowflake(0)
	_ encoding.BinaryAppender  = types.Snowflake(0)
	_ encoding.BinaryMarshaler = types.Snowflake(0)
	_ interface {
		IsZero() bool
		Int64() int64
		Compare(types.Snowflake) int
		Add(types.Snowflake) types.Snowflake
		GormDataType() string
	} = types.Snowflake(0)
	_ schemaAlias   = types.Snowflake(0)
	_ graphqlWriter = types.Snowflake(0)

	_ sql.Scanner                = (*types.Snowflake)(nil)
	_ json.Unmarshaler           = (*types.Snowflake)(nil)
	_ encoding.TextUnmarshaler   = (*types.Snowflake)(nil)
	_ encoding.BinaryUnmarshaler = (*types.Snowflake)(nil)
	_ binder                     = (*types.Snowflake)(nil)
	_ graphqlReader              = (*types.Snowflake)(nil)

	_ fmt.Stringer           = types.NullSnowflake{}
	_ driver.Valuer          = types.NullSnowflake{}
	_ json.Marshaler         = types.NullSnowflake{}
	_ encoding.TextAppender  = types.NullSnowflake{}
	_ encoding.TextMarshaler = types.NullSnowflake{}
	_ interface {
		IsZero() bool
		GormDataType() string
	} = types.NullSnowflake{}
	_ schemaAlias   = types.NullSnowflake{}
	_ graphqlWriter = types.NullSnowflake{}

	_ sql.Scanner              = (*types.NullSnowflake)(nil)
	_ json.Unmarshaler         = (*types.NullSnowflake)(nil)
	_ encoding.TextUnmarshaler = (*types.NullSnowflake)(nil)
	_ binder                   = (*types.NullSnowflake)(nil)
	_ graphqlReader            = (*types.NullSnowflake)(nil)

	_ error                       = (*types.ValueError)(nil)
	_ interface{ Unwrap() error } = (*types.ValueError)(nil)

	// Signatures that other programs compile against.
	_ func(string) (types.Snowflake, error)         = types.Parse
	_ func(string) types.Snowflake                  = types.MustParse
	_ func(types.Snowflake, types.Snowflake) int    = types.Snowflake.Compare
	_ func(types.Snowflake) (driver.Value, error)   = types.Snowflake.Value
	_ func(*types.Snowflake, any) error             = (*types.Snowflake).Scan
	_ func(types.Snowflake, []byte) ([]byte, error) = types.Snowflake.AppendText
)

// With MarshalJSON, encoding/json is half as fast and encoding/json/v2, which
// prefers it to AppendText, allocates for every ID.
func TestSnowflakeIsNoJSONMarshaler(t *testing.T) {
	for _, v := range []any{types.Snowflake(0), new(types.Snowflake), types.Model{}, new(types.Model)} {
		if _, ok := v.(json.Marshaler); ok {
			t.Errorf("%T is a json.Marshaler; want its text methods to be used", v)
		}
		if _, ok := v.(interface{ GormDBDataType() string }); ok {
			t.Errorf("%T has GormDBDataType; want GormDataType alone", v)
		}
	}
}

// Methods of an embedded type are promoted. With MarshalText on Model, every model
// would be written as its ID only.
func TestModelPromotesNoMethods(t *testing.T) {
	type order struct {
		types.Model
		Number string
	}
	for _, v := range []any{order{}, &order{}} {
		switch v.(type) {
		case encoding.TextMarshaler, encoding.TextUnmarshaler, encoding.BinaryMarshaler,
			json.Marshaler, json.Unmarshaler, driver.Valuer, sql.Scanner, fmt.Stringer,
			interface{ GormDataType() string }:
			t.Errorf("%T has methods of its embedded Model; want none", v)
		}
	}
}
