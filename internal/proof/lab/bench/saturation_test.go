//go:build unix

package main

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/types"
)

// capRate is the most that 12 bits of sequence allow, in IDs per nanosecond.
const capRate = float64(1<<classicBits) / float64(time.Millisecond)

// warmUp is 40 ms of IDs: twice the run-ahead.
const warmUp = 40 << classicBits

// BenchmarkSaturation has goroutines that ask for more than 12 bits of sequence allow.
// An operation is an ID. Beside ns/op it reports
//
//	%cap   the rate that was reached, of 4,096 IDs per millisecond
//	%core  the CPU time of the process, user and system, of one core
//
// With hogs, as many goroutines as there are CPUs spin beside it. %core would include
// theirs, and is not reported.
//
// Let b.N be seconds of IDs (-benchtime 8192000x is 2 s). Because the run begins and ends
// anywhere in a tick, and with hogs anywhere in the run-ahead, the share is off by up to 1 ms,
// or 20 ms, of the time, and may exceed 100.
func BenchmarkSaturation(b *testing.B) {
	fromNext := func(b *testing.B) func(n int) {
		return inBatchesOf(batch, nextEach(b, newSnowkey(b, layout(classicBits), core.StaticWorker(0))))
	}
	fromFill := func(b *testing.B) func(n int) {
		g, ctx := newSnowkey(b, layout(classicBits), core.StaticWorker(0)), context.Background()
		return inBatchesOf(100, func(ids []types.Snowflake) {
			if err := g.Fill(ctx, ids); err != nil {
				b.Error(err)
			}
		})
	}
	for _, s := range []struct {
		name  string
		hogs  bool
		start func(*testing.B) func(n int)
	}{
		{"snowkey", false, fromNext},
		{"snowkey-Fill(100)", false, fromFill},
		{"snowkey", true, fromNext},
	} {
		beside := "alone"
		if s.hogs {
			beside = "hogs"
		}
		for _, goroutines := range []int{1, 2, 8, 64} {
			b.Run(fmt.Sprintf("%s/c=%d/%s", beside, goroutines, s.name), func(b *testing.B) {
				benchmarkSaturation(b, s.start(b), goroutines, s.hogs)
			})
		}
	}
}

func benchmarkSaturation(b *testing.B, take func(n int), goroutines int, hogs bool) {
	if hogs {
		defer hog(runtime.GOMAXPROCS(0))()
	}
	// Use up the run-ahead first, or the measurement begins with a stock of its
	// numbers.
	take(warmUp)
	cpu := cpuTime(b)
	b.ResetTimer()
	var wg sync.WaitGroup
	for i := range goroutines {
		wg.Go(func() { take((b.N + i) / goroutines) }) // these sum to b.N
	}
	wg.Wait()
	b.StopTimer()
	cpu = cpuTime(b) - cpu
	elapsed := float64(b.Elapsed())
	b.ReportMetric(100*float64(b.N)/elapsed/capRate, "%cap")
	if !hogs {
		b.ReportMetric(100*float64(cpu)/elapsed, "%core")
	}
}

// inBatchesOf returns a function that takes n IDs by slices of the given size, and
// drops them.
func inBatchesOf(size int, take func([]types.Snowflake)) func(n int) {
	return func(n int) {
		ids := make([]types.Snowflake, size)
		for left := n; left > 0; left -= size {
			take(ids[:min(left, size)])
		}
	}
}

// hog starts n goroutines that spin, and returns the function that stops them.
func hog(n int) (stop func()) {
	var quit atomic.Bool
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			for spinning := true; spinning; {
				spinning = !quit.Load()
			}
		})
	}
	return func() {
		quit.Store(true)
		wg.Wait()
	}
}

// cpuTime returns what the process has used of all CPUs, user and system.
func cpuTime(t testing.TB) time.Duration {
	var u syscall.Rusage
	must(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
