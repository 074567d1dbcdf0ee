package sqlxhelper

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/internal/base/wait"
)

// grace is how much longer than its context a call may take to clean up and to find out what
// became of it. A server that is up answers a few questions in that time.
const grace = time.Second

// outlast returns a context that ends a second after ctx.
func outlast(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Done() == nil {
		return ctx, func() {}
	}
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })
	return longer, func() { stop(); cancel() }
}

// errBusy says why a connection takes no statement.
var errBusy = errors.New("the connection still waits for an answer")

// calls has no limit of its own, because each call that hangs keeps a connection of the pool.
var calls = wait.Calls{Max: math.MaxInt32}

// Honoring says which calls of a driver end with their context, as all should. The zero value
// is that none is known to.
type honoring uint8

const (
	// honorsStatements: all but COMMIT and ROLLBACK, in which MySQL's driver waits on.
	honorsStatements honoring = iota + 1
	// honorsAll: all. SQLite has no server to wait for.
	honorsAll
)

// honoringOf returns which calls of a handle's driver end with their context. In all calls of
// lib/pq a server that does not answer is waited for until TCP gives up, or forever.
func honoringOf(db interface{ DriverName() string }, d *traits) honoring {
	if d != nil && d.Dialect == SQLite {
		return honorsAll
	}
	switch db.DriverName() {
	case "pgx", "pgx/v4", "pgx/v5", "sqlite3", "sqlite":
		return honorsAll
	case "mysql":
		return honorsStatements
	}
	return 0
}

// answered calls f, which waits for a server, and stops waiting soon after ctx has ended.
//
// A call that is left behind keeps its goroutine and its connection until it ends, and must not
// write to memory of the caller. It may read its arguments, which a driver has encoded before
// it waits. If the call succeeds after all, late gets what it has opened.
//
// Where the driver honors ctx, f is called directly, because a goroutine takes some
// microseconds.
func answered[T any](ctx context.Context, h honoring, f func() (T, error), late func(T)) (T, error) {
	if h >= honorsStatements || ctx.Done() == nil {
		return f()
	}
	return wait.Call(ctx, &calls, f, late)
}

// execute runs a statement.
func execute(ctx context.Context, h honoring, db sqlx.ExecerContext, text string, args ...any) (sql.Result, error) {
	if h >= honorsStatements {
		return db.ExecContext(ctx, text, args...)
	}
	return answered(ctx, h, func() (sql.Result, error) { return db.ExecContext(ctx, text, args...) }, nil)
}

// begin begins a transaction.
func begin(ctx context.Context, h honoring, db beginner, opts *sql.TxOptions) (*sqlx.Tx, error) {
	if h >= honorsStatements {
		return db.BeginTxx(ctx, opts)
	}
	return answered(ctx, h, func() (*sqlx.Tx, error) { return db.BeginTxx(ctx, opts) }, func(tx *sqlx.Tx) { _ = tx.Rollback() })
}

// commit commits a transaction.
func commit(ctx context.Context, h honoring, tx *sqlx.Tx) error {
	if h == honorsAll || ctx.Done() == nil {
		return tx.Commit()
	}
	return done(ctx, 0, tx.Commit)
}

// rollback rolls back a transaction that has failed with err, and takes no longer than a second
// after ctx. If a call was left behind, the connection is busy with it, and with the rollback
// after it.
func rollback(ctx context.Context, h honoring, tx *sqlx.Tx, err error) error {
	switch {
	case h == honorsAll || ctx.Done() == nil:
		return tx.Rollback()
	case errors.Is(err, wait.ErrNoAnswer):
		go func() { _ = tx.Rollback() }()
		return errBusy
	}
	longer, cancel := outlast(ctx)
	defer cancel()
	return done(longer, 0, tx.Rollback)
}

// each calls scan for each row of a query. It reads to the end of the rows because MySQL's
// driver honors ctx while it reads rows, but not while it closes them and skips the rest.
func each(ctx context.Context, db queryer, scan func(*sql.Rows) error, text string, args ...any) error {
	rows, err := db.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // if scan fails
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// A queryer is a pool, a connection or a transaction.
type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// scalar reads the only row of a query with one column.
func scalar(ctx context.Context, db queryer, dest any, text string, args ...any) error {
	found := false
	err := each(ctx, db, func(rows *sql.Rows) error {
		found = true
		return rows.Scan(dest)
	}, text, args...)
	if err == nil && !found {
		err = sql.ErrNoRows
	}
	return err
}

// done calls f, which returns only an error.
func done(ctx context.Context, h honoring, f func() error) error {
	if h >= honorsStatements {
		return f()
	}
	_, err := answered(ctx, h, func() (struct{}, error) { return struct{}{}, f() }, nil)
	return err
}
