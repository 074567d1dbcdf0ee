package jsonengines

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/bytedance/sonic"
	goccy "github.com/goccy/go-json"

	"github.com/snowkey/snowkey/internal/proof/cases/jsoncases"
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
