package sqlxhelper

import (
	"context"
	"errors"
	"fmt"

	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/wait"
)

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
func inSavepoint(ctx context.Context, tx DB, heeds heeding, name string, fn func() error) (err error) {
	r := recordOf(tx)
	if err := r.usable(); err != nil {
		return err // for MySQL would commit by itself what is sent now
	}
	uninterrupted := func(err error, statements ...string) error {
		return uninterrupted(ctx, tx, heeds, err, name, statements...)
	}
	if _, err := execute(ctx, heeds, tx, "SAVEPOINT "+name); err != nil {
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
func uninterrupted(ctx context.Context, tx DB, heeds heeding, err error, name string, statements ...string) error {
	if errors.Is(err, wait.ErrNoAnswer) {
		return errBusy
	}
	ctx, cancel := outlast(ctx)
	defer cancel()
	for _, text := range statements {
		if _, err := execute(ctx, heeds, tx, text+name); err != nil {
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
