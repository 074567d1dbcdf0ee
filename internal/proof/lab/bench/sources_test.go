package main

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/types"
)

// A source generates IDs, under the name that the tables show. It hides only the type
// of the IDs.
type source struct {
	name    string
	next    func(b *testing.B)
	contend func(b *testing.B, goroutines int)
}

// makeSource returns a source. start makes a new generator, and returns a function that
// sets every element of a slice. It calls the generator once for each. Many goroutines
// call the function at once.
func makeSource[ID any](name string, compare func(a, b ID) int, start func(testing.TB) func([]ID)) source {
	return source{
		name:    name,
		next:    func(b *testing.B) { benchmarkNext(b, compare, start(b)) },
		contend: func(b *testing.B, goroutines int) { benchmarkContention(b, compare, start(b), goroutines) },
	}
}

// The sequence bits of the two layouts that are measured. With wideBits no millisecond
// runs out of numbers. classicBits are Twitter's.
const (
	wideBits    = 22
	classicBits = 12
)

// sources returns everything that is measured one ID at a time, with wideBits.
func sources() []source {
	// The floor is the least that an ordered ID with the time in it can cost: one clock
	// reading, one number that nobody else has.
	return append([]source{makeSource("floor=Since+Add", cmp.Compare[int64], startFloor)}, ownSources(layout(wideBits))...)
}

// ownSources returns snowkey, and what people write themselves, for a layout without
// worker bits.
func ownSources(l core.Layout) []source {
	return []source{
		makeSource("snowkey", types.Snowflake.Compare, func(t testing.TB) func([]types.Snowflake) {
			return nextEach(t, settled(t, newSnowkey(t, l, core.StaticWorker(0))))
		}),
		makeSource("mutex+Since", cmp.Compare[int64], func(testing.TB) func([]int64) {
			g := newMutexSince(l.SequenceBits)
			return func(ids []int64) {
				for i := range ids {
					ids[i] = g.next()
				}
			}
		}),
		makeSource("article-mutex", cmp.Compare[int64], func(testing.TB) func([]int64) {
			g := &articleMutex{bits: l.SequenceBits}
			return func(ids []int64) {
				for i := range ids {
					ids[i] = g.next()
				}
			}
		}),
		makeSource("article-lockfree", cmp.Compare[int64], func(testing.TB) func([]int64) {
			g := &articleLockFree{bits: l.SequenceBits}
			return func(ids []int64) {
				for i := range ids {
					ids[i] = g.next()
				}
			}
		}),
	}
}

func startFloor(testing.TB) func([]int64) {
	type floor struct {
		start time.Time
		_     [64]byte // start is only read: it must not share the counter's cache line
		n     atomic.Int64
	}
	f := &floor{start: time.Now()}
	return func(ids []int64) {
		var sum time.Duration
		for i := range ids {
			sum += time.Since(f.start)
			ids[i] = f.n.Add(1)
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
func duplicates[ID any](ids []ID, compare func(a, b ID) int) int {
	slices.SortFunc(ids, compare)
	n := 0
	for i := 1; i < len(ids); i++ {
		if compare(ids[i-1], ids[i]) == 0 {
			n++
		}
	}
	return n
}
