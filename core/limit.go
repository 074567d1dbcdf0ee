package core

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/snowkey/snowkey/types"
)

// This file has the limit of a term and the bound on numbers that fall behind. The comment
// of term explains both.

// oldest returns the first number that Config.MaxBehind allows when the logical clock shows
// now.
func (t *term) oldest(now int64) uint64 { return t.floor(max(now, 0) - t.behind) }

// lowest returns the floor, below which reserve takes no number. A floor at the limit does not
// count, except at the end of the layout, and only MaxBehind does.
func (t *term) lowest(now int64, limit uint64) uint64 {
	if floor := t.floor(now); floor < limit || limit >= t.end {
		return floor
	}
	return t.oldest(now)
}

// outdated reports whether an ID is too far behind the logical clock by now.
func (t *term) outdated(id types.Snowflake) bool {
	now := t.now()
	if t.rollback == Backfill { // which has no logical clock
		now, _ = t.clock.both()
	}
	return t.number(id) < t.oldest(now)
}

// The errors of refusal besides ErrTimeExhausted. Neither leaves this package.
var (
	errSealed = errors.New("core: the term is sealed")
	errBeyond = errors.New("core: number is not reserved yet")
)

// refusal returns an error if number n of c may not be taken or, once taken, may not be
// returned. The layout has no number from end on.
//
// It loads the limit first and the seal second. Whoever seals a term reads the limit
// afterwards, and gives back what is above the limit or above the last number. A number that is
// below the limit, in a term that is not sealed after that, is therefore not given back. In the
// other order the term could be sealed and the limit raised between the two loads: the number
// would be returned, and the next owner of the worker number would have it too.
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

// await waits until number n is below the limit or the term is sealed.
func (t *term) await(ctx context.Context, n uint64, p *patience) error {
	for {
		changed := t.changes.listen()
		if t.limit.Load() > n || t.isSealed() {
			return nil
		}
		if err := p.await(ctx, t.leaseWait, ever, changed); err != nil {
			return err
		}
	}
}

// reserved returns the limit.
func (t *term) reserved() uint64 { return t.limit.Load() }

// extend raises the limit to the given one, the first number of a tick.
func (t *term) extend(limit uint64) { raise(&t.limit, limit) }

// raise sets v to n unless it is more already.
func raise(v *atomic.Uint64, n uint64) {
	for was := v.Load(); was < n && !v.CompareAndSwap(was, n); was = v.Load() {
	}
}

// ignores reports whether to disregard a wall clock that shows ns since the epoch because this
// is not below the limit. At the end of the layout the clock is always obeyed.
func (t *term) ignores(ns int64) bool {
	limit := t.limit.Load()
	return limit < t.end && t.floor(ns) >= limit
}
