package jsonengines

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/bytedance/sonic"
	goccy "github.com/goccy/go-json"

	"github.com/snowkey/snowkey/internal/proof/cases/jsoncases"
	"github.com/snowkey/snowkey/types"
)

// A stream is what the engines' Decoders have in common.
type stream interface {
	Decode(v any) error
	UseNumber()
}

// decode returns a function that reads one value of a stream, and an error if there is more.
func decode[D stream](open func(io.Reader) D, useNumber bool) func([]byte, any) error {
	return func(data []byte, v any) error {
		dec := open(bytes.NewReader(data))
		if useNumber {
			dec.UseNumber()
		}
		if err := dec.Decode(v); err != nil {
			return err
		}
		if err := dec.Decode(new(any)); !errors.Is(err, io.EOF) {
			return errors.New("more than one value")
		}
		return nil
	}
}

// encode returns a function that writes one value to a stream.
func encode[E interface{ Encode(v any) error }](open func(io.Writer) E) func(any) ([]byte, error) {
	return func(v any) ([]byte, error) {
		var buf bytes.Buffer
		err := open(&buf).Encode(v)
		return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), err
	}
}

func TestEnginesTreatIDsAsEncodingJSONDoes(t *testing.T) {
	for _, e := range []jsoncases.Engine{
		{
			Name: "sonic", Marshal: sonic.Marshal, Unmarshal: sonic.Unmarshal,
			UseNumber: sonic.Config{UseNumber: true}.Froze().Unmarshal,
		},
		{Name: "sonic.ConfigStd", Marshal: sonic.ConfigStd.Marshal, Unmarshal: sonic.ConfigStd.Unmarshal},
		{Name: "sonic.ConfigFastest", Marshal: sonic.ConfigFastest.Marshal, Unmarshal: sonic.ConfigFastest.Unmarshal, Tight: true},
		{
			Name: "sonic.Decoder", Prefix: true,
			Marshal: encode(sonic.ConfigDefault.NewEncoder), Unmarshal: decode(sonic.ConfigDefault.NewDecoder, false),
			UseNumber: decode(sonic.ConfigDefault.NewDecoder, true),
		},
		{Name: "goccy", Marshal: goccy.Marshal, Unmarshal: goccy.Unmarshal},
		{
			Name:    "goccy.Decoder",
			Marshal: encode(goccy.NewEncoder), Unmarshal: decode(goccy.NewDecoder, false),
			UseNumber: decode(goccy.NewDecoder, true),
		},
	} {
		jsoncases.Run(t, e)
	}
}

// Within an object or an array, and by Unmarshal, each of them is an error.
func TestTheDecoderOfSonicReadsAnIDAtTheFrontOfMalformedText(t *testing.T) {
	for doc, want := range map[string]types.Snowflake{
		`007`: 0, `00`: 0, `0x10`: 0, `1_000`: 1, `12"`: 12, `"5",`: 5, "5\x00": 5,
	} {
		got := types.Snowflake(42)
		if err := sonic.ConfigDefault.NewDecoder(strings.NewReader(doc)).Decode(&got); got != want || err != nil {
			t.Errorf("Decode(%q) = %d, %v; want %d, nil", doc, got, err, want)
		}
		if err := sonic.Unmarshal([]byte(doc), &got); err == nil {
			t.Errorf("Unmarshal(%q) = %d, nil; want an error", doc, got)
		}
		var ids []types.Snowflake
		if err := sonic.ConfigDefault.NewDecoder(strings.NewReader("[" + doc + "]")).Decode(&ids); err == nil {
			t.Errorf("Decode([%q]) = %d, nil; want an error", doc, ids)
		}
	}
}

func TestSonicFastestRefusesANumberOf16DigitsBeforeWhiteSpace(t *testing.T) {
	const digits = "1234567890123456789"
	for n := 1; n <= len(digits); n++ {
		want := types.MustParse(digits[:n])
		for _, c := range []struct {
			doc string
			ok  bool
		}{
			{`{"id":` + want.String() + `}`, true},
			{`{"id":"` + want.String() + `" }`, true},
			{`{"id":` + want.String() + ` }`, n != 16},
			{"{\"id\":" + want.String() + "\n}", n != 16},
		} {
			got := types.Model{ID: 42}
			err := sonic.ConfigFastest.Unmarshal([]byte(c.doc), &got)
			if c.ok && (err != nil || got.ID != want) || !c.ok && (got.ID != 42 || !errors.Is(err, types.ErrSyntax)) {
				t.Errorf("Unmarshal(%q) = %d, %v; want accepted: %v", c.doc, got.ID, err, c.ok)
			}
		}
	}
}
