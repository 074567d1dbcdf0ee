package sqllease

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/internal/sqlerror"
)

const (
	// maxAttempts bounds how often an operation begins anew after somebody else was
	// first, or on a broken connection. Each attempt closes one such connection. If it
	// only waits for a lock, ctx is the bound.
	maxAttempts = 100

	// maxPause is the longest time between two attempts. Its length is random, so
	// that two who are in each other's way do not stay so.
	maxPause = 20 * time.Millisecond
)

// errConflict means that a row was changed between its SELECT and its UPDATE.
var errConflict = errors.New("another process was first")

// An executor is a *sql.Tx, or a *sql.Conn on which a transaction was begun by
// hand.
type executor interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// A transaction is one attempt at an operation, on a connection of its own.
type transaction struct {
	s    *Store
	conn *sql.Conn

	now             lease.Millis // the store's clock
	asked, answered time.Time    // it was read between these, by this process's

	executor
	commit   func() error
	rollback func() error
	restore  []string // what sets the connection's settings back, once the transaction has ended

	wrote bool
	dirty bool // the connection's settings are not known
}

// transact runs body in a transaction until it comes through. The transaction is
// committed if body has written and returned nil, and rolled back otherwise.
//
// Body runs again only after an attempt that has not come to its COMMIT, and so has had
// no effect. After an error of the COMMIT nobody knows whether it is done. The caller
// has to take it so.
func (s *Store) transact(ctx context.Context, name string, body func(*transaction) error) error {
	for attempt := 1; ; attempt++ {
		err := ctx.Err()
		if err == nil {
			err = s.within(ctx, func() error { return s.attempt(ctx, body) })
		}
		if err == nil || definite(err) {
			return err
		}
		if retries(err, attempt) && pause(ctx) {
			continue
		}
		return s.explain(ctx, name, err)
	}
}

// retries reports whether an operation begins anew after its attempt-th attempt has
// failed with err.
func retries(err error, attempt int) bool {
	switch {
	case errors.As(err, new(*commitError)):
		return false // nobody knows whether it is done
	case sqlerror.BadConnection(err):
		// A pool that cannot connect has tried often enough by itself.
		return attempt < maxAttempts && !errors.As(err, new(*connectError))
	case busy(err):
		return true
	}
	return attempt < maxAttempts && (errors.Is(err, errConflict) || sqlerror.DuplicateKey(err) || sqlerror.Exists(err))
}

// busy reports whether somebody else was in the way.
func busy(err error) bool { return sqlerror.Retryable(err) || sqlerror.LockNotAvailable(err) }

// explain returns the error of an operation that has failed with err.
func (s *Store) explain(ctx context.Context, name string, err error) error {
	switch {
	case errors.As(err, new(*commitError)), sqlerror.BadConnection(err):
	case sqlerror.ReadOnly(err):
		err = fmt.Errorf("%w: %w", ErrReadOnly, err)
	case sqlerror.NoTable(err):
		return s.tableError(ErrNoTable, redact(err).Error())
	case sqlerror.NoColumn(err):
		return s.tableError(ErrSchema, redact(err).Error())
	case sqlerror.Denied(err):
		err = lease.Permanent(err)
	}
	return fmt.Errorf("sqllease: %s: %w", name, redact(withCause(ctx, err)))
}

// grace is how long a driver may take to notice that ctx has ended. One that
// heeds it has given its connection back when the call returns.
const grace = 100 * time.Millisecond

// maxLeft is how many calls of one Store may be under way that nobody waits for any
// more. Each keeps a connection and some goroutines. One would be too few: after a
// failover the calls that hang on old connections must not stop those on new ones.
const maxLeft = 16

// within calls f, and stops waiting for it soon after ctx has ended. Most drivers
// return by themselves then. But lib/pq connects and begins a transaction without ctx.
// If a server is cut off, lib/pq waits until TCP gives up, a quarter of an hour. If the
// server is there and does not answer, it waits for ever. The call that was left ends
// in its own time, and what it does is unknown.
func (s *Store) within(ctx context.Context, f func() error) error {
	if n := s.left.Load(); n >= maxLeft {
		return fmt.Errorf("%d operations before this one still hang in the driver, so it is not tried: the server does not answer", n)
	}
	done, left := make(chan error), make(chan struct{})
	go func() {
		err := f()
		select {
		case done <- err:
		case <-left:
			s.left.Add(-1)
		}
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
	}
	s.left.Add(1)
	close(left)
	return fmt.Errorf("no answer, outcome unknown: %w", ctx.Err())
}

// definite reports whether err was decided here, from what was read. It comes neither
// from the database nor from the way to it. Nothing was written then.
func definite(err error) bool {
	var table *TableError
	return errors.As(err, &table) || errors.Is(err, lease.ErrNoFreeWorker) || errors.Is(err, lease.ErrLost) ||
		errors.Is(err, lease.ErrLayout) || errors.Is(err, lease.ErrClockSkew)
}

// A commitError leaves open whether the transaction is done.
type commitError struct{ err error }

func (e *commitError) Error() string { return "commit, outcome unknown: " + e.err.Error() }
func (e *commitError) Unwrap() error { return e.err }

// A connectError is one of the pool.
type connectError struct{ err error }

func (e *connectError) Error() string { return "connect: " + e.err.Error() }
func (e *connectError) Unwrap() error { return e.err }

// pause waits for a moment and reports whether ctx is still good.
func pause(ctx context.Context) bool {
	if ctx.Err() != nil {
		return false
	}
	timer := time.NewTimer(rand.N(maxPause))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// attempt runs body in a transaction on a connection from the pool, once.
func (s *Store) attempt(ctx context.Context, body func(*transaction) error) error {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		// Without this the operator looks for the fault in the network.
		if pool := s.db.Stats(); ctx.Err() != nil && 0 < pool.MaxOpenConnections && pool.MaxOpenConnections <= pool.InUse {
			err = fmt.Errorf("the pool's %d connections are all in use: %w", pool.InUse, err)
		}
		return &connectError{err}
	}
	t := &transaction{s: s, conn: conn}
	err = t.begin(ctx)
	if err == nil {
		err = body(t)
	}
	err, clean := t.end(ctx, err)
	if !clean {
		// A connection in an unknown state must not be given back to the program.
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	}
	_ = conn.Close() // gives it back; nothing is left that could be lost
	return err
}

func (t *transaction) begin(ctx context.Context) error {
	switch t.s.dialect {
	case PostgreSQL:
		return t.beginPostgreSQL(ctx)
	case MySQL:
		return t.beginMySQL(ctx)
	default:
		return t.beginSQLite(ctx)
	}
}

// end ends the transaction, of which err is the outcome so far, and sets the
// settings back. It returns the outcome, and whether the connection is as it was.
func (t *transaction) end(ctx context.Context, err error) (outcome error, clean bool) {
	switch {
	case t.rollback == nil: // it has not begun
	case err == nil && t.wrote:
		if e := t.commit(); e != nil {
			return &commitError{e}, false
		}
		// PostgreSQL's COMMIT waits for synchronous replicas. A driver that sends a
		// cancel request when ctx ends gets a success although none has answered.
		if e := ctx.Err(); e != nil {
			return &commitError{e}, false
		}
	default:
		if t.rollback() != nil {
			return err, false
		}
	}
	for _, text := range slices.Backward(t.restore) {
		if _, e := t.conn.ExecContext(ctx, text); e != nil {
			return err, false
		}
	}
	return err, !t.dirty
}

// beginTx begins a transaction by the driver. It names the isolation, whatever the
// program has made the default. Serializable would fail more often and gain nothing,
// since each UPDATE compares all that was read.
func (t *transaction) beginTx(ctx context.Context, level sql.IsolationLevel) error {
	tx, err := t.conn.BeginTx(ctx, &sql.TxOptions{Isolation: level})
	if err != nil {
		t.dirty = true // MySQL's driver sets the level by a statement before
		return fmt.Errorf("begin: %w", err)
	}
	t.executor, t.commit, t.rollback = tx, tx.Commit, tx.Rollback
	return nil
}

// remaining returns the time that ctx leaves, at least a millisecond.
func remaining(ctx context.Context) (d time.Duration, limited bool) {
	deadline, limited := ctx.Deadline()
	return max(time.Until(deadline), time.Millisecond), limited
}

// timed calls read, which asks for the store's clock.
func (t *transaction) timed(read func() error) error {
	t.asked = time.Now()
	err := read()
	t.answered = time.Now()
	return err
}

// checkClock is Claim.Check for a claim that began some time ago. The store's clock was
// read at some moment between asked and answered. It is compared with what the
// claimant's clock showed at the moment of these that suits the claim best. So waiting,
// for the pool or for an answer, is no difference between clocks. The claim itself goes
// on with the clock that the claimant read, which is earlier. Under the guard it then
// reserves less, never more.
func (t *transaction) checkClock(c lease.Claim, began time.Time) error {
	earliest := c.Now + lease.Millis(t.asked.Sub(began).Milliseconds())
	latest := c.Now + lease.Millis(t.answered.Sub(began).Milliseconds()) + 1 // rounded up
	c.Now = min(max(t.now, earliest), latest)
	return c.Check(t.now)
}

// exec runs a statement that writes.
func (t *transaction) exec(ctx context.Context, text string, args ...any) error {
	t.wrote = true
	_, err := t.ExecContext(ctx, text, args...)
	return err
}

// each calls f for each row of a query, with a function that scans it.
func (t *transaction) each(ctx context.Context, f func(scan func(...any) error) error, text string, args ...any) error {
	return each(ctx, t.executor, f, text, args...)
}

func each(ctx context.Context, e executor, f func(scan func(...any) error) error, text string, args ...any) error {
	rows, err := e.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // all that matters is in Err
	for rows.Next() {
		if err := f(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// scan reads the one row of a query into dest.
func scan(ctx context.Context, e executor, dest []any, text string, args ...any) error {
	found := false
	err := each(ctx, e, func(scan func(...any) error) error {
		found = true
		return scan(dest...)
	}, text, args...)
	if err == nil && !found {
		err = sql.ErrNoRows
	}
	return err
}

// rows returns the rows that a query finds.
func (t *transaction) rows(ctx context.Context, text string, args ...any) (rows []lease.Row, err error) {
	err = t.each(ctx, func(scan func(...any) error) error {
		var r lease.Row
		err := scan(&r.Worker, &r.Epoch, &r.Owner, &r.Nonce, &r.Until, &r.Renewals, &r.Holder)
		rows = append(rows, r)
		return err
	}, text, args...)
	return rows, err
}

// replace writes row over before, if that is still what is stored.
func (t *transaction) replace(ctx context.Context, s lease.Space, before, row lease.Row) error {
	t.wrote = true
	result, err := t.ExecContext(ctx, t.s.text.update,
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
		return errConflict
	case n != 1:
		return fmt.Errorf("the update of one row affected %d", n)
	}
	return nil
}
