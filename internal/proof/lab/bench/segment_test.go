package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/core/segment/segmenttest"
	"github.com/snowkey/snowkey/types"
)

// A numberer returns one number per call, as segment.Allocator does.
type numberer interface {
	Next(ctx context.Context) (types.Snowflake, error)
}

// addOnly is the floor: no range, no end, one addition.
type addOnly struct {
	_ [64]byte
	n atomic.Int64
	_ [64]byte
}

func (a *addOnly) Next(context.Context) (types.Snowflake, error) {
	return types.Snowflake(a.n.Add(1)), nil
}

// pairCalls is how many calls one half of a pair has, over all goroutines.
const pairCalls = 128_000

// BenchmarkSegmentNext compares a call with a bare atomic addition behind the same
// interface. An operation is a pair: the calls of one and those of the other, one right
// after the other, so that what disturbs the machine disturbs both. The unit ×floor is the
// median of the pairs' ratios.
func BenchmarkSegmentNext(b *testing.B) {
	ends, cancel := context.WithCancel(b.Context())
	defer cancel()
	for _, goroutines := range []int{1, 2, 8, 64} {
		run := func(name string, ctx context.Context, make func(b *testing.B) numberer) {
			b.Run(fmt.Sprintf("c=%d/%s", goroutines, name), func(b *testing.B) {
				benchmarkPairs(ctx, b, goroutines, make(b), new(addOnly))
			})
		}
		run("floor", context.Background(), func(*testing.B) numberer { return new(addOnly) })
		allocator := func(b *testing.B) numberer { return newAllocator(b) }
		run("snowkey", context.Background(), allocator)
		run("snowkey-ctx", ends, allocator)
	}
}

// newAllocator returns one whose next range comes long before it is needed.
func newAllocator(b testing.TB) *segment.Allocator {
	store := new(segmenttest.Memory)
	must(b, store.Create(context.Background(), segment.Row{Tag: "a", Next: 1, Step: 1, Stride: 1}))
	a, err := segment.New(store, segment.Config{
		Tag: "a", Step: segment.MaxCount, MaxStep: segment.MaxCount, Hold: time.Millisecond,
		Logger: slog.New(slog.DiscardHandler),
	})
	must(b, err)
	b.Cleanup(func() { _ = a.Close(context.Background()) })
	if _, err := a.Next(context.Background()); err != nil {
		b.Fatal(err)
	}
	return a
}

func benchmarkPairs(ctx context.Context, b *testing.B, goroutines int, s, floor numberer) {
	var of, at, ratios []float64
	half := func(ctx context.Context, s numberer) float64 {
		took, err := together(ctx, s, goroutines)
		must(b, err)
		return float64(took.Nanoseconds()) / pairCalls
	}
	half(ctx, s)
	b.ResetTimer()
	for i := range b.N {
		var x, y float64
		if i%2 == 0 {
			y, x = half(context.Background(), floor), half(ctx, s)
		} else {
			x, y = half(ctx, s), half(context.Background(), floor)
		}
		of, at, ratios = append(of, x), append(at, y), append(ratios, x/y)
	}
	b.StopTimer()
	b.ReportMetric(middle(of), "ns/ID")
	b.ReportMetric(middle(at), "floor-ns/ID")
	b.ReportMetric(middle(ratios), "×floor")
	b.ReportMetric(testing.AllocsPerRun(100, func() { _, _ = s.Next(ctx) }), "allocs/ID")
}

// together makes pairCalls calls by goroutines that start at once. It returns the time
// from the start to the last one's end.
func together(ctx context.Context, s numberer, goroutines int) (time.Duration, error) {
	var (
		ready, done sync.WaitGroup
		start       = make(chan struct{})
		errs        = make([]error, goroutines)
	)
	for g := range goroutines {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-start
			var sum types.Snowflake
			for range pairCalls / goroutines {
				id, err := s.Next(ctx)
				if err != nil {
					errs[g] = err
					return
				}
				sum += id
			}
			sink.Store(int64(sum))
		})
	}
	ready.Wait()
	began := time.Now()
	close(start)
	done.Wait()
	took := time.Since(began)
	for _, err := range errs {
		if err != nil {
			return 0, err
		}
	}
	return took, nil
}

// BenchmarkSegmentFill fills slices of 1,000 numbers, 20 of them in each operation: that is short,
// so that few are interrupted.
func BenchmarkSegmentFill(b *testing.B) {
	const n, times = 1000, 20
	b.Run("n=1000/snowkey", func(b *testing.B) {
		a, ids := newAllocator(b), make([]types.Snowflake, n)
		fill := func() {
			if err := a.Fill(context.Background(), ids); err != nil {
				b.Error(err)
			}
		}
		var took []float64
		for range b.N {
			began := time.Now()
			for range times {
				fill()
			}
			took = append(took, float64(time.Since(began).Nanoseconds())/(times*n))
		}
		b.ReportMetric(middle(took), "ns/ID")
		b.ReportMetric(testing.AllocsPerRun(10, fill), "allocs/fill")
		fill()
		if dup := duplicates(ids); dup > 0 {
			b.Errorf("%d duplicates in a slice of %d; want 0", dup, n)
		}
	})
}
