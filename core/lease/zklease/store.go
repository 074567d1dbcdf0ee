package zklease

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/snowkey/snowkey/core/lease"
)

// A Store is a [lease.Store] in ZooKeeper. Make it with [New]; the zero Store is not
// usable. It holds nothing but the connection, and starts no goroutine that outlives
// the calls of the connection. It is safe for concurrent use.
type Store struct {
	conn  Conn
	acl   []zk.ACL
	base  string
	clock string
}

var (
	_ lease.Store  = (*Store)(nil)
	_ lease.Lister = (*Store)(nil)
	_ lease.Fencer = (*Store)(nil)
)

// New returns a store on a connection, mostly a [*zk.Conn]. It sends nothing. The
// connection stays the caller's, who closes it after the last lease.
//
// The error is a [*core.ValueError].
func New(conn Conn, c Config) (*Store, error) {
	// A nil *zk.Conn is left when the error of zk.Connect was not looked at. Every call
	// would panic, in a goroutine that nobody can recover.
	if v := reflect.ValueOf(conn); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, invalid("conn", "nil", "a connection, as zk.Connect returns")
	}
	c, err := c.complete()
	if err != nil {
		return nil, err
	}
	return &Store{conn: conn, acl: c.ACL, base: c.Base, clock: c.Base + "/" + clockName}, nil
}

// probes is how many rows a claim looks at, chosen at random, while it asks for the
// rest. That is enough to find a free one nearly always, even if two of three are held
// (0.67⁸ is 4 %). It is few enough to come along in the same round trip.
const probes = 8

// Claim implements [lease.Store]. The first claim in a space makes its rows.
//
// The errors are those of lease.Store, [*core.ValueError] for a space that is none,
// [ErrPayload], those of the connection, and that of ctx.
func (s *Store) Claim(ctx context.Context, c lease.Claim) (lease.Reply, error) {
	if err := c.Space.Check(); err != nil {
		return lease.Reply{}, err
	}
	p := s.place(c.Space)
	workers := c.Candidates()
	began := time.Now() // as soon after c.Now as can be
	for {
		// All on their way at once: one round trip.
		asked := time.Now()
		tick := s.tick(ctx)
		namespace, datacenter := s.get(ctx, p.namespace), s.get(ctx, p.datacenter)
		var probed []reading
		for _, worker := range workers[:min(probes, len(workers))] {
			probed = append(probed, s.readRow(ctx, p, worker))
		}

		now, err := tick.wait(ctx)
		if err != nil {
			return lease.Reply{}, err
		}
		if err := checkClock(c, now, asked.Sub(began), time.Since(began)); err != nil {
			return lease.Reply{}, err
		}
		m, err := s.prepare(ctx, c.Space, p, namespace, datacenter)
		if err != nil {
			return lease.Reply{}, err
		}
		if m.state != complete {
			continue
		}
		var t table
		for _, r := range probed {
			if err := t.add(ctx, r); err != nil {
				return lease.Reply{}, err
			}
		}
		return s.take(ctx, c, p, now, t, workers)
	}
}

// checkClock is Claim.Check for a claim that began some time ago. The store's clock
// showed now at some moment between asked and answered, counted from the beginning. It
// is compared with what the claimant's clock showed at the moment of these that suits
// the claim best. So waiting is no difference between clocks: for a connection, for an
// answer, or for rows to be made. The claim itself goes on with the clock that the
// claimant read, which is earlier. Under the guard it then reserves less, never more.
func checkClock(c lease.Claim, now lease.Millis, asked, answered time.Duration) error {
	earliest := c.Now + lease.Millis(asked.Milliseconds())
	latest := c.Now + lease.Millis(answered.Milliseconds()) + 1 // rounded up
	c.Now = min(max(now, earliest), latest)
	return c.Check(now)
}

// take claims a row of those that were probed, else the first free one of all.
//
// Reads may be old. If that makes a held row look free, the write is refused and the
// row read again. If it makes a free row look held, the claim passes it by. The rows
// are all read again before a claim fails, and those reads are newer than the tick.
//
// If the session is replaced in between they may be older. Then the claim finds no row
// though there is one. That does no more harm than a claim that comes a moment too
// early.
func (s *Store) take(ctx context.Context, c lease.Claim, p place, now lease.Millis, t table, workers []int64) (lease.Reply, error) {
	c.Only = nil         // it may be long, and workers are all that will do
	var held []lease.Row // none of which is free
	for probes, unread := true, workers; ; {
		row, err := c.Choose(t.rows, now, rand.IntN)
		if errors.Is(err, lease.ErrNoFreeWorker) {
			if !probes { // those are read again
				held = append(held, t.rows...)
			}
			probes = false
			if len(unread) == 0 {
				_, err = c.Choose(held, now, rand.IntN) // the error is about all
				if t.alien != nil {
					err = fmt.Errorf("%w; %w", err, t.alien)
				}
				return lease.Reply{}, err
			}
			n, alien := min(inFlight, len(unread)), t.alien
			if t, err = s.read(ctx, p, unread[:n]); err != nil {
				return lease.Reply{}, err
			}
			if t.alien == nil {
				t.alien = alien
			}
			unread = unread[n:]
			continue
		}
		if err != nil {
			return lease.Reply{}, err
		}
		next, _ := c.Apply(row, now) // which Choose has found free at the same now
		err = s.set(ctx, p.row(row.Worker), encodeRow(next), t.versions[row.Worker])
		switch {
		case err == nil:
			return lease.Reply{Row: next, Before: row.Until, Now: now}, nil
		case !errors.Is(err, zk.ErrBadVersion) && !errors.Is(err, zk.ErrNoNode):
			return lease.Reply{}, err
		}
		// Another claim was faster. Each turn of this loop is the success of
		// somebody else, so together they come to an end.
		t.drop(row.Worker)
		if err := t.add(ctx, s.readRow(ctx, p, row.Worker)); err != nil {
			return lease.Reply{}, err
		}
	}
}

// damaged is the reason of a lease whose row holds something else.
const damaged lease.Reason = "its row holds what this package did not write"

// Renew implements [lease.Store]. A row that cannot be decoded is lost: the error matches
// [ErrPayload] as well, and the lease takes another row. Other errors as for Claim.
func (s *Store) Renew(ctx context.Context, r lease.Renewal) (lease.Reply, error) {
	if err := r.Space.Check(); err != nil {
		return lease.Reply{}, err
	}
	path := s.place(r.Space).row(r.Worker)
	tick, first := s.tick(ctx), s.get(ctx, path)
	now, err := tick.wait(ctx)
	if err != nil {
		return lease.Reply{}, err
	}
	before, after, err := s.change(ctx, path, r.Worker, first, r.Lost(lease.Gone), func(row lease.Row) (lease.Row, error) {
		return r.Apply(row, now)
	})
	if errors.Is(err, ErrPayload) {
		err = fmt.Errorf("%w: %w", r.Lost(damaged), err)
	}
	if err != nil {
		return lease.Reply{}, err
	}
	return lease.Reply{Row: after, Before: before.Until, Now: now}, nil
}

// Release implements [lease.Store]. Errors as for Claim.
func (s *Store) Release(ctx context.Context, r lease.Release) error {
	if err := r.Space.Check(); err != nil {
		return err
	}
	path := s.place(r.Space).row(r.Worker)
	_, _, err := s.change(ctx, path, r.Worker, s.get(ctx, path), r.Lost(lease.Gone), r.Apply)
	return err
}

// Fence implements [lease.Fencer], row by row. A row that is missing is left out. One
// that cannot be decoded is an error, after the others have been fenced. Errors as for
// Claim.
func (s *Store) Fence(ctx context.Context, f lease.Fencing) error {
	if err := f.Space.Check(); err != nil {
		return err
	}
	p := s.place(f.Space)
	var m meta
	for m.state != complete {
		var err error
		if m, err = s.prepare(ctx, f.Space, p, s.get(ctx, p.namespace), s.get(ctx, p.datacenter)); err != nil {
			return err
		}
	}
	var errs []error
	gone := errors.New("gone")
	fence := func(row lease.Row) (lease.Row, error) { return f.Apply(row), nil }
	for worker := range m.workers {
		path := p.row(worker)
		_, _, err := s.change(ctx, path, worker, s.get(ctx, path), gone, fence)
		if !errors.Is(err, gone) {
			errs = append(errs, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

// change applies an operation to the row of its holder, and writes the result. The
// refusal gone is for a row that is not there.
//
// The row may have been read from a server that is behind. A holder whose session was
// replaced since its last write may find that write missing, or even its row. A refusal
// on such grounds would end a lease that is well. So what led to a refusal is confirmed
// first. If it is not so, the row is read again. That read, in the session of the
// confirmation, is newer.
func (s *Store) change(
	ctx context.Context, path string, worker int64, read pending[node], gone error, apply func(lease.Row) (lease.Row, error),
) (before, after lease.Row, err error) {
	for ; ; read = s.get(ctx, path) {
		n, err := read.wait(ctx)
		if err != nil {
			return lease.Row{}, lease.Row{}, err
		}
		version, refusal := int32(-1), gone
		if n.exists {
			version = n.version
			if before, refusal = decodeRowOf(worker, path, n.data); refusal == nil {
				after, refusal = apply(before)
			}
		}
		if refusal != nil {
			err = s.confirm(ctx, path, version)
			if n.exists && err == nil || !n.exists && errors.Is(err, zk.ErrNoNode) {
				return lease.Row{}, lease.Row{}, refusal
			}
		} else {
			err = s.set(ctx, path, encodeRow(after), version)
			if err == nil {
				return before, after, nil
			}
		}
		if err != nil && !errors.Is(err, zk.ErrBadVersion) && !errors.Is(err, zk.ErrNoNode) {
			return lease.Row{}, lease.Row{}, err
		}
	}
}

// LosesWrites returns false: a majority of the ensemble has what is acknowledged.
func (s *Store) LosesWrites() bool { return false }

// Rows implements [lease.Lister]. It writes nothing but the znode of the clock.
//
// It shows each write that was acknowledged before the call, unless the session of its
// connection is replaced during the call.
func (s *Store) Rows(ctx context.Context, sp lease.Space) ([]lease.Row, lease.Millis, error) {
	if err := sp.Check(); err != nil {
		return nil, 0, err
	}
	now, err := s.tick(ctx).wait(ctx)
	if err != nil {
		return nil, 0, err
	}
	p := s.place(sp)
	// Before there is a datacenter, a read for each row would be in vain.
	if d, err := s.get(ctx, p.datacenter).wait(ctx); err != nil || !d.exists {
		return nil, now, err
	}
	workers := make([]int64, sp.Workers)
	for i := range workers {
		workers[i] = int64(i)
	}
	t, err := s.read(ctx, p, workers)
	if err == nil {
		err = t.alien
	}
	if err != nil {
		return nil, 0, err
	}
	return t.rows, now, nil
}
