package core

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/snowkey/snowkey/types"
)

// shardLayout has 16 shards and counts 16 IDs per tick.
func shardLayout() Layout {
	l := bubbleLayout(8)
	l.ShardBits = 4
	return l
}

// eachPolicy runs a claim over a term and a ring.
func eachPolicy(t *testing.T, l Layout, claim func(t *testing.T, g *Generator)) {
	for _, rollback := range []Rollback{Continue, Backfill} {
		t.Run(rollback.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { claim(t, newTest(t, Config{Layout: l, Rollback: rollback}, nil)) })
		})
	}
}

func TestIDsAreOnTheShardThatTheContextAsksFor(t *testing.T) {
	l := shardLayout()
	eachPolicy(t, l, func(t *testing.T, g *Generator) {
		background := context.Background()
		for n := range int64(16) {
			id, err := g.Next(OnShard(background, n))
			if err != nil || l.Shard(id) != n || l.Parts(id).Shard != n {
				t.Fatalf("Next on shard %d = %d, %v, on shard %d; Parts %v", n, id, err, l.Shard(id), l.Parts(id))
			}
			ids := make([]types.Snowflake, 100) // several ticks
			if err := g.Fill(OnShardOf(background, id), ids); err != nil {
				t.Fatal(err)
			}
			for i, line := range ids {
				if l.Shard(line) != n || line <= id {
					t.Fatalf("ids[%d] of Fill on the shard of %d = %d, on shard %d; want a greater one on %d", i, id, line, l.Shard(line), n)
				}
				id = line
			}
			nearest := OnShard(OnShardOf(OnShard(background, 3), id), n^1)
			if id, err := g.Next(nearest); err != nil || l.Shard(id) != n^1 {
				t.Fatalf("Next with three requests = %d, %v, on shard %d; want the last, %d", id, err, l.Shard(id), n^1)
			}
		}
	})
}

func TestWithoutARequestTheShardsAreEven(t *testing.T) {
	l := shardLayout()
	eachPolicy(t, l, func(t *testing.T, g *Generator) {
		ids := make([]types.Snowflake, 16*100+7)
		if err := g.Fill(context.Background(), ids); err != nil {
			t.Fatal(err)
		}
		filled := make([]int, 16)
		for _, id := range ids {
			filled[l.Shard(id)]++
		}
		if least, most := slices.Min(filled), slices.Max(filled); least != 100 || most != 101 {
			t.Errorf("shards of a slice have %d to %d IDs: %v; want 100 or 101", least, most, filled)
		}
		// A slice that is shorter than the shards are many leaves no range of them out.
		for n := range 1000 {
			few := ids[n : n+8]
			quarters := make([]int, 4)
			for _, id := range few {
				quarters[l.Shard(id)/4]++
			}
			if slices.Min(quarters) == 0 {
				t.Fatalf("shards of 8 IDs in a row, in ranges of 4: %v; want some in each", quarters)
			}
		}
		single := make([]int, 16)
		for range 16_000 {
			time.Sleep(time.Millisecond) // the first ID of each tick, where a plain layout has even ones only
			single[l.Shard(mustNext(t, g))]++
		}
		// The standard deviation is 31.
		if least, most := slices.Min(single), slices.Max(single); least < 700 || most > 1300 {
			t.Errorf("shards of single IDs have %d to %d of them: %v; want about 1,000", least, most, single)
		}
	})
}

// Uniqueness is the count's: whatever the callers ask for, no two IDs are equal above the shard.
func TestNoTwoIDsAreEqualAboveTheShard(t *testing.T) {
	l := shardLayout()
	for _, rollback := range []Rollback{Continue, Backfill} {
		config := Config{Layout: l, Rollback: rollback, Worker: StaticWorker(int64(rollback))}
		config.Layout.SequenceBits, config.Layout.TimeBits = 14, 41
		g := newTest(t, config, nil)
		var all [8][]types.Snowflake
		var wait sync.WaitGroup
		for i := range all {
			wait.Go(func() {
				random := rand.New(rand.NewPCG(uint64(i), 29))
				for len(all[i]) < 20_000 {
					ctx := context.Background()
					switch random.IntN(3) {
					case 0:
						ctx = OnShard(ctx, random.Int64N(16))
					case 1:
						ctx = OnShardOf(ctx, 1+types.Snowflake(random.Int64()>>1))
					}
					ids := make([]types.Snowflake, 1+random.IntN(30))
					var err error
					if len(ids)%2 == 0 {
						err = g.Fill(ctx, ids)
					} else {
						ids = ids[:1]
						ids[0], err = g.Next(ctx)
					}
					if err != nil {
						t.Error(err)
						return
					}
					all[i] = append(all[i], ids...)
				}
			})
		}
		wait.Wait()
		seen := map[types.Snowflake]bool{}
		for _, ids := range all {
			for i, id := range ids {
				if seen[id>>4] {
					t.Fatalf("%v: %d twice above the shard", rollback, id)
				}
				seen[id>>4] = true
				if rollback == Continue && i > 0 && id <= ids[i-1] {
					t.Fatalf("%d after %d; want a greater one, whatever the shards", id, ids[i-1])
				}
			}
		}
	}
}

func TestAShardThatThereIsNotIsAnErrorAndTakesNoNumber(t *testing.T) {
	eachPolicy(t, shardLayout(), func(t *testing.T, g *Generator) {
		background := context.Background()
		mustNext(t, g)
		before := g.counter().newest()
		for _, c := range []struct {
			ctx  context.Context
			want string
		}{
			{OnShard(background, 16), "core: shard of OnShard is 16: want 0..15 (4 bits)"},
			{OnShard(background, -1), "core: shard of OnShard is -1"},
			{OnShard(background, math.MinInt64), "-9223372036854775808"},
			{OnShardOf(background, 0), "core: id of OnShardOf is 0: want a key, above 0"},
			{OnShardOf(background, -16), "core: id of OnShardOf is -16"},
		} {
			var wrong *ValueError
			id, err := g.Next(c.ctx)
			if id != 0 || !errors.As(err, &wrong) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Next = %d, %v; want 0 and a ValueError with %q", id, err, c.want)
			}
			ids := []types.Snowflake{5, 6}
			if err := g.Fill(c.ctx, ids); ids[0] != 0 || ids[1] != 0 || !errors.As(err, &wrong) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Fill = %d, %v; want zeros and a ValueError with %q", ids, err, c.want)
			}
			if err := g.Fill(c.ctx, nil); err != nil {
				t.Errorf("Fill(nothing) = %v; want nil", err)
			}
		}
		if after := g.counter().newest(); after != before {
			t.Errorf("refused calls moved the counter from %d to %d", before, after)
		}
	})
}

// An unsearchable is a context that must not be searched: with plain layouts, which are nearly
// all, Next does not pay for the depth of its context.
type unsearchable struct {
	context.Context
	t *testing.T
}

func (c unsearchable) Value(any) any {
	c.t.Error("the context was searched")
	return nil
}

func TestALayoutWithoutShardsDoesNotSearchTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTest(t, Config{Layout: bubbleLayout(8)}, nil)
		ctx := unsearchable{context.Background(), t}
		if _, err := g.Next(ctx); err != nil {
			t.Error(err)
		}
		if err := g.Fill(ctx, make([]types.Snowflake, 3)); err != nil {
			t.Error(err)
		}
	})
}

// Default() reads the keys of a layout that has shards: the same time and worker, and a sequence
// that holds count and shard.
func TestAPlainLayoutReadsKeysWithShards(t *testing.T) {
	l := Default()
	l.ShardBits = 8
	id, err := l.Compose(Parts{Time: l.Epoch.Add(time.Hour), Worker: 77, Sequence: 11, Shard: 201})
	if err != nil {
		t.Fatal(err)
	}
	got, want := Default().Parts(id), Parts{Time: l.Epoch.Add(time.Hour), Worker: 77, Sequence: 11<<8 | 201}
	if got != want || Default().Shard(id) != 0 {
		t.Errorf("Default().Parts(%d) = %v; want %v", id, got, want)
	}
	if id < Default().Min(got.Time) || id > Default().Max(got.Time) || l.Min(got.Time) != Default().Min(got.Time) || l.Max(got.Time) != Default().Max(got.Time) {
		t.Errorf("the ticks of the two layouts differ around %d", id)
	}
	for _, p := range []Parts{{Time: l.Epoch, Sequence: 16}, {Time: l.Epoch, Shard: 256}, {Time: l.Epoch, Shard: -1}} {
		if id, err := l.Compose(p); err == nil {
			t.Errorf("Compose(%v) = %d; want an error", p, id)
		}
	}
}

// Layouts that differ in their shards alone have the same IDs, so their generators are one
// identity: two do not live at once, and one that follows another begins above it, in the same
// tick or after a step back.
func TestGeneratorsWithAndWithoutShardsTakeTurns(t *testing.T) {
	for _, rollback := range []Rollback{Continue, Wait} {
		synctest.Test(t, func(t *testing.T) {
			clock := new(stepper)
			seen := map[types.Snowflake]bool{}
			var last types.Snowflake
			config := Config{Layout: bubbleLayout(8), Worker: StaticWorker(1), Rollback: rollback}
			for i, bits := range []int{0, 4, 0, 7, 1, 4, 4, 0} {
				config.Layout.ShardBits = bits
				g := newTest(t, config, clock)
				other := config
				other.Layout.ShardBits = bits ^ 1
				if g, err := New(other); !errors.Is(err, ErrWorkerInUse) {
					t.Fatalf("New with %d ShardBits beside one with %d = %v, %v; want ErrWorkerInUse", bits^1, bits, g, err)
				}
				stall(t, g)
				began := time.Now()
				for range 50 {
					id := mustNext(t, g)
					if id <= last || seen[id] {
						t.Fatalf("generator %d, %d ShardBits: %d after %d", i, bits, id, last)
					}
					last, seen[id] = id, true
				}
				if took := time.Since(began); took > time.Second {
					t.Fatalf("generator %d, %d ShardBits: 50 IDs took %v: it began far ahead of its predecessor", i, bits, took)
				}
				_ = g.Close(context.Background())
				if i%2 == 1 && rollback == Continue {
					clock.by(-time.Hour)
				}
			}
		})
	}
}

// The same for reserved stretches of time, whose ends are numbers of either.
func TestReservationsWithAndWithoutShardsShareNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := bubbleLayout(8)
		now := time.Now()
		plain, first := leased(t, Config{Layout: l})
		l.ShardBits = 4
		sharded, second := leased(t, Config{Layout: l})
		first.mustReserve(t, 3, now, now.Add(100*ms))
		if _, err := second.binding.Reserve(3, now.Add(99*ms), now.Add(200*ms)); !errors.Is(err, ErrWorkerInUse) {
			t.Errorf("Reserve within the time of another = %v; want ErrWorkerInUse", err)
		}
		r := second.mustReserve(t, 3, now.Add(100*ms), now.Add(200*ms))
		if err := r.Extend(now.Add(300 * ms)); err != nil {
			t.Errorf("Extend into free time = %v", err)
		}
		if got, want := sharded.Stats().Reserved, now.Add(300*ms); !got.Equal(want) {
			t.Errorf("Stats().Reserved = %v; want %v", got, want)
		}
		_, third := leased(t, Config{Layout: bubbleLayout(8)})
		third.mustReserve(t, 3, now.Add(300*ms), now.Add(400*ms))
		if err := r.Extend(now.Add(301 * ms)); !errors.Is(err, ErrWorkerInUse) {
			t.Errorf("Extend into the time of another = %v; want ErrWorkerInUse", err)
		}
		time.Sleep(90 * ms)
		if a, b := mustNext(t, plain), mustNext(t, sharded); b <= a {
			t.Errorf("IDs %d and %d; want the later reservation's to be greater", a, b)
		}
		if end := r.Seal(); end.After(now.Add(102 * ms)) {
			t.Errorf("Seal() = %v; want the millisecond after the first ID, %v", end, now.Add(101*ms))
		}
	})
}

func TestNextAndFillWithShardsDoNotAllocate(t *testing.T) {
	l := Default()
	l.ShardBits = 4
	g := newTest(t, Config{Layout: l, Worker: StaticWorker(11)}, nil)
	ids := make([]types.Snowflake, 4)
	for name, ctx := range map[string]context.Context{"even": context.Background(), "on a shard": OnShard(context.Background(), 3)} {
		if n := testing.AllocsPerRun(1000, func() { mustNext(t, g); _, _ = g.Next(ctx); _ = g.Fill(ctx, ids) }); n != 0 {
			t.Errorf("%s: Next and Fill allocate %v times", name, n)
		}
	}
}
