package sqllease

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/snowkey/snowkey/core/lease"
)

// candidates is how many free rows a claim looks at. One would do; with a few,
// the choice is made by the same function as in every other store.
const candidates = 16

// Claim takes a free row for its caller. The first claim in a space makes its rows. The
// errors of [lease.Store] apply. Besides them there are [*TableError], [ErrReadOnly],
// [ErrNotDurable], [ErrReplaced] and, for a space that the tables cannot hold,
// [*lease.ValueError]. After these, too, nothing was claimed.
func (s *Store) Claim(ctx context.Context, c lease.Claim) (lease.Reply, error) {
	if err := c.Space.Check(); err != nil {
		return lease.Reply{}, err
	}
	s.warnOfPool(ctx)
	began := time.Now()
	for {
		var reply lease.Reply
		claimed := false
		err := s.transact(ctx, "claim", func(t *transaction) (err error) {
			if err := t.checkClock(c, began); err != nil {
				return err
			}
			made, whole, err := t.made(ctx, c.Space)
			if err != nil {
				return err
			}
			if !made {
				// The rows are made in a transaction of their own. If the claim then
				// finds no free row it is rolled back, and the rows stay.
				return t.make(ctx, c.Space, whole)
			}
			reply, err = t.claim(ctx, c)
			claimed = err == nil
			return err
		})
		if errors.As(err, new(*commitError)) && claimed {
			// Otherwise the row would be reserved for a window, for nobody.
			reply.Row, err = s.confirm(ctx, c.Space, reply.Row, err)
		}
		if err != nil {
			return lease.Reply{}, err
		}
		if claimed {
			return reply, nil
		}
	}
}

// confirm is called when a claim has written row and its COMMIT has failed with err.
// Nobody knows then whether it was done. confirm returns the row if it was, and err if
// that cannot be found out.
//
// The row is locked, which waits for the COMMIT if the server is still at it. It is
// written again, since to read it says too little: a COMMIT that was cut off can be
// seen before the synchronous replica has it. The second COMMIT comes after the first,
// and promises the same.
//
// What follows is the same as after a reply to the claim that came late. The row still
// has the token, the nonce and the limit of the claim.
func (s *Store) confirm(ctx context.Context, space lease.Space, row lease.Row, err error) (lease.Row, error) {
	again := row
	again.Renewals++
	confirmErr := s.transact(ctx, "confirm claim", func(t *transaction) error {
		found, _, err := t.row(ctx, space, row.Worker)
		if err != nil {
			return err
		}
		if found != row {
			return errors.New("the row is not as it was written")
		}
		return t.replace(ctx, space, found, again)
	})
	if confirmErr != nil {
		return lease.Row{}, err
	}
	return again, nil
}

// made reports whether the space of s has its rows, and whether its namespace is
// known at all.
func (t *transaction) made(ctx context.Context, s lease.Space) (made, whole bool, err error) {
	err = t.each(ctx, func(scan func(...any) error) error {
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

// make makes the rows of a space and the meta row that says so. If several do this at
// once, one inserts the meta row. The others find it and look again.
func (t *transaction) make(ctx context.Context, s lease.Space, whole bool) error {
	if !whole {
		if err := t.exec(ctx, t.s.text.insertMeta, s.Namespace, int64(wholeNamespace), s.Layout); err != nil {
			return err
		}
	}
	if err := t.exec(ctx, t.s.text.insertMeta, s.Namespace, s.Datacenter, s.Layout); err != nil {
		return err
	}
	return t.exec(ctx, t.s.insertRows(s))
}

// claim claims one of the free rows. They are read without a lock, so that claimants of
// different rows do not wait for each other. The second claimant of the same row finds
// it changed, and its transaction begins anew.
func (t *transaction) claim(ctx context.Context, c lease.Claim) (lease.Reply, error) {
	before, err := t.choose(ctx, c)
	if err != nil {
		return lease.Reply{}, err
	}
	row, ok := c.Apply(before, t.now)
	if !ok { // not after Choose at the same time
		return lease.Reply{}, errConflict
	}
	if err := t.replace(ctx, c.Space, before, row); err != nil {
		return lease.Reply{}, err
	}
	return lease.Reply{Row: row, Before: before.Until, Now: t.now}, nil
}

// choose returns a free row.
func (t *transaction) choose(ctx context.Context, c lease.Claim) (lease.Row, error) {
	if c.Only != nil {
		rows, err := t.only(ctx, c)
		if err != nil {
			return lease.Row{}, err
		}
		return c.Choose(rows, t.now, rand.IntN)
	}

	// This reads a few random rows that seem to be free, instead of up to 65,536. It
	// says again what Claim.Free says, but decides nothing: Choose asks Free about each
	// row. If none is left the query below reads them all. A row with the claim's own
	// token comes first, by which Choose knows a claim that was done before.
	released := t.now + c.Skew
	if c.Guard > 0 {
		released += c.Window + c.Guard
	}
	rows, err := t.rows(ctx, t.s.text.free, c.Space.Namespace, c.Space.Datacenter, c.Space.Workers, int64(released), int64(t.now-c.Guard), c.Owner, c.Owner)
	if err != nil {
		return lease.Row{}, err
	}
	if row, err := c.Choose(rows, t.now, rand.IntN); err == nil {
		return row, nil
	}

	// The answer is about all rows: when the first will be free, and which are
	// reserved far ahead. The claimant has to wait anyway.
	rows, err = t.rows(ctx, t.s.text.rows, c.Space.Namespace, c.Space.Datacenter)
	if err != nil {
		return lease.Row{}, err
	}
	return c.Choose(rows, t.now, rand.IntN)
}

// only returns the rows of c.Only.
func (t *transaction) only(ctx context.Context, c lease.Claim) ([]lease.Row, error) {
	workers := slices.Clone(c.Only)
	slices.Sort(workers)
	var list []byte
	for _, worker := range slices.Compact(workers) {
		if worker >= 0 && worker < c.Space.Workers {
			if len(list) > 0 {
				list = append(list, ", "...)
			}
			list = strconv.AppendInt(list, worker, 10)
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	return t.rows(ctx, t.s.text.only+"("+string(list)+")", c.Space.Namespace, c.Space.Datacenter)
}

// Renew raises the reserved limit of the caller's row.
func (s *Store) Renew(ctx context.Context, r lease.Renewal) (lease.Reply, error) {
	if err := r.Space.Check(); err != nil {
		return lease.Reply{}, err
	}
	var reply lease.Reply
	err := s.transact(ctx, "renew", func(t *transaction) error {
		before, ok, err := t.row(ctx, r.Space, r.Worker)
		if err != nil {
			return err
		}
		if !ok {
			return r.Lost(lease.Gone)
		}
		row, err := r.Apply(before, t.now)
		if err != nil {
			return err
		}
		reply = lease.Reply{Row: row, Before: before.Until, Now: t.now}
		return t.replace(ctx, r.Space, before, row)
	})
	if err != nil {
		return lease.Reply{}, ifReplaced(err, r.Lost(replaced))
	}
	return reply, nil
}

// Release gives the caller's row back.
func (s *Store) Release(ctx context.Context, r lease.Release) error {
	if err := r.Space.Check(); err != nil {
		return err
	}
	err := s.transact(ctx, "release", func(t *transaction) error {
		before, ok, err := t.row(ctx, r.Space, r.Worker)
		if err != nil {
			return err
		}
		if !ok {
			return r.Lost(lease.Gone)
		}
		row, err := r.Apply(before)
		if err != nil {
			return err
		}
		return t.replace(ctx, r.Space, before, row)
	})
	return ifReplaced(err, r.Lost(replaced))
}

// Fence ends all leases of a space and raises their limits, in one transaction. The
// errors are those of Claim.
func (s *Store) Fence(ctx context.Context, f lease.Fencing) error {
	if err := f.Space.Check(); err != nil {
		return err
	}
	for {
		fenced := false
		err := s.transact(ctx, "fence", func(t *transaction) error {
			made, whole, err := t.made(ctx, f.Space)
			if err != nil {
				return err
			}
			if !made {
				return t.make(ctx, f.Space, whole)
			}
			fenced = true
			// What Fencing.Apply says, of all rows at once.
			return t.exec(ctx, t.s.text.fence, f.Nonce, int64(f.Until), int64(f.Until), f.Space.Namespace, f.Space.Datacenter)
		})
		if err != nil || fenced {
			return err
		}
	}
}

// row reads the row of a worker and locks it, where the database has row locks.
func (t *transaction) row(ctx context.Context, s lease.Space, worker int64) (row lease.Row, ok bool, err error) {
	rows, err := t.rows(ctx, t.s.text.row, s.Namespace, s.Datacenter, worker)
	if err != nil || len(rows) == 0 {
		return lease.Row{}, false, err
	}
	return rows[0], true, nil
}

// Rows returns the rows of a space, in the order of the workers, and the store's
// clock. A space in which nobody has claimed has none. Like every operation it
// refuses a read-only database: the rows of a replica are those of some time ago.
func (s *Store) Rows(ctx context.Context, space lease.Space) (rows []lease.Row, now lease.Millis, err error) {
	if err := space.Check(); err != nil {
		return nil, 0, err
	}
	// These are not the results, which belong to the caller: transact may have left an
	// attempt behind that still writes.
	var (
		found []lease.Row
		clock lease.Millis
	)
	if err := s.transact(ctx, "rows", func(t *transaction) (err error) {
		clock = t.now
		found, err = t.rows(ctx, s.text.rows, space.Namespace, space.Datacenter)
		return err
	}); err != nil {
		return nil, 0, err
	}
	return found, clock, nil
}
