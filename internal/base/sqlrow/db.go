package sqlrow

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/wait"
)

const (
	// maxAttempts bounds how often a transaction begins anew after a conflict or on a broken
	// connection. Every attempt on a broken connection closes it. Waiting for a lock is bounded
	// by ctx alone.
	maxAttempts = 100

	// doubts is how many attempts may fail before a connection has to prove itself by a
	// statement before the transaction begins. A failed attempt proves little, because every
	// connection that the server ended while it was idle takes one.
	doubts = 2

	// maxPause is the longest pause between two attempts. The length of a pause is random, so
	// that two transactions do not collide again and again.
	maxPause = 20 * time.Millisecond

	// maxHang is how many calls of a DB may hang, each with a connection and some goroutines.
	// One would be too few, because after a failover the calls that hang on old connections
	// must not stop those on new ones.
	maxHang = 16
)

// A Config says what the transactions of a DB need. Every field but AllowFUSE must be set.
type Config struct {
	Dialect dialect.Dialect

	// Table is a table that they write, accepted by [CheckTable]. On SQLite it determines the
	// file.
	Table string

	// AllowFUSE permits a SQLite file on FUSE.
	AllowFUSE bool

	// Verdict reports whether a body has concluded an error from the rows. Do returns such an
	// error unwrapped.
	Verdict func(error) bool

	// Warn is called once if the server may forget what it has acknowledged, and once if the
	// SQLite file may be lost. args are pairs for slog. It may be called from any goroutine.
	Warn func(ctx context.Context, risk string, args ...any)

	// Now is the clock of a SQLite database, which has none of its own.
	Now func() time.Time
}

// A DB runs transactions on connections from a pool. It is safe for concurrent use.
type DB struct {
	pool   *sql.DB
	config Config
	file   databaseFile // of SQLite
	calls  wait.Calls
	server sync.Once   // its warning
	pooled atomic.Bool // a pooler has mixed up the statements of a look
	tidb   atomic.Bool // the server is TiDB
}

// New returns a DB on a pool. It does no I/O, and the pool remains the caller's.
func New(pool *sql.DB, c Config) *DB {
	suits := func(path string) (string, error) { return suitableFile(path, c.AllowFUSE) }
	return &DB{pool: pool, config: c, file: databaseFile{suits: suits, warn: c.Warn}, calls: wait.Calls{Max: maxHang}}
}

// Single reports whether the whole program has a single connection. The program may change that
// at any time.
func (d *DB) Single() bool { return d.pool.Stats().MaxOpenConnections == 1 }

// Do runs body in a transaction until an attempt succeeds, and returns its result. The
// transaction is committed if body has written and returned nil, and rolled back otherwise.
// After an error the result is the zero value.
//
// A verdict of body is returned unwrapped. The other errors are [ErrCommit],
// [wait.ErrNoAnswer], [ErrReadOnly], [ErrNotDurable], [ErrReplaced], and those of body, driver
// and pool. They contain no password, and match the error of ctx if it has ended.
func Do[T any](ctx context.Context, d *DB, body func(*Tx) (T, error)) (T, error) {
	return run(ctx, d, (*Tx).begin, body)
}

// run calls body between begin and its end until an attempt succeeds.
func run[T any](ctx context.Context, d *DB, begin func(*Tx, context.Context) error, body func(*Tx) (T, error)) (T, error) {
	for attempt := 1; ; attempt++ {
		// Most drivers return when ctx ends, but lib/pq connects and begins a transaction
		// without ctx. It waits until TCP gives up, a quarter of an hour, for a server that is
		// cut off, and forever for one that does not answer.
		result, err := wait.Call(ctx, &d.calls, func() (result T, err error) {
			err = d.attempt(ctx, attempt > doubts, begin, func(t *Tx) (err error) {
				result, err = body(t)
				return err
			})
			return result, err
		}, nil)
		if err == nil {
			return result, nil
		}
		if dialect.LostStatement(err) && d.config.Dialect == dialect.PostgreSQL && attempt <= doubts && !errors.Is(err, ErrCommit) {
			d.pooled.Store(true)
			continue // in a transaction, whose statements a pooler keeps together
		}
		if !retries(err, attempt) || !pause(ctx) {
			var none T
			return none, d.explain(ctx, err)
		}
	}
}

// retries reports whether a transaction begins anew after its attempt-th attempt has failed
// with err.
func retries(err error, attempt int) bool {
	switch {
	case errors.Is(err, ErrCommit):
		return false // the outcome is unknown
	case dialect.NoTransactions(err):
		return false // another connection leads to the same pooler
	case dialect.BadConnection(err):
		// A pool that cannot connect has already retried by itself.
		return attempt < maxAttempts && !errors.Is(err, errConnect)
	case busy(err):
		return true
	}
	return attempt < maxAttempts && (errors.Is(err, ErrConflict) || dialect.DuplicateKey(err) || dialect.Exists(err))
}

// busy reports whether err means a conflict with another transaction.
func busy(err error) bool {
	return dialect.Retryable(err) || dialect.LockNotAvailable(err) || errors.Is(err, errLocked)
}

// pause waits for a moment and reports whether ctx is still live.
func pause(ctx context.Context) bool { return wait.Sleep(ctx, rand.N(maxPause)) == nil }

// explain returns the error of a transaction that has failed with err.
func (d *DB) explain(ctx context.Context, err error) error {
	if d.config.Verdict(err) {
		return err
	}
	if dialect.ReadOnly(err) && !errors.Is(err, ErrCommit) && !dialect.BadConnection(err) {
		err = fmt.Errorf("%w: %w", ErrReadOnly, err)
	}
	// Without this hint the operator looks for another process.
	if d.config.Dialect == dialect.SQLite && ctx.Err() != nil && busy(err) && !errors.Is(err, errLocked) {
		err = fmt.Errorf("another connection has the write lock of the file, perhaps the caller's (use a file of its own): %w", err)
	}
	return redact(dialect.ExplainPooler(wait.Cause(ctx, err)))
}

// warnOfServer warns once that the server may forget what it acknowledges.
func (d *DB) warnOfServer(ctx context.Context, setting, value, want string) {
	d.server.Do(func() {
		d.config.Warn(ctx, "a crash of the database server may lose acknowledged writes", "setting", setting, "value", value, "want", want)
	})
}
