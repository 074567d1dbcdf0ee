package core

import (
	"context"
	"math/rand/v2"
	"strconv"

	"github.com/snowkey/snowkey/types"
)

// The key and the value of a context that asks for a shard.
type (
	shardKey struct{}

	shardWish struct {
		n  int64
		of bool // n is an ID, whose shard it is
	}
)

// OnShard returns a context with which [Generator.Next] and [Generator.Fill] return IDs of shard
// n, 0..1<<Layout.ShardBits-1. They return a [*ValueError] for any other n. Without a wish in
// the context, the shards of a generator's IDs are spread evenly.
//
// A shard is a share of the rows, and all rows of one order, or of one customer, belong on the
// same one. Each shard lies whole in one database. There are more shards than databases, so that
// one can move to a new database without a change of any key:
//
//	order, err := gen.Next(core.OnShardOf(ctx, customer))
//	line, err := gen.Next(core.OnShardOf(ctx, order))
//
// The shard has no part in what makes an ID unique, since a generator counts without these bits.
// A program may therefore choose any shard at any time. Sources whose keys have no shard, such
// as a generator whose layout has no ShardBits, do not look at the wish.
func OnShard(ctx context.Context, n int64) context.Context {
	return context.WithValue(ctx, shardKey{}, shardWish{n: n})
}

// OnShardOf is [OnShard] for the shard that id is on. If id is 0 or negative, which is no key yet,
// Next and Fill return a [*ValueError].
func OnShardOf(ctx context.Context, id types.Snowflake) context.Context {
	return context.WithValue(ctx, shardKey{}, shardWish{n: int64(id), of: true})
}

// Shard returns the shard that id is on, 0..1<<ShardBits-1, or 0 in an invalid layout. Like
// [Layout.Parts], it does not notice an ID of another layout.
func (l Layout) Shard(id types.Snowflake) int64 {
	if l.Validate() != nil {
		return 0
	}
	return int64(id) & ones(l.ShardBits)
}

// ShardFrom returns the shard that ctx asks for by [OnShard] or [OnShardOf], and whether it asks for
// one. A shard that l does not have is a [*ValueError]. If l has no ShardBits, ctx is not looked
// at. It is for sources other than a Generator that take the same contexts.
func (l Layout) ShardFrom(ctx context.Context) (shard int64, ok bool, err error) {
	if l.ShardBits == 0 {
		return 0, false, nil
	}
	wish, ok := ctx.Value(shardKey{}).(shardWish)
	switch {
	case !ok:
		return 0, false, nil
	case !wish.of:
		if err := checkBits("shard of OnShard", wish.n, l.ShardBits); err != nil {
			return 0, false, err
		}
	case wish.n <= 0:
		return 0, false, invalid("id of OnShardOf", strconv.FormatInt(wish.n, 10), "a key, above 0")
	}
	return wish.n & ones(l.ShardBits), true, nil
}

// ShardBits returns Layout.ShardBits. Together with ShardFrom it lets package gormplugin and
// package sqlxhelper, which know no layout, keep the keys of a graph on one shard.
func (g *Generator) ShardBits() int { return g.layout.ShardBits }

// ShardFrom returns the shard that ctx asks for; see [Layout.ShardFrom].
func (g *Generator) ShardFrom(ctx context.Context) (shard int64, ok bool, err error) {
	return g.layout.ShardFrom(ctx)
}

// A placement says on which shards the IDs of one call are: the next one on shard, and each
// further one by step on, modulo the mask.
type placement struct{ shard, step, mask types.Snowflake }

// place returns the placement that ctx asks for, the zero value in a layout without shards.
//
// Without a wish a call begins at a random shard, so that goroutines share no state. An odd step
// visits all shards in turn, which makes a slice as even as can be. One of five eighths of their
// number keeps a few IDs far apart: with a step of 1, a hundred rows would be in two of four
// databases that have a range of 64 shards each.
func (g *Generator) place(ctx context.Context) (placement, error) {
	bits := g.layout.ShardBits
	shard, ok, err := g.layout.ShardFrom(ctx)
	if ok || err != nil || bits == 0 {
		return placement{shard: types.Snowflake(shard)}, err
	}
	mask := types.Snowflake(ones(bits))
	return placement{types.Snowflake(rand.Int64()) & mask, (mask+1)*5/8 | 1, mask}, nil
}

// lay puts ids, which are on shard 0, on their shards.
func (p placement) lay(ids []types.Snowflake) {
	if p == (placement{}) {
		return
	}
	for i := range ids {
		ids[i] |= p.shard
		if p.step != 0 {
			p.shard = (p.shard + p.step) & p.mask
		}
	}
}
