package core

import (
	"context"
	"strconv"

	"github.com/snowkey/snowkey/types"
)

// The key and the value of a context that asks for a shard.
type (
	shardKey struct{}

	shardRequest struct {
		n  int64
		of bool // n is an ID, whose shard it is
	}
)

// OnShard returns a context with which [Generator.Next] and [Generator.Fill] return IDs of shard
// n, 0..1<<Layout.ShardBits-1. They return a [*ValueError] for any other n. Without a request in
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
// as a generator whose layout has no ShardBits, do not look at the request.
func OnShard(ctx context.Context, n int64) context.Context {
	return context.WithValue(ctx, shardKey{}, shardRequest{n: n})
}

// OnShardOf is [OnShard] for the shard that id is on. If id is 0 or negative, which is no key yet,
// Next and Fill return a [*ValueError].
func OnShardOf(ctx context.Context, id types.Snowflake) context.Context {
	return context.WithValue(ctx, shardKey{}, shardRequest{n: int64(id), of: true})
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
	request, ok := ctx.Value(shardKey{}).(shardRequest)
	switch {
	case !ok:
		return 0, false, nil
	case !request.of:
		if err := checkBits("shard of OnShard", request.n, l.ShardBits); err != nil {
			return 0, false, err
		}
	case request.n <= 0:
		return 0, false, invalid("id of OnShardOf", strconv.FormatInt(request.n, 10), "a key, above 0")
	}
	return request.n & ones(l.ShardBits), true, nil
}
