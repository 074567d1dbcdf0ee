package sqlxhelper

import (
	"context"
	"errors"
	"fmt"

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

// A filler is the optional second method of a [Source].
type filler interface {
	Fill(ctx context.Context, ids []types.Snowflake) error
}

// A sharder is the optional part of a [Source] whose keys name a shard.
type sharder interface {
	ShardBits() int
	ShardFrom(ctx context.Context) (shard int64, ok bool, err error)
}

// shardBits returns how many low bits of the keys of src name a shard.
func shardBits(src Source) int {
	if s, ok := src.(sharder); ok {
		return s.ShardBits()
	}
	return 0
}

// A supply is the source of a Helper, and the largest key that its options allow.
type supply struct {
	src   Source
	limit types.Snowflake
}

func (h *Helper) supply() supply { return supply{h.src, h.config.limit()} }

// take sets ids, which are zero, to new keys, or returns an error. ids is not memory of rows,
// so a source that fails at the last key leaves no row with a key.
func (s supply) take(ctx context.Context, ids []types.Snowflake) error {
	n, src := len(ids), s.src
	if src == nil {
		return fmt.Errorf("%w: %d keys are missing, and New was given a nil Source", ErrSource, n)
	}
	if err := checkWidth(src, s.limit); err != nil {
		return err
	}
	if f, ok := src.(filler); ok {
		if err := f.Fill(ctx, ids); err != nil {
			return sourceError("Fill", n, err)
		}
	} else {
		for i := range ids {
			id, err := src.Next(ctx)
			if err != nil {
				return sourceError("Next", n, err)
			}
			ids[i] = id
		}
	}
	// The source is foreign code. SQLite would store a zero, and an AUTO_INCREMENT column would
	// replace it by a generated number.
	for i, id := range ids {
		if id <= 0 {
			return fmt.Errorf("%w: key %d of %d is %d, want 1 or larger", ErrSource, i+1, n, id)
		}
		if id > s.limit {
			return fmt.Errorf("%w: key %d of %d is %d; use the layout core.JavaScript, or WithWideIntegerKeys if no JavaScript reads the keys", ErrWideKey, i+1, n, id)
		}
	}
	return nil
}

// sourceError wraps the error of a source, except that of the nil SourceFunc.
func sourceError(method string, n int, err error) error {
	if errors.Is(err, ErrSource) {
		return err
	}
	return fmt.Errorf("sqlxhelper: %d keys from the source: %s: %w", n, method, err)
}
