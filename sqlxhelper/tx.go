package sqlxhelper

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
)

// InTx runs fn in a transaction: it begins one with opts (nil for the driver's
// defaults), calls fn, and commits if fn returned nil.
//
// # When fn runs again
//
// fn may run several times, up to ten, and must therefore have no effects but
// those on its transaction, nor collect in variables outside what a run before
// has left there. It runs again only if the run before is rolled back for
// certain: if what fn, the beginning or the commit returned is or wraps a
// serialization failure or a deadlock (PostgreSQL 40001 and 40P01, MySQL and
// MariaDB 1213, 1205 and 1020, SQLite busy), and the rollback succeeded. So an
// error of the database has to be returned at once, wrapped with %w, and not
// swallowed. If it came from a [Helper] and matches [ErrTxBroken], calls of
// Helpers on the transaction fail from then on, and nothing is committed.
// Between two runs InTx waits a random time, of up to 10 ms after the first run
// and up to 1 s after the last ones, and no longer than ctx. Rows that are made
// outside of fn keep their keys and are the same rows in every run; rows that
// are made inside get new ones.
//
// # When the answer to the commit is lost
//
// If the connection breaks while the commit is on its way, or ctx ends then and
// the driver closes the connection, the rows may be stored or not. InTx looks
// for a row whose key a [Helper] has inserted in fn, in a transaction of its own
// on another connection of db, for up to 10 s even if ctx has ended. If it is
// there, the commit has taken place, and InTx returns nil. If it is not, fn runs
// again, provided that ctx has not ended; that run is committed only if its
// Helpers have inserted the very same keys in the same order, which the database
// accepts only while the first rows are not there. In all other cases the error
// matches [ErrCommitUnknown]: if no Helper has inserted anything, if the keys
// are not the same, if the row cannot be looked for. Build the rows outside of
// fn, and a lost answer is no error. If opts says ReadOnly and no Helper has
// inserted anything, there is nothing to find out, and what the commit returned
// is the error.
//
// A Helper's rows count if it was given the *sqlx.Tx of fn, or a type around it
// as [DB] describes, and if they were inserted and not upserted. A row proves the
// commit only if it cannot be there without it, nor be gone in spite of it: fn
// must not delete rows and insert them anew under the same keys, nor delete what
// it has inserted, nor roll the last row of a table back to a savepoint of its
// own.
//
// The run after a lost commit waits where the first transaction is still open in
// the server, as any insert of the same key does, and no longer than the ctx that
// fn passes on.
//
// # Errors
//
// If fn returns an error that does not make it run again, the transaction is
// rolled back and the error returned; an error of the rollback is joined to it.
// After the tenth run the error says so and wraps that of the last one. If fn
// panics, or ends its goroutine as testing's FailNow does, the transaction is
// rolled back, the panic goes on with its own stack, and fn does not run again.
// If ctx ends, database/sql rolls back, and what fn and InTx do next on the
// transaction is an error; the one that InTx returns for its own part matches
// ctx.Err(). An InTx inside of fn has a transaction of its own; when it has given
// up, the one around it does not start over.
//
// fn must not use the transaction after it has returned, nor commit or roll back
// by itself, which on MySQL a statement that changes a table's schema does too.
func InTx(ctx context.Context, db *sqlx.DB, opts *sql.TxOptions, fn func(*sqlx.Tx) error) error {
	if db == nil || db.DB == nil {
		return fmt.Errorf("%w: InTx got a nil *sqlx.DB", ErrDB)
	}
	if fn == nil {
		return fmt.Errorf("%w: InTx got a nil function", ErrArgument)
	}
	return (&attempts{db: db, opts: opts, fn: fn}).run(ctx)
}

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
		return rolledBack, fmt.Errorf("sqlxhelper: begin: %w", err)
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
	// Commit looks at ctx itself before it sends anything, but with the error
	// that it returns then, ctx.Err(), a driver may also report that ctx has
	// ended during the commit. Here it is certain that nothing was sent.
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
	case notCommitted(err):
		o = rolledBack
	default:
		o = inDoubt
	}
	return o, fmt.Errorf("sqlxhelper: commit: %w", withCause(ctx, err))
}

// withCause adds the context's error where database/sql only says that the
// transaction has ended: the rollback that a context starts runs beside the
// statement, and either of them may be first.
func withCause(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil && errors.Is(err, sql.ErrTxDone) && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", err, cause)
	}
	return err
}

const (
	// One name suffices: a savepoint is gone when its call returns, and calls on
	// one transaction do not overlap.
	savepointName = "snowkey_insert"
	// savepointTimeout bounds what runs whether or not the caller's context has
	// ended.
	savepointTimeout = 10 * time.Second
)

// inSavepoint runs fn under a savepoint of tx. If fn fails or panics, tx is as
// if fn had not run, or the error says ErrTxBroken.
//
// Single statements are no exception. PostgreSQL refuses everything after an
// error; in SQLite a constraint can be declared so that it keeps the rows
// before the bad one; and after a deadlock MySQL has rolled back all of the
// transaction, which only the missing savepoint tells.
func inSavepoint(ctx context.Context, tx DB, fn func() error) (err error) {
	r := recordOf(tx)
	if err := r.usable(); err != nil {
		return err // for MySQL would commit by itself what is sent now
	}
	if _, err := tx.ExecContext(ctx, "SAVEPOINT "+savepointName); err != nil {
		err = fmt.Errorf("sqlxhelper: savepoint: %w", withCause(ctx, err))
		// ctx may have ended before anything was sent, or have cost the connection.
		// Only the transaction can tell which.
		if unusable := uninterrupted(ctx, tx, "SAVEPOINT ", "RELEASE SAVEPOINT "); unusable != nil {
			return broken(ctx, r, err, unusable)
		}
		return err
	}
	released := false
	defer func() {
		if released {
			return
		}
		if rollback := uninterrupted(ctx, tx, "ROLLBACK TO SAVEPOINT ", "RELEASE SAVEPOINT "); rollback != nil {
			err = broken(ctx, r, err, rollback)
		}
	}()
	if err := fn(); err != nil {
		return withCause(ctx, err)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("sqlxhelper: release savepoint: %w", err)
	}
	if err := uninterrupted(ctx, tx, "RELEASE SAVEPOINT "); err != nil {
		return fmt.Errorf("sqlxhelper: release savepoint: %w", err)
	}
	released = true
	return nil
}

// uninterrupted sends statements about the savepoint, until one fails. The end
// of ctx does not interrupt them: on PostgreSQL and MySQL that costs the
// connection, and with it the transaction.
func uninterrupted(ctx context.Context, tx DB, statements ...string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), savepointTimeout)
	defer cancel()
	for _, text := range statements {
		if _, err := tx.ExecContext(ctx, text+savepointName); err != nil {
			return err
		}
	}
	return nil
}

// broken adds to the error of a call, which is nil for a panic, that the
// transaction cannot go on and why. It adds the error of ctx too: of a connection
// that was closed for it, drivers say no more than that it is closed.
func broken(ctx context.Context, r *record, err, why error) error {
	r.breaks(err, why)
	err = fmt.Errorf("%w; then %w: %w", err, ErrTxBroken, why)
	if cause := ctx.Err(); cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return err
}
