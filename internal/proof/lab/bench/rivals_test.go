package main

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The three generators here are what most people write themselves.

// rivalEpoch is 2025-01-01 UTC in Unix milliseconds.
const rivalEpoch = 1735689600000

// mutexSince is the plain generator done well. It has a lock, and the cheaper of the
// two clock readings. At the end of a tick it goes on to the next one.
type mutexSince struct {
	mu      sync.Mutex
	bits    int
	start   time.Time
	startMS int64
	last    int64
}

func newMutexSince(bits int) *mutexSince {
	now := time.Now()
	return &mutexSince{bits: bits, start: now, startMS: now.UnixMilli() - rivalEpoch}
}

func (g *mutexSince) next() int64 {
	g.mu.Lock()
	g.last = max(g.last+1, (g.startMS+int64(time.Since(g.start)/time.Millisecond))<<g.bits)
	id := g.last
	g.mu.Unlock()
	return id
}

// articleMutex is the generator of most tutorials. It locks, calls time.Now, and
// compares with the last millisecond. It counts, or starts again at 0. At the end of
// the sequence it spins.
type articleMutex struct {
	mu       sync.Mutex
	bits     int
	ms       int64
	sequence int64
}

func (g *articleMutex) next() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now().UnixMilli() - rivalEpoch
	if now == g.ms {
		g.sequence = (g.sequence + 1) & (1<<g.bits - 1)
		for g.sequence == 0 && now <= g.ms {
			now = time.Now().UnixMilli() - rivalEpoch
		}
	} else {
		g.sequence = 0
	}
	g.ms = now
	return now<<g.bits | g.sequence
}

// articleLockFree is the well-known lock-free version, with time and sequence in one
// word. It does an Add. If the word has another time than the caller read, a CAS resets
// it to the caller's.
//
// IT IS WRONG, and is here to show it. The time that the caller read may be older than
// the word's. Then the CAS takes the word back to numbers that were returned before.
// Look at its dup/op, not at its speed.
type articleLockFree struct {
	bits int
	word atomic.Int64
}

func (g *articleLockFree) next() int64 {
	for {
		now := time.Now().UnixMilli() - rivalEpoch
		n := g.word.Add(1)
		if n>>g.bits == now {
			return n
		}
		if g.word.CompareAndSwap(n, now<<g.bits) {
			return now << g.bits
		}
	}
}

// The schedule of the well-known fault, played by hand. A caller that read the clock
// before another one's reset takes the word back.
func TestLockFreeResetToAStaleTimeRepeatsAnID(t *testing.T) {
	const bits = 12
	var g articleLockFree
	g.word.Store(1 << bits) // (1, 0) was returned: the first ID of millisecond 1
	stale := int64(1)       // A reads the clock and is stopped
	g.word.Store(2 << bits) // B, in millisecond 2, resets the word
	n := g.word.Add(1)      // A goes on: Add gives (2, 1), not A's time
	if n>>bits == stale || !g.word.CompareAndSwap(n, stale<<bits) {
		t.Fatalf("word = %d; want A's reset to succeed", g.word.Load())
	}
	if got := g.word.Load(); got != 1<<bits {
		t.Errorf("A returns %d; want %d, which was returned before", got, 1<<bits)
	}
}
