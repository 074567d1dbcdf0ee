package publicid_test

import (
	"encoding/json"
	"testing"

	"github.com/snowkey/snowkey/core/publicid"
	"github.com/snowkey/snowkey/types"
)

func BenchmarkEncode(b *testing.B) {
	c := newCodec(b, "order", testKey(2))
	b.ReportAllocs()
	for b.Loop() {
		sink = c.Encode(orderID)
	}
}

func BenchmarkDecode(b *testing.B) {
	c := newCodec(b, "order", testKey(2))
	text := c.Encode(orderID)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Decode(text); err != nil {
			b.Fatal(err)
		}
	}
}

// An ID in JSON, beside the key.
func BenchmarkMarshalJSON(b *testing.B) {
	for name, v := range map[string]any{"ID": publicid.Of(types.ID[Order](orderID)), "key": types.ID[Order](orderID)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := json.Marshal(v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
