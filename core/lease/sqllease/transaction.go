package sqllease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/snowkey/snowkey/core/internal/tables"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/sqlrow"
)

// A transaction is one attempt at an operation.
type transaction struct {
	*sqlrow.Tx
	s   *Store
	now lease.Millis // the store's clock
}

// transact runs body in a transaction. Package sqlrow says what that guarantees and when
// body runs again.
func transact[T any](ctx context.Context, s *Store, name string, body func(*transaction) (T, error)) (T, error) {
	result, err := tables.Do(ctx, s.db, func(x *sqlrow.Tx) (T, error) {
		return body(&transaction{Tx: x, s: s, now: lease.MillisOf(x.Now)})
	})
	return result, s.explain(name, err)
}

// definite reports whether err was decided here, from what was read. It comes neither
// from the database nor from the way to it. Nothing was written then.
func definite(err error) bool {
	return errors.Is(err, lease.ErrNoFreeWorker) || errors.Is(err, lease.ErrLost) ||
		errors.Is(err, lease.ErrLayout) || errors.Is(err, lease.ErrClockSkew)
}

// explain returns the error of an operation whose transaction has failed with err.
func (s *Store) explain(name string, err error) error {
	switch {
	case err == nil, definite(err):
		return err
	case errors.Is(err, sqlrow.ErrCommit), dialect.BadConnection(err):
	case dialect.Denied(err), errors.As(err, new(*sqlstore.TableError)), errors.Is(err, sqlstore.ErrNotDurable), errors.Is(err, sqlstore.ErrDolt):
		err = lease.Permanent(err)
	}
	return fmt.Errorf("sqllease: %s: %w", name, err)
}

// checkClock is Claim.Check for a claim that began some time ago. The store's clock was
// read at some moment between Asked and Answered. It is compared with what the
// claimant's clock showed at the moment of these that suits the claim best. So waiting,
// for the pool or for an answer, is no difference between clocks. The claim itself goes
// on with the clock that the claimant read, which is earlier. Under the guard it then
// reserves less, never more.
func (t *transaction) checkClock(c lease.Claim, began time.Time) error {
	earliest := c.Now + lease.Millis(t.Asked.Sub(began).Milliseconds())
	latest := c.Now + lease.Millis(t.Answered.Sub(began).Milliseconds()) + 1 // rounded up
	c.Now = min(max(t.now, earliest), latest)
	return c.Check(t.now)
}

// find returns the rows that a query finds.
func (t *transaction) find(ctx context.Context, text string, args ...any) (rows []lease.Row, err error) {
	err = t.Each(ctx, func(scan func(...any) error) error {
		var r lease.Row
		err := scan(&r.Worker, &r.Epoch, &r.Owner, &r.Nonce, &r.Until, &r.Renewals, &r.Holder)
		rows = append(rows, r)
		return err
	}, text, args...)
	return rows, err
}

// row reads the row of a worker and locks it, where the database has row locks.
func (t *transaction) row(ctx context.Context, s lease.Space, worker int64) (row lease.Row, ok bool, err error) {
	rows, err := t.find(ctx, t.s.text.row, s.Namespace, s.Datacenter, worker)
	if err != nil || len(rows) == 0 {
		return lease.Row{}, false, err
	}
	return rows[0], true, nil
}

// replace writes row over before, if that is still what is stored.
func (t *transaction) replace(ctx context.Context, s lease.Space, before, row lease.Row) error {
	result, err := t.Exec(ctx, t.s.text.update,
		row.Epoch, row.Owner, row.Nonce, int64(row.Until), row.Renewals, row.Holder,
		s.Namespace, s.Datacenter, before.Worker, before.Epoch, before.Owner, before.Nonce, int64(before.Until), before.Renewals)
	if err != nil {
		return err
	}
	// Renewals differs, so the row changes: 1 also where the database counts changed
	// rows and not found ones.
	switch n, err := result.RowsAffected(); {
	case err != nil:
		return fmt.Errorf("rows affected: %w", err)
	case n == 0:
		return sqlrow.ErrConflict
	case n != 1:
		return fmt.Errorf("the update of one row affected %d", n)
	}
	return nil
}
