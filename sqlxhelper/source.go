package sqlxhelper

import (
	"context"
	"errors"
	"fmt"

	"github.com/snowkey/snowkey/internal/base/supply"
	"github.com/snowkey/snowkey/types"
)

// A Source makes primary keys: a core.Generator, a segment allocator, or a node of another
// library behind a [SourceFunc]. It must be as safe for concurrent use as the [Helper] is used.
//
// A Source that also has the method
//
//	Fill(ctx context.Context, ids []types.Snowflake) error
//
// is asked once per call for all missing keys. Otherwise Next is called once per key. Keys are
// 1 or larger, because zero means "not assigned yet".
//
// A Source whose keys name a shard in their low bits, as a core.Generator with
// Layout.ShardBits, also has the methods
//
//	ShardBits() int
//	ShardFrom(ctx context.Context) (shard int64, ok bool, err error)
//
// which return how many bits these are, 0 if there are none, and the shard that ctx asks for.
// Its keys must be unique and above zero without these bits, because the Helper changes them to
// keep rows together: see [Helper.InsertGraph]. A SourceFunc around such a source hides its
// shards.
type Source interface {
	Next(ctx context.Context) (types.Snowflake, error)
}

// A SourceFunc is a function that serves as a [Source]. A nil SourceFunc returns an error that
// matches [ErrSource].
type SourceFunc func(ctx context.Context) (types.Snowflake, error)

// Next calls f.
func (f SourceFunc) Next(ctx context.Context) (types.Snowflake, error) {
	if f == nil {
		return 0, fmt.Errorf("%w: the SourceFunc is nil", ErrSource)
	}
	return f(ctx)
}

// keySource is the source of a Helper, or why it has none.
type keySource struct {
	*supply.Supply
	refused error
}

func (h *Helper) newKeySource() (k keySource) {
	k.Supply, k.refused = supply.New(h.src, supply.Limit(h.config.integers && !h.config.wide))
	return k
}

// unusable returns the error of a call that needs n keys from a source that is refused.
func (k keySource) unusable(n int) error {
	if errors.Is(k.refused, supply.ErrNone) {
		return fmt.Errorf("%w: %s to take, and New was given a nil Source", ErrSource, supply.Count(n))
	}
	return fmt.Errorf("%w: %w", ErrWideKey, k.refused)
}

// take sets ids to new keys, or returns an error. ids is not memory of rows, so a source that
// fails at the last key leaves no row with a key. The source is not refused.
func (k keySource) take(ctx context.Context, ids []types.Snowflake) error {
	err := k.Take(ctx, ids)
	if key := (*supply.KeyError)(nil); errors.As(err, &key) && key.Wide() {
		return fmt.Errorf("%w: %w", ErrWideKey, err)
	} else if key != nil {
		return fmt.Errorf("%w: %w", ErrSource, err)
	} else if err != nil {
		return supply.Failed("sqlxhelper", len(ids), "", err)
	}
	return nil
}
