package core

import (
	"math/rand/v2"
	"strconv"
	"sync/atomic"
)

// A SequenceStart is the first sequence number of a tick that a Generator enters
// because the clock is there. A tick that it enters because the one before was full
// begins at zero.
//
// With fewer than one ID per tick every ID is the first of its tick. If that is
// always number zero, all IDs are multiples of 1<<SequenceBits. A table that is
// sharded by id % n then fills few of its shards, one for n = 2. At 180 IDs per
// second that is 98 % of them. Such a table wants Random.
type SequenceStart int

const (
	// Zero begins at zero, as Twitter's generator does. It is the default, because
	// most databases shard by ranges or hashes of the key. It leaves all numbers of
	// a tick for a burst. From any other beginning, a burst comes to the next tick
	// sooner, and so runs further ahead of the clock.
	Zero SequenceStart = iota
	// Random begins at a random sequence number.
	Random
	// Rotating begins one above the last beginning, and after the greatest sequence
	// number at zero again. Goroutines that meet at the start of a tick may skip some.
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

// A sequenceStart gives the beginnings.
type sequenceStart struct {
	kind    SequenceStart
	rotated *atomic.Uint64
}

// sequence returns the next beginning, mask being the greatest.
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
