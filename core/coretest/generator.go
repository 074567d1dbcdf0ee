package coretest

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/types"
)

// Config configures a [Generator]. All fields have defaults.
type Config struct {
	// Layout gives the bits of the keys their meaning.
	//
	// Defaults to core.Default().
	Layout core.Layout

	// Worker is the number for the worker bits. Two generators of one test return different
	// keys if they have different workers.
	//
	// Defaults to 0.
	Worker int64

	// Now returns the time for the next key, as [Clock.Now] does. It may go back, and must
	// not call the generator.
	//
	// Defaults to [Start].
	Now func() time.Time

	// First, if positive, is the first key, and every further key is one more than the key
	// before, for tests that are written with keys 1, 2 and 3. Such keys have no time, so
	// Worker and Now must not be set.
	//
	// Defaults to the first key of Layout, Worker and Now.
	First types.Snowflake
}

// A Generator returns the same keys in every run of a test. It has the methods of a
// [core.Generator] that make keys and select by them.
//
// Unless Config.First is set, a key has the time of Config.Now, and the keys of one tick count
// up from sequence 0. In a layout with shards they are on the shard that the context asks for, and
// else on one after the other, from shard 0. When a tick is full, its keys go on in the next tick that is not. No key
// is returned twice: if the clock goes back, a tick continues where it was. While the clock
// does not go back, keys increase.
//
// NewGenerator creates it; the zero value is not usable. It is safe for concurrent use.
// Goroutines that call it at the same time share the same set of keys in every run, but which
// goroutine gets which key may differ.
type Generator struct {
	layout core.Layout
	worker int64
	now    func() time.Time
	first  types.Snowflake // 0: the keys are those of the layout
	wrong  error           // of an invalid Config

	mu   sync.Mutex // guards what follows, and calls of now
	fail error
	used map[types.Snowflake]int64 // keys used of a tick, by the tick's smallest
	keys []types.Snowflake         // all, in the order of the calls

	// The tick that the clock showed last, and the first tick from there on that may have free
	// keys, so that a million keys of one time do not search a thousand full ticks each.
	shown, free types.Snowflake
}

// NewGenerator returns a Generator. If c is invalid, every call of Next and Fill returns a
// [*core.ValueError].
func NewGenerator(c Config) *Generator {
	var wrong error
	switch {
	case c.First < 0:
		wrong = invalid(c.First, "1 or more")
	case c.First > 0 && (c.Worker != 0 || c.Now != nil):
		wrong = invalid(c.First, "0 if Config.Worker or Config.Now is set, because such keys have no time")
	}
	if c.Layout == (core.Layout{}) {
		c.Layout = core.Default()
	}
	if c.Now == nil {
		c.Now = Start
	}
	return &Generator{layout: c.Layout, worker: c.Worker, now: c.Now, first: c.First, wrong: wrong, used: map[types.Snowflake]int64{}}
}

func invalid(first types.Snowflake, want string) error {
	return &core.ValueError{Package: "coretest", Name: "Config.First", Value: first.String(), Want: want}
}

// Next returns the next key. It never waits. If ctx has ended, after [Generator.Fail], and if
// the time or the worker is outside the layout, it returns an error and the key 0.
func (g *Generator) Next(ctx context.Context) (types.Snowflake, error) {
	var ids [1]types.Snowflake
	err := g.Fill(ctx, ids[:])
	return ids[0], err
}

// Fill sets every element of ids to a new key, as Next returns them, after a single reading of
// the clock. On an error every element is 0.
func (g *Generator) Fill(ctx context.Context, ids []types.Snowflake) error {
	if len(ids) == 0 {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	err := cmp.Or(ctx.Err(), g.wrong, g.fail)
	if err == nil {
		err = g.fill(ctx, ids)
	}
	if err != nil {
		clear(ids)
		return fmt.Errorf("coretest: no ID: %w", err)
	}
	g.keys = append(g.keys, ids...)
	return nil
}

// fill requires mu.
func (g *Generator) fill(ctx context.Context, ids []types.Snowflake) error {
	if g.first > 0 {
		for i := range ids {
			n := int64(len(g.keys) + i)
			if n > math.MaxInt64-g.first.Int64() {
				return fmt.Errorf("the %d keys from Config.First, %d, are used up", n, g.first)
			}
			ids[i] = g.first + types.Snowflake(n)
		}
		return nil
	}
	shard, chosen, err := g.layout.ShardFrom(ctx)
	if err != nil {
		return err
	}
	now := g.now()
	// Compose refuses a time outside the layout, where Min would return the nearest tick.
	if _, err := g.layout.Compose(core.Parts{Time: now, Worker: g.worker}); err != nil {
		return err
	}
	if tick := g.layout.Min(now); tick != g.shown {
		g.shown, g.free = tick, tick
	}
	for i := range ids {
		for g.used[g.free] == 1<<(g.layout.SequenceBits-g.layout.ShardBits) {
			g.free = g.layout.Max(g.layout.Parts(g.free).Time) + 1
		}
		if !chosen { // one shard after the other, over all calls
			shard = int64(len(g.keys)+i) & (1<<g.layout.ShardBits - 1)
		}
		id, err := g.layout.Compose(core.Parts{
			Time: g.layout.Parts(g.free).Time, Worker: g.worker, Sequence: g.used[g.free], Shard: shard,
		})
		if err != nil {
			return err // the layout has no more ticks
		}
		g.used[g.free]++
		ids[i] = id
	}
	return nil
}

// Fail makes Next and Fill return err, wrapped, until it is called with nil. To test how a
// service behaves without keys, pass [core.ErrReservationExhausted], which a leased generator
// returns when its store has been unreachable for too long.
func (g *Generator) Fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fail = err
}

// ShardBits returns Layout.ShardBits, or 0 if Config.First is set.
func (g *Generator) ShardBits() int {
	if g.first > 0 {
		return 0
	}
	return g.layout.ShardBits
}

// ShardFrom returns the shard that ctx asks for; see [core.Layout.ShardFrom].
func (g *Generator) ShardFrom(ctx context.Context) (shard int64, ok bool, err error) {
	if g.first > 0 {
		return 0, false, nil
	}
	return g.layout.ShardFrom(ctx)
}

// Layout returns the layout, which takes the keys apart.
func (g *Generator) Layout() core.Layout { return g.layout }

// Between returns the first and the last key of a span of time; see [core.Layout.Between].
func (g *Generator) Between(from, until time.Time) (first, last types.Snowflake) {
	return g.layout.Between(from, until)
}

// Min returns the smallest key of the tick that contains t; see [core.Layout.Min].
func (g *Generator) Min(t time.Time) types.Snowflake { return g.layout.Min(t) }

// Max returns the largest key of the tick that contains t; see [core.Layout.Max].
func (g *Generator) Max(t time.Time) types.Snowflake { return g.layout.Max(t) }
