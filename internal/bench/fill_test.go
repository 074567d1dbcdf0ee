package bench

import (
	"context"
	"strconv"
	"testing"

	bwmarrin "github.com/bwmarrin/snowflake"

	"github.com/snowkey/snowkey/types"
)

// BenchmarkFill is slices of n IDs: an operation is a slice. Beside Fill there is
// the least that it could cost, which is to write n consecutive numbers, and a
// loop over bwmarrin, which has no call for a slice.
func BenchmarkFill(b *testing.B) {
	ctx := context.Background()
	for _, n := range []int{1, 10, 100, 1000, 10_000} {
		b.Run("n="+strconv.Itoa(n)+"/floor=store", func(b *testing.B) {
			ids, first := make([]types.Snowflake, n), types.Snowflake(0)
			benchmarkFill(b, ids, func() {
				id := first
				for i := range ids {
					ids[i] = id
					id++
				}
				first = id
			})
		})
		b.Run("n="+strconv.Itoa(n)+"/snowkey", func(b *testing.B) {
			g, ids := newSnowkey(b, wideBits), make([]types.Snowflake, n)
			benchmarkFill(b, ids, func() {
				if err := g.Fill(ctx, ids); err != nil {
					b.Error(err)
				}
			})
			if dup := duplicates(ids, types.Snowflake.Compare); dup > 0 {
				b.Errorf("%d duplicates in a slice of %d; want 0", dup, n)
			}
		})
		b.Run("n="+strconv.Itoa(n)+"/bwmarrin", func(b *testing.B) {
			node, ids := newBwmarrin(b, wideBits), make([]bwmarrin.ID, n)
			take := bwmarrinEach(node)
			benchmarkFill(b, ids, func() { take(ids) })
		})
	}
}

func benchmarkFill[ID any](b *testing.B, ids []ID, fill func()) {
	fill()
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		fill()
	}
	b.StopTimer()
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(ids)), "ns/ID")
}
