package outcome

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/standby"
	"github.com/snowkey/snowkey/internal/base/wait"
)

// A Database is where transactions run.
type Database struct {
	// Begin begins a transaction.
	Begin   func(ctx context.Context, opts *sql.TxOptions) (Tx, error)
	Dialect dialect.Dialect // 0: not known
	Cancels Cancels
	// OneConnection: Begin has no other connection for a look, see Pending.
	OneConnection bool
	// Partial: an error of a COMMIT proves nothing.
	Partial bool
	// Package begins the texts of errors.
	Package string
	// Duplicate is the error of the package for a violated unique constraint, which that of a
	// COMMIT also matches. It may be nil.
	Duplicate error
	// BeginFailed explains the error of a BEGIN. It may be nil.
	BeginFailed func(ctx context.Context, err error) error
}

// A Tx is a transaction.
type Tx interface {
	dialect.Executor
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	Commit() error
	Rollback() error
}

// begin begins a transaction.
func (d *Database) begin(ctx context.Context, opts *sql.TxOptions) (Tx, error) {
	return Call(ctx, d.Cancels, func() (Tx, error) { return d.Begin(ctx, opts) }, func(tx Tx) { _ = tx.Rollback() })
}

// commit commits a transaction.
func (d *Database) commit(ctx context.Context, tx Tx) error {
	if d.Cancels == CancelsAll {
		return tx.Commit()
	}
	return Do(ctx, 0, tx.Commit)
}

// rollback rolls back a transaction that has failed with err, and takes no longer than a second
// after ctx. If a call was left behind, the connection is busy with it, and with the rollback
// after it.
func (d *Database) rollback(ctx context.Context, tx Tx, err error) error {
	switch {
	case d.Cancels == CancelsAll:
		return tx.Rollback()
	case errors.Is(err, wait.ErrNoAnswer):
		go func() { _ = tx.Rollback() }()
		return ErrBusy
	}
	longer, cancel := Outlast(ctx)
	defer cancel()
	return Do(longer, 0, tx.Rollback)
}

// Cut reports whether the wait of a commit of d, which took so long, may have been cut off.
func Cut(ctx context.Context, d dialect.Dialect, took time.Duration) bool {
	return dialect.TraitsOf(d).Standby && standby.Cut(ctx, took)
}
