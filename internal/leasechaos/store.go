//go:build unix

package leasechaos

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/snowkey/snowkey/core/lease"
)

// A store is a lease.Store as a run shows it to a lease. It injects faults. Its window is
// that of the rules. If the rules have no fence, it lies.
type store struct {
	lease.Store
	rules   Rules
	rows    int64
	real    bool // nothing is injected
	journal *journal
	history *history // nil: none is kept
	now     func() time.Time
	intN    func(n int) int // a random number below n; it may be called at any time
}

// LosesWrites implements [lease.Lossy] as the store beneath does.
func (s *store) LosesWrites() bool {
	l, ok := s.Store.(lease.Lossy)
	return ok && l.LosesWrites()
}

// Claim implements [lease.Store].
func (s *store) Claim(ctx context.Context, c lease.Claim) (lease.Reply, error) {
	asked := c
	s.change(&c.Space, &c.Window)
	if s.rules == FenceStolen && s.intN(2) == 0 {
		// A row is free when its limit plus the guard has passed. So this takes any row,
		// in every store, by its own rules. The lease has not asked for that. It begins
		// where every lease begins that has no guard.
		c.Guard, c.Skew = -lease.Millis(time.Hour/time.Millisecond), lease.Millis(time.Hour/time.Millisecond)
	}
	reply, err := call(ctx, s, func(ctx context.Context) (lease.Reply, error) {
		return recorded(s.history, Operation{Claim: &c}, func() (lease.Reply, error) { return s.Store.Claim(ctx, c) })
	})
	if err != nil {
		return lease.Reply{}, err
	}
	s.journal.claimed(reply.Row, asked.From(reply))
	if asked.Guard > 0 { // the lease counts from now
		s.journal.begins(reply.Row, lease.MillisOf(s.now())+asked.Window+asked.Guard)
	}
	if s.rules == TTL {
		// The lease begins at its own clock, as if nobody had had the row before. It
		// stops only when it is told that the row is lost.
		reply.Before, reply.Now, reply.Row.Until = 0, asked.Now, asked.Now+forever
	}
	return reply, nil
}

// Renew implements [lease.Store].
func (s *store) Renew(ctx context.Context, r lease.Renewal) (lease.Reply, error) {
	until := r.Until
	s.change(&r.Space, &r.Window)
	if s.rules == TTL {
		r.Next, r.Until = 0, 0 // the row is reserved by the store's clock alone
	}
	reply, err := call(ctx, s, func(ctx context.Context) (lease.Reply, error) {
		return recorded(s.history, Operation{Renewal: &r}, func() (lease.Reply, error) { return s.Store.Renew(ctx, r) })
	})
	if err != nil {
		return lease.Reply{}, err
	}
	if r.Guard > 0 && lease.MillisOf(s.now()) > r.Until-r.Guard {
		s.journal.late(reply.Row)
	} else {
		s.journal.renewed(reply.Row)
	}
	if s.rules == TTL {
		reply.Before, reply.Row.Until = until, until
	}
	return reply, nil
}

// Release implements [lease.Store].
func (s *store) Release(ctx context.Context, r lease.Release) error {
	s.change(&r.Space, nil)
	s.journal.released(r)
	_, err := call(ctx, s, func(ctx context.Context) (lease.Reply, error) {
		return recorded(s.history, Operation{Release: &r}, func() (lease.Reply, error) { return lease.Reply{}, s.Store.Release(ctx, r) })
	})
	return err
}

// forever is a year, in milliseconds: a limit that no lease reaches.
const forever = lease.Millis(365 * 24 * time.Hour / time.Millisecond)

// shortened is how many times shorter a window is on its way to the store.
const shortened = 3

// change makes a request one for fewer rows than a layout can have, and, unless the
// store forgets, for a shorter window.
func (s *store) change(space *lease.Space, window *lease.Millis) {
	space.Workers = s.rows
	if window != nil && !s.rules.forgets() && !s.real {
		*window /= shortened
	}
}

// delay returns a random length of time up to most.
func (s *store) delay(most time.Duration) time.Duration {
	return time.Duration(s.intN(int(most/time.Millisecond)+1)) * time.Millisecond
}

// shared returns a source of random numbers for several goroutines.
func shared(r *rand.Rand) (intN func(n int) int) {
	var mu sync.Mutex
	return func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return r.IntN(n)
	}
}

// The faults, each of which a call in twenty has.
const (
	requestLost = iota
	replyLost
	replyLate
	zombie
	oneIn = 20
)

// errInjected is all that a lease learns of a lost request.
var errInjected = errors.New("leasechaos: injected: no reply")

// call makes one request, and one of five goes wrong.
func call[T any](ctx context.Context, s *store, do func(context.Context) (T, error)) (T, error) {
	var none T
	if s.real {
		return do(ctx)
	}
	switch s.intN(oneIn) {
	case requestLost:
		return none, errInjected
	case replyLost:
		_, _ = do(ctx)
		return none, errInjected
	case replyLate: // after the deadline, and it is believed, as by a process that was stopped
		reply, err := do(ctx)
		<-ctx.Done()
		time.Sleep(s.delay(s.rules.window()))
		return reply, err
	case zombie: // done when nobody expects it any more
		later := s.delay(2 * s.rules.window())
		go func() {
			time.Sleep(later)
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaseWindow)
			defer cancel()
			_, _ = do(ctx)
		}()
		return none, errInjected
	default:
		return do(ctx)
	}
}
