package sqllease

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/base/sqlrow"
)

const (
	// candidates is how many free rows a claim chooses from. With one, all claimants that
	// begin among held rows would meet at the row behind them.
	candidates = 16

	// near is how many rows a claim looks at before it looks at all. Of these some are free
	// unless nearly all are held.
	near = 1024
)

// Claim takes a free row for its caller. The first claim in a space makes its rows. The
// errors of [lease.Store] apply. Besides them there are [*sqlstore.TableError],
// [sqlstore.ErrReadOnly], [sqlstore.ErrNotDurable], [sqlstore.ErrReplaced] and, for a space that the tables cannot hold,
// [*core.ValueError]. After these, too, nothing was claimed.
func (s *Store) Claim(ctx context.Context, c lease.Claim) (lease.Reply, error) {
	if err := c.Space.Check(); err != nil {
		return lease.Reply{}, err
	}
	s.db.WarnOfPool(ctx)
	began := time.Now()
	for {
		var written *lease.Reply
		reply, err := transact(ctx, s, "claim", func(t *transaction) (_ *lease.Reply, err error) {
			if err := t.checkClock(c, began); err != nil {
				return nil, err
			}
			if ready, err := t.prepare(ctx, c.Space); !ready {
				return nil, err
			}
			written, err = t.claim(ctx, c)
			return written, err
		})
		if errors.Is(err, sqlrow.ErrCommit) && written != nil {
			// Otherwise the row would be reserved for a window, for nobody.
			reply, err = written, s.confirm(ctx, c.Space, &written.Row, err)
		}
		if err != nil {
			return lease.Reply{}, err
		}
		if reply != nil {
			return *reply, nil
		}
	}
}

// confirm is called when a claim has written row and its COMMIT has failed with err.
// Nobody knows then whether it was done. confirm returns nil if it was, and err if that
// cannot be found out.
//
// The row is locked, which waits for the COMMIT if the server is still at it. It is
// written again, since to read it says too little. A COMMIT that was cut off can be seen
// before the synchronous replica has it. The second COMMIT comes after the first, and
// promises the same.
//
// What follows is the same as after a reply to the claim that came late. The row still
// has the token, the nonce and the limit of the claim.
func (s *Store) confirm(ctx context.Context, space lease.Space, row *lease.Row, err error) error {
	again, confirmErr := transact(ctx, s, "confirm claim", func(t *transaction) (lease.Row, error) {
		found, _, err := t.row(ctx, space, row.Worker)
		if err == nil && found != *row {
			err = errors.New("the row is not as it was written")
		}
		if err != nil {
			return lease.Row{}, err
		}
		again := found
		again.Renewals++
		return again, t.replace(ctx, space, found, again)
	})
	if confirmErr != nil {
		return err
	}
	*row = again
	return nil
}

// prepare reports whether a space has its rows. If not it makes them, and the operation
// begins anew. So the rows stay if the operation is then rolled back. If several make
// them at once, one inserts the meta row. The others find it and look again.
func (t *transaction) prepare(ctx context.Context, s lease.Space) (ready bool, err error) {
	made, whole, err := t.made(ctx, s)
	if err != nil || made {
		return err == nil, err
	}
	datacenters := []int64{wholeNamespace, s.Datacenter}
	if whole {
		datacenters = datacenters[1:]
	}
	for _, datacenter := range datacenters {
		if _, err := t.Exec(ctx, t.s.text.insertMeta, s.Namespace, datacenter, s.Layout); err != nil {
			return false, err
		}
	}
	_, err = t.Exec(ctx, t.s.insertRows(s))
	return false, err
}

// made reports whether the space of s has its rows, and whether its namespace is
// known at all.
func (t *transaction) made(ctx context.Context, s lease.Space) (made, whole bool, err error) {
	err = t.Each(ctx, func(scan func(...any) error) error {
		var (
			datacenter, version int64
			layout              string
		)
		if err := scan(&datacenter, &layout, &version); err != nil {
			return err
		}
		if version != schemaVersion {
			return t.s.wrongVersion(version)
		}
		if layout != s.Layout {
			return &lease.LayoutError{Namespace: s.Namespace, Stored: layout, Own: s.Layout}
		}
		made = made || datacenter == s.Datacenter
		whole = whole || datacenter == wholeNamespace
		return nil
	}, t.s.text.meta, s.Namespace)
	return made, whole, err
}

// claim claims one of the free rows. They are read without a lock, so that claimants of
// different rows do not wait for each other. The second claimant of the same row finds
// it changed, and its transaction begins anew.
func (t *transaction) claim(ctx context.Context, c lease.Claim) (*lease.Reply, error) {
	before, err := t.choose(ctx, c)
	if err != nil {
		return nil, err
	}
	row, ok := c.Apply(before, t.now)
	if !ok { // not after Choose at the same time
		return nil, sqlrow.ErrConflict
	}
	if err := t.replace(ctx, c.Space, before, row); err != nil {
		return nil, err
	}
	return &lease.Reply{Row: row, Before: before.Until, Now: t.now}, nil
}

// choose returns a free row.
func (t *transaction) choose(ctx context.Context, c lease.Claim) (lease.Row, error) {
	look := t.free
	if c.Only != nil {
		look = t.only
	}
	rows, err := look(ctx, c)
	if err != nil {
		return lease.Row{}, err
	}
	row, err := c.Choose(rows, t.now, rand.IntN)
	if err == nil || c.Only != nil {
		return row, err
	}
	// The answer is about all rows: when the first will be free, and which are
	// reserved far ahead. The claimant has to wait anyway.
	if rows, err = t.find(ctx, t.s.text.rows, c.Space.Namespace, c.Space.Datacenter); err != nil {
		return lease.Row{}, err
	}
	return c.Choose(rows, t.now, rand.IntN)
}

// free returns a few rows that seem to be free. It says again what Claim.Free says, but
// decides nothing: Choose asks Free about each row.
//
// The first free ones behind a random place will do, since to choose at random among all
// rows, up to 65,536, the database has to read and sort them. It does so if none of those
// near the place is free. The place is the same for each claim with this token. So a claim
// that comes twice finds the row that has its token, by which Choose knows it.
func (t *transaction) free(ctx context.Context, c lease.Claim) ([]lease.Row, error) {
	released := t.now + c.Skew
	if c.Guard > 0 {
		released += c.Window + c.Guard
	}
	at := c.Random().Int64N(c.Space.Workers)
	rows, err := t.find(ctx, t.s.text.near, c.Space.Namespace, c.Space.Datacenter, at, min(at+near, c.Space.Workers), int64(released), int64(t.now-c.Guard), c.Owner)
	if len(rows) > 0 || err != nil {
		return rows, err
	}
	return t.find(ctx, t.s.text.free, c.Space.Namespace, c.Space.Datacenter, c.Space.Workers, int64(released), int64(t.now-c.Guard), c.Owner, c.Owner)
}

// only returns the rows of c.Only.
func (t *transaction) only(ctx context.Context, c lease.Claim) ([]lease.Row, error) {
	var list []string
	for _, worker := range slices.Compact(slices.Sorted(slices.Values(c.Only))) {
		if worker >= 0 && worker < c.Space.Workers {
			list = append(list, strconv.FormatInt(worker, 10))
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	return t.find(ctx, t.s.text.only+"("+strings.Join(list, ", ")+")", c.Space.Namespace, c.Space.Datacenter)
}

// replaced is the reason of a lease that is lost by that.
const replaced lease.Reason = "the database file or its write-ahead log was removed or replaced while the process ran"

// Renew raises the reserved limit of the caller's row.
func (s *Store) Renew(ctx context.Context, r lease.Renewal) (lease.Reply, error) {
	return s.change(ctx, "renew", r.Space, r.Worker, r.Lost, r.Apply)
}

// Release gives the caller's row back.
func (s *Store) Release(ctx context.Context, r lease.Release) error {
	_, err := s.change(ctx, "release", r.Space, r.Worker, r.Lost, func(row lease.Row, _ lease.Millis) (lease.Row, error) {
		return r.Apply(row)
	})
	return err
}

// change replaces the row of a worker by what apply makes of it.
func (s *Store) change(ctx context.Context, name string, space lease.Space, worker int64, lost func(lease.Reason) *lease.LostError,
	apply func(lease.Row, lease.Millis) (lease.Row, error)) (lease.Reply, error) {
	if err := space.Check(); err != nil {
		return lease.Reply{}, err
	}
	reply, err := transact(ctx, s, name, func(t *transaction) (lease.Reply, error) {
		before, ok, err := t.row(ctx, space, worker)
		if err != nil {
			return lease.Reply{}, err
		}
		if !ok {
			return lease.Reply{}, lost(lease.Gone)
		}
		row, err := apply(before, t.now)
		if err != nil {
			return lease.Reply{}, err
		}
		return lease.Reply{Row: row, Before: before.Until, Now: t.now}, t.replace(ctx, space, before, row)
	})
	if errors.Is(err, sqlstore.ErrReplaced) && !errors.Is(err, sqlrow.ErrCommit) {
		err = fmt.Errorf("%w: %w", lost(replaced), err) // nothing was written
	}
	return reply, err
}

// Fence ends all leases of a space and raises their limits, in one transaction. The
// errors are those of Claim.
func (s *Store) Fence(ctx context.Context, f lease.Fencing) error {
	if err := f.Space.Check(); err != nil {
		return err
	}
	for {
		fenced, err := transact(ctx, s, "fence", func(t *transaction) (bool, error) {
			ready, err := t.prepare(ctx, f.Space)
			if ready { // what Fencing.Apply says, of all rows at once
				_, err = t.Exec(ctx, t.s.text.fence, f.Nonce, int64(f.Until), int64(f.Until), f.Space.Namespace, f.Space.Datacenter)
			}
			return ready, err
		})
		if err != nil || fenced {
			return err
		}
	}
}

// Rows returns the rows of a space, in the order of the workers, and the store's
// clock. A space in which nobody has claimed has none. Like every operation it
// refuses a read-only database: the rows of a replica are those of some time ago.
func (s *Store) Rows(ctx context.Context, space lease.Space) (rows []lease.Row, now lease.Millis, err error) {
	if err := space.Check(); err != nil {
		return nil, 0, err
	}
	type answer struct {
		rows []lease.Row
		now  lease.Millis
	}
	found, err := transact(ctx, s, "rows", func(t *transaction) (answer, error) {
		rows, err := t.find(ctx, s.text.rows, space.Namespace, space.Datacenter)
		return answer{rows, t.now}, err
	})
	return found.rows, found.now, err
}
