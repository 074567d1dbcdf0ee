package sqlxhelper

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/snowkey/snowkey/internal/sqlerror"
	"github.com/snowkey/snowkey/internal/wait"
)

const (
	// grace is how much longer than its context a call may take to find out what has
	// become of it. A server that is there answers a few looks in that time.
	grace = time.Second
	// patience bounds that for a context without a deadline. It is longer than a server
	// takes to restart, or a network to come back.
	patience = time.Minute
)

// outlast returns a context that ends a second after ctx.
func outlast(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })
	return longer, func() { stop(); cancel() }
}

var (
	// errNoProof is why nothing can be looked for.
	errNoProof = errors.New("no row was inserted by a Helper that could tell")
	// errOpen is why the absence of the rows proves nothing yet.
	errOpen = errors.New("the row is not there, and the transaction may still be open")
)

// settle finds out what has become of a transaction whose COMMIT was sent, or may have
// been, and whose answer is lost: committed, rolledBack, or inDoubt with the reason. It
// asks until it knows, but no longer than a second after ctx.
//
// The keys exist before the rows, and nobody else has them. So a row that is there proves
// that the transaction is committed. One that is not there proves nothing, since the COMMIT
// may be late, on a network or waiting for a disk. Therefore the transaction must be over
// first, and the row is looked for after that. MySQL and SQLite answer both at once: the
// look waits for the lock that the transaction holds. On PostgreSQL a look lists the
// transactions that it may be. When none of these is left, one more look decides. To look
// in the same transaction would not do: under REPEATABLE READ it sees what was stored
// before the list was made.
func settle(ctx context.Context, db beginner, proofs []proof) (outcome, error) {
	if len(proofs) == 0 {
		return inDoubt, errNoProof
	}
	_, limited := ctx.Deadline()
	ctx, cancel := outlast(ctx)
	defer cancel()
	if !limited {
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	var open []string
	for n, listed := 1, false; ; n++ {
		s, err := look(ctx, db, proofs)
		switch {
		case err != nil:
			if !passes(err) {
				return inDoubt, fmt.Errorf("looking for the row: %w", err)
			}
		case s.found:
			return committed, nil
		case s.over, listed && len(open) == 0:
			return rolledBack, nil
		default:
			if listed {
				s.open = slices.DeleteFunc(open, func(t string) bool { return !slices.Contains(s.open, t) })
			}
			if listed, open = true, s.open; len(open) == 0 {
				continue
			}
			err = errOpen
		}
		if wait.Sleep(ctx, delay(n)) != nil {
			return inDoubt, fmt.Errorf("looking for the row: %w", err)
		}
	}
}

// passes reports whether another look may do better after err. A database that has
// answered and means it will say the same again. So will whoever is not known to be a
// database, a network or a driver.
func passes(err error) bool {
	if sqlerror.Refused(err) || errors.Is(err, errServers) {
		return false
	}
	for range sqlerror.Answers(err) {
		return true
	}
	return sqlerror.BadConnection(err) || errors.As(err, new(net.Error)) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, errReplica) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}
