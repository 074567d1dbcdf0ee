package sqlxhelper

import (
	"context"
	"errors"
	"fmt"

	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/outcome"
	"github.com/snowkey/snowkey/internal/base/wait"
)

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
func inSavepoint(ctx context.Context, tx DB, cancels outcome.Cancels, name string, fn func() error) (err error) {
	r := recordOf(tx)
	if err := usable(r); err != nil {
		return err // MySQL would commit by itself what is sent now
	}
	uninterrupted := func(err error, statements ...string) error {
		return uninterrupted(ctx, tx, cancels, err, name, statements...)
	}
	if _, err := outcome.Exec(ctx, cancels, tx, "SAVEPOINT "+name); err != nil {
		err = fmt.Errorf("sqlxhelper: savepoint: %w", explainUnread(ctx, outcome.WithCause(ctx, err)))
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
		return outcome.WithCause(ctx, err)
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
func uninterrupted(ctx context.Context, tx DB, cancels outcome.Cancels, err error, name string, statements ...string) error {
	if errors.Is(err, wait.ErrNoAnswer) {
		return outcome.ErrBusy
	}
	ctx, cancel := outcome.Outlast(ctx)
	defer cancel()
	for _, text := range statements {
		if _, err := outcome.Exec(ctx, cancels, tx, text+name); err != nil {
			return err
		}
	}
	return nil
}

// broken adds to the error of a call, nil after a panic, that the transaction cannot go on, and
// why. It adds the error of ctx because drivers report only that a connection is closed.
func broken(ctx context.Context, r *outcome.Record, err, why error) error {
	r.Break(err, why)
	return wait.Cause(ctx, fmt.Errorf("%w; then %w: %w", err, ErrTxBroken, why))
}

// usable returns ErrTxBroken after a call that has broken the transaction of r, which may be nil.
// It does not wrap the cause, because only the call that met it decides whether the function runs
// again.
func usable(r *outcome.Record) error {
	if why := r.Broken(); why != nil {
		return fmt.Errorf("%w: a call before this has failed: %s", ErrTxBroken, why.Error())
	}
	return nil
}
