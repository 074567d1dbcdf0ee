package core

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/snowkey/snowkey/internal/base/wait"
)

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

// A patience records how much of its bounds one call has used.
type patience struct {
	used   time.Duration // waiting for the wall clock
	leased time.Duration // waiting for the lease
}

// wait waits until the clock may have caught up with back, or returns back if that would take
// longer than bound allows.
func (p *patience) wait(ctx context.Context, bound time.Duration, back *ClockBackError) error {
	if p.used+back.missing > bound {
		return back
	}
	d := min(back.missing, time.Duration(maxWait)) // to notice a clock that is set right
	p.used += d
	return wait.Sleep(ctx, d)
}

// await waits until changed is closed, but for d at most. It returns ErrReservationExhausted
// when ctx has ended or the call has waited for leases as long as bound allows.
func (p *patience) await(ctx context.Context, bound, d time.Duration, changed <-chan struct{}) error {
	left := bound - p.leased
	if left <= 0 {
		return fmt.Errorf("%w: waited %v (Config.MaxLeaseWait); see Lease.Status for the reason", ErrReservationExhausted, bound)
	}
	began := time.Now()
	defer func() { p.leased += time.Since(began) }()
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
