package types

import (
	"context"
	"io"
	"reflect"
)

// gqlgen calls MarshalGQLContext and UnmarshalGQLContext. Its MarshalGQL, without a context, could
// not report a negative ID.

// MarshalGQLContext writes s as a string, as in JSON, because GraphQL's Int has 32 bits and its
// Float has 53. A negative s writes nothing and returns an error that matches [ErrRange], which
// gqlgen adds to the response, with null in place of the value.
func (s Snowflake) MarshalGQLContext(ctx context.Context, w io.Writer) error {
	return NullSnowflake{Snowflake: s, Valid: true}.MarshalGQLContext(ctx, w)
}

// UnmarshalGQLContext accepts a string in the form that [Parse] accepts, the same digits as a
// json.Number, and every integer type. It refuses a float64, which may have been rounded. On error
// s is unchanged.
func (s *Snowflake) UnmarshalGQLContext(_ context.Context, input any) error {
	return s.unmarshalGQL(input, "Snowflake")
}

// unmarshalGQL is UnmarshalGQLContext for s, which is all or part of a value of the named type.
func (s *Snowflake) unmarshalGQL(input any, into string) error {
	text, ok := textOf(reflect.ValueOf(input))
	if !ok {
		return fail("unmarshal GraphQL", into, describe(input), wantGraphQL, ErrSyntax)
	}
	return store(s, text, "unmarshal GraphQL", into, wantGraphQL)
}

// MarshalGQLContext writes null, or what [Snowflake.MarshalGQLContext] writes.
func (n NullSnowflake) MarshalGQLContext(_ context.Context, w io.Writer) error {
	b, err := n.MarshalJSON()
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

// UnmarshalGQLContext makes n absent for nil, which is GraphQL's null, and otherwise accepts what
// [Snowflake.UnmarshalGQLContext] accepts. On error n is unchanged.
func (n *NullSnowflake) UnmarshalGQLContext(_ context.Context, input any) error {
	if n == nil {
		return (*Snowflake)(nil).unmarshalGQL(input, "NullSnowflake")
	}
	if input == nil {
		*n = NullSnowflake{}
		return nil
	}
	var s Snowflake
	return n.set(&s, s.unmarshalGQL(input, "NullSnowflake"))
}
