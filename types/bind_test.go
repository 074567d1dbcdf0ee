package types_test

import (
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/snowkey/snowkey/types"
)

func TestMapstructureValueIsReadExactlyOrNotAtAll(t *testing.T) {
	id, pointer := types.Snowflake(5), maxInt64
	for _, c := range []struct {
		input any
		want  types.Snowflake
		err   error
	}{
		{0, 0, nil},
		{5, 5, nil},
		{int8(5), 5, nil},
		{int64(math.MaxInt64), maxInt64, nil},
		{uint(5), 5, nil},
		{uint64(math.MaxInt64), maxInt64, nil},
		{id, 5, nil},
		{&pointer, maxInt64, nil},
		{json.Number("9223372036854775807"), maxInt64, nil},
		{0.0, 0, nil},
		{5.0, 5, nil},
		{123456789.0, 123456789, nil},
		{float64(1<<53 - 1), 1<<53 - 1, nil},

		{-1, 0, types.ErrRange},
		{int64(math.MinInt64), 0, types.ErrRange},
		{uint64(math.MaxInt64 + 1), 0, types.ErrRange},
		{-5.0, 0, types.ErrRange},
		{json.Number("5.0"), 0, types.ErrSyntax},
		// 2^53+1 becomes this one too.
		{float64(1 << 53), 0, types.ErrSyntax},
		{float64(175928847299117063), 0, types.ErrSyntax},
		{1e300, 0, types.ErrSyntax},
		{-1e300, 0, types.ErrRange},
		{5.5, 0, types.ErrSyntax},
		{math.NaN(), 0, types.ErrSyntax},
		{math.Inf(1), 0, types.ErrSyntax},
		{math.Inf(-1), 0, types.ErrSyntax},
		{float32(5), 0, types.ErrSyntax}, // holds 24 bits
		{true, 0, types.ErrSyntax},
		{[]byte("5"), 0, types.ErrSyntax},
		{map[string]any{}, 0, types.ErrSyntax},
	} {
		got := before
		err := got.UnmarshalMapstructure(c.input)
		n := presentFive
		errNull := n.UnmarshalMapstructure(c.input)
		want, wantNull := c.want, types.NullSnowflake{Snowflake: c.want, Valid: true}
		if c.err != nil {
			want, wantNull = before, presentFive
			for _, err := range []error{err, errNull} {
				var ve *types.ValueError
				if !errors.As(err, &ve) || ve.Op != "decode" {
					t.Errorf("UnmarshalMapstructure(%T %v) error = %v; want a *ValueError of \"decode\"", c.input, c.input, err)
				}
			}
		}
		if got != want || !errors.Is(err, c.err) {
			t.Errorf("UnmarshalMapstructure(%T %v) = %d, %v; want %d, %v", c.input, c.input, got, err, want, c.err)
		}
		if n != wantNull || !errors.Is(errNull, c.err) {
			t.Errorf("NullSnowflake.UnmarshalMapstructure(%T %v) = %+v, %v; want %+v, %v", c.input, c.input, n, errNull, wantNull, c.err)
		}
	}
}

func TestNilAndEmptyMapstructureValuesAreAbsent(t *testing.T) {
	var none *string
	for _, input := range []any{nil, none, "", absent, &absent} {
		n := presentFive
		if err := n.UnmarshalMapstructure(input); n != absent || err != nil {
			t.Errorf("NullSnowflake.UnmarshalMapstructure(%T %v) = %+v, %v; want absent, nil", input, input, n, err)
		}
	}
	id := before
	for _, input := range []any{nil, none, ""} {
		if err := id.UnmarshalMapstructure(input); id != before || !errors.Is(err, types.ErrSyntax) {
			t.Errorf("UnmarshalMapstructure(%T %v) = %d, %v; want it unchanged, ErrSyntax", input, input, id, err)
		}
	}
}

func TestMapstructureCopiesANullSnowflake(t *testing.T) {
	for _, input := range []types.NullSnowflake{presentZero, presentFive} {
		n := absent
		if err := n.UnmarshalMapstructure(&input); n != input || err != nil {
			t.Errorf("NullSnowflake.UnmarshalMapstructure(&%+v) = %+v, %v; want a copy, nil", input, n, err)
		}
	}
}

// Law: a float64 is accepted if and only if it is a whole number of 0..2^53-1,
// and is then that number. -0 is refused, as in text. The oracle is the conversion
// to uint64 and back.
func FuzzUnmarshalMapstructureFloat(f *testing.F) {
	for _, x := range []float64{0, 5, 5.5, -1, 1<<53 - 1, 1 << 53, 175928847299117063, 1e300, math.Inf(1), math.NaN()} {
		f.Add(x)
	}
	f.Fuzz(func(t *testing.T, x float64) {
		want, ok := before, x >= 0 && x < 1<<53 && float64(uint64(x)) == x && !(x == 0 && math.Signbit(x))
		if ok {
			want = types.Snowflake(uint64(x))
		}
		id := before
		err := id.UnmarshalMapstructure(x)
		checkError(t, "UnmarshalMapstructure", err)
		if (err == nil) != ok || id != want {
			t.Fatalf("UnmarshalMapstructure(%v) = %d, %v; want %d, accepted: %v", x, id, err, want, ok)
		}
	})
}
