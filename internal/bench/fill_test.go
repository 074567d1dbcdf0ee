package bench

import (
	"context"
	"strconv"
	"testing"
	"time"

	bwmarrin "github.com/bwmarrin/snowflake"

	"github.com/snowkey/snowkey/core"
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
				// By fours, because the speed of a loop with one store depends on
				// where the linker happens to put it, by a factor of two.
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
			})
		})
		b.Run("n="+strconv.Itoa(n)+"/snowkey", func(b *testing.B) {
			g, ids := newSnowkey(b, fillLayout(), core.StaticWorker(0)), make([]types.Snowflake, n)
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

// fillLayout has 134 million numbers in a millisecond. With wideBits, the most that
// leaves a layout its years, they would run out: 4,194,304 per millisecond is one
// every 0.24 ns, and Fill is about as fast. So this layout has an epoch of its own.
func fillLayout() core.Layout {
	l := layout(wideBits)
	l.Epoch = time.Now().Add(-24 * time.Hour)
	l.TimeBits, l.SequenceBits = 36, 27
	return l
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
