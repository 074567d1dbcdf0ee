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
// If fn returns an error, the transaction is rolled back and the error
// returned; an error of the rollback is joined to it. If fn panics, or ends its
// goroutine as testing's FailNow does, the transaction is rolled back and the
// panic goes on with its own stack. If ctx ends, database/sql rolls back, and
// what fn and InTx do next on the transaction is an error; the one that InTx
// returns for its own part matches ctx.Err().
//
// fn runs once. An error of the commit leaves open whether the rows are stored:
// the connection may have broken on the way back. fn must not use the
// transaction after it has returned, nor commit or roll back by itself.
func InTx(ctx context.Context, db *sqlx.DB, opts *sql.TxOptions, fn func(*sqlx.Tx) error) error {
	if db == nil || db.DB == nil {
		return fmt.Errorf("%w: InTx got a nil *sqlx.DB", ErrDB)
	}
	if fn == nil {
		return fmt.Errorf("%w: InTx got a nil function", ErrArgument)
	}
	return inTx(ctx, db, opts, fn)
}

// inTx is InTx for all that can begin a transaction.
func inTx(ctx context.Context, db beginner, opts *sql.TxOptions, fn func(*sqlx.Tx) error) (err error) {
	tx, err := db.BeginTxx(ctx, opts)
	if err != nil {
		return fmt.Errorf("sqlxhelper: begin: %w", err)
	}
	committing := false
	defer func() {
		if committing {
			return // a Commit that fails has ended the Tx too
		}
		// No recover: a panic that is caught and thrown again loses its stack,
		// and Goexit cannot be caught at all.
		rollback := tx.Rollback()
		ended := errors.Is(rollback, sql.ErrTxDone) && ctx.Err() != nil // by database/sql, when ctx ended
		if rollback != nil && !ended {
			err = fmt.Errorf("%w; then rollback: %w", err, rollback)
		}
	}()
	if err := fn(tx); err != nil {
		return withCause(ctx, err)
	}
	committing = true
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("sqlxhelper: commit: %w", withCause(ctx, err))
	}
	return nil
}

// withCause adds the context's error where database/sql only says that the
// transaction has ended: the rollback that a context starts runs beside the
// statement, and either of them may be first.
func withCause(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil && errors.Is(err, sql.ErrTxDone) && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

const (
	// One name suffices: a savepoint is gone when its call returns, and calls on
	// one transaction do not overlap.
	savepointName = "snowkey_insert"
	// rollbackTimeout bounds what runs after the caller's context has ended.
	rollbackTimeout = 10 * time.Second
)

// inSavepoint runs fn under a savepoint of tx. If fn fails or panics, tx is as
// if fn had not run, or the error says ErrTxBroken.
//
// Single statements are no exception. PostgreSQL refuses everything after an
// error; in SQLite a constraint can be declared so that it keeps the rows
// before the bad one; and after a deadlock MySQL has rolled back all of the
// transaction, which only the missing savepoint tells.
func inSavepoint(ctx context.Context, tx DB, fn func() error) (err error) {
	if _, err := tx.ExecContext(ctx, "SAVEPOINT "+savepointName); err != nil {
		return fmt.Errorf("sqlxhelper: savepoint: %w", withCause(ctx, err))
	}
	released := false
	defer func() {
		if released {
			return
		}
		// Of two contexts only the caller's may have ended, and the rows have to
		// go all the same.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
		defer cancel()
		_, rollback := tx.ExecContext(ctx, "ROLLBACK TO SAVEPOINT "+savepointName)
		if rollback == nil {
			_, rollback = tx.ExecContext(ctx, "RELEASE SAVEPOINT "+savepointName)
		}
		if rollback != nil {
			err = fmt.Errorf("%w; then %w: %w", err, ErrTxBroken, rollback)
		}
	}()
	if err := fn(); err != nil {
		return withCause(ctx, err)
	}
	if _, err := tx.ExecContext(ctx, "RELEASE SAVEPOINT "+savepointName); err != nil {
		return fmt.Errorf("sqlxhelper: release savepoint: %w", withCause(ctx, err))
	}
	released = true
	return nil
}
