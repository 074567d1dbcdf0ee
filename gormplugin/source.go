package gormplugin

import (
	"context"
	"errors"
	"fmt"

	"github.com/snowkey/snowkey/internal/base/supply"
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
// package comment. ShardBits is how many bits these are, always the same number; 0 means a
// source without shards. Keys must be unique above these bits, whatever the shards are.
// ShardFrom returns the shard that ctx asks for and whether it asks for one, or an error.
type Source interface {
	Next(ctx context.Context) (types.Snowflake, error)
}

// A SourceFunc is a function that serves as [Source]. A nil SourceFunc counts as no source.
type SourceFunc func(ctx context.Context) (types.Snowflake, error)

// Next calls f, or returns [ErrNoSource] if f is nil.
func (f SourceFunc) Next(ctx context.Context) (types.Snowflake, error) {
	if f == nil {
		return 0, ErrNoSource
	}
	return f(ctx)
}

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

// takeError returns the error of a Take of n keys for something, in which a key that is refused is
// [ErrWideKey] or [ErrBadKey].
func takeError(n int, something string, err error) error {
	if key := (*supply.KeyError)(nil); errors.As(err, &key) && key.Wide() {
		err = fmt.Errorf("%w: %w", ErrWideKey, err)
	} else if key != nil {
		err = fmt.Errorf("%w: %w", ErrBadKey, err)
	}
	return supply.Failed("gormplugin", n, " for "+something, err)
}

// unusable returns [ErrNoSource] or [ErrWideKey] if p has no source that the options allow.
func (p *Plugin) unusable() error {
	switch {
	case p == nil || p.supply == nil && p.refused == nil || errors.Is(p.refused, supply.ErrNone):
		return ErrNoSource
	case p.refused != nil:
		return fmt.Errorf("%w: %w", ErrWideKey, p.refused)
	}
	return nil
}
