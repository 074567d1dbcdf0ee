package main

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/leasetest"
	"github.com/snowkey/snowkey/types"
)

// BenchmarkLease is BenchmarkContention with a fixed worker number and with a leased
// one. The difference is the check of the reserved limit. The store is in memory. It is
// called every 2.5 s, which hardly counts.
func BenchmarkLease(b *testing.B) {
	l := layout(wideBits)
	leased := source{"leased", func(t testing.TB) func([]types.Snowflake) {
		worker, err := lease.Acquire(context.Background(), leasetest.NewMemory(nil), lease.Config{
			Namespace: "bench", Layout: l, Logger: slog.New(slog.DiscardHandler),
		})
		must(t, err)
		return nextEach(t, settled(t, newSnowkey(t, l, worker)))
	}}
	for _, goroutines := range []int{1, 64} {
		for _, s := range []source{fixed("fixed"), leased} {
			b.Run(fmt.Sprintf("c=%d/%s", goroutines, s.name), func(b *testing.B) { contend(b, s.start(b), goroutines) })
		}
	}
}
