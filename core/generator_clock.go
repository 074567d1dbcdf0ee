package core

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/snowkey/snowkey/internal/base/wait"
)

// A clock reads the machine's two clocks: the wall clock, which shows the time of day and may
// step either way, and the monotonic clock, which measures elapsed time.
type clock struct {
	epoch time.Time        // wall times are counted from here
	start time.Time        // monotonic times are counted from here
	now   func() time.Time // if set, shows the wall clock's time instead: see Worker
}

func newClock(epoch time.Time, now func() time.Time) clock {
	return clock{epoch: epoch, start: time.Now(), now: now}
}

// monotonic returns nanoseconds since start. Next calls it, and time.Since reads one clock
// where time.Now reads two, which takes twice as long.
func (c *clock) monotonic() int64 { return int64(time.Since(c.start)) }

// both returns nanoseconds of wall time since the epoch together with the
// monotonic nanoseconds since start of the same moment.
func (c *clock) both() (wall, monotonic int64) {
	now := time.Now()
	// epoch has no monotonic reading, so this Sub compares wall times.
	wall, monotonic = int64(now.Sub(c.epoch)), int64(now.Sub(c.start))
	if c.now != nil {
		wall = int64(c.now().Sub(c.epoch))
	}
	return wall, monotonic
}

// A notifier wakes the callers that wait for a lease, when a limit is raised and when a term
// begins or is sealed. Its zero value is ready for use. Only waiters and the lease take the
// mutex, never a call that gets its ID without waiting.
type notifier struct {
	mu   sync.Mutex
	next chan struct{} // closed by the next notify; nil without listeners
}

// listen returns a channel that the next notify closes. A caller must listen before it checks
// its condition, so as not to miss a notify between the two.
func (b *notifier) listen() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == nil {
		b.next = make(chan struct{})
	}
	return b.next
}

func (b *notifier) notify() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next != nil {
		close(b.next)
		b.next = nil
	}
}

// A waited records how long one call has waited, since Config bounds both waits.
type waited struct {
	clock time.Duration // for the wall clock
	lease time.Duration
}

// wait waits until the clock may have caught up with back, or returns back if that would take
// longer than bound allows.
func (w *waited) wait(ctx context.Context, bound time.Duration, back *ClockBackError) error {
	if w.clock+back.missing > bound {
		return back
	}
	d := min(back.missing, time.Duration(maxWait)) // to notice a clock that is set right
	w.clock += d
	return wait.Sleep(ctx, d)
}

// await waits until changed is closed, but for d at most. It returns ErrReservationExhausted
// when ctx has ended or the call has waited for leases as long as bound allows.
func (w *waited) await(ctx context.Context, bound, d time.Duration, changed <-chan struct{}) error {
	left := bound - w.lease
	if left <= 0 {
		return fmt.Errorf("%w: waited %v (Config.MaxLeaseWait); see Lease.Status for the reason", ErrReservationExhausted, bound)
	}
	began := time.Now()
	defer func() { w.lease += time.Since(began) }()
	timer := time.NewTimer(min(d, left))
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrReservationExhausted, ctx.Err())
	}
	return nil
}

// ever is a duration without a limit.
const ever = time.Duration(math.MaxInt64)
