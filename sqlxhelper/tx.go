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

// An outcome is what is known of a transaction that was tried.
type outcome uint8

const (
	// abandoned: no commit was sent, and none will be, but it is not certain that
	// nothing remains. As a rule the rollback failed, and the transaction may be
	// open for a while.
	abandoned outcome = iota
	// rolledBack: none of it remains. Or it was not even begun.
	rolledBack
	// committed: all of it is stored.
	committed
	// inDoubt: a commit was sent, or may have been, and its answer is missing.
	inDoubt
	// lost: the answer to a commit is missing, and yet it is known that none of it remains.
	lost
)

// A transaction is one attempt at it.
type transaction struct {
	db      beginner
	dialect *traits // nil: not known
	honors  honoring
	opts    *sql.TxOptions
	partial bool // see WithPartialCommits
	record  record
	note    func(*record) // completes the record, if it is needed, or is nil
}

// run runs fn in the transaction, and finds out what has become of it. The error is nil if
// and only if the outcome is committed. It matches [ErrCommitUnknown] if that is inDoubt.
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
		// It does not matter whether it is committed. It was to read only, and no helper
		// has written. Some drivers allow writes there.
		if cut {
			return committed, nil
		}
		return abandoned, err
	}
	d := doubt{db: t.db, dialect: t.dialect, honors: t.honors, proofs: t.record.proofs(), answered: cut}
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

// watched returns fn for run, with what helpers insert in it noted.
func (t *transaction) watched(fn func(*sqlx.Tx) error) func(*sqlx.Tx) error {
	return func(tx *sqlx.Tx) error {
		watched.Store(tx.Tx, &t.record)
		defer watched.Delete(tx.Tx) // also after a panic
		if err := fn(tx); err != nil {
			return err
		}
		return t.record.usable() // or fn has swallowed an error, and rows with it
	}
}

// attempt runs fn once in a transaction. It returns how long the commit took. The error is
// nil if and only if the outcome is committed.
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
		// No recover: a panic that is caught and thrown again loses its stack,
		// and Goexit cannot be caught at all.
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
	// Commit checks ctx before it sends anything, and returns ctx.Err(). A driver
	// may return the same error when ctx has ended during the commit. Here it is
	// certain that nothing was sent.
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
		// database/sql sent nothing: it has rolled back because ctx ended, or fn
		// has ended the transaction, which it must not.
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

// Is matches [ErrDuplicateKey], for a unique constraint that is checked at COMMIT.
func (e *commitError) Is(target error) bool {
	return target == ErrDuplicateKey && dialect.DuplicateKey(e.err)
}

// atCommit reports whether a transaction has failed with err at its COMMIT.
func atCommit(err error) bool {
	return errors.As(err, new(*commitError)) || errors.As(err, new(*UnknownError))
}

// undone runs fn in a transaction that is rolled back.
func undone(ctx context.Context, c conn, fn func(*sqlx.Tx)) {
	t := transaction{db: c.pool, honors: c.honors}
	_, _, _ = t.attempt(ctx, func(tx *sqlx.Tx) error { fn(tx); return errUndo })
}

// errUndo undoes what was sent.
var errUndo = errors.New("undo")

// takesStatements reports whether db still takes statements after err, the error of a
// BEGIN. PgBouncer in statement mode ends the connection with a reason. lib/pq keeps
// the reason to itself, and database/sql has tried other connections by then.
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

// withCause adds the error of ctx where a driver or database/sql only says that the
// statement, the transaction or the connection has ended. The rollback that a context
// starts runs beside the statement, and either may be first. Any other error stays as
// it is: it would also have come without the end of ctx.
func withCause(ctx context.Context, err error) error {
	if dialect.Interrupted(err) {
		return wait.Cause(ctx, err)
	}
	return err
}

const (
	// One name suffices for calls: a savepoint is gone when its call returns, and calls
	// on one transaction do not overlap. A sequence is around its calls.
	savepointName     = "snowkey_insert"
	sequenceSavepoint = "snowkey_sequence"
)

// inSavepoint runs fn under a savepoint of tx with this name. If fn fails or panics, tx is as
// if fn had not run, or the error says ErrTxBroken.
//
// Single statements are no exception. PostgreSQL refuses everything after an error.
// A constraint of SQLite can keep the rows before the bad one. After a deadlock
// MySQL has rolled back the whole transaction. Only the missing savepoint shows
// that.
func inSavepoint(ctx context.Context, tx DB, honors honoring, name string, fn func() error) (err error) {
	r := recordOf(tx)
	if err := r.usable(); err != nil {
		return err // for MySQL would commit by itself what is sent now
	}
	uninterrupted := func(err error, statements ...string) error {
		return uninterrupted(ctx, tx, honors, err, name, statements...)
	}
	if _, err := execute(ctx, honors, tx, "SAVEPOINT "+name); err != nil {
		err = fmt.Errorf("sqlxhelper: savepoint: %w", explainUnread(ctx, withCause(ctx, err)))
		// ctx may have ended before anything was sent, or have cost the connection.
		// Only the transaction can tell which.
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

// explainUnread says what else than a lost connection may be the reason for an error of the
// first statement of a call. Drivers say "bad connection" or "busy".
func explainUnread(ctx context.Context, err error) error {
	if ctx.Err() == nil && dialect.Unread(err) {
		return fmt.Errorf("%w; if a query of this transaction has unread rows, such as those that a sequence yields, read all of them first, or on another connection", err)
	}
	return err
}

// uninterrupted sends statements about the savepoint after a call that has failed with
// err, until one fails. The end of ctx interrupts them only a second later: on PostgreSQL
// and MySQL that costs the connection, and with it the transaction.
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

// broken adds to the error of a call that the transaction cannot go on, and why.
// err is nil for a panic. It adds the error of ctx too. If a connection was closed
// because of ctx, drivers say only that it is closed.
func broken(ctx context.Context, r *record, err, why error) error {
	r.breaks(err, why)
	return wait.Cause(ctx, fmt.Errorf("%w; then %w: %w", err, ErrTxBroken, why))
}
