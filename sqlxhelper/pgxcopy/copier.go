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

// ErrDriver means that the driver of the database is not pgx, or that a wrapper around it does
// not pass arguments through. Nothing was sent.
var ErrDriver = errors.New("pgxcopy: the driver is not pgx")

// nothing is a query that does nothing, and what a log of queries shows.
const nothing = "-- COPY"

// Copier copies through pgx. It has no state: the zero value is ready for use, and safe for
// concurrent use.
type Copier struct{}

var _ sqlxhelper.Copier = Copier{}

// Copy runs statement, a COPY … FROM STDIN, on the connection of db with all that it reads from
// rows, and returns how many rows the server has copied. If db is a pool, the COPY is a
// transaction by itself, and if its connection breaks, rows may be stored in spite of the
// error.
//
// Errors match [ErrDriver], or wrap the error of rows or pgx. If rows fails, panics or ends its
// goroutine, as testing's FailNow does, the COPY fails, nothing of it is stored, and the error
// says so. After an error of rows or of the server a transaction goes on from its last
// savepoint. If ctx ends while the COPY runs, pgx closes the connection.
//
// rows is read in another goroutine, but not after Copy has returned.
func (Copier) Copy(ctx context.Context, db sqlx.ExecerContext, statement string, rows io.Reader) (int64, error) {
	c := &rewriter{statement: statement, rows: reader{from: rows}}
	// db may panic, and must not leave a reader behind.
	defer func() { _ = c.rows.end() }()
	_, err := db.ExecContext(ctx, nothing, c)
	if err == nil && !c.called {
		err = ErrDriver
	}
	// The server only reports that the client has given up, with SQLSTATE 57014, as if the
	// statement had been cancelled.
	if failed := c.rows.end(); failed != nil {
		err = failed
	} else if c.err != nil {
		err = c.err // which pgx and database/sql have wrapped
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
// pgx uses the connection for nothing else here, as while it runs the query. But it expects a
// function that only handles strings: a panic would pass through the locks of database/sql, and
// is recovered.
//
// On a pool database/sql calls it again, on another connection, if pgx reports that nothing was
// sent on the first, which may be true only of the query that does nothing. The rows may be
// stored.
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

// Value is called by database/sql for all drivers that do not accept arguments unchanged, as
// pgx does.
func (w *rewriter) Value() (driver.Value, error) { return nil, ErrDriver }

// A reader protects pgx, which reads in a goroutine of its own, from another reader: a panic
// there would end the process, runtime.Goexit would leave the COPY waiting, and when pgx gives
// up a connection, the goroutine goes on.
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
	// In a goroutine of its own, because that of pgx must not end: the COPY would wait for it
	// forever. This one may end by runtime.Goexit, and leaves errExit.
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
	if err != nil && err != io.EOF { //nolint:errorlint // as io.Reader documents
		r.err = err
	}
	return n, err
}

var errExit = errors.New("read rows: runtime.Goexit was called")

// begun reports whether anything was read, or was to be.
func (r *reader) begun() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.read
}

// end ends the reading, waits for a read in progress, and returns its error.
func (r *reader) end() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	return r.err
}
