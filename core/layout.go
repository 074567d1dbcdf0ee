package core

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"time"

	"github.com/snowkey/snowkey/types"
)

// A Layout gives the bits of an ID their meaning. From the highest bit down:
//
//	 63 62                  …                                          0
//	┌──┬───────────────┬────────────────┬────────────┬──────────────────┐
//	│ 0│ TimeBits      │ DatacenterBits │ WorkerBits │ SequenceBits     │
//	└──┴───────────────┴────────────────┴────────────┴──────────────────┘
//	     ticks of Unit                                 counts within
//	     since Epoch                                   one tick
//
// ShardBits, the lowest bits of the sequence, name a shard; see [OnShard].
//
// The sign bit is always 0, so IDs fit a signed BIGINT and sort by time. The widths may sum to
// less than 63, in which case the highest bits are 0 too.
//
// Most programs use [Default]. All processes that share a key space must use the same Layout
// for good: if Epoch moves later, or the widths change, new IDs overlap old ones.
//
// A Layout is a plain value, which may be copied, compared and used from any goroutine. The
// zero value is not valid, but New takes it to mean Default(). On a layout that Validate
// refuses, the other methods return zero values.
type Layout struct {
	// Epoch is the start of tick 0 and must not be the zero time. Its location and monotonic
	// reading are ignored.
	Epoch time.Time
	// Unit is the length of a tick, 1 µs to 1 s.
	Unit time.Duration

	TimeBits       int // at least 1
	DatacenterBits int // 0 for a layout without datacenters
	WorkerBits     int // 0 for a layout with a single worker
	SequenceBits   int // at least 1; one worker makes 1<<SequenceBits IDs per tick

	// ShardBits is how many of the SequenceBits name a shard, less than SequenceBits; 0 for a
	// layout without shards. One worker makes 1<<(SequenceBits-ShardBits) IDs per tick then,
	// and id>>ShardBits is unique, whatever the shards are.
	//
	// It may be set, and be raised or lowered, in a system that runs: layouts that differ in
	// it alone have the same IDs, take turns with the same workers, and read each other's times
	// and workers. What changes is which shard an ID that exists is said to be on.
	ShardBits int
}

// The bounds of Layout.Unit.
const (
	minUnit = time.Microsecond
	maxUnit = time.Second
)

// Validate returns nil for a usable layout, and otherwise a [*ValueError] for the first field
// that is not.
func (l Layout) Validate() error {
	for _, f := range [...]struct {
		name string
		n    int
		min  int
	}{
		{"Layout.TimeBits", l.TimeBits, 1},
		{"Layout.DatacenterBits", l.DatacenterBits, 0},
		{"Layout.WorkerBits", l.WorkerBits, 0},
		{"Layout.SequenceBits", l.SequenceBits, 1},
	} {
		if f.n < f.min || f.n > 62 {
			return invalid(f.name, strconv.Itoa(f.n), strconv.Itoa(f.min)+"..62")
		}
	}
	if sum := l.TimeBits + l.DatacenterBits + l.WorkerBits + l.SequenceBits; sum > 63 {
		return invalid(
			"Layout.TimeBits + DatacenterBits + WorkerBits + SequenceBits",
			fmt.Sprintf("%d+%d+%d+%d = %d", l.TimeBits, l.DatacenterBits, l.WorkerBits, l.SequenceBits, sum),
			"at most 63, so that the sign bit stays free")
	}
	if l.Unit < minUnit || l.Unit > maxUnit {
		return invalid("Layout.Unit", l.Unit.String(), minUnit.String()+".."+maxUnit.String())
	}
	if l.ShardBits < 0 || l.ShardBits >= l.SequenceBits {
		return invalid("Layout.ShardBits", strconv.Itoa(l.ShardBits),
			fmt.Sprintf("0..%d, less than Layout.SequenceBits", l.SequenceBits-1))
	}
	if l.Epoch.IsZero() {
		return invalid("Layout.Epoch", "the zero time", "the moment of tick 0, such as 2025-01-01 00:00 UTC")
	}
	return nil
}

// Parts is an ID taken apart.
type Parts struct {
	Time       time.Time // the start of the ID's tick, in UTC
	Datacenter int64     // 0..1<<Layout.DatacenterBits-1
	Worker     int64     // 0..1<<Layout.WorkerBits-1
	Sequence   int64     // 0..1<<(Layout.SequenceBits-Layout.ShardBits)-1
	Shard      int64     // 0..1<<Layout.ShardBits-1
}

// Parts takes id apart without validating it. An ID of another layout gives parts without
// meaning, and a negative one, or one with more time bits, gives a time that Compose refuses.
// For every ID of the layout, Compose(Parts(id)) is id.
func (l Layout) Parts(id types.Snowflake) Parts {
	if l.Validate() != nil {
		return Parts{}
	}
	n := int64(id)
	return Parts{
		Time:       l.tickTime(n >> l.timeShift()),
		Datacenter: n >> (l.WorkerBits + l.SequenceBits) & ones(l.DatacenterBits),
		Worker:     n >> l.SequenceBits & ones(l.WorkerBits),
		Sequence:   n & ones(l.SequenceBits) >> l.ShardBits,
		Shard:      l.Shard(id),
	}
}

// Compose returns the ID with the given parts; a time within a tick counts as that tick. A part
// outside its range, or an invalid layout, gives a [*ValueError] and 0.
//
// An ID that is composed with the worker of a live generator can equal one of that generator's
// IDs. Give composed IDs, such as those of backfilled history and fixtures, a worker of their
// own.
func (l Layout) Compose(p Parts) (types.Snowflake, error) {
	if err := l.Validate(); err != nil {
		return 0, err
	}
	tick, where := l.tick(p.Time)
	if where != 0 {
		return 0, invalid("Parts.Time", p.Time.UTC().Format(time.RFC3339Nano),
			"from "+l.Epoch.UTC().Format(time.RFC3339Nano)+" until before "+l.Exhausted().Format(time.RFC3339Nano))
	}
	for _, f := range [...]struct {
		name  string
		value int64
		bits  int
	}{
		{"Parts.Datacenter", p.Datacenter, l.DatacenterBits},
		{"Parts.Worker", p.Worker, l.WorkerBits},
		{"Parts.Sequence", p.Sequence, l.countBits()},
		{"Parts.Shard", p.Shard, l.ShardBits},
	} {
		if err := checkBits(f.name, f.value, f.bits); err != nil {
			return 0, err
		}
	}
	return types.Snowflake(tick<<l.timeShift() | p.Datacenter<<(l.WorkerBits+l.SequenceBits) | p.Worker<<l.SequenceBits | p.Sequence<<l.ShardBits | p.Shard), nil
}

// Between returns the first and the last key of the ticks from the one that contains from until
// before the one that contains until, so that the primary key serves as the index on time:
//
//	first, last := layout.Between(monday, tuesday) // WHERE id BETWEEN first AND last
//
// A key tells its tick and nothing within it, so a tick is selected whole or not at all. The tick
// of from is selected because its keys may have been made after from, and the tick of until
// belongs to the span that begins at until: [a, b) and [b, c) share no key and miss none.
//
// A time before the layout is before its first tick, and a time from [Layout.Exhausted] on is
// after its last. If the span has no tick, or the layout is invalid, first is 0 and last is -1.
func (l Layout) Between(from, until time.Time) (first, last types.Snowflake) {
	if l.Validate() != nil {
		return 0, -1
	}
	begin, end := l.ticksBefore(from), l.ticksBefore(until)
	if begin >= end {
		return 0, -1
	}
	return types.Snowflake(begin << l.timeShift()), types.Snowflake((end-1)<<l.timeShift() | ones(l.timeShift()))
}

// Min returns the smallest ID of the tick that contains t. A time outside the layout counts as
// its first or last tick.
func (l Layout) Min(t time.Time) types.Snowflake {
	if l.Validate() != nil {
		return 0
	}
	tick, _ := l.tick(t)
	return types.Snowflake(tick << l.timeShift())
}

// Max returns the largest ID of the tick that contains t. A time outside the layout counts as
// its first or last tick.
func (l Layout) Max(t time.Time) types.Snowflake {
	if l.Validate() != nil {
		return 0
	}
	tick, _ := l.tick(t)
	return types.Snowflake(tick<<l.timeShift() | ones(l.timeShift()))
}

// Exhausted returns the first moment, in UTC, for which the layout has no tick.
func (l Layout) Exhausted() time.Time {
	if l.Validate() != nil {
		return time.Time{}
	}
	return l.tickTime(1 << l.TimeBits)
}

// ticksBefore returns how many ticks of the layout precede the one that contains t.
func (l Layout) ticksBefore(t time.Time) int64 {
	tick, where := l.tick(t)
	if where > 0 {
		tick++
	}
	return tick
}

// timeShift is the number of bits below the time bits.
func (l Layout) timeShift() int { return l.DatacenterBits + l.WorkerBits + l.SequenceBits }

// countBits is the number of sequence bits that count.
func (l Layout) countBits() int { return l.SequenceBits - l.ShardBits }

// tick returns the tick of t and 0, or for a time before or after the layout the nearest tick
// and -1 or +1.
//
// A number of ticks times Unit can exceed a time.Duration (47 bits of milliseconds are 4,459
// years, while a Duration holds 292), so the product is computed in 128 bits.
func (l Layout) tick(t time.Time) (tick int64, where int) {
	if t.Round(0).Before(l.Epoch) { // by the wall clock, though both may have another reading
		return 0, -1
	}
	// Since t >= Epoch, the difference fits 64 unsigned bits even where it does not fit a
	// signed integer. Borrowing a second keeps the nanoseconds positive.
	sec, nsec := uint64(t.Unix())-uint64(l.Epoch.Unix()), int64(t.Nanosecond())-int64(l.Epoch.Nanosecond())
	if nsec < 0 {
		sec, nsec = sec-1, nsec+int64(time.Second)
	}
	hi, lo := bits.Mul64(sec, uint64(time.Second))
	lo, carry := bits.Add64(lo, uint64(nsec), 0)
	hi += carry
	last := ones(l.TimeBits)
	if hi >= uint64(l.Unit) {
		return last, +1
	}
	n, _ := bits.Div64(hi, lo, uint64(l.Unit))
	if n > uint64(last) {
		return last, +1
	}
	return int64(n), 0
}

// tickTime returns the start of a tick, in UTC. Ticks below 0 and above the last one are
// extrapolated.
func (l Layout) tickTime(tick int64) time.Time {
	abs := uint64(tick)
	if tick < 0 {
		abs = -abs
	}
	hi, lo := bits.Mul64(abs, uint64(l.Unit))
	// abs <= 2^63 and Unit <= 10^9, so hi < 10^9 and the quotient fits.
	s, ns := bits.Div64(hi, lo, uint64(time.Second))
	sec, nsec := int64(min(s, math.MaxInt64)), int64(ns)
	if tick < 0 {
		sec, nsec = -sec, -nsec
	}
	return time.Unix(l.Epoch.Unix()+sec, int64(l.Epoch.Nanosecond())+nsec).UTC()
}

// ones returns a mask of the n lowest bits, the greatest value that n bits hold.
func ones(n int) int64 { return 1<<n - 1 }

// checkBits returns a *ValueError unless 0 <= value < 1<<width.
func checkBits(name string, value int64, width int) error {
	if value < 0 || value > ones(width) {
		return invalid(name, strconv.FormatInt(value, 10), fmt.Sprintf("0..%d (%d bits)", ones(width), width))
	}
	return nil
}
