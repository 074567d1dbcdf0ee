package compat

import (
	"errors"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/snowkey/snowkey/types"
)

const id = types.Snowflake(175928847299117063) // above 2^53

type order struct {
	ID     types.Snowflake
	Parent types.NullSnowflake
}

// A codec writes 8 bytes for a Snowflake, unless it says text.
type codec struct {
	name      string
	marshal   func(any) ([]byte, error)
	unmarshal func([]byte, any) error
	want      string // what a Snowflake of 5 becomes
}

func codecs(t *testing.T) []codec {
	t.Helper()
	enc, err := cbor.EncOptions{
		BinaryMarshaler: cbor.BinaryMarshalerNone, TextMarshaler: cbor.TextMarshalerTextString,
	}.EncMode()
	if err != nil {
		t.Fatal(err)
	}
	dec, err := cbor.DecOptions{
		BinaryUnmarshaler: cbor.BinaryUnmarshalerNone, TextUnmarshaler: cbor.TextUnmarshalerTextString,
	}.DecMode()
	if err != nil {
		t.Fatal(err)
	}
	return []codec{
		{"cbor", cbor.Marshal, cbor.Unmarshal, "\x48\x00\x00\x00\x00\x00\x00\x00\x05"},
		{"cbor as text", enc.Marshal, dec.Unmarshal, "\x615"},
		{"msgpack", msgpack.Marshal, msgpack.Unmarshal, "\xc4\x08\x00\x00\x00\x00\x00\x00\x00\x05"},
	}
}

func TestEncodedIDsComeBack(t *testing.T) {
	for _, c := range codecs(t) {
		if got, err := c.marshal(types.Snowflake(5)); string(got) != c.want || err != nil {
			t.Errorf("%s: Marshal(5) = %q, %v; want %q, nil", c.name, got, err, c.want)
		}
		for _, want := range []order{
			{},
			{ID: id},
			{ID: 1<<63 - 1, Parent: types.NullSnowflake{Snowflake: id, Valid: true}},
			{ID: id, Parent: types.NullSnowflake{Valid: true}},
		} {
			data, err := c.marshal(want)
			if err != nil {
				t.Errorf("%s: Marshal(%+v) = %v; want nil", c.name, want, err)
				continue
			}
			var got order
			if err := c.unmarshal(data, &got); err != nil || got != want {
				t.Errorf("%s: Unmarshal(%q) = %+v, %v; want %+v, nil", c.name, data, got, err, want)
			}
		}
	}
}

func TestNegativeIDIsNotEncoded(t *testing.T) {
	for _, c := range codecs(t) {
		if got, err := c.marshal(types.Snowflake(-1)); !errors.Is(err, types.ErrRange) {
			t.Errorf("%s: Marshal(-1) = %q, %v; want an error that matches ErrRange", c.name, got, err)
		}
	}
}

// Other programs may write the number itself, or text.
func TestCBORReadsIntegers(t *testing.T) {
	for _, c := range []struct {
		written any
		want    types.Snowflake
		ok      bool
	}{
		{id.Int64(), id, true},
		{-1, -1, true}, // fxamacker/cbor stores integers itself
		{5.0, 42, false},
		{"5", 42, false},
		{uint64(1 << 63), 42, false},
	} {
		data, err := cbor.Marshal(c.written)
		if err != nil {
			t.Fatal(err)
		}
		got := types.Snowflake(42)
		if err := cbor.Unmarshal(data, &got); got != c.want || (err == nil) != c.ok {
			t.Errorf("cbor.Unmarshal(%T %v) = %d, %v; want %d, accepted: %v", c.written, c.written, got, err, c.want, c.ok)
		}
	}
}

func TestMessagePackReadsEightBytesAlone(t *testing.T) {
	for _, c := range []struct {
		written any
		want    types.Snowflake
		ok      bool
	}{
		{id.Int64(), 42, false},
		{5.0, 42, false},
		{id.String(), 42, false},
		{nil, 0, true},
		// The trap that docs/types.md names: 8 characters are 8 bytes.
		{"12345678", 0x3132333435363738, true},
	} {
		data, err := msgpack.Marshal(c.written)
		if err != nil {
			t.Fatal(err)
		}
		got := types.Snowflake(42)
		if err := msgpack.Unmarshal(data, &got); got != c.want || (err == nil) != c.ok {
			t.Errorf("msgpack.Unmarshal(%T %v) = %d, %v; want %d, accepted: %v", c.written, c.written, got, err, c.want, c.ok)
		}
	}
}
