// Package supply takes keys from a source, for both plugins, and refuses what is no key.
//
// The source is foreign code. SQLite would store a zero that it returns, an AUTO_INCREMENT column
// would replace it by a generated number, and a negative key cannot be read back.
package supply

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/snowkey/snowkey/internal/base/errtext"
	"github.com/snowkey/snowkey/internal/base/placement"
	"github.com/snowkey/snowkey/types"
)

// A Source makes keys. It is what gormplugin.Source and sqlxhelper.Source say.
type Source interface {
	Next(ctx context.Context) (types.Snowflake, error)
}

// A filler is the optional second method of a source.
type filler interface {
	Fill(ctx context.Context, ids []types.Snowflake) error
}

// A sharder is what a source has besides whose keys name a shard.
type sharder interface {
	ShardBits() int
	ShardFrom(ctx context.Context) (shard int64, ok bool, err error)
}

// ErrNone means that there is no source.
var ErrNone = errors.New("no source of keys")

// A WideError means that a source will return keys above the limit of a Supply.
type WideError struct {
	Source any
	Last   types.Snowflake // the largest of its keys
}

func (e *WideError) Error() string {
	return fmt.Sprintf("%T goes up to %d; use the layout core.JavaScript, or WithWideIntegerKeys if no JavaScript reads the keys", e.Source, e.Last.Int64())
}

// A KeyError means that a source has returned a number that is no key, or one above the limit.
type KeyError struct {
	Key types.Snowflake
	At  int // its place among the keys of the call, from 1
	Of  int // how many keys that are
}

func (e *KeyError) Error() string {
	if e.Wide() {
		return fmt.Sprintf("key %d of %d is %d; use the layout core.JavaScript, or WithWideIntegerKeys if no JavaScript reads the keys", e.At, e.Of, e.Key.Int64())
	}
	return fmt.Sprintf("key %d of %d is %d, want 1 or larger", e.At, e.Of, e.Key.Int64())
}

// Wide reports whether the key is above the limit.
func (e *KeyError) Wide() bool { return e.Key > 0 }

// A Supply is a source and the largest key that may be taken from it. It is as safe for concurrent
// use as the source.
type Supply struct {
	src    Source
	limit  types.Snowflake
	shards sharder         // src, if its keys have shards
	mask   types.Snowflake // of the bits of a key that are the shard
}

// New returns the supply of src. It returns [ErrNone] if src is nil, or holds a nil of any kind,
// whose methods would panic; and a [*WideError] if src tells that it goes above limit.
func New(src Source, limit types.Snowflake) (*Supply, error) {
	if IsNil(src) {
		return nil, ErrNone
	}
	if last, wide := exceeds(src, limit); wide {
		return nil, &WideError{src, last}
	}
	s := &Supply{src: src, limit: limit}
	if shards, ok := src.(sharder); ok && shards.ShardBits() > 0 {
		s.shards, s.mask = shards, 1<<shards.ShardBits()-1
	}
	return s, nil
}

// IsNil reports whether value is nil or holds a nil.
func IsNil(value any) bool {
	if value == nil {
		return true
	}
	switch v := reflect.ValueOf(value); v.Kind() {
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Chan, reflect.Slice, reflect.UnsafePointer:
		return v.IsNil()
	default:
		return false
	}
}

// Take sets all of ids to new keys, or none. It returns the error of the source unwrapped, or a
// [*KeyError].
func (s *Supply) Take(ctx context.Context, ids []types.Snowflake) error {
	var err error
	if f, ok := s.src.(filler); ok {
		err = f.Fill(ctx, ids)
	} else {
		for i := 0; i < len(ids) && err == nil; i++ {
			ids[i], err = s.src.Next(ctx)
		}
	}
	for i := 0; i < len(ids) && err == nil; i++ {
		if id := ids[i]; id <= 0 || id > s.limit {
			err = &KeyError{Key: id, At: i + 1, Of: len(ids)}
		}
	}
	if err != nil {
		clear(ids)
	}
	return err
}

// Count returns how many keys n is, in words.
func Count(n int) string {
	if n == 1 {
		return "1 key"
	}
	return fmt.Sprintf("%d keys", n)
}

// Failed returns the error of a package that could not take n keys for something, because of err.
// What the generator says of a call in which no time was left is not said twice.
func Failed(of string, n int, something string, err error) error {
	return errtext.Prefix(of+": take "+Count(n)+something+": ", "core: no ID: ", err)
}

// Sharded reports whether the keys name a shard. A nil Supply has no keys.
func (s *Supply) Sharded() bool { return s != nil && s.shards != nil }

// Wish returns the shard that ctx asks for, or placement.None, or an error: of the source, or for a
// shard that is none, which would change the bits of a key above it.
func (s *Supply) Wish(ctx context.Context) (shard int64, err error) {
	shard, ok, err := s.shards.ShardFrom(ctx)
	if !ok || err != nil {
		return placement.None, err
	}
	if shard < 0 || shard > int64(s.mask) {
		return placement.None, fmt.Errorf("the source has shard %d for it; want 0..%d", shard, s.mask)
	}
	return shard, nil
}

// Shard returns the shard that a key is on.
func (s *Supply) Shard(id types.Snowflake) int64 { return int64(id & s.mask) }

// On returns id, a key of the source, on another shard. It is as unique as before: no two keys of
// the source are equal above the bits of the shard, which stay as they are.
func (s *Supply) On(shard int64, id types.Snowflake) types.Snowflake {
	return id&^s.mask | types.Snowflake(shard)
}

// Step returns the shard to choose after another one, if shards are chosen in turn. An odd step
// visits all of them, and one of five eighths of their number keeps a few far apart, as
// core.Generator does.
func (s *Supply) Step(shard int64) int64 {
	return (shard + ((int64(s.mask)+1)*5/8 | 1)) & int64(s.mask)
}
