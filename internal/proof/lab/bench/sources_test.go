package main

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/types"
)

// A source generates IDs, under the name that the tables show. start makes a new generator, and
// returns a function that sets every element of a slice. It calls the generator once for each. Many
// goroutines call the function at once.
type source struct {
	name  string
	start func(testing.TB) func([]types.Snowflake)
}

// The sequence bits of the two layouts that are measured. With wideBits no millisecond
// runs out of numbers. classicBits are Twitter's.
const (
	wideBits    = 22
	classicBits = 12
)

// sources are what is measured one ID at a time, with wideBits. The floor is the least that an
// ordered ID with the time in it can cost: one clock reading, one number that no other ID has.
var sources = []source{{"floor=Since+Add", startFloor}, fixed("snowkey")}

// fixed returns snowkey with a fixed number of the worker.
func fixed(name string) source {
	return source{name, func(t testing.TB) func([]types.Snowflake) {
		return nextEach(t, settled(t, newSnowkey(t, layout(wideBits), core.StaticWorker(0))))
	}}
}

func startFloor(testing.TB) func([]types.Snowflake) {
	type floor struct {
		start time.Time
		_     [64]byte // start is only read: it must not share the counter's cache line
		n     atomic.Int64
	}
	f := &floor{start: time.Now()}
	return func(ids []types.Snowflake) {
		var sum time.Duration
		for i := range ids {
			sum += time.Since(f.start)
			ids[i] = types.Snowflake(f.n.Add(1))
		}
		sink.Store(int64(sum))
	}
}

// sink takes results that nothing else uses, so that the compiler keeps the work.
var sink atomic.Int64

// layout returns a snowkey layout of one worker with the given sequence bits.
func layout(sequenceBits int) core.Layout {
	l := core.Default()
	l.WorkerBits, l.SequenceBits = 22-sequenceBits, sequenceBits
	return l
}

func newSnowkey(t testing.TB, l core.Layout, worker core.Worker) *core.Generator {
	g, err := core.New(core.Config{Layout: l, Worker: worker})
	must(t, err)
	t.Cleanup(func() {
		if err := g.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return g
}

// settled returns g when its numbers are in the tick of the clock, as measured. A new
// generator with a fixed worker begins the run-ahead above.
func settled(t testing.TB, g *core.Generator) *core.Generator {
	if _, err := g.Next(context.Background()); err != nil {
		t.Fatal(err)
	}
	for g.Stats().Ahead > 0 {
		time.Sleep(time.Millisecond)
	}
	return g
}

func nextEach(t testing.TB, g *core.Generator) func([]types.Snowflake) {
	ctx := context.Background()
	return func(ids []types.Snowflake) {
		for i := range ids {
			id, err := g.Next(ctx)
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = id
		}
	}
}

// duplicates sorts ids and returns how many of them equal another that comes
// before.
func duplicates(ids []types.Snowflake) int {
	slices.Sort(ids)
	return len(ids) - len(slices.Compact(slices.Clone(ids)))
}
