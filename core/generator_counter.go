package core

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/snowkey/snowkey/internal/base/wait"
	"github.com/snowkey/snowkey/types"
)

// A counter is what a generator takes its numbers from: a term or, under Backfill, a ring.
//
// Next and Fill call the two types directly. Through an interface each call would cost more,
// and the caller's waited would escape to the heap.
type counter interface {
	extend(limit uint64)
	seal() (last uint64) // the last number that was taken
	isSealed() bool
	newest() uint64 // the last number taken; sealed or above in a sealed counter
	reserved() (limit uint64)
	outdated(id types.Snowflake) bool // reports whether id is too far behind the clock by now
	common() *reservedCounter
}

// A reservedCounter is what a term and a ring have in common: a worker number, and the limit up
// to which it is reserved, which the comment of term explains. A fixed number is reserved to the
// end of the layout.
type reservedCounter struct {
	limit atomic.Uint64 // no number from here on is returned
	waits atomic.Uint64
	counterConfig
}

// A counterConfig has what all counters of one worker number share.
type counterConfig struct {
	numbering
	clock clock
	settings
	changes *notifier // notified when the limit is raised and when the counter is sealed
}

// sealed is the word of a closed counter. Numbers are below 1<<63, so Adds past the last number
// do not reach the seal, and Adds past the seal do not overflow.
const sealed = 3 << 62

func (c *reservedCounter) common() *reservedCounter { return c }

// reserved returns the limit.
func (c *reservedCounter) reserved() uint64 { return c.limit.Load() }

// extend raises the limit to the given one, the first number of a tick.
func (c *reservedCounter) extend(limit uint64) { raise(&c.limit, limit) }

// raise sets v to n unless it is more already.
func raise(v *atomic.Uint64, n uint64) {
	for was := v.Load(); was < n && !v.CompareAndSwap(was, n); was = v.Load() {
	}
}

// oldest returns the first number that Config.MaxBehind allows when the clock shows now.
func (c *reservedCounter) oldest(now int64) uint64 { return c.floor(max(now, 0) - int64(c.behind)) }

// wait sleeps until the clock has advanced by d ns, or nearly.
func (c *reservedCounter) wait(ctx context.Context, d int64) error {
	c.waits.Add(1)
	return wait.Sleep(ctx, time.Duration(min(d, maxWait)))
}

// maxWait bounds a single sleep in ns, so that a step of the wall clock meanwhile is noticed.
const maxWait = int64(100 * time.Millisecond)

// The errors of refusal besides ErrTimeExhausted. Neither leaves this package.
var (
	errSealed = errors.New("core: the term is sealed")
	errBeyond = errors.New("core: number is not reserved yet")
)

// refusal returns an error if number n of c may not be taken or, once taken, may not be
// returned. The layout has no number from end on.
//
// It loads the limit first and the seal second. Whoever seals a counter reads the limit
// afterwards, and gives back what is above the limit or above the last number. A number that is
// below the limit, in a counter that is not sealed after that, is therefore not given back. In
// the other order the counter could be sealed and the limit raised between the two loads: the
// number would be returned, and the next owner of the worker number would have it too.
//
// The loads are methods of c so that a test can act between them.
func refusal(c counter, n, end uint64) error {
	limit := c.reserved()
	switch {
	case c.isSealed():
		return errSealed
	case n >= end:
		return ErrTimeExhausted
	case n >= limit:
		return errBeyond
	}
	return nil
}

// A numbering converts between numbers, tick<<countBits | sequence, and the IDs of one
// worker on shard 0. It is immutable.
type numbering struct {
	unit      int64  // ns per tick
	countBits uint8  // of the sequence in the number
	shardBits uint8  // below the sequence in the ID
	timeShift uint8  // where the ticks are in the ID
	mask      uint64 // of the sequence in the number
	worker    uint64 // datacenter and worker where they are in the ID
	end       uint64 // the first number past the last tick
	epoch     time.Time
}

func newNumbering(l Layout, datacenter, worker int64) numbering {
	return numbering{
		unit:      int64(l.Unit),
		countBits: uint8(l.countBits()),
		shardBits: uint8(l.ShardBits),
		timeShift: uint8(l.timeShift()),
		mask:      uint64(ones(l.countBits())),
		worker:    uint64(datacenter<<(l.WorkerBits+l.SequenceBits) | worker<<l.SequenceBits),
		end:       1 << (l.TimeBits + l.countBits()),
		epoch:     l.Epoch,
	}
}

// start returns when the tick of number n begins, in ns since the epoch.
//
// Here and in compose, masking the shift lets the compiler omit the code for shifts of 64 bits
// and more, which do not occur.
func (n *numbering) start(number uint64) int64 { return int64(number>>(n.countBits&63)) * n.unit }

// tick returns the first number of the tick of an ID.
func (n *numbering) tick(id types.Snowflake) uint64 {
	return uint64(id) >> n.timeShift << n.countBits
}

// distance returns how far the tick of a number is ahead of the given time, or behind it.
func (n *numbering) distance(number uint64, ns int64) (ahead, behind time.Duration) {
	start := n.start(number)
	return time.Duration(max(0, start-ns)), time.Duration(max(0, ns-start-n.unit))
}

// floor returns the first number of the tick at ns since the epoch, at most end. Without the
// bound, the top bits of a later tick would be shifted out, and a time past the end would give
// numbers from the beginning.
func (n *numbering) floor(ns int64) uint64 {
	return min(uint64(max(ns, 0)/n.unit), n.end>>n.countBits) << n.countBits
}

// from returns the first number that is at t or later.
func (n *numbering) from(t time.Time) uint64 {
	return n.floor(int64(t.Add(time.Duration(n.unit - 1)).Sub(n.epoch)))
}

// before returns the first number that is not wholly before t.
func (n *numbering) before(t time.Time) uint64 { return n.floor(int64(t.Sub(n.epoch))) }

// millisecond returns the start of the tick of a number, plus up, rounded down to whole
// milliseconds.
func (n *numbering) millisecond(number uint64, up time.Duration) time.Time {
	at := n.epoch.Add(time.Duration(n.start(min(number, n.end)))).Add(up)
	return time.UnixMilli(at.UnixMilli()).UTC()
}

// compose returns the ID of a number.
func (n *numbering) compose(number uint64) types.Snowflake {
	return types.Snowflake(number>>(n.countBits&63)<<(n.timeShift&63) | n.worker | number&n.mask<<(n.shardBits&63))
}

// fill writes the IDs of the numbers from first on to ids. Within a tick their distances are
// equal, so each run costs one composition and an addition per ID.
func (n *numbering) fill(ids []types.Snowflake, first uint64) {
	step := types.Snowflake(1) << (n.shardBits & 63)
	for len(ids) > 0 {
		run := ids[:min(uint64(len(ids)), n.mask-first&n.mask+1)]
		id := n.compose(first)
		// Unrolled, because the speed of a loop with one store varies by a factor of two
		// with its alignment.
		rest := run
		for ; len(rest) >= 4; rest = rest[4:] {
			rest[0], rest[1], rest[2], rest[3] = id, id+step, id+2*step, id+3*step
			id += 4 * step
		}
		for i := range rest {
			rest[i] = id
			id += step
		}
		ids, first = ids[len(run):], first+uint64(len(run))
	}
}
