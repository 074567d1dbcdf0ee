package types_test

import (
	"bytes"
	"encoding/gob"
	"encoding/hex"
	"errors"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/snowkey/snowkey/types"
)

func TestBinaryIsEightBytesBigEndian(t *testing.T) {
	for id, want := range map[types.Snowflake]string{
		0:                  "0000000000000000",
		1:                  "0000000000000001",
		0x0102030405060708: "0102030405060708",
		175928847299117063: "0271065ac1020007",
		maxInt64:           "7fffffffffffffff",
	} {
		got, err := id.MarshalBinary()
		if hex.EncodeToString(got) != want || err != nil {
			t.Errorf("Snowflake(%d).MarshalBinary() = %x, %v; want %s, nil", id, got, err, want)
		}
		got, err = id.AppendBinary([]byte{0xAA})
		if hex.EncodeToString(got) != "aa"+want || err != nil {
			t.Errorf("Snowflake(%d).AppendBinary(aa) = %x, %v; want aa%s, nil", id, got, err, want)
		}
	}
}

func TestBinaryComesBackAndSortsAsTheIDs(t *testing.T) {
	var last []byte
	for _, id := range sortedIDs() {
		b, err := id.MarshalBinary()
		if err != nil {
			t.Fatalf("Snowflake(%d).MarshalBinary() = %v; want nil", id, err)
		}
		got := before
		if err := got.UnmarshalBinary(b); got != id || err != nil {
			t.Fatalf("UnmarshalBinary(%x) = %d, %v; want %d, nil", b, got, err, id)
		}
		if bytes.Compare(b, last) <= 0 {
			t.Fatalf("Snowflake(%d).MarshalBinary() = %x; want more than %x, the bytes of the ID before", id, b, last)
		}
		last = b
	}
}

func TestUnmarshalBinaryTakesOnlyEightBytesBelow2To63(t *testing.T) {
	for _, c := range []struct {
		name string
		data []byte
		err  error
	}{
		{"nil", nil, types.ErrSyntax},
		{"empty", []byte{}, types.ErrSyntax},
		{"7 bytes", make([]byte, 7), types.ErrSyntax},
		{"9 bytes", make([]byte, 9), types.ErrSyntax},
		{"16 bytes", make([]byte, 16), types.ErrSyntax},
		{"decimal text", []byte("175928847299117063"), types.ErrSyntax},
		{"2^63", []byte{0x80, 0, 0, 0, 0, 0, 0, 0}, types.ErrRange},
		{"-1", bytes.Repeat([]byte{0xFF}, 8), types.ErrRange},
	} {
		id := before
		err := id.UnmarshalBinary(c.data)
		var ve *types.ValueError
		if id != before || !errors.Is(err, c.err) || !errors.As(err, &ve) {
			t.Errorf("UnmarshalBinary(%s) = %d, %v; want %d and a *ValueError that matches %q", c.name, id, err, before, c.err)
		} else if ve.Op != "unmarshal binary" || ve.Type != "Snowflake" || ve.Want != "8 bytes, big-endian, first bit zero" {
			t.Errorf("UnmarshalBinary(%s) error = %+v; want Op \"unmarshal binary\", Type \"Snowflake\" and the accepted form", c.name, *ve)
		}
	}
}

func TestNegativeIDIsWrittenToNoBytesAndNoText(t *testing.T) {
	for _, id := range []types.Snowflake{-1, math.MinInt64} {
		for name, write := range map[string]func() ([]byte, error){
			"MarshalBinary": id.MarshalBinary,
			"MarshalText":   id.MarshalText,
		} {
			got, err := write()
			checkNegative(t, name, id, err)
			if len(got) != 0 {
				t.Errorf("Snowflake(%d).%s() = %x; want nothing", id, name, got)
			}
		}
		for name, write := range map[string]func([]byte) ([]byte, error){
			"AppendBinary": id.AppendBinary,
			"AppendText":   id.AppendText,
		} {
			got, err := write([]byte("id="))
			checkNegative(t, name, id, err)
			if string(got) != "id=" {
				t.Errorf("Snowflake(%d).%s(\"id=\") = %q; want \"id=\"", id, name, got)
			}
		}
	}
}

func checkNegative(t *testing.T, name string, id types.Snowflake, err error) {
	t.Helper()
	var ve *types.ValueError
	if !errors.Is(err, types.ErrRange) || !errors.As(err, &ve) || ve.Value != id.String() {
		t.Errorf("Snowflake(%d).%s() error = %v; want a *ValueError that matches ErrRange and shows %d", id, name, err, id)
	}
}

func TestTextIsDecimalAndAppendTextKeepsWhatIsThere(t *testing.T) {
	for _, id := range sortedIDs() {
		text, err := id.MarshalText()
		if string(text) != id.String() || err != nil {
			t.Fatalf("Snowflake(%d).MarshalText() = %q, %v; want %q, nil", id, text, err, id)
		}
		got, err := id.AppendText([]byte("id="))
		if string(got) != "id="+id.String() || err != nil {
			t.Fatalf("Snowflake(%d).AppendText(\"id=\") = %q, %v; want \"id=%d\", nil", id, got, err, id)
		}
		if back, err := types.Parse(string(text)); back != id || err != nil {
			t.Fatalf("Parse(%q) = %d, %v; want %d, nil", text, back, err, id)
		}
	}
}

// A gob keeps presence: a present zero does not come back absent.
func TestGobKeepsEveryKind(t *testing.T) {
	type row struct {
		ID      types.Snowflake
		Zero    types.Snowflake
		Ptr     *types.Snowflake
		Parent  types.NullSnowflake
		Present types.NullSnowflake
		Absent  types.NullSnowflake
		Many    []types.Snowflake
		ByID    map[types.Snowflake]types.Snowflake
		types.Model
	}
	id := maxInt64
	in := row{
		ID: 175928847299117063, Ptr: &id,
		Parent: types.NullSnowflake{Snowflake: 5, Valid: true}, Present: presentZero,
		Many:  []types.Snowflake{0, 1, maxInt64},
		ByID:  map[types.Snowflake]types.Snowflake{0: 1, maxInt64: 2},
		Model: types.Model{ID: 9},
	}
	var buf bytes.Buffer
	if err := gob.NewEncoder(&buf).Encode(in); err != nil {
		t.Fatalf("Encode(%+v) = %v; want nil", in, err)
	}
	var out row
	if err := gob.NewDecoder(&buf).Decode(&out); err != nil {
		t.Fatalf("Decode() = %v; want nil", err)
	}
	if out.ID != in.ID || out.Zero != 0 || out.Ptr == nil || *out.Ptr != id || out.Parent != in.Parent ||
		out.Present != presentZero || out.Absent != absent || !slices.Equal(out.Many, in.Many) ||
		!maps.Equal(out.ByID, in.ByID) || out.Model != in.Model {
		t.Errorf("Decode(Encode(row)) = %+v; want %+v", out, in)
	}
}

func TestGobRefusesANegativeID(t *testing.T) {
	for _, v := range []any{types.Snowflake(-1), presentNeg, []types.Snowflake{1, -1}} {
		if err := gob.NewEncoder(new(bytes.Buffer)).Encode(v); !errors.Is(err, types.ErrRange) {
			t.Errorf("Encode(%v) = %v; want an error that matches ErrRange", v, err)
		}
	}
}
