package core

import (
	"time"

	"github.com/snowkey/snowkey/types"
)

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
