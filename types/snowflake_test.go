package types_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/snowkey/snowkey/types"
)

// sortedIDs returns telling and random non-negative IDs, ascending and distinct.
func sortedIDs() []types.Snowflake {
	ids := []types.Snowflake{0, maxInt64, maxInt64 - 1}
	for shift := range 63 {
		p := types.Snowflake(1) << shift
		ids = append(ids, p-1, p, p+1)
	}
	for _, base := range []types.Snowflake{10, 32, 58, 62} {
		for p := base; p > 0 && p <= maxInt64/base; p *= base {
			ids = append(ids, p-1, p, p+1)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		ids = append(ids, types.Snowflake(r.Uint64()>>(1+r.IntN(63))))
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

func TestInt64ReturnsTheSameNumber(t *testing.T) {
	for _, n := range []int64{0, 1, -1, math.MaxInt64, math.MinInt64} {
		if got := types.Snowflake(n).Int64(); got != n {
			t.Errorf("Snowflake(%d).Int64() = %d; want %d", n, got, n)
		}
	}
}

func TestStringIsDecimal(t *testing.T) {
	for _, c := range []struct {
		id   types.Snowflake
		want string
	}{
		{0, "0"}, {7, "7"}, {10, "10"}, {maxInt64, "9223372036854775807"},
		{-1, "-1"}, {math.MinInt64, "-9223372036854775808"},
	} {
		if got := c.id.String(); got != c.want {
			t.Errorf("Snowflake(%d).String() = %q; want %q", int64(c.id), got, c.want)
		}
	}
}

func TestOnlyZeroIsZero(t *testing.T) {
	for id, want := range map[types.Snowflake]bool{0: true, 1: false, -1: false, maxInt64: false, math.MinInt64: false, 1 << 32: false} {
		if got := id.IsZero(); got != want {
			t.Errorf("Snowflake(%d).IsZero() = %v; want %v", id, got, want)
		}
	}
}

func TestCompareOrdersByNumber(t *testing.T) {
	for _, c := range []struct {
		a, b types.Snowflake
		want int
	}{
		{1, 2, -1}, {2, 1, 1}, {2, 2, 0}, {9, 10, -1},
		{math.MinInt64, maxInt64, -1}, {maxInt64, math.MinInt64, 1}, {-1, 0, -1},
	} {
		if got := c.a.Compare(c.b); got != c.want {
			t.Errorf("Snowflake(%d).Compare(%d) = %d; want %d", c.a, c.b, got, c.want)
		}
	}
	ids := []types.Snowflake{10, 9, maxInt64, 0}
	slices.SortFunc(ids, types.Snowflake.Compare)
	if want := []types.Snowflake{0, 9, 10, maxInt64}; !slices.Equal(ids, want) {
		t.Errorf("SortFunc(Compare) = %v; want %v", ids, want)
	}
}

func TestAddAdds(t *testing.T) {
	if got := types.Snowflake(40).Add(2); got != 42 {
		t.Errorf("Snowflake(40).Add(2) = %d; want 42", got)
	}
	if got := types.Snowflake(40).Add(-2); got != 38 {
		t.Errorf("Snowflake(40).Add(-2) = %d; want 38", got)
	}
}

func TestGormDataTypeIsBigint(t *testing.T) {
	if got := types.Snowflake(0).GormDataType(); got != "bigint" {
		t.Errorf("Snowflake.GormDataType() = %q; want \"bigint\"", got)
	}
	if got := (types.NullSnowflake{}).GormDataType(); got != "bigint" {
		t.Errorf("NullSnowflake.GormDataType() = %q; want \"bigint\"", got)
	}
}

// %x and %X go through String, as for every Stringer: use Int64 for them.
func TestFmtVerbsShowTheNumber(t *testing.T) {
	const id = types.Snowflake(175928847299117063)
	for verb, want := range map[string]string{
		"%v": "175928847299117063", "%d": "175928847299117063", "%s": "175928847299117063",
		"%q": `"175928847299117063"`, "%20d": "  175928847299117063", "%b": "1001110001000001100101101011000001000000100000000000000111",
	} {
		if got := fmt.Sprintf(verb, id); got != want {
			t.Errorf("Sprintf(%q, id) = %q; want %q", verb, got, want)
		}
	}
	if got, want := fmt.Sprint(struct{ ID types.Snowflake }{id}), "{175928847299117063}"; got != want {
		t.Errorf("Sprint(struct) = %q; want %q", got, want)
	}
	if got, want := fmt.Sprintf("%x", id.Int64()), "271065ac1020007"; got != want {
		t.Errorf("Sprintf(%%x, id.Int64()) = %q; want %q", got, want)
	}
}

func TestSnowflakeServesAsMapKey(t *testing.T) {
	m := map[types.Snowflake]string{1: "a", maxInt64: "b"}
	if got := m[types.MustParse("9223372036854775807")]; got != "b" {
		t.Errorf("m[MustParse(MaxInt64)] = %q; want \"b\"", got)
	}
}
