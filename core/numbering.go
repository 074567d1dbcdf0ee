package core

import "github.com/snowkey/snowkey/types"

// A numbering is how numbers, tick<<sequenceBits | sequence, and the IDs of one
// worker stand for each other. It does not change.
type numbering struct {
	unit         int64  // ns per tick
	sequenceBits uint8  // of the number, and of the ID
	timeShift    uint8  // where the ticks are in the ID
	mask         uint64 // of the sequence
	worker       uint64 // datacenter and worker where they are in the ID
	limit        uint64 // the first number past the last tick
}

func newNumbering(l Layout, datacenter, worker int64) numbering {
	return numbering{
		unit:         int64(l.Unit),
		sequenceBits: uint8(l.SequenceBits),
		timeShift:    uint8(l.timeShift()),
		mask:         uint64(ones(l.SequenceBits)),
		worker:       uint64(datacenter<<(l.WorkerBits+l.SequenceBits) | worker<<l.SequenceBits),
		limit:        1 << (l.TimeBits + l.SequenceBits),
	}
}

// start returns when the tick of number n begins, in ns since the epoch.
//
// Here and in compose, which every ID goes through, the shift is masked: widths
// are below 64, but only so does the compiler know, and leave out the code for
// wider ones.
func (n *numbering) start(number uint64) int64 { return int64(number>>(n.sequenceBits&63)) * n.unit }

// compose returns the ID of a number.
func (n *numbering) compose(number uint64) types.Snowflake {
	return types.Snowflake(number>>(n.sequenceBits&63)<<(n.timeShift&63) | n.worker | number&n.mask)
}

// fill writes the IDs of the numbers from first on to ids. Within a tick they
// are consecutive, so each run costs one composition and an increment per ID.
func (n *numbering) fill(ids []types.Snowflake, first uint64) {
	for len(ids) > 0 {
		run := ids[:min(uint64(len(ids)), n.mask-first&n.mask+1)]
		id := n.compose(first)
		for i := range run {
			run[i] = id
			id++
		}
		ids, first = ids[len(run):], first+uint64(len(run))
	}
}
