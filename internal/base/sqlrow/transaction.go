package sqlrow

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/snowkey/snowkey/internal/base/dialect"
)

// A Tx is one attempt at a transaction. Its parameters are written as the dialect writes them.
// It is for one goroutine, and not usable after its body has returned.
type Tx struct {
	// Now is the database's clock in milliseconds, or Config.Now on SQLite, which has none.
	Now time.Time

	db       *DB
	conn     *sql.Conn
	executor dialect.Executor
	commit   func() error
	rollback func() error
	check    func() error // checks what a look has read; nil: no check
	unlock   func()       // unlocks the folder of a SQLite file; nil: it is not locked
	restore  []string     // restores the connection's settings once the transaction has ended

	single bool // see Alone
	locks  bool // see LookAt

	tried bool // the connection is tried before it begins
	wrote bool
	dirty bool // the connection's settings are unknown
}

// Within returns a Tx for statements in the transaction of a caller, who ends it. It has no
// clocks. It guarantees what the caller's COMMIT does, so a SQLite database may be in
// memory. But two processes must not have one file without its log in common: the errors for
// that are [ErrNotDurable] and [ErrReplaced].
func (d *DB) Within(ctx context.Context, tx dialect.Executor) (*Tx, error) {
	t := &Tx{db: d, executor: tx}
	if d.config.Dialect != dialect.SQLite {
		return t, nil
	}
	return t, t.checkCaller(ctx)
}

// Exec runs a statement that writes.
func (t *Tx) Exec(ctx context.Context, text string, args ...any) (sql.Result, error) {
	t.wrote = true
	return t.executor.ExecContext(ctx, text, args...)
}

// Returning runs a statement that writes, and scans the single row that it returns into dest.
// Without a row the error is sql.ErrNoRows.
func (t *Tx) Returning(ctx context.Context, dest []any, text string, args ...any) error {
	t.wrote = true
	return dialect.One(ctx, t.executor, dest, text, args...)
}

// Each calls f for each row of a query that only reads, with a function that scans it.
func (t *Tx) Each(ctx context.Context, f func(scan func(...any) error) error, text string, args ...any) error {
	return dialect.Each(ctx, t.executor, func(rows *sql.Rows) error { return f(rows.Scan) }, text, args...)
}

// Reread runs read, which looks at what the transaction has written, and returns its error, or
// [ErrConflict] if the transaction has ended meanwhile.
//
// If a node of Galera rolls a transaction back for the write of another node while the transaction
// reads, MariaDB 10.11 at times reports that neither in the answer nor at COMMIT. The read then shows
// the row of the other, which may equal what was written, and statements that follow stand alone. The
// answer to a write always reports it. A savepoint ends with its transaction, and to release one that is
// gone is an error. A read before the first write of a transaction needs no savepoint if the write
// compares all that was read.
func (t *Tx) Reread(ctx context.Context, read func() error) error {
	if t.db.config.Dialect != dialect.MySQL {
		return read()
	}
	if _, err := t.executor.ExecContext(ctx, "SAVEPOINT snowkey"); err != nil {
		return err
	}
	err := read()
	if _, ended := t.executor.ExecContext(ctx, "RELEASE SAVEPOINT snowkey"); ended != nil {
		return fmt.Errorf("%w: the server has ended the transaction: %w", ErrConflict, errors.Join(ended, err))
	}
	return err
}

// attempt runs body once, in a transaction on a connection from the pool. If tried is set, the
// connection first proves that it takes statements.
func (d *DB) attempt(ctx context.Context, tried bool, begin func(*Tx, context.Context) error, body func(*Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	conn, err := d.connect(ctx)
	if err != nil {
		return err
	}
	t := &Tx{db: d, conn: conn, tried: tried}
	if err = begin(t, ctx); err == nil {
		err = body(t)
	}
	if err == nil && t.check != nil {
		err = t.check()
	}
	err, clean := t.end(ctx, err)
	if !clean {
		discard(conn)
	}
	_ = conn.Close() // gives it back; nothing is left that could be lost
	if t.unlock != nil {
		t.unlock()
	}
	return err
}

// connect borrows a connection from the pool.
func (d *DB) connect(ctx context.Context) (*sql.Conn, error) {
	before := d.pool.Stats().WaitCount
	conn, err := d.pool.Conn(ctx)
	if err != nil {
		// Without this hint the operator suspects the network. The connections that are in use now
		// would not tell: one may have come back between the end of ctx and here.
		if pool := d.pool.Stats(); ctx.Err() != nil && pool.WaitCount > before {
			err = fmt.Errorf("the pool's %d connections are all in use (raise the limit, or give a pool of its own): %w", pool.MaxOpenConnections, err)
		}
		return nil, fmt.Errorf("%w: %w", errConnect, err)
	}
	return conn, nil
}

// discard closes a connection in an unknown state, which must not return to the program.
//
// When ctx ends, database/sql rolls back in a goroutine of its own, which closes conn if the
// server is gone as well. Raw checks whether conn is closed before it takes conn's lock; if
// conn is closed in between, Raw continues with a nil pointer and ends the process (seen during
// a failover, with Go 1.26). discard therefore recovers, since conn is closed by then, as
// intended.
//
// Waiting for that goroutine is impossible, because only conn.Close does so, and that gives
// conn back to the pool.
func discard(conn *sql.Conn) {
	defer func() {
		e := recover()
		if _, ok := e.(runtime.Error); e != nil && !ok {
			panic(e) // of the driver
		}
	}()
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
}

func (t *Tx) begin(ctx context.Context) error {
	switch t.db.config.Dialect {
	case dialect.PostgreSQL:
		return t.beginPostgreSQL(ctx)
	case dialect.MySQL:
		return t.beginMySQL(ctx)
	default:
		return t.beginSQLite(ctx)
	}
}

// beginTx begins a transaction through the driver. It names the isolation level, whatever the
// program's default is. Serializable would fail more often and gain nothing, as long as each
// UPDATE compares everything that was read.
func (t *Tx) beginTx(ctx context.Context, level sql.IsolationLevel) error {
	tx, err := t.conn.BeginTx(ctx, &sql.TxOptions{Isolation: level})
	if err != nil {
		t.dirty = true // MySQL's driver first sets the level by a statement
		return fmt.Errorf("begin: %w", err)
	}
	t.executor, t.commit, t.rollback = tx, tx.Commit, tx.Rollback
	return nil
}

// rollsBack returns what rolls back a transaction that a statement has begun.
func (t *Tx) rollsBack(ctx context.Context) func() error {
	return func() error {
		_, err := t.conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		return err
	}
}

// askServer runs the query that sets and reads what a transaction needs. Its last column is the
// server's clock in milliseconds.
func (t *Tx) askServer(ctx context.Context, dest []any, text string, args ...any) error {
	var now int64
	text, args, err := t.db.Bind(text, args...)
	if err != nil {
		return err
	}
	if err := dialect.One(ctx, t.executor, append(dest, &now), text, args...); err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	t.Now = time.UnixMilli(now)
	return nil
}

// end ends the transaction, whose outcome so far is err, and restores the settings. It returns
// the outcome, and whether the connection is in its original state.
func (t *Tx) end(ctx context.Context, err error) (outcome error, clean bool) {
	switch {
	case t.rollback == nil: // it has not begun
	case err == nil && t.wrote:
		if e := t.commit(); dialect.LostAtCommit(e) {
			err = fmt.Errorf("%w: commit: %w", ErrConflict, e)
			break
		} else if e != nil {
			return fmt.Errorf("%w: %w", ErrCommit, e), false
		}
		// PostgreSQL's COMMIT waits for synchronous replicas, and a driver that sends a cancel
		// request when ctx ends gets a success although none has answered. Where the server
		// reports its replicas, package standby detects that, and cancels by operators; this
		// check is for servers that do not report them.
		if e := ctx.Err(); e != nil {
			return fmt.Errorf("%w: %w", ErrCommit, e), false
		}
	default:
		if t.rollback() != nil {
			return err, false
		}
	}
	for _, text := range slices.Backward(t.restore) {
		if _, e := t.conn.ExecContext(ctx, text); e != nil {
			return err, false
		}
	}
	// A new connection may lead to another server, which takes writes.
	elsewhere := errors.Is(err, ErrReadOnly) || dialect.ReadOnly(err) || dialect.NotPrepared(err)
	return err, !t.dirty && !elsewhere
}

// remaining returns the time that ctx leaves, at least a millisecond.
func remaining(ctx context.Context) (d time.Duration, limited bool) {
	deadline, limited := ctx.Deadline()
	return max(time.Until(deadline), time.Millisecond), limited
}
