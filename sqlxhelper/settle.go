package sqlxhelper

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/wait"
)

// patience bounds how long it takes to find out what has become of a call, for a context
// without a deadline. It is longer than a server takes to restart, or a network to come
// back.
const patience = time.Minute

// slow is how long a COMMIT of PostgreSQL takes at least whose wait for the synchronous
// standby was cut off by an operator's pg_cancel_backend; statement_timeout does not end
// it. It then succeeds with a warning, which database/sql does not pass on. A commit that
// waits takes some milliseconds, and a tenth of a second between continents. Below a second
// no operator reacts.
const slow = time.Second

// A doubt is a transaction of which nobody has said what became of it, or only a part. Its
// COMMIT was sent, or may have been.
type doubt struct {
	db      beginner
	dialect *traits // nil: not known
	heeds   heeding
	proofs  []proof
	// answered: the server has said that it is committed. A failover may have it forget.
	answered bool
}

// Why it is not known what has become of a transaction.
var (
	errNoProof = errors.New("no row was inserted by a Helper that could tell")
	errOneConn = errors.New("there is no other connection to look for the rows")
	errOpen    = errors.New("the row is not there, and the transaction may still be open")
	errGone    = errors.New("the row is not there any more")
	// errStranger is the error of a look at what is not known to be a database: a mock.
	errStranger = errors.New("no known database")
	errPartial  = errors.New("what a COMMIT says proves nothing, as WithPartialCommits says")
)

// settle finds out what has become of the transaction: committed, rolledBack, or inDoubt
// with the reason. It asks until it knows, but no longer than a second after ctx.
//
// The keys exist before the rows, and nobody else has them. So a row that is there proves
// that the transaction is committed. One that is not there proves nothing, since the COMMIT
// may be late, on a network or waiting for a disk. Therefore the transaction must be over
// first, and the row is looked for after that. MySQL and SQLite answer both at once: the
// look waits for the lock that the transaction holds. On PostgreSQL a look lists the
// transactions that it may be. When none of these is left, one more look decides. To look
// in the same transaction would not do: under REPEATABLE READ it sees what was stored
// before the list was made.
func (d doubt) settle(ctx context.Context) (outcome, error) {
	switch {
	case len(d.proofs) == 0 && !d.answered:
		return inDoubt, errNoProof
	case oneConn(d.db) && !d.answered:
		return inDoubt, errOneConn
	}
	var open []string
	listed := false
	o := inDoubt
	err := d.ask(ctx, func(s sighting) (known bool, err error) {
		switch {
		case s.found:
			o = committed
			return true, nil
		case errors.Is(s.proves, errReplica):
			return false, s.proves
		case d.answered:
			return true, errGone
		case s.proves != nil:
			return true, s.proves
		case s.over, listed && len(open) == 0:
			o = rolledBack
			return true, nil
		case listed:
			open = slices.DeleteFunc(open, func(t string) bool { return !slices.Contains(s.open, t) })
		default:
			listed, open = true, s.open
		}
		if len(open) == 0 {
			return false, nil // the next look comes after all of them
		}
		return false, errOpen
	})
	if err != nil {
		return inDoubt, err
	}
	return o, nil
}

// ask looks until judge knows enough, or returns why it does not. If judge returns no
// error, the next look comes at once.
func (d doubt) ask(ctx context.Context, judge func(sighting) (known bool, err error)) error {
	_, limited := ctx.Deadline()
	ctx, cancel := outlast(ctx)
	defer cancel()
	if !limited {
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	for n := 1; ; n++ {
		s, err := d.sight(ctx)
		known := false
		switch {
		case err == nil:
			known, err = judge(s)
		case !passes(err):
			known = true
			if !isAnswer(err) {
				err = fmt.Errorf("%w: %w", errStranger, err)
			}
		}
		switch {
		case err == nil && known:
			return nil
		case err == nil && ctx.Err() == nil:
			continue
		case err == nil:
			err = errOpen
		}
		if known || wait.Sleep(ctx, delay(n)) != nil {
			return fmt.Errorf("looking for the row: %w", err)
		}
	}
}

// sight looks, and does not wait longer than ctx for any part of it.
func (d doubt) sight(ctx context.Context) (sighting, error) {
	if d.heeds == heedsAll {
		return d.look(ctx)
	}
	return answered(ctx, 0, func() (sighting, error) { return d.look(ctx) }, nil)
}

// passes reports whether another look may do better after err. A database that has
// answered and means it will say the same again. So will whoever is not known to be a
// database, a network or a driver.
func passes(err error) bool {
	if dialect.Refused(err) {
		return false
	}
	return isAnswer(err) || dialect.BadConnection(err) || errors.As(err, new(net.Error)) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, errSlow) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// isAnswer reports whether a database has said err.
func isAnswer(err error) bool {
	for range dialect.Answers(err) {
		return true
	}
	return false
}
