//go:build go1.27 && goexperiment.jsonv2

package main

import (
	jsonv2 "encoding/json/v2"
	"testing"
)

// BenchmarkJSONv2 is BenchmarkJSON with encoding/json/v2.
func BenchmarkJSONv2(b *testing.B) {
	benchmarkCodec(b,
		func(v any) ([]byte, error) { return jsonv2.Marshal(v) },
		func(data []byte, v any) error { return jsonv2.Unmarshal(data, v) })
}
