package backfill

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/types"
)

// Config says which keys a [Backfill] makes. Most programs set Layout and Worker.
type Config struct {
	// Layout is the namespace's. Its epoch should be before the first row.
	//
	// Defaults to core.Default(), which begins in 2025.
	Layout core.Layout

	// Datacenter is the one in which Worker is retired.
	Datacenter int64

	// Worker is a number that no generator has or ever had: see lease.Retire.
	Worker int64

	// Precision is how long a time in the column stands for, at least Layout.Unit: time.Second,
	// or 24 * time.Hour for a column of dates. It is also how far a key may be later than the row.
	//
	// Defaults to a second.
	Precision time.Duration

	// Until is after the last row.
	//
	// Defaults to the time of New.
	Until time.Time

	// EarlyAtEpoch lets rows before the epoch of Layout count as rows at the epoch.
	EarlyAtEpoch bool
}

// A Backfill makes the keys of rows, one after the other. Use [New]. It is not safe for concurrent
// use, and a copy repeats its keys.
type Backfill struct {
	config  Config
	fixed   types.Snowflake // the bits of datacenter and worker
	shift   int             // of the tick
	count   int             // bits of the sequence that are not the shard's
	greater int64           // ticks<<count | sequence of the least key that is left
	shard   int64           // of the next key, if the row has no other
	last    time.Time       // of the row before
}

// New returns a Backfill, or a [*core.ValueError].
func New(config Config) (*Backfill, error) {
	if config.Layout == (core.Layout{}) {
		config.Layout = core.Default()
	}
	l := config.Layout
	fixed, err := l.Compose(core.Parts{Time: l.Epoch, Datacenter: config.Datacenter, Worker: config.Worker})
	if v := (*core.ValueError)(nil); errors.As(err, &v) {
		return nil, &core.ValueError{Package: "backfill", Name: strings.Replace(v.Name, "Parts.", "Config.", 1), Value: v.Value, Want: v.Want}
	}
	config.Precision = cmp.Or(config.Precision, time.Second)
	if config.Precision < l.Unit {
		return nil, &core.ValueError{Package: "backfill", Name: "Config.Precision", Value: config.Precision.String(), Want: "at least Layout.Unit, " + l.Unit.String()}
	}
	if config.Until.IsZero() {
		config.Until = time.Now()
	}
	b := &Backfill{config: config, fixed: fixed, shift: l.DatacenterBits + l.WorkerBits + l.SequenceBits, count: l.SequenceBits - l.ShardBits}
	if fixed == 0 {
		b.greater = 1 // no key is 0
	}
	return b, nil
}

// Next returns the key of a row at t. Times must not decrease from call to call. If the layout has
// shards, the key is on the one after that of the key before. Errors are a [*RowError] without its
// Row, and change nothing.
func (b *Backfill) Next(t time.Time) (types.Snowflake, error) { return b.next(t, b.shard) }

// NextOnShardOf is Next on the shard of id, the key of the row's parent.
func (b *Backfill) NextOnShardOf(t time.Time, id types.Snowflake) (types.Snowflake, error) {
	if id <= 0 {
		return 0, &RowError{Time: t, Err: ErrNoShard, Want: fmt.Sprintf("the key of its parent, above 0, in place of %d", id)}
	}
	return b.next(t, b.config.Layout.Shard(id))
}

func (b *Backfill) next(t time.Time, shard int64) (types.Snowflake, error) {
	l := b.config.Layout
	t = t.Round(0) // the wall clock
	if t.IsZero() {
		return 0, &RowError{Err: ErrNoTime, Want: "a time that the query chooses, such as that of the row before"}
	}
	at := t
	if b.config.EarlyAtEpoch && t.Before(l.Epoch) {
		at = l.Epoch
	}
	limit := b.tick(b.config.Until.Add(-1)) + 1 // the tick of Until may have rows before it
	first, end := b.tick(at), min(b.tick(at.Add(b.config.Precision-1))+1, limit, b.tick(l.Exhausted()))
	refuse := func(err error, want string) (types.Snowflake, error) {
		return 0, &RowError{Time: t, Err: err, Want: want}
	}
	switch n := max(b.greater, first<<b.count); {
	case t.Before(b.last):
		return refuse(ErrOrder, "none before "+show(b.last)+", the time of the row before")
	case at.Before(l.Epoch):
		return refuse(ErrEarly, "from "+show(l.Epoch)+" on, or an earlier epoch, or Config.EarlyAtEpoch")
	case !at.Before(b.config.Until), first >= end:
		return refuse(ErrLate, "before Config.Until, "+show(b.config.Until)+", and the end of the layout, "+show(l.Exhausted()))
	case n>>b.count >= end:
		return refuse(ErrCrowded, fmt.Sprintf("at most %d keys, those of %s, or a longer Config.Precision", (end-first)<<b.count, b.config.Precision))
	default:
		b.greater, b.last, b.shard = n+1, t, (shard+1)&(1<<l.ShardBits-1)
		return b.key(n, shard), nil
	}
}

// Resume goes on after last, the last key that was made with the same Config and stored, so that
// the next row, in the order of the rows, gets the key that it would have got without a stop. An
// error is a [*core.ValueError] for a key that is no key of this Config.
func (b *Backfill) Resume(last types.Snowflake) error {
	l := b.config.Layout
	shard := l.Shard(last)
	n := int64(last)>>b.shift<<b.count | int64(last)&(1<<l.SequenceBits-1)>>l.ShardBits
	if last <= 0 || b.key(n, shard) != last || n>>b.count >= 1<<l.TimeBits {
		return &core.ValueError{Package: "backfill", Name: "last", Value: last.String(), Want: fmt.Sprintf("a key of datacenter %d and worker %d", b.config.Datacenter, b.config.Worker)}
	}
	b.greater, b.last, b.shard = n+1, time.Time{}, (shard+1)&(1<<l.ShardBits-1)
	return nil
}

// key returns the key with number n, as in Backfill.greater, on a shard.
func (b *Backfill) key(n, shard int64) types.Snowflake {
	return types.Snowflake(n>>b.count<<b.shift|n&(1<<b.count-1)<<b.config.Layout.ShardBits|shard) | b.fixed
}

// tick returns the tick that contains t: the first for a time before the layout, and one beyond
// the last for a time after it.
func (b *Backfill) tick(t time.Time) int64 {
	if l := b.config.Layout; !t.Before(l.Exhausted()) {
		return 1 << l.TimeBits
	}
	return int64(b.config.Layout.Min(t)) >> b.shift
}

// A Row is a row without its new key.
type Row[K cmp.Ordered] struct {
	Old  K
	Time time.Time // zero: it has none

	// ShardOf is the key whose shard the row's is on, such as that of its order. Zero means the
	// next shard.
	ShardOf types.Snowflake
}

// Keys returns the keys of rows, which are in the order of their times, and for one time in that of
// their old keys, without a repetition. Batches follow each other in the same order. An error is a
// [*RowError] for the first row that gets no key; then no row of the batch has one, and the
// Backfill is as before.
func Keys[K cmp.Ordered](b *Backfill, rows []Row[K]) ([]types.Snowflake, error) {
	before := *b
	keys := make([]types.Snowflake, len(rows))
	for i, row := range rows {
		var err error
		if i > 0 && row.Time.Equal(rows[i-1].Time) && row.Old <= rows[i-1].Old {
			err = &RowError{Time: row.Time, Err: ErrOrder, Want: fmt.Sprintf("one above %v, the row before, which has the same time", rows[i-1].Old)}
		} else if row.ShardOf == 0 {
			keys[i], err = b.Next(row.Time)
		} else {
			keys[i], err = b.NextOnShardOf(row.Time, row.ShardOf)
		}
		if refused := (*RowError)(nil); errors.As(err, &refused) {
			refused.Row = row.Old
			*b = before
			return nil, refused
		}
	}
	return keys, nil
}
