package coretest

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/leasetest"
)

// A Store is a [leasestore.Store] in memory that fails on demand. The leases on it, and the
// generators that hold them, are real. Several leases may share it, as processes do.
//
//	store := coretest.NewStore(nil)
//	worker, err := lease.Acquire(ctx, store, lease.Config{Namespace: store.Namespace()})
//	…
//	store.Fail(errors.New("connection refused"))
//
// While the store fails, a generator uses up the time that its lease has reserved, a minute by
// default, and then returns [core.ErrReservationExhausted]. In a bubble of testing/synctest no
// test waits for that.
//
// A lease gets the smallest free worker number. Failures affect Claim, Renew and Release from
// the next call on, may be combined, and do not affect the methods of the embedded Memory. Its
// Snapshot and Restore make the store forget what it has acknowledged.
//
// NewStore creates it; the zero value is not usable. It is safe for concurrent use.
type Store struct {
	*leasetest.Memory

	namespace string
	claiming  sync.Mutex
	random    bool // claims may take any free row

	mu     sync.Mutex // guards what follows
	fail   error
	lost   error // returned in place of every reply, if not nil
	delay  time.Duration
	spaces map[leasestore.Space]bool // in which a number was claimed
}

var _ leasestore.Store = (*Store)(nil)

// NewStore returns an empty Store that works. now is its clock, such as [Clock.Now], and nil
// means [time.Now]. Give a lease the same clock as lease.Config.Now.
func NewStore(now func() time.Time) *Store {
	return &Store{Memory: leasetest.NewMemory(now), namespace: "test-" + rand.Text(), spaces: map[leasestore.Space]bool{}}
}

// Namespace returns a namespace that no other Store returns, for lease.Config. It keeps tests
// that run in parallel, or several times, apart: within one namespace, a second generator with
// a worker number is refused as [core.ErrWorkerInUse] while the first is open, and begins above
// the keys of the first once that is closed.
func (s *Store) Namespace() string { return s.namespace }

// Fail makes the store unreachable: calls do nothing and return err, until Fail(nil).
func (s *Store) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = err
}

// LoseReplies makes the store lose its replies: calls take effect and return err, until
// LoseReplies(nil).
func (s *Store) LoseReplies(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = err
}

// Delay makes the store slow: a call waits for d before it takes effect. If its context ends
// earlier, it returns that error and does nothing. A lease gives a call half of its window.
func (s *Store) Delay(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = d
}

// EndLeases revokes all leases, as an operator does with [lease.Fence]. A holder notices at its
// next renewal, within a quarter of its window, calls lease.Config.OnLost, and claims another
// number.
func (s *Store) EndLeases() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for space := range s.spaces {
		// It cannot fail, because the space exists and the context does not end.
		_ = s.Fence(context.Background(), leasestore.Fencing{Space: space, Nonce: "coretest"})
	}
}

// Claim implements [leasestore.Store].
func (s *Store) Claim(ctx context.Context, c leasestore.Claim) (leasestore.Reply, error) {
	return call(ctx, s, "claim", func() (leasestore.Reply, error) {
		s.claiming.Lock() // no other claim may find the same row
		reply, err := leasestore.FromRegister(leastFirst{s}).Claim(ctx, c)
		s.claiming.Unlock()
		if err == nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.spaces[c.Space] = true
		}
		return reply, err
	})
}

// leastFirst finds only the free row with the smallest worker number, which makes tests
// predictable. On a server all claimants would compete for that row.
type leastFirst struct{ *Store }

func (l leastFirst) Find(ctx context.Context, s leasestore.Space, h leasestore.Hint) (leasestore.View, error) {
	v, err := l.Memory.Find(ctx, s, h)
	done := func(seen leasestore.Seen) bool { return seen.Row.Owner == h.Owner } // by this claim before
	free := func(seen leasestore.Seen) bool { return h.Free(seen.Row, v.Now) }
	if first := slices.IndexFunc(v.Rows, free); first >= 0 && !l.random && !slices.ContainsFunc(v.Rows, done) {
		v.Rows = v.Rows[first : first+1]
	}
	return v, err
}

// Renew implements [leasestore.Store].
func (s *Store) Renew(ctx context.Context, r leasestore.Renewal) (leasestore.Reply, error) {
	return call(ctx, s, "renew", func() (leasestore.Reply, error) { return s.Memory.Renew(ctx, r) })
}

// Release implements [leasestore.Store].
func (s *Store) Release(ctx context.Context, r leasestore.Release) error {
	_, err := call(ctx, s, "release", func() (struct{}, error) { return struct{}{}, s.Memory.Release(ctx, r) })
	return err
}

// call runs an operation with the failures that the test has asked for. There is no reply beside an error.
func call[T any](ctx context.Context, s *Store, name string, operation func() (T, error)) (T, error) {
	var none T
	s.mu.Lock()
	fail, lost, delay := s.fail, s.lost, s.delay
	s.mu.Unlock()
	if delay > 0 {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return none, fmt.Errorf("coretest: %s: %w", name, ctx.Err())
		}
	}
	if fail != nil {
		return none, fmt.Errorf("coretest: %s: %w", name, fail)
	}
	reply, err := operation()
	if err == nil && lost != nil {
		err = fmt.Errorf("coretest: %s: %w", name, lost)
	}
	if err != nil {
		return none, err
	}
	return reply, nil
}
