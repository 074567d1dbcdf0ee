package compat

import (
	"bytes"
	"encoding/gob"
	"errors"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"github.com/vmihailenco/msgpack/v5"
	yaml "go.yaml.in/yaml/v3"

	"github.com/snowkey/snowkey/core/publicid"
	"github.com/snowkey/snowkey/types"
)

// A codec writes 8 bytes for a Snowflake, unless it says text.
type codec struct {
	name      string
	marshal   func(any) ([]byte, error)
	unmarshal func([]byte, any) error
	want      string // what a key of 5 becomes
}

func codecs(t *testing.T) []codec {
	t.Helper()
	enc, err := cbor.EncOptions{
		BinaryMarshaler: cbor.BinaryMarshalerNone, TextMarshaler: cbor.TextMarshalerTextString,
	}.EncMode()
	must(t, err)
	dec, err := cbor.DecOptions{
		BinaryUnmarshaler: cbor.BinaryUnmarshalerNone, TextUnmarshaler: cbor.TextUnmarshalerTextString,
	}.DecMode()
	must(t, err)
	return []codec{
		{"cbor", cbor.Marshal, cbor.Unmarshal, "\x48\x00\x00\x00\x00\x00\x00\x00\x05"},
		{"cbor as text", enc.Marshal, dec.Unmarshal, "\x615"},
		{"msgpack", msgpack.Marshal, msgpack.Unmarshal, "\xc4\x08\x00\x00\x00\x00\x00\x00\x00\x05"},
		{"yaml as text", yaml.Marshal, yaml.Unmarshal, "\"5\"\n"},
	}
}

// An order has a key, and one that may be missing.
type order[K, N comparable] struct {
	ID     K
	Parent N
}

func TestEncodedKeysComeBack(t *testing.T) { each(t, untyped.encodes, typed.encodes) }

func (k kind[K, N]) encodes(t *testing.T) {
	for _, c := range codecs(t) {
		if got, err := c.marshal(k.key(5)); string(got) != c.want || err != nil {
			t.Errorf("%s: Marshal(5) = %q, %v; want %q, nil", c.name, got, err, c.want)
		}
		for _, want := range []order[K, N]{{}, {ID: k.key(id)}, {k.key(largest), k.null(id)}, {k.key(id), k.null(0)}} {
			data, err := c.marshal(want)
			if err != nil {
				t.Errorf("%s: Marshal(%+v) = %v; want nil", c.name, want, err)
				continue
			}
			var got order[K, N]
			if err := c.unmarshal(data, &got); err != nil || got != want {
				t.Errorf("%s: Unmarshal(%q) = %+v, %v; want %+v, nil", c.name, data, got, err, want)
			}
		}
		if got, err := c.marshal(k.key(-1)); !errors.Is(err, types.ErrRange) {
			t.Errorf("%s: Marshal(-1) = %q, %v; want an error that matches ErrRange", c.name, got, err)
		}
	}
}

func TestAPublicIDIsAStringInYAML(t *testing.T) {
	text, err := yaml.Marshal(map[string]any{"id": public.key(5)})
	if want := "id: " + public.text(5) + "\n"; string(text) != want || err != nil {
		t.Errorf("yaml.Marshal = %q, %v; want %q, nil", text, err, want)
	}
	var got map[string]publicid.ID[buyer]
	if err := yaml.Unmarshal(text, &got); err != nil || got["id"] != public.key(5) {
		t.Errorf("yaml.Unmarshal(%q) = %v, %v; want 5, nil", text, got["id"].Key(), err)
	}
}

// Other programs may write the number itself, or text.
func TestCBORAndMessagePackReadWhatOtherProgramsWrite(t *testing.T) {
	for _, c := range []struct {
		codec   int // in codecs
		written any
		want    types.Snowflake
		ok      bool
	}{
		{0, id.Int64(), id, true},
		{0, -1, -1, true}, // fxamacker/cbor stores integers itself
		{0, 5.0, 42, false},
		{0, "5", 42, false},
		{0, uint64(1 << 63), 42, false},
		{2, id.Int64(), 42, false},
		{2, 5.0, 42, false},
		{2, id.String(), 42, false},
		{2, nil, 0, true},
		{2, "12345678", 0x3132333435363738, true}, // the trap that docs/types.md names: 8 characters are 8 bytes
	} {
		by := codecs(t)[c.codec]
		data, err := by.marshal(c.written)
		must(t, err)
		got := types.Snowflake(42)
		if err := by.unmarshal(data, &got); got != c.want || (err == nil) != c.ok {
			t.Errorf("%s: Unmarshal(%T %v) = %d, %v; want %d, accepted: %v", by.name, c.written, c.written, got, err, c.want, c.ok)
		}
	}
}

// The trap that docs/types.md names: both are structs there, whose fields have other names.
func TestGobDoesNotReadANullSnowflakeIntoANullID(t *testing.T) {
	var b bytes.Buffer
	must(t, gob.NewEncoder(&b).Encode(untyped.null(id)))
	var got types.NullID[seller]
	if err := gob.NewDecoder(&b).Decode(&got); err != nil || got != typed.null(0) {
		t.Errorf("Decode(a NullSnowflake) = %+v, %v; want a present zero, nil, or a document that says otherwise", got, err)
	}
}
