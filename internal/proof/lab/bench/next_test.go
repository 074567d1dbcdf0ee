package main

import (
	"testing"

	"github.com/snowkey/snowkey/types"
)

// BenchmarkNext is the cost of one ID in one goroutine: an operation is an ID.
func BenchmarkNext(b *testing.B) {
	for _, s := range sources {
		b.Run(s.name, func(b *testing.B) { next(b, s.start(b)) })
	}
}

// A batch fits a first-level cache, so keeping the IDs is cheap.
const batch = 1000

func next(b *testing.B, take func([]types.Snowflake)) {
	ids := make([]types.Snowflake, batch)
	take(ids)
	b.ReportAllocs()
	b.ResetTimer()
	for left := b.N; left > 0; left -= batch {
		take(ids[:min(left, batch)])
	}
	b.StopTimer()
	b.ReportMetric(float64(duplicates(ids)), "dup/op") // of the last batch
}
