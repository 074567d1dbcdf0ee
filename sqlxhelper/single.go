package sqlxhelper

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/wait"
)

// maxSends is how often a statement is sent whose answers are lost, as often as
// database/sql does. A look between two of them takes idle connections that the server has
// ended out of the pool, and leaves one that works.
const maxSends = 3

// sendsOnce reports whether single sends a statement to db no more than once.
func sendsOnce(db DB) bool {
	switch db.(type) {
	case *sqlx.DB, onConn:
		return true
	}
	return false
}

// A single sends a statement that is a transaction by itself, and finds out what has become
// of it if the answer is lost.
//
// *sql.DB sends a statement again if the driver says that the connection is bad. lib/pq, and
// pgx with the simple protocol, also say so when it broke after the statement was run, and
// the rows would then be duplicates of themselves. Therefore a single sends it on one
// connection, where database/sql does not do that, and sends it again by itself:
//
//   - If a row is there whose key this call has assigned, the statement was run. Nobody
//     else has that key. The same is true of a key that the caller has set, if the row was
//     not there at the look before.
//   - If it is not there, the statement may still be on its way. It is sent again with the
//     same keys, and only one of both can be stored. If that is the other one, the row is
//     there at the next look.
type single struct {
	*writer
	conn conn
}

// Several statements are not for a single.
func (*single) PrepareContext(context.Context, string) (*sql.Stmt, error) { return nil, errSeveral }
func (*single) QueryContext(context.Context, string, ...any) (*sql.Rows, error) {
	return nil, errSeveral
}

// ExecContext sends the statement.
func (s *single) ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error) {
	ours := s.loads[0].assigned >= 0 // if the row is there, the statement was run
	var before error                 // instead of the answer to an earlier send
	for n := 1; ; n++ {
		began := time.Now()
		result, err := s.send(ctx, text, args)
		switch took := time.Since(began); {
		case err == nil && !s.dialect.cut(ctx, took):
			return result, nil
		case err == nil:
			return s.confirm(ctx, fmt.Errorf("answered after %v", took), result)
		case errors.Is(err, driver.ErrBadConn) && s.dialect.badIsUnsent && n < maxSends:
			continue
		case unsent(err) || errors.Is(err, driver.ErrBadConn) && s.dialect.badIsUnsent:
			if before != nil {
				return nil, s.unknown(ctx, before, err)
			}
			return nil, err
		case dialect.NotStored(err) && before == nil && (sendsOnce(s.conn.db) || !dialect.DuplicateKey(err)):
			return nil, err // the usual refusal of a row
		case !isLost(ctx, err):
			o, why := s.doubt().settle(ctx)
			switch {
			case o == committed && ours:
				return s.all(), nil
			case o == committed:
				return nil, s.unknown(ctx, err, errWhose)
			case o == inDoubt && !(errors.Is(why, errStranger) && before == nil):
				return nil, s.unknown(ctx, err, why)
			case before != nil && !dialect.RowFault(err):
				// The one before may be on its way, and need not meet what this one has met.
				return nil, s.unknown(ctx, errors.Join(before, err), errUnsettled)
			}
			return nil, err
		}
		before = err
		found := false
		if why := s.lookOnce(ctx, &found, ours); why != nil {
			return nil, s.unknown(ctx, err, why)
		}
		switch {
		case found && (ours || n > 1):
			return s.all(), nil
		case found:
			return nil, s.unknown(ctx, err, errWhose)
		case n == maxSends || ctx.Err() != nil:
			return nil, s.unknown(ctx, err, errUnsettled)
		}
		ours = true
	}
}

var (
	// errWhose is why a row that is there proves nothing.
	errWhose = errors.New("the row is there, and may have been there before, because the caller has set its key")
	// errUnsettled is why a row that is not there proves nothing.
	errUnsettled = errors.New("the row is not there, and the statement may still be on its way")
)

// send sends the statement once, if the pool is none of the program's own.
func (s *single) send(ctx context.Context, text string, args []any) (sql.Result, error) {
	pool, ok := s.conn.db.(*sqlx.DB)
	if !ok {
		return execute(ctx, s.conn.honors, s.conn.db, text, args...)
	}
	return answered(ctx, s.conn.honors, func() (sql.Result, error) {
		c, err := pool.Conn(ctx)
		if err != nil {
			return nil, &unsentError{err}
		}
		defer func() { _ = c.Close() }() // gives it back
		return c.ExecContext(ctx, text, args...)
	}, nil)
}

// An unsentError is why there was no connection to send a statement on.
type unsentError struct{ err error }

func (e *unsentError) Error() string { return e.err.Error() }
func (e *unsentError) Unwrap() error { return e.err }

// unsent reports whether a statement was not sent.
func unsent(err error) bool {
	if errors.As(err, new(*unsentError)) || errors.Is(err, sql.ErrConnDone) {
		return true
	}
	for e := range dialect.Tree(err) {
		if text := e.Error(); encodedArgument.MatchString(text) || convertedArgument.MatchString(text) {
			return true
		}
	}
	var pgx interface{ SafeToRetry() bool } // of errors of pgconn
	return errors.As(err, &pgx) && pgx.SafeToRetry()
}

// isLost reports whether a statement was answered by nobody, or by somebody on the way to
// the database.
func isLost(ctx context.Context, err error) bool {
	if dialect.BadConnection(err) {
		return true
	}
	return !isAnswer(err) && (ctx.Err() != nil || errors.As(err, new(net.Error)) || errors.Is(err, net.ErrClosed) || errors.Is(err, wait.ErrNoAnswer))
}

// doubt is the statement whose answer is lost.
func (s *single) doubt() doubt {
	l := &s.loads[0]
	row := l.assigned
	if row < 0 {
		row = len(l.rows) - 1
	}
	return doubt{db: s.conn.pool, dialect: s.dialect, honors: s.conn.honors, proofs: []proof{{l.place(s.dialect), *l.plan.id(l.rows[row])}}}
}

// lookOnce tells whether the row is there, now. If it is not there and has to be new if it
// is there later, a replica does not count.
func (s *single) lookOnce(ctx context.Context, found *bool, ours bool) error {
	if oneConn(s.conn.pool) {
		return errOneConn
	}
	return s.doubt().ask(ctx, func(seen sighting) (known bool, err error) {
		*found = seen.found
		if seen.found || ours || seen.proves == nil {
			return true, nil
		}
		return errors.Is(seen.proves, errServers), seen.proves
	})
}

// confirm returns result if the rows are stored for good. See [standby.Ensure].
func (s *single) confirm(ctx context.Context, said error, result sql.Result) (sql.Result, error) {
	d := s.doubt()
	d.answered = true
	if o, why := d.settle(ctx); o != committed {
		return nil, s.unknown(ctx, said, why)
	}
	return result, nil
}

// all is the answer to a statement that was run.
func (s *single) all() sql.Result { return driver.RowsAffected(len(s.loads[0].rows)) }

func (s *single) unknown(ctx context.Context, err, why error) error {
	return unknown(ctx, err, why, s.doubt().proofs)
}
