package main

import "testing"

// BenchmarkNext is the cost of one ID in one goroutine: an operation is an ID.
func BenchmarkNext(b *testing.B) {
	for _, s := range sources() {
		b.Run(s.name, s.next)
	}
}

// A batch fits a first-level cache, so keeping the IDs is cheap.
const batch = 1000

func benchmarkNext[ID any](b *testing.B, compare func(a, b ID) int, take func([]ID)) {
	ids := make([]ID, batch)
	take(ids)
	b.ReportAllocs()
	b.ResetTimer()
	for left := b.N; left > 0; left -= batch {
		take(ids[:min(left, batch)])
	}
	b.StopTimer()
	b.ReportMetric(float64(duplicates(ids, compare)), "dup/op") // of the last batch
}
