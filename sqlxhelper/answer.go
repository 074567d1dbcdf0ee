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

// grace is how much longer than its context a call may take to clean up, and to find out
// what has become of it. A server that is there answers a few questions in that time.
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

// errBusy is why a connection takes no statement.
var errBusy = errors.New("the connection still waits for an answer")

// calls have no limit of their own. The pool has one: each call that hangs keeps a
// connection.
var calls = wait.Calls{Max: math.MaxInt32}

// A honoring is which calls of a driver end with their contexts, as all should. The zero
// value is that none is known to.
type honoring uint8

const (
	// honorsStatements: COMMIT and ROLLBACK do not, in which MySQL's driver waits on.
	honorsStatements honoring = iota + 1
	// honorsAll: all do. SQLite has no server to wait for.
	honorsAll
)

// honoringOf returns what the driver of a handle honors. lib/pq waits on in each of its calls
// if the server does not answer, until TCP gives up or for ever.
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
// A call that is left keeps its goroutine and its connection until it ends. It must write
// to nothing that the caller has. That its arguments may change does no harm: a driver has
// encoded them before it waits for the answer. If it succeeds after all, late gets what it
// has opened.
//
// Where the driver does heed ctx, f is called here. A goroutine takes some microseconds.
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

// rollback rolls a transaction back, which has failed with err. It takes no longer than a
// second after ctx. If a call was left, its connection is busy with that, and with the
// rollback after it.
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

// scalar reads the only row of a query, of one column. It reads on until there is no other:
// MySQL's driver honors ctx while it reads rows, but not while it closes them and skips
// those that are left.
func scalar(ctx context.Context, db statementer, dest any, text string, args ...any) error {
	rows, err := db.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // where Scan has failed
	err = sql.ErrNoRows
	for rows.Next() {
		if err = rows.Scan(dest); err != nil {
			return err
		}
	}
	if failed := rows.Err(); failed != nil {
		return failed
	}
	return err
}

// done calls f, whose error is all that it returns.
func done(ctx context.Context, h honoring, f func() error) error {
	if h >= honorsStatements {
		return f()
	}
	_, err := answered(ctx, h, func() (struct{}, error) { return struct{}{}, f() }, nil)
	return err
}
