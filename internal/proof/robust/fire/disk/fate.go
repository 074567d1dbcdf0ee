package disk

import "math/rand/v2"

// A Fate decides what a power cut leaves of what was not synced.
type fate struct {
	random *rand.Rand
	keep   float64 // how likely a change is kept; 0: none is, 1: all are
	sector int     // what is written at once
	spoil  float64 // how likely a sector that was being written holds garbage

	// ordered keeps operations on directories in the order of their journal.
	ordered bool
}

// newFate draws a fate.
func newFate(r *rand.Rand) *fate {
	f := &fate{random: r, keep: r.Float64(), sector: 512, ordered: r.IntN(2) == 0}
	switch r.IntN(8) {
	case 0, 1:
		f.keep = 0
	case 2:
		f.keep = 1
	}
	if r.IntN(2) == 0 {
		f.sector = 4096
	}
	if r.IntN(2) == 0 {
		f.spoil = 0.1
	}
	return f
}

// prefix returns how many of n changes are kept.
func (f *fate) prefix(n int) int {
	switch {
	case n == 0 || f.keep == 0:
		return 0
	case f.keep == 1:
		return n
	case f.random.Float64() >= f.keep:
		return 0
	case f.random.IntN(2) == 0:
		return n
	}
	return 1 + f.random.IntN(n)
}

func (f *fate) kept() bool { return f.random.Float64() < f.keep }

func (f *fate) spoilt() bool { return f.random.Float64() < f.spoil }

// garbage fills b.
func (f *fate) garbage(b []byte) {
	for i := range b {
		b[i] = byte(f.random.Uint32())
	}
}
