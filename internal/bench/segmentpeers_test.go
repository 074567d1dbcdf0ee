package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/types"
)

// A numberer returns one number per call, as segment.Allocator does. Everything that is
// compared is behind this interface.
type numberer interface {
	Next(ctx context.Context) (types.Snowflake, error)
}

// A span is the numbers from first to last, which a store has given.
type span struct{ first, last int64 }

// What follows are the hot paths of others, written anew in Go after their description.
// Each fetches when it has nothing left, under the ctx of its caller, as this signature
// asks. How they prefetch is another question, which BenchmarkSegmentLatency asks.
//
// To hand ctx on is not free: the compiler stores it on the stack before the addition, in
// each call. That is 4 % of a bare addition here. wuid's waits for nothing, and saves it.

// addOnly is the floor: no range, no end, one addition.
type addOnly struct {
	_ [64]byte
	n atomic.Int64
	_ [64]byte
}

func (a *addOnly) Next(context.Context) (types.Snowflake, error) {
	return types.Snowflake(a.n.Add(1)), nil
}

// lockedRange is the plain way: a lock around everything.
type lockedRange struct {
	mu    sync.Mutex
	next  int64
	last  int64
	fetch func(context.Context) span
}

func (r *lockedRange) Next(ctx context.Context) (types.Snowflake, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next > r.last {
		got := r.fetch(ctx)
		r.next, r.last = got.first, got.last
	}
	r.next++
	return types.Snowflake(r.next - 1), nil
}

// leafBuffer is the read lock of Leaf: callers share it for an addition, and one of them
// takes the write lock to change the range. Leaf's look at whether it has to prefetch is
// part of the read-locked section.
type leafBuffer struct {
	mu      sync.RWMutex
	value   atomic.Int64
	last    int64
	mark    int64
	ready   bool
	running atomic.Bool
	fetch   func(context.Context) span
}

func (l *leafBuffer) Next(ctx context.Context) (types.Snowflake, error) {
	for {
		if id, ok := l.take(); ok {
			return types.Snowflake(id), nil
		}
		l.mu.Lock()
		if l.value.Load() > l.last {
			got := l.fetch(ctx)
			l.value.Store(got.first)
			l.last, l.mark = got.last, got.last // nothing to prefetch here
		}
		l.mu.Unlock()
	}
}

func (l *leafBuffer) take() (int64, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if !l.ready && l.value.Load() > l.mark && l.running.CompareAndSwap(false, true) {
		l.running.Store(false)
	}
	id := l.value.Add(1) - 1
	return id, id <= l.last
}

// cosidChain is the chain of CosId's SegmentChainId: a caller looks whether the segment
// has ended, adds, looks again, and walks on. Head moves to a later segment only.
type cosidChain struct {
	head  atomic.Pointer[cosidSegment]
	mu    sync.Mutex
	fetch func(context.Context) span
}

type cosidSegment struct {
	sequence atomic.Int64
	_        [64 - 8]byte
	step     int64
	last     int64
	next     atomic.Pointer[cosidSegment]
}

func (c *cosidChain) Next(ctx context.Context) (types.Snowflake, error) {
	for {
		at := c.head.Load()
		for s := at; s != nil; s = s.next.Load() {
			if s.sequence.Load() >= s.last {
				continue
			}
			if id := s.sequence.Add(s.step); id <= s.last {
				if s != at {
					c.head.CompareAndSwap(at, s)
				}
				return types.Snowflake(id), nil
			}
		}
		c.mu.Lock()
		tail := at
		for next := tail.next.Load(); next != nil; next = tail.next.Load() {
			tail = next
		}
		if tail.sequence.Load() >= tail.last {
			got := c.fetch(ctx)
			tail.next.Store(newCosidSegment(got))
		}
		c.mu.Unlock()
	}
}

func newCosidSegment(got span) *cosidSegment {
	s := &cosidSegment{step: 1, last: got.last}
	s.sequence.Store(got.first - 1)
	return s
}

// wuidAdd is the addition of wuid: one word, whose upper part is the range and whose
// lower part is the position. It renews in time, or panics near the end of the range;
// here it returns an error instead.
type wuidAdd struct {
	_        [64]byte
	n        atomic.Int64
	_        [64]byte
	critical int64
	end      int64
	renewing atomic.Bool
}

const wuidBits = 36

func newWUID() *wuidAdd {
	const most = 1<<wuidBits - 1
	w := &wuidAdd{critical: most * 80 / 100, end: most * 96 / 100}
	w.n.Store(1 << wuidBits)
	return w
}

func (w *wuidAdd) Next(context.Context) (types.Snowflake, error) {
	id := w.n.Add(1)
	position := id & (1<<wuidBits - 1)
	if position >= w.end {
		return 0, errors.New("wuid: the range has ended")
	}
	if position >= w.critical && w.renewing.CompareAndSwap(false, true) {
		w.n.Store((id>>wuidBits + 1) << wuidBits)
		w.renewing.Store(false)
	}
	return types.Snowflake(id), nil
}

// bareChain is the hot path of segment.Allocator without its look at ctx. The test
// TestTheBareChainIsNextWithoutItsLook compares the text of both.
type bareChain struct {
	cur   atomic.Pointer[link]
	fetch func(context.Context) span
}

func (a *bareChain) Next(ctx context.Context) (types.Snowflake, error) {
	l := a.cur.Load()
	i := l.taken.Add(1)
	if i <= l.mark.Load() {
		return l.number(i), nil
	}
	return a.slow(ctx, l, i)
}

// slow is not that of the Allocator: one caller at a time, and no prefetch.
func (a *bareChain) slow(ctx context.Context, l *link, i int64) (types.Snowflake, error) {
	for i > l.size {
		got := a.fetch(ctx)
		next := &link{size: got.last - got.first + 1, base: got.first - 1, stride: 1}
		next.mark.Store(next.size)
		a.cur.Store(next)
		l, i = next, next.taken.Add(1)
	}
	return l.number(i), nil
}

// A link has the fields of the Allocator's, so that they are on the same cache lines.
type link struct {
	taken atomic.Int64
	_     [64 - 8]byte

	mark   atomic.Int64
	size   int64
	base   int64
	stride int64
	next   atomic.Pointer[link] //nolint:unused // for the layout

	got  segment.Range //nolint:unused // for the layout
	used int64         //nolint:unused // for the layout
}

func (l *link) number(position int64) types.Snowflake {
	return types.Snowflake(l.base + position*l.stride)
}

// ranges returns a store in memory that gives spans of n numbers.
func ranges(n int64) func(context.Context) span {
	var end atomic.Int64
	return func(context.Context) span {
		last := end.Add(n)
		return span{last - n + 1, last}
	}
}

// peers returns what is compared with segment.Allocator, with ranges of n numbers.
func peers(n int64) map[string]numberer {
	cosid := &cosidChain{fetch: ranges(n)}
	cosid.head.Store(newCosidSegment(cosid.fetch(context.Background())))
	bare := &bareChain{fetch: ranges(n)}
	bare.cur.Store(new(link))
	leaf := &leafBuffer{fetch: ranges(n)}
	leaf.value.Store(1) // above last: the first call fetches
	return map[string]numberer{
		"snowkey-without-look": bare,
		"cosid":                cosid,
		"wuid":                 newWUID(),
		"leaf":                 leaf,
		"mutex":                &lockedRange{fetch: ranges(n), next: 1},
	}
}

func TestPeersOfSegmentsReturnEachNumberOnce(t *testing.T) {
	for name, p := range peers(7) {
		goroutines := 4
		if name == "snowkey-without-look" {
			goroutines = 1 // its slow path, which is not measured, is for one
		}
		var (
			mu   sync.Mutex
			seen = map[types.Snowflake]bool{}
			wg   sync.WaitGroup
		)
		for range goroutines {
			wg.Go(func() {
				for range 1000 {
					id, err := p.Next(t.Context())
					mu.Lock()
					if err != nil || id == 0 || seen[id] {
						t.Errorf("%s: Next() = %d, %v; want a new number", name, id, err)
					}
					seen[id] = true
					mu.Unlock()
				}
			})
		}
		wg.Wait()
	}
}
