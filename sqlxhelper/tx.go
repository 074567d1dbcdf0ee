package sqlxhelper

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/wait"
)

// An outcome is what is known about the end of a transaction.
type outcome uint8

const (
	// abandoned: no commit was sent, and none will be, but the rollback usually failed too, and
	// the transaction may stay open for a while.
	abandoned outcome = iota
	// rolledBack: none of it remains, or it was never begun.
	rolledBack
	// committed: all of it is stored.
	committed
	// inDoubt: a commit was sent, or may have been, and was not answered.
	inDoubt
	// lost: a commit was not answered, but the transaction is known to be rolled back.
	lost
)

// A transaction is one attempt to run a function in a transaction.
type transaction struct {
	db      beginner
	dialect *traits // nil: not known
	honors  honoring
	opts    *sql.TxOptions
	partial bool // see WithPartialCommits
	record  record
	note    func(*record) // completes the record if it is needed; or nil
}

// run runs fn in the transaction and finds out what became of it. The error is nil if and only
// if the outcome is committed, and matches [ErrCommitUnknown] if the outcome is inDoubt.
func (t *transaction) run(ctx context.Context, fn func(*sqlx.Tx) error) (outcome, error) {
	o, took, err := t.attempt(ctx, fn)
	cut := o == committed && t.dialect.cut(ctx, took)
	if o != inDoubt && !cut {
		return o, err
	}
	if t.note != nil {
		t.note(&t.record)
	}
	if t.opts != nil && t.opts.ReadOnly && t.record.empty() {
		// The outcome does not matter: no Helper has written in this read-only transaction.
		// Some drivers allow writes there.
		if cut {
			return committed, nil
		}
		return abandoned, err
	}
	d := doubt{db: t.db, dialect: t.dialect, honors: t.honors, xact: t.record.xact, proofs: t.record.proofs(), answered: cut}
	if cut { // committed on this server, and perhaps only there, see package standby
		err = &commitError{fmt.Errorf("answered after %v", took)}
	} else if t.partial {
		return inDoubt, unknown(ctx, err, errPartial, d.proofs)
	}
	o, why := d.settle(ctx)
	switch o {
	case committed:
		return committed, nil
	case inDoubt:
		return inDoubt, unknown(ctx, err, why, d.proofs)
	}
	return lost, err
}

// watched returns fn for run, and records what Helpers insert in it.
func (t *transaction) watched(fn func(*sqlx.Tx) error) func(*sqlx.Tx) error {
	return func(tx *sqlx.Tx) error {
		watched.Store(tx.Tx, &t.record)
		defer watched.Delete(tx.Tx) // also after a panic
		if err := fn(tx); err != nil {
			return err
		}
		return t.record.usable() // fn may have ignored an error
	}
}

// attempt runs fn once in a transaction, and returns how long the commit took. The error is nil
// if and only if the outcome is committed.
func (t *transaction) attempt(ctx context.Context, fn func(*sqlx.Tx) error) (o outcome, took time.Duration, err error) {
	tx, err := begin(ctx, t.honors, t.db, t.opts)
	if err != nil {
		if takesStatements(ctx, t.db, err) {
			err = fmt.Errorf("%w: %w", dialect.ErrNoTransactions, err)
		}
		return rolledBack, 0, dialect.ExplainPooler(fmt.Errorf("sqlxhelper: begin: %w", err))
	}
	committing := false
	defer func() {
		if committing {
			return // a Commit that fails has ended the Tx too
		}
		// There is no recover: a panic that is raised again loses its stack, and Goexit cannot
		// be caught at all.
		failed := rollback(ctx, t.honors, tx, err)
		if failed == nil {
			o = rolledBack
			return
		}
		done := errors.Is(failed, sql.ErrTxDone) && ctx.Err() != nil // by database/sql, when ctx ended
		if !done {
			err = fmt.Errorf("%w; then rollback: %w", err, failed)
		}
	}()
	if err := fn(tx); err != nil {
		return abandoned, 0, withCause(ctx, err)
	}
	// Commit checks ctx before it sends anything, and returns ctx.Err(), which a driver may
	// also return if ctx ends during the commit. Here nothing was sent.
	if err := ctx.Err(); err != nil {
		return abandoned, 0, fmt.Errorf("sqlxhelper: commit: %w", err)
	}
	committing = true
	began := time.Now()
	err = commit(ctx, t.honors, tx)
	switch {
	case err == nil:
		return committed, time.Since(began), nil
	case errors.Is(err, sql.ErrTxDone):
		// database/sql sent nothing: it has rolled back because ctx ended, or fn has ended the
		// transaction itself.
		o = abandoned
	case dialect.NotCommitted(err) && !t.partial:
		o = rolledBack
	default:
		o = inDoubt
	}
	return o, 0, &commitError{withCause(ctx, err)}
}

// A commitError is the error of a COMMIT.
type commitError struct{ err error }

func (e *commitError) Error() string { return "sqlxhelper: commit: " + e.err.Error() }
func (e *commitError) Unwrap() error { return e.err }

// Is matches [ErrDuplicateKey] for a unique constraint that is checked at COMMIT.
func (e *commitError) Is(target error) bool {
	return target == ErrDuplicateKey && dialect.DuplicateKey(e.err)
}

// atCommit reports whether err comes from the COMMIT of a transaction.
func atCommit(err error) bool {
	return errors.As(err, new(*commitError)) || errors.As(err, new(*UnknownError))
}

// undone runs fn in a transaction that is rolled back.
func undone(ctx context.Context, c conn, fn func(*sqlx.Tx)) {
	t := transaction{db: c.pool, honors: c.honors}
	_, _, _ = t.attempt(ctx, func(tx *sqlx.Tx) error { fn(tx); return errUndo })
}

// errUndo has a transaction or savepoint rolled back.
var errUndo = errors.New("undo")

// takesStatements reports whether db still accepts statements after err, the error of a BEGIN.
// PgBouncer in statement mode ends the connection and gives a reason, which lib/pq keeps to
// itself; by then database/sql has tried other connections.
func takesStatements(ctx context.Context, db beginner, err error) bool {
	named, ok := db.(interface {
		sqlx.ExecerContext
		DriverName() string
	})
	if !ok || named.DriverName() != "postgres" || !errors.Is(err, driver.ErrBadConn) {
		return false
	}
	_, err = execute(ctx, 0, named, "SELECT 1")
	return err == nil
}

// withCause adds the error of ctx where a driver or database/sql only reports that the
// statement, the transaction or the connection has ended: a context starts a rollback beside
// the statement, and either may be first. Other errors are independent of ctx and stay
// unchanged.
func withCause(ctx context.Context, err error) error {
	if dialect.Interrupted(err) {
		return wait.Cause(ctx, err)
	}
	return err
}

const (
	// One name is enough for calls: a savepoint is gone when its call returns, and calls on one
	// transaction do not overlap. The savepoint of a sequence encloses its calls.
	savepointName     = "snowkey_insert"
	sequenceSavepoint = "snowkey_sequence"
)

// inSavepoint runs fn under a savepoint of tx with this name. If fn fails or panics, tx is as
// if fn had not run, or the error matches ErrTxBroken.
//
// Single statements are no exception. After an error PostgreSQL refuses everything else, a
// constraint of SQLite may have kept the rows before the bad one, and after a deadlock MySQL
// has rolled back the whole transaction, which only the missing savepoint shows.
func inSavepoint(ctx context.Context, tx DB, honors honoring, name string, fn func() error) (err error) {
	r := recordOf(tx)
	if err := r.usable(); err != nil {
		return err // MySQL would commit by itself what is sent now
	}
	uninterrupted := func(err error, statements ...string) error {
		return uninterrupted(ctx, tx, honors, err, name, statements...)
	}
	if _, err := execute(ctx, honors, tx, "SAVEPOINT "+name); err != nil {
		err = fmt.Errorf("sqlxhelper: savepoint: %w", explainUnread(ctx, withCause(ctx, err)))
		// ctx may have ended before anything was sent, or its end may have cost the connection.
		// Only the transaction can tell.
		if unusable := uninterrupted(err, "SAVEPOINT ", "RELEASE SAVEPOINT "); unusable != nil {
			return broken(ctx, r, err, unusable)
		}
		return err
	}
	released := false
	defer func() {
		if released {
			return
		}
		if rollback := uninterrupted(err, "ROLLBACK TO SAVEPOINT ", "RELEASE SAVEPOINT "); rollback != nil {
			err = broken(ctx, r, err, rollback)
		}
	}()
	if err := fn(); err != nil {
		return withCause(ctx, err)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("sqlxhelper: release savepoint: %w", err)
	}
	if err := uninterrupted(nil, "RELEASE SAVEPOINT "); err != nil {
		return fmt.Errorf("sqlxhelper: release savepoint: %w", err)
	}
	released = true
	return nil
}

// explainUnread adds another possible reason to an error of the first statement of a call, for
// which drivers say "bad connection" or "busy".
func explainUnread(ctx context.Context, err error) error {
	if ctx.Err() == nil && dialect.Unread(err) {
		return fmt.Errorf("%w; if a query of this transaction has unread rows, such as those that a sequence yields, read all of them first, or on another connection", err)
	}
	return err
}

// uninterrupted sends statements about the savepoint, until one fails, after a call that has
// failed with err. The end of ctx interrupts them only a second later, because on PostgreSQL
// and MySQL that costs the connection and with it the transaction.
func uninterrupted(ctx context.Context, tx DB, honors honoring, err error, name string, statements ...string) error {
	if errors.Is(err, wait.ErrNoAnswer) {
		return errBusy
	}
	ctx, cancel := outlast(ctx)
	defer cancel()
	for _, text := range statements {
		if _, err := execute(ctx, honors, tx, text+name); err != nil {
			return err
		}
	}
	return nil
}

// broken adds to the error of a call, nil after a panic, that the transaction cannot go on, and
// why. It adds the error of ctx because drivers report only that a connection is closed.
func broken(ctx context.Context, r *record, err, why error) error {
	r.breaks(err, why)
	return wait.Cause(ctx, fmt.Errorf("%w; then %w: %w", err, ErrTxBroken, why))
}
