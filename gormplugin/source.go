package gormplugin

import (
	"context"
	"errors"
	"fmt"

	"github.com/snowkey/snowkey/internal/base/keytype"
	"github.com/snowkey/snowkey/types"
)

// A Source gives out keys. Examples are core.Generator, a segment allocator, or a
// [SourceFunc].
//
// Next returns a key above zero that it has never returned before, or an error and no key.
// It must be safe for concurrent use and return when ctx ends. It must not need a
// connection of the pool that it gives keys to: a nested create asks the source while it
// holds a connection, so a pool of one connection would wait for itself.
//
// A source may also have the method
//
//	Fill(ctx context.Context, ids []types.Snowflake) error
//
// which sets all of ids or returns an error. The plugin then calls Fill once per statement
// in place of Next for each row.
//
// A source whose keys name a shard in their low bits also has the methods
//
//	ShardBits() int
//	ShardFrom(ctx context.Context) (shard int64, ok bool, err error)
//
// of core.Generator, and the plugin then keeps the rows of a graph on one shard, see the
// package comment. ShardBits is how many bits these are, always the same number; 0 is that of
// a source without shards. Keys must be unique above these bits, whatever the shards are.
// ShardFrom returns the shard that ctx asks for and whether it asks for one, or an error.
type Source interface {
	Next(ctx context.Context) (types.Snowflake, error)
}

// A SourceFunc is a function that serves as [Source]. A nil SourceFunc counts as no source.
type SourceFunc func(ctx context.Context) (types.Snowflake, error)

// Next calls f.
func (f SourceFunc) Next(ctx context.Context) (types.Snowflake, error) { return f(ctx) }

// The errors of a source, for errors.Is.
var (
	// ErrNoSource means that the plugin was made without a source.
	ErrNoSource = errors.New("gormplugin: no source of keys")
	// ErrBadKey means that the source returned a key that is not above zero. Zero means
	// "not assigned yet", and a negative key cannot be read back.
	ErrBadKey = errors.New("gormplugin: the source returned a key that is not above zero")
	// ErrWideKey means that the source has keys of more than 53 bits, see [WithIntegerKeys].
	ErrWideKey = errors.New("gormplugin: the source has keys of more than 53 bits, which JavaScript rounds where a key is a number in JSON")
)

// filler is the optional second method of a Source.
type filler interface {
	Fill(ctx context.Context, ids []types.Snowflake) error
}

// sharder is what a Source with shards has besides.
type sharder interface {
	ShardBits() int
	ShardFrom(ctx context.Context) (shard int64, ok bool, err error)
}

// onShard returns id, a key of the source, on another shard. It is as unique as before: no two
// keys of the source are equal above the bits of the shard, which stay as they are.
func (p *Plugin) onShard(id types.Snowflake, shard int64) types.Snowflake {
	return id&^types.Snowflake(p.mask) | types.Snowflake(shard)
}

// reserve returns n keys of the source, or an error and no key.
func (p *Plugin) reserve(ctx context.Context, n int) ([]types.Snowflake, error) {
	ids := make([]types.Snowflake, n)
	if f, ok := p.src.(filler); ok {
		if err := f.Fill(ctx, ids); err != nil {
			return nil, err
		}
	} else {
		for i := range ids {
			id, err := p.src.Next(ctx)
			if err != nil {
				return nil, err
			}
			ids[i] = id
		}
	}
	limit := p.limit()
	for _, id := range ids {
		if id <= 0 {
			return nil, fmt.Errorf("%w: %d", ErrBadKey, id.Int64())
		}
		if id > limit {
			return nil, fmt.Errorf("%w: %d", ErrWideKey, id.Int64())
		}
	}
	return ids, nil
}

// limit returns the largest key that the options allow.
func (c *config) limit() types.Snowflake { return keytype.Limit(c.integers && !c.wide) }

// checkWidth returns [ErrWideKey] if the source will return keys that the options do not
// allow, as far as it tells.
func (p *Plugin) checkWidth() error {
	if last, wide := keytype.Exceeds(p.src, p.limit()); wide {
		return fmt.Errorf("%w: %T goes up to %d; use the layout core.JavaScript, or WithWideIntegerKeys if no JavaScript reads the keys", ErrWideKey, p.src, last.Int64())
	}
	return nil
}
