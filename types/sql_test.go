package types_test

import (
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/types"
)

type (
	hostile      struct{}
	textOfItsOwn string
	intOfItsOwn  int64
)

// String panics: Scan must not call it.
func (hostile) String() string { panic("String was called") }

// scanned are the values that Scan takes: text is left to the verdict table.
func scanned() []struct {
	name string
	src  any
	want types.Snowflake
} {
	return []struct {
		name string
		src  any
		want types.Snowflake
	}{
		{"int64 zero", int64(0), 0},
		{"int64", int64(5), 5},
		{"int64 above 53 bits", int64(9007199254740993), 9007199254740993},
		{"MaxInt64", int64(math.MaxInt64), maxInt64},
		{"uint64 zero", uint64(0), 0},
		{"uint64", uint64(5), 5},
		{"uint64 MaxInt64", uint64(math.MaxInt64), maxInt64},
		{"string", "175928847299117063", 175928847299117063},
		{"[]byte", []byte("175928847299117063"), 175928847299117063},
		{"eight bytes that are digits are decimal text", []byte("12345678"), 12345678},
	}
}

// refused are the values that Scan does not take, and what the error shows.
func refused() []struct {
	name  string
	src   any
	err   error
	shown string
} {
	n := int64(5)
	return []struct {
		name  string
		src   any
		err   error
		shown string
	}{
		{"int64 -1", int64(-1), types.ErrRange, "-1"},
		{"MinInt64", int64(math.MinInt64), types.ErrRange, "-9223372036854775808"},
		{"uint64 MaxInt64 plus one", uint64(1 << 63), types.ErrRange, "9223372036854775808"},
		{"MaxUint64", uint64(math.MaxUint64), types.ErrRange, "18446744073709551615"},
		{"eight bytes of binary", []byte{2, 0x71, 6, 0x5a, 0xc1, 2, 0, 7}, types.ErrSyntax, `"\x02q\x06Z\xc1\x02\x00\a"`},
		{"eight zero bytes", make([]byte, 8), types.ErrSyntax, `"\x00\x00\x00\x00\x00\x00\x00\x00"`},
		{"empty []byte", []byte{}, types.ErrSyntax, `""`},
		{"empty string", "", types.ErrSyntax, `""`},
		{"float64 with a fraction", 1.5, types.ErrSyntax, "float64 1.5"},
		{"float64 that is integral", float64(5), types.ErrSyntax, "float64 5"},
		{"float64 zero", float64(0), types.ErrSyntax, "float64 0"},
		{"float64 NaN", math.NaN(), types.ErrSyntax, "float64 NaN"},
		{"float64 infinity", math.Inf(1), types.ErrSyntax, "float64 +Inf"},
		{"float64 2^62", float64(1 << 62), types.ErrSyntax, "float64 4.611686018427388e+18"},
		{"true", true, types.ErrSyntax, "bool true"},
		{"false", false, types.ErrSyntax, "bool false"},
		{"time.Time", time.Unix(5, 0), types.ErrSyntax, "time.Time"},
		{"int", 5, types.ErrSyntax, "int"},
		{"int32", int32(5), types.ErrSyntax, "int32"},
		{"uint32", uint32(5), types.ErrSyntax, "uint32"},
		{"float32", float32(5), types.ErrSyntax, "float32"},
		{"pointer to int64", &n, types.ErrSyntax, "*int64"},
		{"Snowflake", types.Snowflake(5), types.ErrSyntax, "types.Snowflake"},
		{"NullSnowflake", types.NullSnowflake{Snowflake: 5, Valid: true}, types.ErrSyntax, "types.NullSnowflake"},
		{"json.Number", json.Number("5"), types.ErrSyntax, "json.Number"},
		{"sql.RawBytes", sql.RawBytes("5"), types.ErrSyntax, "sql.RawBytes"},
		{"named string", textOfItsOwn("5"), types.ErrSyntax, "types_test.textOfItsOwn"},
		{"named int64", intOfItsOwn(5), types.ErrSyntax, "types_test.intOfItsOwn"},
		{"struct whose String panics", hostile{}, types.ErrSyntax, "types_test.hostile"},
		{"nil pointer whose String panics", (*hostile)(nil), types.ErrSyntax, "*types_test.hostile"},
		{"slice", []any{int64(5)}, types.ErrSyntax, "[]interface {}"},
		{"map", map[string]any{}, types.ErrSyntax, "map[string]interface {}"},
		{"func", func() {}, types.ErrSyntax, "func()"},
	}
}

func TestScanTakesIntegersAndDecimalText(t *testing.T) {
	for _, c := range scanned() {
		id := before
		if err := id.Scan(c.src); id != c.want || err != nil {
			t.Errorf("Snowflake.Scan(%T %v) = %d, %v; want %d, nil (%s)", c.src, c.src, id, err, c.want, c.name)
		}
		want := types.NullSnowflake{Snowflake: c.want, Valid: true}
		for _, n := range []types.NullSnowflake{{}, {Snowflake: before, Valid: true}} {
			if err := n.Scan(c.src); n != want || err != nil {
				t.Errorf("NullSnowflake.Scan(%T %v) = %+v, %v; want %+v, nil (%s)", c.src, c.src, n, err, want, c.name)
			}
		}
	}
}

func TestScanRefusesAllElseAndLeavesTheDestination(t *testing.T) {
	for _, c := range refused() {
		id := before
		checkRefusal(t, "Snowflake", c.name, id.Scan(c.src), c.err, c.shown)
		if id != before {
			t.Errorf("Snowflake.Scan(%s) left %d; want %d", c.name, id, before)
		}
		for _, was := range []types.NullSnowflake{{}, {Snowflake: before, Valid: true}, {Snowflake: 0, Valid: true}} {
			n := was
			checkRefusal(t, "NullSnowflake", c.name, n.Scan(c.src), c.err, c.shown)
			if n != was {
				t.Errorf("NullSnowflake.Scan(%s) left %+v; want %+v", c.name, n, was)
			}
		}
	}
}

func checkRefusal(t *testing.T, into, name string, err, sentinel error, shown string) {
	t.Helper()
	var ve *types.ValueError
	if !errors.Is(err, sentinel) || !errors.As(err, &ve) {
		t.Errorf("%s.Scan(%s) error = %T %v; want a *ValueError that matches %q", into, name, err, err, sentinel)
		return
	}
	if ve.Op != "scan" || ve.Type != into || ve.Value != shown || !strings.Contains(ve.Want, "9223372036854775807") {
		t.Errorf("%s.Scan(%s) error = %+v; want Op \"scan\", Type %q, Value %s, and the accepted form", into, name, *ve, into, shown)
	}
}

// The key of the row before must not pass for the key of this row.
func TestScanOfNullIsAnErrorThatZeroesTheIDAndNamesNullSnowflake(t *testing.T) {
	for name, src := range map[string]any{"nil": nil, "nil []byte": []byte(nil)} {
		id := before
		err := id.Scan(src)
		var ve *types.ValueError
		if !errors.Is(err, types.ErrNull) || !errors.As(err, &ve) || !strings.Contains(err.Error(), "NullSnowflake") {
			t.Errorf("Scan(%s) error = %v; want a *ValueError that matches ErrNull and names NullSnowflake", name, err)
		} else if ve.Value != "NULL" || ve.Type != "Snowflake" || ve.Op != "scan" {
			t.Errorf("Scan(%s) error = %+v; want Op \"scan\", Type \"Snowflake\", Value \"NULL\"", name, *ve)
		}
		if id != 0 {
			t.Errorf("Scan(%s) left %d; want 0", name, id)
		}
	}
}

func TestScanOfNullMakesNullSnowflakeAbsent(t *testing.T) {
	for name, src := range map[string]any{"nil": nil, "nil []byte": []byte(nil)} {
		n := types.NullSnowflake{Snowflake: before, Valid: true}
		if err := n.Scan(src); n != (types.NullSnowflake{}) || err != nil {
			t.Errorf("NullSnowflake.Scan(%s) = %+v, %v; want {0 false}, nil", name, n, err)
		}
	}
}

func TestScanIntoANilReceiverIsAnError(t *testing.T) {
	sources := []any{nil, []byte(nil), int64(-1)}
	for _, c := range scanned() {
		sources = append(sources, c.src)
	}
	for _, c := range refused() {
		sources = append(sources, c.src)
	}
	for _, src := range sources {
		for into, err := range map[string]error{
			"Snowflake":     (*types.Snowflake)(nil).Scan(src),
			"NullSnowflake": (*types.NullSnowflake)(nil).Scan(src),
		} {
			var ve *types.ValueError
			if !errors.As(err, &ve) || ve.Type != into || !strings.Contains(err.Error(), "nil pointer") {
				t.Errorf("(*%s)(nil).Scan(%T) = %v; want a *ValueError that names %s and the nil pointer", into, src, err, into)
			}
		}
	}
}

func TestScannedBytesAreNotKept(t *testing.T) {
	buf := []byte("175928847299117063")
	var id types.Snowflake
	var n types.NullSnowflake
	if err := errors.Join(id.Scan(buf), n.Scan(buf)); err != nil {
		t.Fatalf("Scan(%q) = %v; want nil", buf, err)
	}
	for i := range buf {
		buf[i] = '9'
	}
	if id != 175928847299117063 || n.Snowflake != id {
		t.Errorf("after the buffer changed: %d and %d; want 175928847299117063 twice", id, n.Snowflake)
	}
}

func TestScanLeavesTheBytesAsTheyWere(t *testing.T) {
	for _, text := range []string{"175928847299117063", "12x", ""} {
		buf := []byte(text)
		var id types.Snowflake
		var n types.NullSnowflake
		_, _ = id.Scan(buf), n.Scan(buf)
		if string(buf) != text {
			t.Errorf("Scan(%q) changed its input to %q", text, buf)
		}
	}
}

func TestValueIsAlwaysAnInt64(t *testing.T) {
	for _, n := range []int64{0, 1, math.MaxInt64} {
		got, err := types.Snowflake(n).Value()
		if got != driver.Value(n) || err != nil || !driver.IsValue(got) {
			t.Errorf("Snowflake(%d).Value() = %T %v, %v; want int64 %d, nil", n, got, got, err, n)
		}
	}
}

// Scan would refuse the row until somebody corrects it.
func TestValueRefusesWhatScanWouldNotReadBack(t *testing.T) {
	var ve *types.ValueError
	for _, n := range []int64{-1, -5, math.MinInt64} {
		for _, v := range []driver.Valuer{
			types.Snowflake(n),
			types.NullSnowflake{Snowflake: types.Snowflake(n), Valid: true},
			sql.Null[types.Snowflake]{V: types.Snowflake(n), Valid: true},
		} {
			got, err := v.Value()
			if got, err = bound(got, err); got != nil || !errors.Is(err, types.ErrRange) || !errors.As(err, &ve) {
				t.Errorf("%#v as an argument = %v, %v; want nil and a *ValueError that matches ErrRange", v, got, err)
			}
		}
	}
	if got, err := (types.NullSnowflake{Snowflake: -1}).Value(); got != nil || err != nil {
		t.Errorf("absent NullSnowflake{-1}.Value() = %v, %v; want nil, nil", got, err)
	}
}

// bound returns what database/sql makes of a result of Value.
func bound(v driver.Value, err error) (driver.Value, error) {
	if err != nil {
		return nil, err
	}
	return driver.DefaultParameterConverter.ConvertValue(v)
}

func TestNullValueIsNilOnlyWhenAbsent(t *testing.T) {
	for _, c := range []struct {
		n    types.NullSnowflake
		want driver.Value
	}{
		{types.NullSnowflake{}, nil},
		{types.NullSnowflake{Snowflake: 5}, nil},
		{types.NullSnowflake{Valid: true}, int64(0)},
		{types.NullSnowflake{Snowflake: maxInt64, Valid: true}, int64(math.MaxInt64)},
	} {
		if got, err := c.n.Value(); got != c.want || err != nil {
			t.Errorf("%+v.Value() = %T %v, %v; want %T %v, nil", c.n, got, got, err, c.want, c.want)
		}
	}
}

func TestWhatValueWritesScanReads(t *testing.T) {
	for _, id := range sortedIDs() {
		v, _ := id.Value()
		got := before
		if err := got.Scan(v); got != id || err != nil {
			t.Fatalf("Scan(Snowflake(%d).Value()) = %d, %v; want %d, nil", id, got, err, id)
		}
	}
}
