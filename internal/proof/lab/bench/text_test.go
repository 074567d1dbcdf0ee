package main

import (
	"encoding/json"
	"testing"

	"github.com/snowkey/snowkey/types"
)

// textID has 19 digits, the most that there are.
const textID = 1541815603606036480

// BenchmarkText is the decimal form of one ID.
func BenchmarkText(b *testing.B) {
	// The first benchmark of a process would pay for the pages of its heap.
	for range 1 << 20 {
		_ = types.Snowflake(textID).String()
	}
	b.Run("String/snowkey", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = types.Snowflake(textID).String()
		}
	})
	b.Run("Parse/snowkey", func(b *testing.B) {
		text := types.Snowflake(textID).String()
		b.ReportAllocs()
		for b.Loop() {
			if id, err := types.Parse(text); err != nil || id != textID {
				b.Fatalf("Parse(%q) = %d, %v; want %d", text, id, err, int64(textID))
			}
		}
	})
}

// slice is how many IDs are in the JSON documents.
const slice = 100

// BenchmarkJSON is a slice of 100 IDs through encoding/json. An operation is the slice.
// int64 shows what the encoder itself costs and allocates.
func BenchmarkJSON(b *testing.B) {
	benchmarkCodec(b, json.Marshal, json.Unmarshal)
}

func benchmarkCodec(b *testing.B, marshal func(any) ([]byte, error), unmarshal func([]byte, any) error) {
	benchmarkSlice[types.Snowflake](b, "snowkey", marshal, unmarshal)
	benchmarkSlice[int64](b, "int64", marshal, unmarshal)
}

func benchmarkSlice[ID ~int64 | ~uint64](b *testing.B, name string, marshal func(any) ([]byte, error), unmarshal func([]byte, any) error) {
	ids := make([]ID, slice)
	for i := range ids {
		ids[i] = textID + ID(i)
	}
	doc, err := marshal(ids)
	must(b, err)
	b.Run("Marshal/"+name, func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := marshal(ids); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Unmarshal/"+name, func(b *testing.B) {
		out := make([]ID, 0, slice)
		b.ReportAllocs()
		for b.Loop() {
			must(b, unmarshal(doc, &out))
		}
		if len(out) != slice || out[slice-1] != ids[slice-1] {
			b.Fatalf("Unmarshal gave %d IDs that end with %d; want %d that end with %d", len(out), out[len(out)-1], slice, ids[slice-1])
		}
	})
}
