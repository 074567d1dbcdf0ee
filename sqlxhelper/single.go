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
	"github.com/snowkey/snowkey/internal/base/outcome"
	"github.com/snowkey/snowkey/internal/base/wait"
)

// sendsOnce reports whether single sends a statement to db at most once.
func sendsOnce(db DB) bool {
	switch db.(type) {
	case *sqlx.DB, onConn:
		return true
	}
	return false
}

// A single sends a statement that is a transaction by itself, and finds out what became of it
// if the answer is lost.
//
// *sql.DB sends a statement again if the driver reports a bad connection. lib/pq, and pgx with
// the simple protocol, also do so if the connection broke after the statement was run, and the
// rows would then be duplicates of themselves. A single therefore sends the statement on one
// connection, where database/sql does not send it again, and repeats it by itself:
//
//   - If a row is there whose key this call has assigned, the statement was run, because
//     nothing else uses that key. The same is true of a key that the caller has set, if an
//     earlier look did not find the row.
//   - If the row is not there, the statement may still be on its way. It is sent again with the
//     same keys, and only one of the two can be stored. If that is the first one, the next look
//     finds the row.
type single struct{ *writer }

// maxSends is how often a single sends its statement, as database/sql does. The look between two of
// them takes idle connections that the server has ended out of the pool, and leaves one that works.
const maxSends = 3

// A single takes no other statements.
func (*single) PrepareContext(context.Context, string) (*sql.Stmt, error) { return nil, errSeveral }
func (*single) QueryContext(context.Context, string, ...any) (*sql.Rows, error) {
	return nil, errSeveral
}

// ExecContext sends the statement.
func (s *single) ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error) {
	proves := s.loads[0].assigned >= 0 // a row that is there proves that the statement was run
	var before error                   // the error of an earlier send
	for n := 1; ; n++ {
		began := time.Now()
		result, err := s.send(ctx, text, args)
		switch took := time.Since(began); {
		case err == nil && !outcome.Cut(ctx, s.dialect.Dialect, took):
			return result, nil
		case err == nil:
			return s.confirm(ctx, fmt.Errorf("answered after %v", took), result)
		case errors.Is(err, driver.ErrBadConn) && s.dialect.BadIsUnsent && n < maxSends:
			continue
		case unsent(err) || errors.Is(err, driver.ErrBadConn) && s.dialect.BadIsUnsent:
			if before == nil {
				return nil, err
			}
			found := false
			if ctx.Err() != nil && s.lookOnce(ctx, &found, proves) == nil && found {
				return s.all(), nil
			}
			return nil, s.unknown(ctx, before, err)
		case dialect.NotStored(err) && before == nil && (sendsOnce(s.conn.db) || !dialect.DuplicateKey(err)):
			return nil, err // the usual refusal of a row
		case !unanswered(ctx, err):
			o, why := s.pending().Settle(ctx)
			switch {
			case o == outcome.Committed && proves:
				return s.all(), nil
			case o == outcome.Committed:
				return nil, s.unknown(ctx, err, errWhose)
			case o == outcome.InDoubt && !(errors.Is(why, outcome.ErrUnknownDatabase) && before == nil):
				return nil, s.unknown(ctx, err, why)
			case before != nil && !dialect.RowFault(err):
				// The earlier statement may be on its way, and need not meet this error.
				return nil, s.unknown(ctx, errors.Join(before, err), errUnsettled)
			}
			return nil, err
		}
		before = err
		found := false
		if why := s.lookOnce(ctx, &found, proves); why != nil {
			return nil, s.unknown(ctx, err, why)
		}
		switch {
		case found && (proves || n > 1):
			return s.all(), nil
		case found:
			return nil, s.unknown(ctx, err, errWhose)
		case n == maxSends || ctx.Err() != nil:
			return nil, s.unknown(ctx, err, errUnsettled)
		}
		proves = true
	}
}

var (
	// errWhose says why a row that is there proves nothing.
	errWhose = errors.New("the row is there, and may have been there before, because the caller has set its key")
	// errUnsettled says why a missing row proves nothing.
	errUnsettled = errors.New("the row is not there, and the statement may still be on its way")
)

// send sends the statement, on one connection if the pool is a *sqlx.DB.
func (s *single) send(ctx context.Context, text string, args []any) (sql.Result, error) {
	pool, ok := s.conn.db.(*sqlx.DB)
	if !ok {
		return outcome.Exec(ctx, s.conn.cancels, s.conn.db, text, args...)
	}
	return outcome.Call(ctx, s.conn.cancels, func() (sql.Result, error) {
		c, err := pool.Conn(ctx)
		if err != nil {
			return nil, &unsentError{err}
		}
		defer func() { _ = c.Close() }() // gives it back
		return c.ExecContext(ctx, text, args...)
	}, nil)
}

// An unsentError says why there was no connection for a statement.
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

// unanswered reports whether a statement was not answered, or answered only by something between
// here and the database.
func unanswered(ctx context.Context, err error) bool {
	if dialect.BadConnection(err) {
		return true
	}
	return !outcome.IsAnswer(err) && (ctx.Err() != nil || errors.As(err, new(net.Error)) || errors.Is(err, net.ErrClosed) || errors.Is(err, wait.ErrNoAnswer))
}

// pending returns the statement as one whose answer was lost.
func (s *single) pending() outcome.Pending {
	l := &s.loads[0]
	row := l.assigned
	if row < 0 {
		row = len(l.rows) - 1
	}
	return outcome.Pending{Database: s.conn.database(s.config.partial), Proofs: []outcome.Proof{{KeyColumn: l.keyColumn(s.dialect), Key: *l.plan.id(l.rows[row])}}}
}

// lookOnce reports whether the row is there now or, once ctx has ended, until a second later: the
// server may be at it. A replica cannot tell that a row is missing whose later presence would
// prove something. Sending again may store a second row where the first one may have gone into
// another table of that name.
func (s *single) lookOnce(ctx context.Context, found *bool, proves bool) error {
	if s.conn.one {
		return outcome.ErrOneConn
	}
	return s.pending().Ask(ctx, func(seen outcome.Look) (known bool, err error) {
		*found = seen.Found
		switch why := seen.Proves; {
		case seen.Found:
			return true, nil
		case seen.Others || errors.Is(why, outcome.ErrNames):
			return true, outcome.ErrNames
		case ctx.Err() != nil && errors.Is(why, outcome.ErrHidden):
			return true, why
		case ctx.Err() != nil:
			return false, errUnsettled
		case proves || why == nil:
			return true, nil
		default:
			return !errors.Is(why, outcome.ErrReplica), why
		}
	})
}

// confirm returns result once a failover cannot lose the rows, see package standby.
func (s *single) confirm(ctx context.Context, said error, result sql.Result) (sql.Result, error) {
	p := s.pending()
	p.Answered = true
	if o, why := p.Settle(ctx); o != outcome.Committed {
		return nil, s.unknown(ctx, said, why)
	}
	return result, nil
}

// all is the result of a statement that was run.
func (s *single) all() sql.Result { return driver.RowsAffected(len(s.loads[0].rows)) }

func (s *single) unknown(ctx context.Context, err, why error) error {
	p := s.pending()
	return p.Unknown(ctx, err, why, p.Proofs)
}
