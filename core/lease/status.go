package lease

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A Status is what a lease knows about itself at one moment.
type Status struct {
	Namespace  string
	Datacenter int64
	Workers    int64         // how many worker numbers the lease chooses from
	Window     time.Duration // how much time a renewal reserves

	// Held says that the lease has a worker number. If not, it is claiming one.
	Held   bool
	Worker int64
	Epoch  int64     // the fencing number: it is greater for each later holder of the worker number
	Limit  time.Time // every ID so far has a time before this; Next waits if it gets there

	// Renewed is when the last claim or renewal was confirmed, by this process's clock.
	Renewed time.Time

	// Err is why the last request failed; nil if it did not. It is a [*AheadError] if the
	// store has renewed the lease, but no more time can be reserved.
	Err error

	// Claims and Renewals count the confirmed ones. Failures counts the requests that
	// failed, whose outcome is unknown, or that were of no use. Losses counts the worker
	// numbers lost.
	Claims, Renewals, Failures, Losses uint64
}

// updateStatus updates the status after an answer. It requires mu.
func (l *Lease) updateStatus(o outcome) {
	s := &l.status
	s.Err = o.failed
	if o.failed != nil {
		s.Failures++
	}
	switch {
	case o.lost != nil:
		s.Held, s.Err = false, o.lost
		s.Losses++
		return
	case o.install:
		s.Held, s.Worker, s.Epoch = true, o.worker, l.protocol.row.Epoch
		s.Claims++
	case o.extend:
		s.Renewals++
	default:
		return
	}
	s.Limit, s.Renewed = o.until.Time(), l.config.now()
	l.renewed = l.monotonic()
}

// Status returns the state of the lease, for health checks and metrics.
func (l *Lease) Status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.status
}

// Check returns nil if the lease has a worker number, reserved time, and a store
// that renews it. It is for readiness probes. The error says what is missing, with
// values, and wraps Status.Err. It is ErrClosed after Close.
//
// A renewal is due after a quarter of the window. The lease counts as not renewed after
// three quarters: IDs may end within the last one. With the loss guard it also has no
// reserved time in the first moments after a claim.
//
// Check does no I/O, and is safe for concurrent use. If ctx has ended, the error matches
// ctx.Err().
func (l *Lease) Check(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("lease: not checked: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s, window := l.status, l.protocol.settings.Window.Duration()
	if l.closing {
		return ErrClosed
	}
	var problem string
	next := l.config.now()
	if from := l.from.Time(); from.After(next) {
		next = from
	}
	switch age := l.monotonic() - l.renewed; {
	case !s.Held:
		problem = "no worker number is held"
	case !s.Limit.After(next):
		problem = fmt.Sprintf("worker %d: no time is reserved: the next ID would have %s, the limit is %s",
			s.Worker, next.UTC().Format(time.RFC3339Nano), s.Limit.Format(time.RFC3339Nano))
	case errors.Is(s.Err, ErrAhead):
		problem = fmt.Sprintf("worker %d: IDs end at %s", s.Worker, s.Limit.Format(time.RFC3339Nano))
	case age > window*3/4:
		problem = fmt.Sprintf("worker %d: last renewed %s ago: want at most %s, three quarters of the window", s.Worker, age, window*3/4)
	default:
		return nil
	}
	if s.Err != nil {
		return failed(problem, s.Err)
	}
	return errors.New("lease: " + problem)
}
