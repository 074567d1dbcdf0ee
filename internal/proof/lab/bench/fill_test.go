package main

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/types"
)

// BenchmarkFill fills slices of n IDs. An operation is a slice. The floor writes n
// consecutive numbers.
func BenchmarkFill(b *testing.B) {
	ctx := context.Background()
	for _, n := range []int{1, 10, 100, 1000, 10_000} {
		b.Run("n="+strconv.Itoa(n)+"/floor=store", func(b *testing.B) {
			ids := make([]types.Snowflake, n)
			benchmarkFill(b, ids, storeEach(ids))
		})
		b.Run("n="+strconv.Itoa(n)+"/snowkey", func(b *testing.B) {
			g, ids := newSnowkey(b, fillLayout(), core.StaticWorker(0)), make([]types.Snowflake, n)
			benchmarkFill(b, ids, func() {
				if err := g.Fill(ctx, ids); err != nil {
					b.Error(err)
				}
			})
			if dup := duplicates(ids); dup > 0 {
				b.Errorf("%d duplicates in a slice of %d; want 0", dup, n)
			}
		})
	}
}

// storeEach returns what writes consecutive numbers, the floor of every Fill.
func storeEach(ids []types.Snowflake) func() {
	first := types.Snowflake(0)
	return func() {
		// By fours. The speed of a loop with one store differs
		// by a factor of two, with where the linker puts it.
		id, rest := first, ids
		for ; len(rest) >= 4; rest = rest[4:] {
			rest[0], rest[1], rest[2], rest[3] = id, id+1, id+2, id+3
			id += 4
		}
		for i := range rest {
			rest[i] = id
			id++
		}
		first = id
	}
}

// fillLayout has 134 million numbers in a millisecond. wideBits has 4,194,304, one every 0.24
// ns, which Fill would use up, because it is about as fast. So many bits leave few years, and
// this layout therefore has its own epoch.
func fillLayout() core.Layout {
	l := layout(wideBits)
	l.Epoch = time.Now().Add(-24 * time.Hour)
	l.TimeBits, l.SequenceBits = 36, 27
	return l
}

func benchmarkFill(b *testing.B, ids []types.Snowflake, fill func()) {
	fill()
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		fill()
	}
	b.StopTimer()
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(ids)), "ns/ID")
}
