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
// and the patience of the caller would escape to the heap.
type counter interface {
	extend(limit uint64)
	seal() (last uint64) // the last number that was taken
	isSealed() bool
	newest() uint64 // the last number taken; sealed or above in a sealed counter
	reserved() (limit uint64)
	outdated(id types.Snowflake) bool // reports whether id is too far behind the clock by now
	common() *span
}

// A span is what a term and a ring have in common: a worker number, and the limit up to which
// it is reserved. The comment of term explains the limit.
type span struct {
	limit atomic.Uint64 // no number from here on is returned
	waits atomic.Uint64
	spanConfig
}

// A spanConfig has the parts that all counters of one worker number share.
type spanConfig struct {
	numbering
	clock clock
	settings
	changes *notifier // notified when the limit is raised and when the counter is sealed
}

// sealed is the word of a closed counter. Numbers are below 1<<63, so Adds past the last number
// do not reach the seal, and Adds past the seal do not overflow.
const sealed = 3 << 62

func (s *span) common() *span { return s }

// reserved returns the limit.
func (s *span) reserved() uint64 { return s.limit.Load() }

// extend raises the limit to the given one, the first number of a tick.
func (s *span) extend(limit uint64) { raise(&s.limit, limit) }

// raise sets v to n unless it is more already.
func raise(v *atomic.Uint64, n uint64) {
	for was := v.Load(); was < n && !v.CompareAndSwap(was, n); was = v.Load() {
	}
}

// oldest returns the first number that Config.MaxBehind allows when the clock shows now.
func (s *span) oldest(now int64) uint64 { return s.floor(max(now, 0) - int64(s.behind)) }

// wait sleeps until the clock has advanced by d ns, or nearly.
func (s *span) wait(ctx context.Context, d int64) error {
	s.waits.Add(1)
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
