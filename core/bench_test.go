package core

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/snowkey/snowkey/types"
)

// uncapped has so many sequence bits that the numbers of a millisecond never run
// out: what is left is the cost of an ID, not the rate that the layout allows.
func uncapped() Config {
	l := Default()
	l.WorkerBits, l.SequenceBits = 0, 22
	return Config{Layout: l, Worker: StaticWorker(0)}
}

// BenchmarkNext has the floor beside it: an ordered ID that carries the time
// needs one clock reading and one atomic addition.
func BenchmarkNext(b *testing.B) {
	b.Run("floor: time.Since + Add", func(b *testing.B) {
		start, n := time.Now(), new(atomic.Int64)
		var sum time.Duration
		for b.Loop() {
			sum += time.Since(start)
			n.Add(1)
		}
		_ = sum
	})
	b.Run("Next", func(b *testing.B) {
		g := newTest(b, uncapped(), nil)
		ctx := context.Background()
		mustNext(b, g)
		b.ReportAllocs()
		for b.Loop() {
			_, _ = g.Next(ctx)
		}
	})
	b.Run("Next, mutex oracle", func(b *testing.B) {
		o := newOracle(uncapped(), nil)
		ctx := context.Background()
		mustNext(b, o)
		for b.Loop() {
			_, _ = o.Next(ctx)
		}
	})
	b.Run("Next, Default at its cap of 4096 per ms", func(b *testing.B) {
		g := newTest(b, Config{}, nil)
		ctx := context.Background()
		mustNext(b, g)
		b.ReportAllocs()
		for b.Loop() {
			_, _ = g.Next(ctx)
		}
	})
}

// BenchmarkNextParallel is BenchmarkNext with 64 goroutines on every CPU there is.
func BenchmarkNextParallel(b *testing.B) {
	b.Run("floor: time.Since + Add", func(b *testing.B) {
		start, n := time.Now(), new(atomic.Int64)
		b.SetParallelism(32)
		b.RunParallel(func(pb *testing.PB) {
			var sum time.Duration
			for pb.Next() {
				sum += time.Since(start)
				n.Add(1)
			}
			_ = sum
		})
	})
	b.Run("Next", func(b *testing.B) {
		g := newTest(b, uncapped(), nil)
		ctx := context.Background()
		b.SetParallelism(32)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				_, _ = g.Next(ctx)
			}
		})
	})
}

func BenchmarkFill(b *testing.B) {
	for _, n := range []int{1, 10, 100, 1000, 10000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			g := newTest(b, uncapped(), nil)
			ctx := context.Background()
			ids := make([]types.Snowflake, n)
			mustNext(b, g)
			for b.Loop() {
				_ = g.Fill(ctx, ids)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/ID")
		})
	}
}
