package core

import (
	"math/rand/v2"
	"strconv"
	"sync/atomic"
)

// A SequenceStart is the sequence number at which a Generator begins in a tick
// that it enters because the clock is there. (A tick that it enters because the
// one before was full begins at zero.)
//
// With fewer than one ID per tick every ID is the first of its tick. If that is
// always number zero, all IDs are multiples of 1<<SequenceBits, and a table that
// is sharded by id % n fills few of its shards, one for n = 2. At 180 IDs per second
// that is 98 % of them. Such a table wants Random.
type SequenceStart int

const (
	// Zero begins at zero, as Twitter's generator does. The default, because most
	// databases shard by ranges or hashes of the key, and all numbers of a tick are
	// then left for a burst. From any other beginning, a burst comes to the next tick
	// sooner, and so runs further ahead of the clock.
	Zero SequenceStart = iota
	// Random begins at a random number below Config.SequenceStartBelow.
	Random
	// Rotating begins one above the last beginning, below
	// Config.SequenceStartBelow, and then at zero again. Goroutines that meet at
	// the start of a tick may skip some.
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
	below   uint64 // 1..1<<SequenceBits
	rotated *atomic.Uint64
}

func newSequenceStart(kind SequenceStart, below uint64) sequenceStart {
	return sequenceStart{kind, below, new(atomic.Uint64)}
}

// sequence returns the next beginning.
func (s sequenceStart) sequence() uint64 {
	switch s.kind {
	case Random:
		return rand.Uint64N(s.below)
	case Rotating:
		return s.rotated.Add(1) % s.below
	default:
		return 0
	}
}
