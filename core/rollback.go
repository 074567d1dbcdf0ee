package core

import (
	"errors"
	"strconv"
	"time"
)

// A Rollback is what a Generator does when the wall clock has stepped back. Under
// each of them no ID is returned twice; they differ in what they give up instead.
//
// A lease may begin ahead of the clock: by up to the skew that it permits, and with
// the loss guard by its window. Continue begins there at once. The others wait for
// the clock to get there, for Config.MaxLeaseWait at most: choose Continue with the
// loss guard.
type Rollback int

const (
	// Continue goes on from the last ID, at up to the full rate, until the wall
	// clock has caught up: no error, no pause, IDs in order. Their times are then
	// ahead of the wall clock by as much as it stepped back. The default, and
	// right for primary keys.
	Continue Rollback = iota

	// Refuse returns a [*ClockBackError] until the wall clock, plus the run-ahead,
	// has reached the last ID again. So the time in an ID is never further from
	// the wall clock than the run-ahead, at the price of an outage as long as the
	// step. (A clock that is beyond the reserved time of a leased worker number is
	// ignored; IDs are then behind it.) Twitter's snowflake does this.
	//
	// A step is seen when a call leaves the tick of the last ID; IDs of that tick
	// may be returned after it. A step that the run-ahead makes up for is none.
	Refuse

	// Wait is Refuse for those who would rather wait a little: a call waits for
	// the wall clock for at most Config.RollbackWait, 5 ms unless set, all its
	// waits for steps together; where that is not enough it returns the
	// [*ClockBackError] at once. Meituan's Leaf does this.
	Wait

	// Backfill goes back with the wall clock, and uses what is left of the ticks
	// that it has been in before. It remembers the last 256 ticks in a ring. So
	// the time in an ID is that of the wall clock, without an outage for steps
	// within the ring as long as those ticks were not full, but IDs are NOT IN
	// ORDER: one that is taken after a step back is smaller than those from before
	// it. Each call reads both clocks and costs about twice as much.
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

// A ClockBackError is the answer of Refuse, of Wait when waiting is not enough,
// and of Backfill when it has forgotten. The call has taken no number, unless it
// was racing past the ceiling; then that number is lost.
type ClockBackError struct {
	// Behind is how far the wall clock is behind the time of the last ID (IDs can
	// be had again when less than the run-ahead is missing), or, under Backfill,
	// behind the time from which on IDs can be had.
	Behind time.Duration

	missing time.Duration // until the policy can go on
}

func (e *ClockBackError) Error() string {
	return "core: the wall clock is " + e.Behind.String() + " behind the IDs already returned"
}

// Unwrap returns ErrClockBack.
func (e *ClockBackError) Unwrap() error { return ErrClockBack }
