package pgxcopy

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jmoiron/sqlx"

	"github.com/snowkey/snowkey/sqlxhelper"
)

// ErrDriver means that the driver of the database is not pgx, or that a wrapper
// around it does not hand arguments through. Nothing was sent.
var ErrDriver = errors.New("pgxcopy: the driver is not pgx")

// nothing is a query that does nothing. It is what a log of queries shows.
const nothing = "-- COPY"

// Copier copies through pgx. It has no state: the zero value is ready, and safe
// for concurrent use.
type Copier struct{}

var _ sqlxhelper.Copier = Copier{}

// Copy runs statement, a COPY … FROM STDIN, on the connection of db with what rows
// has. It returns how many rows the server has copied. If db is a pool, the COPY is
// a transaction by itself. If its connection breaks then, rows may be stored in
// spite of the error.
//
// Errors match [ErrDriver], or wrap what rows or pgx said. If rows fails, panics or
// ends its goroutine, as testing's FailNow does, the COPY fails. Nothing of it is
// stored, and the error says so. After an error of rows or of the server a
// transaction goes on from its last savepoint. If ctx ends while the COPY runs, pgx
// closes the connection.
//
// rows is read in another goroutine, and not after Copy has returned.
func (Copier) Copy(ctx context.Context, db sqlx.ExecerContext, statement string, rows io.Reader) (int64, error) {
	c := &rewriter{statement: statement, rows: reader{from: rows}}
	// A panic of db, which is the caller's, must not leave a reader behind.
	defer func() { _ = c.rows.end() }()
	_, err := db.ExecContext(ctx, nothing, c)
	if err == nil && !c.called {
		err = ErrDriver
	}
	// It replaces what the server said, which is that the client has given up. By
	// its SQLSTATE, 57014, the statement would seem to be cancelled.
	if failed := c.rows.end(); failed != nil {
		err = failed
	} else if c.err != nil {
		err = c.err // without what pgx and database/sql make of it
	}
	if err != nil {
		return 0, fmt.Errorf("pgxcopy: %w", err)
	}
	return c.copied, nil
}

// A rewriter is an argument that copies.
type rewriter struct {
	statement string
	rows      reader
	called    bool
	copied    int64
	err       error
}

var (
	_ pgx.QueryRewriter = (*rewriter)(nil)
	_ driver.Valuer     = (*rewriter)(nil)
)

// RewriteQuery copies, and returns a query that does nothing.
//
// pgx has the connection to itself here, as it would while it runs the query. But
// it expects a function that handles strings. A panic would pass through the locks
// of database/sql, so panics are recovered.
//
// On a pool database/sql calls it again, on another connection, if pgx says that
// nothing was sent on the first. That may be true only of the query that does
// nothing. The rows may be stored.
func (w *rewriter) RewriteQuery(ctx context.Context, conn *pgx.Conn, _ string, _ []any) (query string, args []any, err error) {
	if w.rows.begun() {
		w.err = errors.New("the connection broke, and rows may be stored")
		return "", nil, w.err
	}
	w.called = true
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
		w.err = err
	}()
	tag, err := conn.PgConn().CopyFrom(ctx, &w.rows, w.statement)
	w.copied = tag.RowsAffected()
	return nothing, nil, err
}

// Value is called by database/sql for all drivers that do not take arguments as
// they are. pgx does.
func (w *rewriter) Value() (driver.Value, error) { return nil, ErrDriver }

// A reader protects pgx, which reads in a goroutine of its own, from another
// reader. A panic there would end the process, and runtime.Goexit would leave the
// COPY waiting. And where pgx gives up a connection, it leaves the goroutine to
// itself.
type reader struct {
	mu    sync.Mutex // guards what follows
	from  io.Reader
	err   error
	read  bool
	ended bool
}

// Read implements io.Reader.
func (r *reader) Read(b []byte) (n int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return 0, io.ErrClosedPipe
	}
	r.read = true
	// In a goroutine of its own, because that of pgx must not end: the COPY would
	// wait for it forever. This one may, by runtime.Goexit, and leaves errExit.
	n, err = 0, errExit
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				n, err = 0, fmt.Errorf("read rows: panic: %v", p)
			}
		}()
		n, err = r.from.Read(b)
	}()
	<-done
	if err != nil && err != io.EOF { //nolint:errorlint // as io.Reader has it
		r.err = err
	}
	return n, err
}

var errExit = errors.New("read rows: runtime.Goexit was called")

// begun reports whether anything was read, or tried to.
func (r *reader) begun() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.read
}

// end ends the reading, waits for one that is under way, and returns its error.
func (r *reader) end() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	return r.err
}
