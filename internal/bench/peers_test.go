package main

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	bwmarrin "github.com/bwmarrin/snowflake"
	gofrs "github.com/gofrs/uuid/v5"
	google "github.com/google/uuid"
	"github.com/oklog/ulid/v2"
	"github.com/rs/xid"
	"github.com/segmentio/ksuid"
	"github.com/sony/sonyflake/v2"

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

// sources returns everything that is measured one ID at a time, all with wideBits
// where they have a sequence.
func sources() []source {
	// The floor is the least that an ordered ID with the time in it can cost: one clock
	// reading, one number that nobody else has.
	list := append([]source{makeSource("floor=Since+Add", cmp.Compare[int64], startFloor)}, ownSources(layout(wideBits))...)
	return append(list, []source{
		makeSource("bwmarrin", cmp.Compare[bwmarrin.ID], func(t testing.TB) func([]bwmarrin.ID) {
			return bwmarrinEach(newBwmarrin(t, wideBits))
		}),
		makeSource("sonyflake", cmp.Compare[int64], func(t testing.TB) func([]int64) {
			return sonyflakeEach(t, newSonyflake(t, wideBits))
		}),
		makeSource("xid", func(a, b xid.ID) int { return bytes.Compare(a[:], b[:]) }, func(testing.TB) func([]xid.ID) {
			return func(ids []xid.ID) {
				for i := range ids {
					ids[i] = xid.New()
				}
			}
		}),
		makeSource("ulid", ulid.ULID.Compare, func(testing.TB) func([]ulid.ULID) {
			return func(ids []ulid.ULID) {
				for i := range ids {
					ids[i] = ulid.Make()
				}
			}
		}),
		makeSource("ksuid", ksuid.Compare, func(testing.TB) func([]ksuid.KSUID) {
			return func(ids []ksuid.KSUID) {
				for i := range ids {
					ids[i] = ksuid.New()
				}
			}
		}),
		makeSource("google-v4", compareGoogle, func(t testing.TB) func([]google.UUID) {
			return func(ids []google.UUID) {
				for i := range ids {
					id, err := google.NewRandom()
					if err != nil {
						t.Error(err)
						return
					}
					ids[i] = id
				}
			}
		}),
		makeSource("google-v7", compareGoogle, func(t testing.TB) func([]google.UUID) {
			return func(ids []google.UUID) {
				for i := range ids {
					id, err := google.NewV7()
					if err != nil {
						t.Error(err)
						return
					}
					ids[i] = id
				}
			}
		}),
		makeSource("gofrs-v7", func(a, b gofrs.UUID) int { return bytes.Compare(a[:], b[:]) }, func(t testing.TB) func([]gofrs.UUID) {
			return func(ids []gofrs.UUID) {
				for i := range ids {
					id, err := gofrs.NewV7()
					if err != nil {
						t.Error(err)
						return
					}
					ids[i] = id
				}
			}
		}),
	}...)
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

func compareGoogle(a, b google.UUID) int { return bytes.Compare(a[:], b[:]) }

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
	if err != nil {
		t.Fatal(err)
	}
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

// newBwmarrin returns a node with the given step bits. The widths are variables of
// bwmarrin's package. NewNode copies them, so they are set only while a node is made.
func newBwmarrin(t testing.TB, stepBits uint8) *bwmarrin.Node {
	node, step := bwmarrin.NodeBits, bwmarrin.StepBits
	defer func() { bwmarrin.NodeBits, bwmarrin.StepBits = node, step }()
	bwmarrin.NodeBits, bwmarrin.StepBits = 22-stepBits, stepBits
	n, err := bwmarrin.NewNode(0)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func bwmarrinEach(n *bwmarrin.Node) func([]bwmarrin.ID) {
	return func(ids []bwmarrin.ID) {
		for i := range ids {
			ids[i] = n.Generate()
		}
	}
}

// newSonyflake returns a sonyflake of 1 ms ticks with the given sequence bits. It
// wants at least 1 bit of machine and 32 of time.
func newSonyflake(t testing.TB, sequenceBits int) *sonyflake.Sonyflake {
	s, err := sonyflake.New(sonyflake.Settings{
		BitsSequence:  sequenceBits,
		BitsMachineID: max(1, 22-sequenceBits),
		TimeUnit:      time.Millisecond,
		StartTime:     time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC),
		MachineID:     func() (int, error) { return 0, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func sonyflakeEach(t testing.TB, s *sonyflake.Sonyflake) func([]int64) {
	return func(ids []int64) {
		for i := range ids {
			id, err := s.NextID()
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

func TestDuplicatesAreCountedOnceForEachRepetition(t *testing.T) {
	for _, c := range []struct {
		ids  []int
		want int
	}{
		{nil, 0},
		{[]int{3, 1, 2}, 0},
		{[]int{1, 2, 1}, 1},
		{[]int{5, 5, 4, 5, 4}, 3},
	} {
		if got := duplicates(slices.Clone(c.ids), cmp.Compare[int]); got != c.want {
			t.Errorf("duplicates(%v) = %d; want %d", c.ids, got, c.want)
		}
	}
}

func TestBwmarrinNodesOfTwoWidthsKeepTheirOwn(t *testing.T) {
	const narrowBits = 6
	narrow, wide := newBwmarrin(t, narrowBits), newBwmarrin(t, wideBits)
	if bwmarrin.NodeBits != 10 || bwmarrin.StepBits != 12 {
		t.Errorf("after newBwmarrin(%d) NodeBits, StepBits = %d, %d; want 10, 12", wideBits, bwmarrin.NodeBits, bwmarrin.StepBits)
	}
	// Node 0 has no bits of its own, so what is below the time is the step. The wide
	// node makes more than 64 IDs in some millisecond of its 2,000 on any machine.
	greatest := func(node *bwmarrin.Node) (step int64) {
		ids := make([]bwmarrin.ID, 2000)
		bwmarrinEach(node)(ids)
		for _, id := range ids {
			step = max(step, int64(id)&(1<<22-1))
		}
		return step
	}
	if got := greatest(narrow); got >= 1<<narrowBits {
		t.Errorf("%d bits: greatest step = %d; want less than %d", narrowBits, got, 1<<narrowBits)
	}
	if got := greatest(wide); got < 1<<narrowBits {
		t.Errorf("%d bits: greatest step = %d; want %d or more", wideBits, got, 1<<narrowBits)
	}
}
