package main

import (
	"fmt"
	"sync"
	"testing"

	"github.com/snowkey/snowkey/types"
)

// perGoroutine is how many IDs each goroutine takes in one operation of
// BenchmarkContention.
const perGoroutine = 10_000

// BenchmarkContention starts goroutines together that take perGoroutine IDs each. An
// operation ends with the last of them. Its IDs are compared with each other.
func BenchmarkContention(b *testing.B) {
	for _, goroutines := range []int{1, 2, 4, 8, 12, 64} {
		for _, s := range sources {
			b.Run(fmt.Sprintf("c=%d/%s", goroutines, s.name), func(b *testing.B) { contend(b, s.start(b), goroutines) })
		}
	}
}

func contend(b *testing.B, take func([]types.Snowflake), goroutines int) {
	ids := make([]types.Snowflake, goroutines*perGoroutine)
	take(ids[:batch])
	dup := 0
	b.ResetTimer()
	b.StopTimer()
	for range b.N {
		start := make(chan struct{})
		var ready, done sync.WaitGroup
		for i := range goroutines {
			own := ids[i*perGoroutine : (i+1)*perGoroutine]
			ready.Add(1)
			done.Go(func() {
				ready.Done()
				<-start
				take(own)
			})
		}
		ready.Wait()
		b.StartTimer()
		close(start)
		done.Wait()
		b.StopTimer()
		dup += duplicates(ids)
	}
	if dup > 0 {
		b.Errorf("%d duplicates in %d operations; want 0", dup, b.N)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(ids)), "ns/ID")
	b.ReportMetric(float64(dup)/float64(b.N), "dup/op")
}
