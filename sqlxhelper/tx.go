package sqlxhelper

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/internal/sqlerror"
	"github.com/snowkey/snowkey/internal/wait"
)

// inTx runs fn once in a transaction of anything that can begin one.
func inTx(ctx context.Context, db beginner, opts *sql.TxOptions, fn func(*sqlx.Tx) error) error {
	_, err := attempt(ctx, db, opts, fn)
	return err
}

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
)

// attempt runs fn once in a transaction. The error is nil if and only if the
// outcome is committed.
func attempt(ctx context.Context, db beginner, opts *sql.TxOptions, fn func(*sqlx.Tx) error) (o outcome, err error) {
	tx, err := db.BeginTxx(ctx, opts)
	if err != nil {
		if takesStatements(ctx, db, err) {
			err = fmt.Errorf("%w: %w", sqlerror.ErrNoTransactions, err)
		}
		return rolledBack, sqlerror.ExplainPooler(fmt.Errorf("sqlxhelper: begin: %w", err))
	}
	committing := false
	defer func() {
		if committing {
			return // a Commit that fails has ended the Tx too
		}
		// No recover: a panic that is caught and thrown again loses its stack,
		// and Goexit cannot be caught at all.
		rollback := tx.Rollback()
		if rollback == nil {
			o = rolledBack
			return
		}
		ended := errors.Is(rollback, sql.ErrTxDone) && ctx.Err() != nil // by database/sql, when ctx ended
		if !ended {
			err = fmt.Errorf("%w; then rollback: %w", err, rollback)
		}
	}()
	if err := fn(tx); err != nil {
		return abandoned, withCause(ctx, err)
	}
	// Commit checks ctx before it sends anything, and returns ctx.Err(). A driver
	// may return the same error when ctx has ended during the commit. Here it is
	// certain that nothing was sent.
	if err := ctx.Err(); err != nil {
		return abandoned, fmt.Errorf("sqlxhelper: commit: %w", err)
	}
	committing = true
	err = tx.Commit()
	switch {
	case err == nil:
		return committed, nil
	case errors.Is(err, sql.ErrTxDone):
		// database/sql sent nothing: it has rolled back because ctx ended, or fn
		// has ended the transaction, which it must not.
		o = abandoned
	case sqlerror.NotCommitted(err):
		o = rolledBack
	default:
		o = inDoubt
	}
	return o, fmt.Errorf("sqlxhelper: commit: %w", withCause(ctx, err))
}

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
	_, err = named.ExecContext(ctx, "SELECT 1")
	return err == nil
}

// withCause adds the error of ctx where a driver or database/sql only says that the
// statement, the transaction or the connection has ended. The rollback that a context
// starts runs beside the statement, and either may be first. Any other error stays as
// it is: it would also have come without the end of ctx.
func withCause(ctx context.Context, err error) error {
	if sqlerror.Interrupted(err) {
		return wait.Cause(ctx, err)
	}
	return err
}
