package coretest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/leasetest"
)

// ErrNoReply is the error of a [Store] whose reply is lost: see [Store.LoseReplies].
var ErrNoReply = errors.New("coretest: the reply of the store is lost")

// A Store is a [lease.Store] in memory that fails when a test says so. Leases on it are
// real, and so are the generators that have them. Several leases may share it, as
// processes do.
//
//	store := coretest.NewStore(nil)
//	worker, err := lease.Acquire(ctx, store, lease.Config{Namespace: store.Namespace()})
//	…
//	store.Fail(errors.New("connection refused"))
//
// A generator goes on for the time that its lease has reserved, a minute by default.
// Then it returns [core.ErrReservationExhausted]. In a bubble of testing/synctest no test
// waits for that.
//
// A lease gets the least worker number that is free. The failures concern Claim, Renew and
// Release, from the next call on. They may be combined. The methods of the Memory are not
// disturbed. With Snapshot and Restore, the store forgets what it has acknowledged.
//
// NewStore makes it; the zero value is not usable. It is safe for concurrent use.
type Store struct {
	*leasetest.Memory

	namespace string
	claiming  sync.Mutex
	random    bool // any free row will do

	mu     sync.Mutex // guards what follows
	fail   error
	lose   bool
	delay  time.Duration
	spaces map[lease.Space]bool // that were claimed in
}

var _ lease.Store = (*Store)(nil)

// NewStore returns an empty Store that is in order. now is its clock, such as
// [Clock.Now]; nil is [time.Now]. A lease has the same one as lease.Config.Now.
func NewStore(now func() time.Time) *Store {
	return &Store{Memory: leasetest.NewMemory(now), namespace: "test-" + rand.Text(), spaces: map[lease.Space]bool{}}
}

// Namespace returns a namespace that no other Store returns, for lease.Config. Tests that
// run in parallel, or several times, are then not in each other's way. In one namespace
// the second generator with a worker number is [core.ErrWorkerInUse] while the first is
// open, and begins above the keys of the first once that is closed.
func (s *Store) Namespace() string { return s.namespace }

// Fail makes the store unreachable: calls return err and do nothing. After Fail(nil) they
// arrive again.
func (s *Store) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = err
}

// LoseReplies says whether replies are lost. The store then does what it is asked, and
// the caller gets [ErrNoReply].
func (s *Store) LoseReplies(lose bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lose = lose
}

// Delay makes the store slow: a call waits for d before it arrives. If its context ends
// before, it returns that error and does nothing. A lease gives a call half of its window.
func (s *Store) Delay(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = d
}

// EndLeases takes all worker numbers away, as an operator does by [lease.Fence]. A holder
// is told at its next renewal, a quarter of the window later. It then calls
// lease.Config.OnLost, and claims another number.
func (s *Store) EndLeases() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for space := range s.spaces {
		// It cannot fail: the space was claimed in, and the context does not end.
		_ = s.Fence(context.Background(), lease.Fencing{Space: space, Nonce: "coretest"})
	}
}

// Claim implements [lease.Store].
func (s *Store) Claim(ctx context.Context, c lease.Claim) (reply lease.Reply, err error) {
	err = s.call(ctx, "claim", func() error {
		s.claiming.Lock() // a second claim must not have read what the first has read
		reply, err = lease.Over(leastFirst{s}).Claim(ctx, c)
		s.claiming.Unlock()
		if err == nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.spaces[c.Space] = true
		}
		return err
	})
	if err != nil {
		return lease.Reply{}, err
	}
	return reply, nil
}

// leastFirst finds the free row with the least worker number. That suits tests. On a server
// all claimants would meet at one row.
type leastFirst struct{ *Store }

func (l leastFirst) Find(ctx context.Context, s lease.Space, h lease.Hint) (lease.View, error) {
	v, err := l.Memory.Find(ctx, s, h)
	done := func(seen lease.Seen) bool { return seen.Row.Owner == h.Owner } // by this claim before
	free := func(seen lease.Seen) bool { return h.Free(seen.Row, v.Now) }
	if first := slices.IndexFunc(v.Rows, free); first >= 0 && !l.random && !slices.ContainsFunc(v.Rows, done) {
		v.Rows = v.Rows[first : first+1]
	}
	return v, err
}

// Renew implements [lease.Store].
func (s *Store) Renew(ctx context.Context, r lease.Renewal) (reply lease.Reply, err error) {
	err = s.call(ctx, "renew", func() error {
		reply, err = s.Memory.Renew(ctx, r)
		return err
	})
	if err != nil {
		return lease.Reply{}, err
	}
	return reply, nil
}

// Release implements [lease.Store].
func (s *Store) Release(ctx context.Context, r lease.Release) error {
	return s.call(ctx, "release", func() error { return s.Memory.Release(ctx, r) })
}

// call does an operation, unless the test wants it to fail.
func (s *Store) call(ctx context.Context, name string, operation func() error) error {
	s.mu.Lock()
	fail, lose, delay := s.fail, s.lose, s.delay
	s.mu.Unlock()
	if delay > 0 {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return fmt.Errorf("coretest: %s: %w", name, ctx.Err())
		}
	}
	if fail != nil {
		return fmt.Errorf("coretest: %s: %w", name, fail)
	}
	if err := operation(); err != nil {
		return err
	}
	if lose {
		return fmt.Errorf("coretest: %s: %w", name, ErrNoReply)
	}
	return nil
}
