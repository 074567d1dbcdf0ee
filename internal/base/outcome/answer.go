package outcome

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"time"

	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/wait"
)

// grace is how much longer than its context a call may take to clean up and to find out what
// became of it. A server that is up answers a few questions in that time.
const grace = time.Second

// Outlast returns a context that ends a second after ctx.
func Outlast(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Done() == nil {
		return ctx, func() {}
	}
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })
	return longer, func() { stop(); cancel() }
}

// ErrBusy says why a connection takes no statement.
var ErrBusy = errors.New("the connection still waits for an answer")

// calls has no limit of its own, because each call that hangs keeps a connection of the pool.
var calls = wait.Calls{Max: math.MaxInt32}

// Cancels says which calls of a driver end with their context, as all should. The zero value
// is that none is known to.
type Cancels uint8

const (
	// CancelsStatements: all but COMMIT and ROLLBACK, in which MySQL's driver waits on.
	CancelsStatements Cancels = iota + 1
	// CancelsAll: all. SQLite has no server to wait for.
	CancelsAll
)

// Call calls f, which waits for a server, and stops waiting soon after ctx has ended.
//
// A call that is left behind keeps its goroutine and its connection until it ends, and must not
// write to memory of the caller. It may read its arguments, which a driver has encoded before
// it waits. If the call succeeds after all, late gets what it has opened.
//
// Where the driver honors ctx, f is called directly, because a goroutine takes some
// microseconds.
func Call[T any](ctx context.Context, c Cancels, f func() (T, error), late func(T)) (T, error) {
	if c >= CancelsStatements || ctx.Done() == nil {
		return f()
	}
	return wait.Call(ctx, &calls, f, late)
}

// Do is [Call] for an f that returns only an error.
func Do(ctx context.Context, c Cancels, f func() error) error {
	if c >= CancelsStatements {
		return f()
	}
	_, err := Call(ctx, c, func() (struct{}, error) { return struct{}{}, f() }, nil)
	return err
}

// Exec runs a statement.
func Exec(ctx context.Context, c Cancels, db dialect.Execer, text string, args ...any) (sql.Result, error) {
	if c >= CancelsStatements {
		return db.ExecContext(ctx, text, args...)
	}
	return Call(ctx, c, func() (sql.Result, error) { return db.ExecContext(ctx, text, args...) }, nil)
}

// WithCause adds the error of ctx where a driver or database/sql only reports that the
// statement, the transaction or the connection has ended: a context starts a rollback beside
// the statement, and either may be first. Other errors are independent of ctx and stay
// unchanged.
func WithCause(ctx context.Context, err error) error {
	if dialect.Interrupted(err) {
		return wait.Cause(ctx, err)
	}
	return err
}
