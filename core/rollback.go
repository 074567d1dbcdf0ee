package core

import (
	"errors"
	"strconv"
	"time"
)

// A Rollback is what a Generator does when the wall clock has stepped back. No
// policy returns an ID twice. They differ in what they give up instead.
//
// A lease may begin ahead of the clock, by the skew that it permits, or by its
// window with the loss guard. Continue begins there at once. The others wait for
// the clock, for Config.MaxLeaseWait at most. So use Continue with the loss guard.
type Rollback int

const (
	// Continue goes on from the last ID, at up to the full rate, until the wall
	// clock has caught up. There is no error and no pause, and IDs stay in order.
	// Their times are then ahead of the wall clock by the length of the step. It is
	// the default, and right for primary keys.
	Continue Rollback = iota

	// Refuse returns a [*ClockBackError] until the wall clock, plus the run-ahead,
	// has reached the last ID again. So the time in an ID is never further from the
	// wall clock than the run-ahead. The outage is as long as the step. A clock
	// beyond the reserved time of a leased worker number is ignored, and IDs are
	// then behind it. Twitter's snowflake refuses.
	//
	// A call sees the step when it leaves the tick of the last ID. IDs of that tick
	// may be returned after the step. A step within the run-ahead is ignored.
	Refuse

	// Wait waits for the wall clock, for at most Config.RollbackWait in one call, 5
	// ms by default. If that is not enough, it returns the [*ClockBackError] at
	// once, as Refuse does. Meituan's Leaf waits.
	Wait

	// Backfill goes back with the wall clock, and uses what is left of the ticks
	// before. It remembers the last 256 ticks in a ring. So the time in an ID is
	// that of the wall clock. There is no outage for a step within the ring, as
	// long as those ticks were not full. But IDs are NOT IN ORDER: an ID after a
	// step back is smaller than those before it. Each call reads both clocks and
	// costs about twice as much.
	//
	// It returns a [*ClockBackError] for a tick that the ring has forgotten, and
	// for one before the generator was made.
	Backfill
)

// String returns the name of the constant.
func (r Rollback) String() string {
	names := [...]string{"Continue", "Refuse", "Wait", "Backfill"}
	if r < 0 || int(r) >= len(names) {
		return "Rollback(" + strconv.Itoa(int(r)) + ")"
	}
	return names[r]
}

// The default and the greatest Config.RollbackWait.
const (
	defaultRollbackWait = 5 * time.Millisecond
	maxRollbackWait     = time.Minute
)

// ErrClockBack is matched by every [*ClockBackError].
var ErrClockBack = errors.New("core: the wall clock has stepped back")

// A ClockBackError is the error of Refuse, of Wait when waiting is not enough, and
// of Backfill for a tick that it has forgotten. The call has taken no number, or
// has lost the one that it had.
type ClockBackError struct {
	// Behind is how far the wall clock is behind the time of the last ID. IDs are
	// available again when less than the run-ahead is missing. Under Backfill, it
	// is how far the clock is behind the first time with IDs.
	Behind time.Duration

	missing time.Duration // until the policy can go on
}

func (e *ClockBackError) Error() string {
	return "core: the wall clock is " + e.Behind.String() + " behind the IDs already returned"
}

// Unwrap returns ErrClockBack.
func (e *ClockBackError) Unwrap() error { return ErrClockBack }
