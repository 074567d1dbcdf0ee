package outcome

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/pgtext"
	"github.com/snowkey/snowkey/internal/base/wait"
)

const (
	// maxAttempts bounds the runs of one function. The delays between them add up to three seconds
	// at most, and a conflict that lasts longer should become visible.
	maxAttempts = 10
	// firstDelay is about the duration of a short transaction, for which the loser waits.
	firstDelay = 10 * time.Millisecond
	maxDelay   = time.Second
)

// Attempts runs a function in one transaction after the other until one is committed.
//
// At most one of them is ever committed, because the next one begins only when the one before
// is known to be rolled back, by its error or by [Pending.Settle]. Running again while a COMMIT
// may be on its way, and relying on equal keys to keep the two apart, would not be enough: the
// late one could be stored, and differ from the values that the function has set in memory
// meanwhile.
type Attempts struct {
	*Database
	Opts *sql.TxOptions
	Fn   func(Tx, *Record) error // notes what it inserts

	lost *Record // of the last attempt whose outcome is Lost
}

// Run makes the attempts. Its error is nil if and only if the last one is committed.
func (a *Attempts) Run(ctx context.Context) error {
	for n := 1; ; n++ {
		o, made, err := a.try(ctx)
		switch {
		case o == Committed:
			return nil
		case o == Lost:
			a.lost = made
		case o != RolledBack || !dialect.Retryable(err) && !pgtext.Altered(err) || gaveUp(err):
			return a.resolve(ctx, err)
		}
		if n == maxAttempts {
			return a.resolve(ctx, &attemptsError{a.Package, n, err})
		}
		if ended := wait.Sleep(ctx, delay(n)); ended != nil {
			return a.resolve(ctx, fmt.Errorf("%s: %w; before that, in attempt %d: %w", a.Package, ended, n, err))
		}
	}
}

// try makes one attempt, and returns what proves its outcome.
func (a *Attempts) try(ctx context.Context) (End, *Record, error) {
	t := &Transaction{Database: a.Database, Opts: a.Opts}
	o, err := t.Run(ctx, func(tx Tx) error { return a.Fn(tx, &t.Record) })
	if o != Committed && t.Record.strayed() {
		o = Abandoned // something may be stored
	}
	return o, &t.Record, err
}

// resolve ends the attempts with err. If an earlier attempt was lost and err is a duplicate
// key, it looks for the rows of that attempt once more. They are not there, unless Settle
// misjudges the database.
func (a *Attempts) resolve(ctx context.Context, err error) error {
	if a.lost == nil || !dialect.DuplicateKey(err) && !errors.Is(err, a.Duplicate) {
		return err
	}
	p := a.pending(a.lost)
	if o, _ := p.Settle(ctx); o == Committed {
		return a.Unknown(ctx, err, ErrEarlier, p.Proofs)
	}
	return err
}

// An attemptsError is the error of the last attempt. Its type keeps an Attempts around it from
// multiplying the attempts.
type attemptsError struct {
	pkg string
	n   int
	err error
}

func (e *attemptsError) Error() string {
	return fmt.Sprintf("%s: %d attempts: %v", e.pkg, e.n, e.err)
}

func (e *attemptsError) Unwrap() error { return e.err }

// gaveUp reports whether err comes from an Attempts inside of the function that has made all its
// attempts, or that must not run again because a new start would forget which keys are in
// doubt.
func gaveUp(err error) bool {
	var inner *attemptsError
	return errors.As(err, &inner) || errors.Is(err, ErrCommitUnknown)
}

// delay returns how long to wait after the nth attempt: a random time, because two transactions
// that wait equally long would meet again, up to a limit that doubles. n may be large, as the
// number of looks for a row.
func delay(n int) time.Duration {
	return rand.N(min(firstDelay<<min(n-1, 10), maxDelay))
}
