package core

import (
	"math/rand/v2"
	"strconv"
	"sync/atomic"
)

// A SequenceStart selects the first sequence number of a tick that a Generator enters because
// the clock is there. A tick that it enters because the one before was full begins at zero.
//
// At a rate below one ID per tick, every ID is the first of its tick. If that is always number
// zero, all IDs are multiples of 1<<SequenceBits, and of the shards of a table that is sharded
// by id % 16 only one is filled. At 180 IDs per second this still concerns 98 % of the IDs.
// Choose Random for such a table, or Layout.ShardBits.
type SequenceStart int

const (
	// Zero begins at zero, as Twitter's generator does. It is the default, because most
	// databases shard by ranges or hashes of the key, and because it leaves all numbers of a
	// tick to a burst: from any other beginning a burst reaches the next tick sooner and runs
	// further ahead of the clock.
	Zero SequenceStart = iota
	// Random begins at a random sequence number.
	Random
	// Rotating begins one above the last beginning, and wraps to zero after the greatest
	// sequence number. Goroutines that meet at the start of a tick may skip some.
	Rotating
)

// String returns the name of the constant.
func (s SequenceStart) String() string {
	names := [...]string{"Zero", "Random", "Rotating"}
	if s < 0 || int(s) >= len(names) {
		return "SequenceStart(" + strconv.Itoa(int(s)) + ")"
	}
	return names[s]
}

// A sequenceStart is the state of a SequenceStart.
type sequenceStart struct {
	kind    SequenceStart
	rotated *atomic.Uint64
}

// sequence returns the next beginning, at most mask.
func (s sequenceStart) sequence(mask uint64) uint64 {
	switch s.kind {
	case Random:
		return rand.Uint64() & mask
	case Rotating:
		return s.rotated.Add(1) & mask
	default:
		return 0
	}
}
