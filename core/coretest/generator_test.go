package coretest_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/coretest"
	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// What finds the methods of a core.Generator finds those of a coretest.Generator.
var _ interface {
	gormplugin.Source
	gormplugin.Layout
	sqlxhelper.Source
	Fill(ctx context.Context, ids []types.Snowflake) error
	Layout() core.Layout
	ShardBits() int
	ShardFrom(ctx context.Context) (shard int64, ok bool, err error)
} = (*coretest.Generator)(nil)

// take returns the next n keys.
func take(t *testing.T, g *coretest.Generator, n int) []types.Snowflake {
	t.Helper()
	ids := make([]types.Snowflake, n)
	if err := g.Fill(t.Context(), ids); err != nil {
		t.Fatalf("Fill(%d) = %v; want no error", n, err)
	}
	return ids
}

// Golden files of users depend on these numbers.
func TestKeysAreTheSameInEachRun(t *testing.T) {
	for range 2 {
		g := coretest.NewGenerator(coretest.Config{})
		got := take(t, g, 2)
		id, err := g.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := []types.Snowflake{132271570944000000, 132271570944000001, 132271570944000002}
		if got = append(got, id); !slices.Equal(got, want) {
			t.Errorf("the first keys = %d; want %d", got, want)
		}
	}
}

func TestWorkersAndLayoutsMakeOtherKeys(t *testing.T) {
	layout := core.Twitter()
	id := take(t, coretest.NewGenerator(coretest.Config{Layout: layout, Worker: 31}), 1)[0]
	want := core.Parts{Time: coretest.Start(), Worker: 31}
	if got := layout.Parts(id); got != want {
		t.Errorf("Parts(first key) = %+v; want %+v", got, want)
	}
}

func TestKeysHaveTheTimeOfTheClock(t *testing.T) {
	var clock coretest.Clock
	g := coretest.NewGenerator(coretest.Config{Now: clock.Now})
	monday := time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)
	for _, at := range []time.Time{coretest.Start(), monday, monday.AddDate(0, 0, -1)} {
		clock.Set(at)
		for _, id := range take(t, g, 2) {
			if got := g.Layout().Parts(id).Time; !got.Equal(at) {
				t.Errorf("time of the key made at %v = %v; want the same", at, got)
			}
		}
	}
	clock.Advance(-time.Millisecond)
	if got, want := clock.Now(), monday.AddDate(0, 0, -1).Add(-time.Millisecond); !got.Equal(want) {
		t.Errorf("Now after Advance(-1ms) = %v; want %v", got, want)
	}
}

func TestTheZeroClockShowsStart(t *testing.T) {
	var shown, moved coretest.Clock
	moved.Advance(time.Hour)
	if got := shown.Now(); !got.Equal(coretest.Start()) {
		t.Errorf("Now of the zero Clock = %v; want %v", got, coretest.Start())
	}
	if got, want := moved.Now(), coretest.Start().Add(time.Hour); !got.Equal(want) {
		t.Errorf("Now after Advance(1h) of the zero Clock = %v; want %v", got, want)
	}
}

// The clock jumps between few ticks of few keys each, so that ticks run full and go over
// into ticks that are in use.
func TestNoKeyIsReturnedTwiceWhereverTheClockGoes(t *testing.T) {
	layout := core.Layout{Epoch: coretest.Start(), Unit: time.Second, TimeBits: 20, WorkerBits: 2, SequenceBits: 2}
	var clock coretest.Clock
	g := coretest.NewGenerator(coretest.Config{Layout: layout, Worker: 3, Now: clock.Now})
	rng := rand.New(rand.NewPCG(1, 2))
	seen := map[types.Snowflake]bool{}
	for range 2000 {
		at := coretest.Start().Add(time.Duration(rng.IntN(100)) * time.Second)
		clock.Set(at)
		for _, id := range take(t, g, 1+rng.IntN(6)) {
			p := layout.Parts(id)
			if seen[id] || p.Time.Before(at) || p.Worker != 3 {
				t.Fatalf("a key at %v = %d, %+v; want a new one of worker 3 that is not earlier", at, id, p)
			}
			seen[id] = true
			for earlier := at; earlier.Before(p.Time); earlier = earlier.Add(layout.Unit) {
				last, err := layout.Compose(core.Parts{Time: earlier, Worker: 3, Sequence: 3})
				if err != nil || !seen[last] {
					t.Fatalf("a key at %v has the time %v; want %v, which has free keys", at, p.Time, earlier)
				}
			}
		}
	}
}

func TestKeysOfAClockThatStandsStillIncreaseWithoutEnd(t *testing.T) {
	g := coretest.NewGenerator(coretest.Config{Layout: core.JavaScript()}) // 512 keys in a tick
	ids := take(t, g, 50_000)
	for i, id := range ids[1:] {
		if id <= ids[i] {
			t.Fatalf("key %d = %d; want more than %d", i+1, id, ids[i])
		}
	}
}

func TestGoroutinesGetTheSameSetOfKeysInEachRun(t *testing.T) {
	run := func() []types.Snowflake {
		g := coretest.NewGenerator(coretest.Config{})
		var mu sync.Mutex
		var all []types.Snowflake
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				for range 200 {
					id, err := g.Next(t.Context())
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					all = append(all, id)
					mu.Unlock()
				}
			})
		}
		group.Wait()
		slices.Sort(all)
		return all
	}
	a, b := run(), run()
	if !slices.Equal(a, b) || len(slices.Compact(a)) != 1600 {
		t.Errorf("two runs returned %d and %d keys; want the same 1600", len(a), len(b))
	}
}

func TestAnErrorComesWithoutAKey(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	before := core.Default().Epoch.Add(-1)
	for _, test := range []struct {
		name   string
		ctx    context.Context
		config coretest.Config
		fail   error
		want   string
	}{
		{"ended", ended, coretest.Config{}, nil, "context canceled"},
		{"failing", t.Context(), coretest.Config{}, core.ErrReservationExhausted, "coretest: no ID: core: the reserved time"},
		{"early", t.Context(), coretest.Config{Now: func() time.Time { return before }}, nil, "2024-12-31T23:59:59.999999999Z"},
		{"worker", t.Context(), coretest.Config{Worker: 1024}, nil, "1024"},
		{"layout", t.Context(), coretest.Config{Layout: core.Layout{TimeBits: 1}}, nil, "Layout."},
		{"first", t.Context(), coretest.Config{First: -1}, nil, "coretest: Config.First is -1: want 1 or more"},
		{"first and worker", t.Context(), coretest.Config{First: 1, Worker: 1}, nil, "coretest: Config.First is 1: want 0 if Config.Worker or Config.Now is set"},
		{"first and clock", t.Context(), coretest.Config{First: 1, Now: coretest.Start}, nil, "coretest: Config.First is 1: want 0 if Config.Worker or Config.Now is set"},
	} {
		g := coretest.NewGenerator(test.config)
		g.Fail(test.fail)
		id, err := g.Next(test.ctx)
		if id != 0 || err == nil || !strings.Contains(err.Error(), test.want) || test.fail != nil && !errors.Is(err, test.fail) {
			t.Errorf("%s: Next() = %d, %v; want 0 and an error with %q", test.name, id, err, test.want)
		}
		ids := []types.Snowflake{7, 7}
		if err := g.Fill(test.ctx, ids); err == nil || ids[0] != 0 || ids[1] != 0 {
			t.Errorf("%s: Fill() = %v, %d; want an error and zeros", test.name, err, ids)
		}
	}
}

func TestKeysGoOnAfterAFailure(t *testing.T) {
	g := coretest.NewGenerator(coretest.Config{})
	first := take(t, g, 1)[0]
	g.Fail(errors.New("no"))
	if _, err := g.Next(t.Context()); err == nil {
		t.Error("Next() while failing = no error; want one")
	}
	g.Fail(nil)
	if got := take(t, g, 1)[0]; got != first+1 {
		t.Errorf("the key after the failure = %d; want %d", got, first+1)
	}
}

func TestKeysCountUpFromAFirst(t *testing.T) {
	for first, want := range map[types.Snowflake][]types.Snowflake{1: {1, 2, 3}, 100: {100, 101, 102}, math.MaxInt64 - 2: {math.MaxInt64 - 2, math.MaxInt64 - 1, math.MaxInt64}} {
		g := coretest.NewGenerator(coretest.Config{First: first})
		got := take(t, g, 1)
		g.Fail(errors.New("no"))
		if _, err := g.Next(t.Context()); err == nil {
			t.Error("Next() while failing = no error; want one")
		}
		g.Fail(nil)
		if got = append(got, take(t, g, 2)...); !slices.Equal(got, want) {
			t.Errorf("keys from %d = %d; want %d", first, got, want)
		}
		if first > 100 {
			if id, err := g.Next(t.Context()); id != 0 || err == nil || !strings.Contains(err.Error(), "used up") {
				t.Errorf("Next() after the greatest key = %d, %v; want 0 and an error", id, err)
			}
		}
	}
}

func TestTheLastTickOfALayoutEndsInAnError(t *testing.T) {
	layout := core.Layout{Epoch: coretest.Start(), Unit: time.Second, TimeBits: 61, SequenceBits: 2}
	at := layout.Exhausted().Add(-1)
	g := coretest.NewGenerator(coretest.Config{Layout: layout, Now: func() time.Time { return at }})
	take(t, g, 4)
	if id, err := g.Next(t.Context()); id != 0 || err == nil {
		t.Errorf("Next() after the last key = %d, %v; want 0 and an error", id, err)
	}
}

// As those of core.Generator, so that a test sees the shards that production has.
func TestKeysAreOnTheShardOfTheContextOrOnOneAfterTheOther(t *testing.T) {
	layout := core.Default()
	layout.ShardBits = 10
	g := coretest.NewGenerator(coretest.Config{Layout: layout})
	above := map[types.Snowflake]bool{}
	for i, id := range take(t, g, 20) { // 4 in a tick
		if above[id>>10] || layout.Shard(id) != int64(i) {
			t.Errorf("key %d = %d, on shard %d; want one of its own above the shard, on shard %d", i, id, layout.Shard(id), i)
		}
		above[id>>10] = true
	}
	for _, ctx := range []context.Context{core.OnShard(t.Context(), 1000), core.OnShardOf(t.Context(), 1<<40|1000)} {
		if id, err := g.Next(ctx); err != nil || layout.Shard(id) != 1000 || above[id>>10] {
			t.Errorf("Next = %d, %v; want a key on shard 1000", id, err)
		} else {
			above[id>>10] = true
		}
		if n, ok, err := g.ShardFrom(ctx); n != 1000 || !ok || err != nil {
			t.Errorf("ShardFrom = %d, %v, %v; want 1000", n, ok, err)
		}
	}
	var wrong *core.ValueError
	if id, err := g.Next(core.OnShard(t.Context(), 1024)); id != 0 || !errors.As(err, &wrong) {
		t.Errorf("Next on shard 1024 of 1024 = %d, %v; want a ValueError", id, err)
	}
	counted := coretest.NewGenerator(coretest.Config{Layout: layout, First: 1})
	if _, ok, err := counted.ShardFrom(core.OnShard(t.Context(), 5000)); ok || err != nil || counted.ShardBits() != 0 {
		t.Errorf("keys counted from 1 have shards: %v, %v, %d bits", ok, err, counted.ShardBits())
	}
}
