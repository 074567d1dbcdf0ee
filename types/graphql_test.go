package types_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/snowkey/snowkey/types"
)

// written returns what gqlgen gets.
func written(v graphqlWriter) (string, error) {
	var b strings.Builder
	err := v.MarshalGQLContext(context.Background(), &b)
	return b.String(), err
}

func TestGraphQLHasStringsAndNull(t *testing.T) {
	for _, c := range []struct {
		v    graphqlWriter
		want string
		err  error
	}{
		{types.Snowflake(0), `"0"`, nil},
		{maxInt64, `"9223372036854775807"`, nil},
		{presentFive, `"5"`, nil},
		{presentZero, `"0"`, nil},
		{absent, `null`, nil},
		{types.Snowflake(-1), ``, types.ErrRange},
		{types.NullSnowflake{Snowflake: -1, Valid: true}, ``, types.ErrRange},
	} {
		if got, err := written(c.v); got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%T(%v).MarshalGQLContext writes %s, %v; want %s, %v", c.v, c.v, got, err, c.want, c.err)
		}
	}
}

func TestAFailedWriteIsAnErrorInGraphQL(t *testing.T) {
	r, w := io.Pipe()
	r.Close()
	for _, v := range []graphqlWriter{types.Snowflake(5), presentFive, absent} {
		if err := v.MarshalGQLContext(t.Context(), w); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("%T.MarshalGQLContext to a closed pipe = %v; want io.ErrClosedPipe", v, err)
		}
	}
}

func TestAGraphQLValueIsReadExactlyOrNotAtAll(t *testing.T) {
	for _, c := range []struct {
		input any
		want  types.Snowflake
		err   error
	}{
		{"0", 0, nil},
		{"9223372036854775807", maxInt64, nil},
		{5, 5, nil},
		{int64(math.MaxInt64), maxInt64, nil},
		{int32(5), 5, nil},
		{uint64(math.MaxInt64), maxInt64, nil},
		{json.Number("9223372036854775807"), maxInt64, nil},
		{types.Snowflake(5), 5, nil},

		{"", 0, types.ErrSyntax},
		{" 5", 0, types.ErrSyntax},
		{"5 ", 0, types.ErrSyntax},
		{"+5", 0, types.ErrSyntax},
		{"-0", 0, types.ErrSyntax},
		{"007", 0, types.ErrSyntax},
		{"1_000", 0, types.ErrSyntax},
		{"0x10", 0, types.ErrSyntax},
		{"1e3", 0, types.ErrSyntax},
		{"1.0", 0, types.ErrSyntax},
		{"５", 0, types.ErrSyntax},
		{"5\x00", 0, types.ErrSyntax},
		{"\xff", 0, types.ErrSyntax},
		{"null", 0, types.ErrSyntax},
		{`"5"`, 0, types.ErrSyntax},
		{maxInt64.Base62(), 0, types.ErrSyntax},
		{"-1", 0, types.ErrRange},
		{"9223372036854775808", 0, types.ErrRange},
		{strings.Repeat("9", 1<<20), 0, types.ErrRange},
		{-1, 0, types.ErrRange},
		{int64(math.MinInt64), 0, types.ErrRange},
		{uint64(math.MaxInt64 + 1), 0, types.ErrRange},
		{json.Number("-1"), 0, types.ErrRange},
		{json.Number("1e3"), 0, types.ErrSyntax},
		{json.Number("5.0"), 0, types.ErrSyntax},
		{json.Number("9223372036854775808"), 0, types.ErrRange},
		{5.0, 0, types.ErrSyntax},
		{float32(5), 0, types.ErrSyntax},
		{float64(1 << 53), 0, types.ErrSyntax},
		{math.NaN(), 0, types.ErrSyntax},
		{true, 0, types.ErrSyntax},
		{[]byte("5"), 0, types.ErrSyntax},
		{[]any{"5"}, 0, types.ErrSyntax},
		{map[string]any{}, 0, types.ErrSyntax},
	} {
		id, n := before, presentFive
		errID, errNull := id.UnmarshalGQLContext(t.Context(), c.input), n.UnmarshalGQLContext(t.Context(), c.input)
		want, wantNull := c.want, types.NullSnowflake{Snowflake: c.want, Valid: true}
		if c.err != nil {
			want, wantNull = before, presentFive
			checkError(t, "Snowflake.UnmarshalGQLContext", errID)
			checkError(t, "NullSnowflake.UnmarshalGQLContext", errNull)
		}
		if id != want || !errors.Is(errID, c.err) {
			t.Errorf("Snowflake.UnmarshalGQLContext(%T %.99v) = %d, %v; want %d, %v", c.input, c.input, id, errID, want, c.err)
		}
		if n != wantNull || !errors.Is(errNull, c.err) {
			t.Errorf("NullSnowflake.UnmarshalGQLContext(%T %.99v) = %+v, %v; want %+v, %v", c.input, c.input, n, errNull, wantNull, c.err)
		}
	}
}

func TestGraphQLNullIsAbsentForANullSnowflakeAlone(t *testing.T) {
	n, id := presentFive, before
	if err := n.UnmarshalGQLContext(t.Context(), nil); n != absent || err != nil {
		t.Errorf("NullSnowflake.UnmarshalGQLContext(nil) = %+v, %v; want absent, nil", n, err)
	}
	if err := id.UnmarshalGQLContext(t.Context(), nil); id != before || !errors.Is(err, types.ErrSyntax) {
		t.Errorf("Snowflake.UnmarshalGQLContext(nil) = %d, %v; want it unchanged, ErrSyntax", id, err)
	}
}

func TestAKeyInGraphQLAllocatesItsTextAlone(t *testing.T) {
	var (
		id    types.Snowflake
		input any = "1234567890123456789"
	)
	for _, c := range []struct {
		name string
		call func()
		want float64
	}{
		{"UnmarshalGQLContext of a string", func() { _ = id.UnmarshalGQLContext(t.Context(), input) }, 0},
		{"MarshalGQLContext", func() { _ = id.MarshalGQLContext(t.Context(), io.Discard) }, 1},
	} {
		if got := testing.AllocsPerRun(1000, c.call); got != c.want {
			t.Errorf("%s allocates %v times; want %v", c.name, got, c.want)
		}
	}
}
