//go:build unix

package chaos

import (
	"context"
	"time"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// A store is a lease.Store as a run presents it to a lease. It injects faults, has the window
// of the rules, and lies if the rules have no fence.
type store struct {
	lease.Store
	rules   Rules
	rows    int64
	real    bool // nothing is injected
	journal *journal
	now     func() time.Time
	intN    func(n int) int // a random number below n; it may be called at any time
}

// Claim implements [lease.Store].
func (s *store) Claim(ctx context.Context, c leasestore.Claim) (leasestore.Reply, error) {
	asked := c
	s.change(&c.Space, &c.Window)
	if s.rules == FenceStolen && s.intN(2) == 0 {
		// A row is free when its limit plus the guard has passed, so this takes any row, in
		// every store, by the store's own rules. The lease did not ask for it, and begins where
		// every lease without a guard begins.
		c.Guard, c.Skew = -leasestore.Millis(time.Hour/time.Millisecond), leasestore.Millis(time.Hour/time.Millisecond)
	}
	if s.rules == GuardShort {
		c.Guard = shortGuard
	}
	reply, err := s.ask(ctx, Operation{Claim: &c}, func(ctx context.Context) (leasestore.Reply, error) {
		return s.Store.Claim(ctx, c)
	}, func(o *Operation) {
		if o.From = asked.From(o.Reply); asked.Guard > 0 { // the lease counts from now
			o.Later = leasestore.MillisOf(s.now()) + asked.Window + asked.Guard
		}
	})
	if err != nil {
		return leasestore.Reply{}, err
	}
	if s.rules == GuardShort {
		reply.Now = max(reply.Now, asked.Now) + shortGuard // where a lease without the guard begins
	}
	if s.rules == TTL {
		// The lease begins at its own clock, as if the row had never been held, and stops only
		// when it is told that the row is lost.
		reply.Before, reply.Now, reply.Row.Until = 0, asked.Now, asked.Now+forever
	}
	return reply, nil
}

// Renew implements [lease.Store].
func (s *store) Renew(ctx context.Context, r leasestore.Renewal) (leasestore.Reply, error) {
	until := r.Until
	s.change(&r.Space, &r.Window)
	if s.rules == TTL {
		r.Next, r.Until = 0, 0 // the row is reserved by the store's clock alone
	}
	if s.rules == GuardShort {
		r.Guard = shortGuard
	}
	reply, err := s.ask(ctx, Operation{Renewal: &r}, func(ctx context.Context) (leasestore.Reply, error) {
		return s.Store.Renew(ctx, r)
	}, func(o *Operation) { o.Late = r.Guard > 0 && leasestore.MillisOf(s.now()) > r.Until-r.Guard })
	if err != nil {
		return leasestore.Reply{}, err
	}
	if s.rules == TTL {
		reply.Before, reply.Row.Until = until, until
	}
	return reply, nil
}

// Release implements [lease.Store].
func (s *store) Release(ctx context.Context, r leasestore.Release) error {
	s.change(&r.Space, nil)
	_, err := s.ask(ctx, Operation{Release: &r}, func(ctx context.Context) (leasestore.Reply, error) {
		return leasestore.Reply{}, s.Store.Release(ctx, r)
	}, nil)
	return err
}

const shortGuard = leasestore.Millis(defaultGuard / time.Millisecond)

// forever is a year in milliseconds, a limit that no lease reaches.
const forever = leasestore.Millis(365 * 24 * time.Hour / time.Millisecond)

// shortened is how many times shorter a window is on its way to the store.
const shortened = 3

// change reduces a request to fewer rows than a layout can have and, unless the store forgets,
// to a shorter window.
func (s *store) change(space *leasestore.Space, window *leasestore.Millis) {
	space.Workers = s.rows
	if window != nil && !s.rules.forgets() && !s.real {
		*window /= shortened
	}
}

// ask makes one request and records it. One in five goes wrong, unless the store is real.
func (s *store) ask(ctx context.Context, o Operation, do func(context.Context) (leasestore.Reply, error), told func(*Operation)) (leasestore.Reply, error) {
	return s.journal.recorded(o, func() (leasestore.Reply, error) {
		if s.real {
			return do(ctx)
		}
		return call(ctx, faults{intN: s.intN, late: s.rules.window(), deadline: leaseWindow}, do)
	}, told)
}
