package outcome

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/snowkey/snowkey/internal/base/dialect"
)

// An End is what is known about the end of a transaction.
type End uint8

const (
	// Abandoned: no commit was sent, and none will be, but the rollback usually failed too, and
	// the transaction may stay open for a while.
	Abandoned End = iota
	// RolledBack: none of it remains, or it was never begun.
	RolledBack
	// Committed: all of it is stored.
	Committed
	// InDoubt: a commit was sent, or may have been, and was not answered.
	InDoubt
	// Lost: a commit was not answered, but the transaction is known to be rolled back.
	Lost
)

// A Transaction is one attempt to run a function in a transaction.
type Transaction struct {
	*Database
	Opts   *sql.TxOptions
	Record Record
	Note   func(*Record) // completes the Record if it is needed; or nil
}

// Run runs fn in the transaction and finds out what became of it. The error is nil if and only
// if the outcome is Committed, and matches [ErrCommitUnknown] if the outcome is InDoubt.
func (t *Transaction) Run(ctx context.Context, fn func(Tx) error) (End, error) {
	o, took, err := t.attempt(ctx, fn)
	cut := o == Committed && Cut(ctx, t.Dialect, took)
	if o != InDoubt && !cut {
		return o, err
	}
	if t.Note != nil {
		t.Note(&t.Record)
	}
	if t.Opts != nil && t.Opts.ReadOnly && t.Record.empty() {
		// The outcome does not matter: nothing is noted in this read-only transaction. Some
		// drivers allow writes there.
		if cut {
			return Committed, nil
		}
		return Abandoned, err
	}
	if dialect.EndedBefore(err) { // a row proves nothing of those before it
		return InDoubt, t.Unknown(ctx, err, errEnded, nil)
	}
	p := t.pending(&t.Record)
	p.Answered = cut
	if cut { // committed on this server, and perhaps only there, see package standby
		err = &commitError{fmt.Errorf("answered after %v", took), t.Database}
	} else if t.Partial {
		return InDoubt, t.Unknown(ctx, err, errPartial, p.Proofs)
	}
	o, why := p.Settle(ctx)
	switch o {
	case Committed:
		return Committed, nil
	case InDoubt:
		return InDoubt, t.Unknown(ctx, err, why, p.Proofs)
	}
	return Lost, err
}

// pending returns the transaction of r, whose COMMIT was not answered.
func (d *Database) pending(r *Record) Pending {
	return Pending{Database: d, Xact: r.xact, Proofs: r.Proofs()}
}

// attempt runs fn once in a transaction, and returns how long the commit took. The error is nil
// if and only if the outcome is Committed.
func (t *Transaction) attempt(ctx context.Context, fn func(Tx) error) (o End, took time.Duration, err error) {
	tx, err := t.begin(ctx, t.Opts)
	if err != nil {
		if t.BeginFailed != nil {
			err = t.BeginFailed(ctx, err)
		}
		return RolledBack, 0, dialect.ExplainPooler(fmt.Errorf("%s: begin: %w", t.Package, err))
	}
	committing := false
	defer func() {
		if committing {
			return // a Commit that fails has ended the Tx too
		}
		// There is no recover: a panic that is raised again loses its stack, and Goexit cannot
		// be caught at all.
		failed := t.rollback(ctx, tx, err)
		if failed == nil {
			o = RolledBack
			return
		}
		done := errors.Is(failed, sql.ErrTxDone) && ctx.Err() != nil // by database/sql, when ctx ended
		if !done {
			err = fmt.Errorf("%w; then rollback: %w", err, failed)
		}
	}()
	if err := fn(tx); err != nil {
		return Abandoned, 0, WithCause(ctx, err)
	}
	// Commit checks ctx before it sends anything, and returns ctx.Err(), which a driver may
	// also return if ctx ends during the commit. Here nothing was sent.
	if err := ctx.Err(); err != nil {
		return Abandoned, 0, fmt.Errorf("%s: commit: %w", t.Package, err)
	}
	committing = true
	began := time.Now()
	err = t.commit(ctx, tx)
	switch {
	case err == nil:
		return Committed, time.Since(began), nil
	case errors.Is(err, sql.ErrTxDone):
		// database/sql sent nothing: it has rolled back because ctx ended, or fn has ended the
		// transaction itself.
		o = Abandoned
	case dialect.NotCommitted(err) && !t.Partial:
		o = RolledBack
	default:
		o = InDoubt
	}
	return o, 0, &commitError{WithCause(ctx, err), t.Database}
}
