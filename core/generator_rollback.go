package core

import (
	"context"
	"errors"
	"time"
)

// A Rollback selects what a Generator does when the wall clock has stepped back. No policy
// returns an ID twice; they differ in what they give up instead.
//
// A lease may begin ahead of the clock, by the skew that it permits or, with the loss guard, by
// its window. Continue starts there at once, while the other policies wait for the clock, for
// at most Config.MaxLeaseWait. Use Continue with the loss guard.
type Rollback int

const (
	// Continue goes on from the last ID, at up to the full rate, until the wall clock has
	// caught up. There is no error and no pause, and IDs stay in order, but their times are
	// ahead of the wall clock by the length of the step. It is the default, and right for
	// primary keys.
	Continue Rollback = iota

	// Refuse returns a [*ClockBackError] until the wall clock, plus the run-ahead, has reached
	// the last ID again: it is Wait without a wait. The time in an ID is then never further
	// from the wall clock than the run-ahead, at the price of an outage as long as the step. A
	// clock beyond the reserved time of a leased worker number is ignored, and IDs fall behind
	// it. Twitter's snowflake refuses.
	//
	// A call notices the step when it leaves the tick of the last ID, so further IDs of that
	// tick may be returned after the step. A step within the run-ahead is ignored.
	Refuse

	// Wait waits for the wall clock, for at most Config.RollbackWait in one call. If that
	// cannot be enough, it returns the [*ClockBackError] at once, as Refuse does. Meituan's
	// Leaf waits.
	Wait

	// Backfill follows the wall clock back and uses the numbers that are left in earlier ticks.
	// A ring remembers the last 256 of them. An ID then has the wall clock's time, and a step
	// within the ring causes no outage unless those ticks are full. But IDs are NOT IN ORDER:
	// an ID after a step back is smaller than the IDs before it. Each call reads both clocks
	// and costs about twice as much.
	//
	// It returns a [*ClockBackError] for a tick that the ring has forgotten, and for one before
	// the generator was made.
	Backfill
)

// String returns the name of the constant.
func (r Rollback) String() string {
	return constant("Rollback", int(r), "Continue", "Refuse", "Wait", "Backfill")
}

// ErrClockBack is matched by every [*ClockBackError].
var ErrClockBack = errors.New("core: the wall clock has stepped back")

// defaultRollbackWait is the default Config.RollbackWait.
const defaultRollbackWait = 5 * time.Millisecond

// A ClockBackError is returned under Refuse, under Wait when waiting is not enough, and under
// Backfill for a tick that the ring has forgotten. The call has taken no number, or has lost
// the one that it had.
type ClockBackError struct {
	// Behind is how far the wall clock is behind the time of the last ID, or, under Backfill,
	// behind the first time that still has IDs. IDs are available again when less than the
	// run-ahead is missing.
	Behind time.Duration

	missing time.Duration // until the policy can go on
}

func (e *ClockBackError) Error() string {
	return "core: the wall clock is " + e.Behind.String() + " behind the IDs already returned: set it right, or wait until it has caught up"
}

// Unwrap returns ErrClockBack.
func (e *ClockBackError) Unwrap() error { return ErrClockBack }

// accept reads the wall clock and returns the logical time, or the error of the policy after a
// step back.
func (t *term) accept(ctx context.Context, w *waited) (now int64, err error) {
	if t.rollback == Continue {
		return t.resync(), nil
	}
	for {
		now, back := t.follow()
		if back == nil {
			return now, nil
		}
		if last := t.state.Load(); last == t.opening && last > 0 {
			// No ID was returned, so the clock has not stepped back. The
			// reservation begins in the future, as under the loss guard.
			err = w.await(ctx, t.leaseWait, min(back.missing, time.Duration(maxWait)), nil)
		} else {
			err = w.wait(ctx, t.rollbackWait, back)
		}
		if err != nil {
			return 0, err
		}
	}
}

// tolerated is how far, in ns, the wall clock may fall behind between two readings without
// counting as a step back. Smooth adjustments by the system stay below it.
const tolerated = int64(time.Millisecond)

// follow is resync for the policies other than Continue. The logical clock is the wall clock.
// If the last number is above the ceiling after a step back, follow returns by how much and
// leaves the offset alone, so that every caller sees the step until the clock has caught up.
//
// A goroutine that is stopped between the two readings of one time.Now sees a step that did not
// happen, so follow believes a step only when it has read it three times.
func (t *term) follow() (now int64, back *ClockBackError) {
	offset := t.offset.Load()
	var wall, monotonic int64
	for range 3 {
		if wall, monotonic = t.clock.both(); wall-monotonic >= offset-tolerated {
			if t.ignores(wall) {
				return offset + monotonic, nil
			}
			t.offset.CompareAndSwap(offset, wall-monotonic)
			return wall, nil
		}
	}
	last := t.state.Load()
	if last >= sealed {
		return offset + monotonic, nil // as in resync
	}
	if missing := t.start(last) - t.ahead - wall; missing > 0 {
		return 0, &ClockBackError{Behind: time.Duration(t.start(last) - wall), missing: time.Duration(missing)}
	}
	t.offset.CompareAndSwap(offset, wall-monotonic)
	return wall, nil
}
