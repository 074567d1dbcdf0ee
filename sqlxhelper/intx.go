package sqlxhelper

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/internal/sqlerror"
	"github.com/snowkey/snowkey/internal/wait"
)

// InTx runs fn in a transaction and commits if fn returns nil. It begins the
// transaction with opts, where nil means the driver's defaults.
//
// # When fn runs again
//
// fn may run up to ten times. It must have no effects but those on its transaction,
// and must not collect in outside variables. It runs again only if the run before
// is certainly rolled back. Then fn, the beginning or the commit returned a
// serialization failure or a deadlock, and the rollback succeeded. Those errors are
// 40001 and 40P01 of PostgreSQL, 1213, 1205 and 1020 of MySQL and MariaDB, and busy
// of SQLite.
//
// So fn has to return an error of the database at once, wrapped with %w. If it came
// from a [Helper] and matches [ErrTxBroken], calls of Helpers on the transaction fail
// from then on, and nothing is committed.
//
// InTx waits a random time between two runs, but no longer than ctx. It waits up to
// 10 ms after the first run, and up to 1 s after the last ones. Rows that are made
// outside of fn keep their keys in every run. Rows that are made inside get new
// ones.
//
// # When the answer to the commit is lost
//
// If the connection breaks during the commit, the rows may be stored or not. So they
// may if the driver closes it because ctx ends. InTx then looks for a row whose key a
// [Helper] has inserted in fn. It does so in a transaction on another connection of
// db, for up to 10 s, even if ctx has ended.
//
//   - If the row is there, the commit has taken place, and InTx returns nil. On
//     PostgreSQL it first waits for the synchronous standby, if there is one.
//   - If it is not, fn runs again, unless ctx has ended. That run is committed only if
//     its Helpers insert the same keys in the same order. The database accepts these
//     only while the first rows are not there.
//   - Otherwise the error matches [ErrCommitUnknown]: if no Helper has inserted
//     anything, if the keys differ, or if the row cannot be looked for.
//
// Build the rows outside of fn. Then a lost answer is no error. If opts says
// ReadOnly and no Helper has inserted anything, the error of the commit is returned.
//
// The rows of a Helper count if it was given the *sqlx.Tx of fn, or a type around
// it as [DB] describes. They must be inserted, not upserted. Do not delete such
// rows in fn, even to insert them anew. Nor may it roll back the last row of a
// table to a savepoint of its own.
//
// The run after a lost commit may wait for the first transaction, as any insert of
// the same key does. It waits no longer than the ctx that fn passes on.
//
// # Errors
//
// If fn returns an error that does not make it run again, the transaction is rolled
// back. InTx returns that error, joined with one of the rollback. After the tenth run
// the error says so and wraps the last one. If fn panics, or ends its goroutine as
// testing's FailNow does, InTx rolls back and the panic goes on. If ctx ends, the
// error matches ctx.Err().
//
// An InTx inside of fn has a transaction of its own. When it has given up, the one
// around it does not start over.
//
// fn must not use the transaction after it has returned, nor commit or roll back by
// itself. On MySQL a statement that changes a table's schema commits too.
func InTx(ctx context.Context, db *sqlx.DB, opts *sql.TxOptions, fn func(*sqlx.Tx) error) error {
	if db == nil || db.DB == nil {
		return fmt.Errorf("%w: InTx got a nil *sqlx.DB", ErrDB)
	}
	if fn == nil {
		return fmt.Errorf("%w: InTx got a nil function", ErrArgument)
	}
	return (&attempts{db: db, opts: opts, fn: fn}).run(ctx)
}

const (
	// maxAttempts bounds the runs of one InTx. The delays between them add up to
	// three seconds at most. A conflict that lasts longer is an error that somebody
	// should see.
	maxAttempts = 10
	// firstDelay is about as long as a transaction of a few statements. The loser
	// waits for that.
	firstDelay = 10 * time.Millisecond
	maxDelay   = time.Second
)

// attempts runs a function in one transaction after the other until one is
// committed.
//
// The rule is that at most one of them is ever committed. As long as every attempt
// is known to be rolled back, the next one may do anything. After one in doubt it
// may not. That commit may be late, on a network or waiting for a disk. It may
// happen at any time, even after a look at the table has found nothing. The primary
// key keeps the next attempt from being committed as well, because it has to insert
// the same keys. If the transaction in doubt is committed by then, that is a
// duplicate key. If it is open, the insert waits until it is not. If the insert
// succeeds, the one in doubt is rolled back and stays so.
type attempts struct {
	db   beginner
	opts *sql.TxOptions
	fn   func(*sqlx.Tx) error

	// Of the last attempt in doubt. There may be several. All those after the first
	// have inserted the same keys. So a row proves that one of them is committed.
	doubt    *record // nil if there was none
	doubtErr error
}

func (a *attempts) run(ctx context.Context) error {
	for n := 1; ; n++ {
		o, rec, err := a.try(ctx)
		switch {
		case o == committed:
			return nil
		case o == inDoubt:
			if a.harmless(rec) {
				return err
			}
			a.doubt, a.doubtErr = rec, err
			stored, problem := rec.stored(ctx, a.db)
			if stored {
				return nil
			}
			if problem != nil { // not wrapped: a timeout of the look is not the caller's
				return fmt.Errorf("%w: %w; %s", ErrCommitUnknown, err, problem.Error())
			}
		case o != rolledBack || !sqlerror.Retryable(err) || gaveUp(err):
			return a.resolve(ctx, err)
		}
		if n == maxAttempts {
			return a.resolve(ctx, &attemptsError{n, err})
		}
		if ended := wait.Sleep(ctx, delay(n)); ended != nil {
			return a.resolve(ctx, fmt.Errorf("sqlxhelper: %w; before that, in attempt %d: %w", ended, n, err))
		}
	}
}

// errOtherKeys ends an attempt that would not have met the one in doubt in the
// database.
var errOtherKeys = errors.New("the next attempt has other keys and is rolled back; rows that are made outside of the function keep theirs")

// try is one attempt, with what its helpers have inserted.
func (a *attempts) try(ctx context.Context) (outcome, *record, error) {
	rec := &record{}
	o, err := attempt(ctx, a.db, a.opts, func(tx *sqlx.Tx) error {
		watched.Store(tx.Tx, rec)
		defer watched.Delete(tx.Tx) // also after a panic
		if err := a.fn(tx); err != nil {
			return err
		}
		if err := rec.usable(); err != nil {
			return err // which fn has swallowed, and rows with it
		}
		if a.doubt != nil && !a.doubt.equal(rec) {
			return errOtherKeys
		}
		return nil
	})
	if o == rolledBack && rec.strayed() {
		o = abandoned // not to do again what may be stored
	}
	if o == committed && ctx.Err() != nil && rec.ensurable() {
		// lib/pq sends a cancel request when ctx ends. PostgreSQL then waits no longer for
		// its synchronous standby, and says that it has committed.
		o, err = inDoubt, fmt.Errorf("sqlxhelper: commit: %w", ctx.Err())
	}
	return o, rec, err
}

// harmless reports whether it does not matter if an attempt is committed. It was to
// read only, and no helper has written. Some drivers allow writes there.
func (a *attempts) harmless(rec *record) bool {
	return a.opts != nil && a.opts.ReadOnly && rec.empty()
}

// resolve ends the attempts with err. If one was in doubt, its rows are looked for
// again. A duplicate key says that its commit was only late. So may any other
// error, for instance of a function that finds the goods of its own order sold.
func (a *attempts) resolve(ctx context.Context, err error) error {
	if a.doubt == nil {
		return err
	}
	stored, problem := a.doubt.stored(ctx, a.db)
	if stored {
		return nil
	}
	if problem != nil {
		err = fmt.Errorf("%w; %s", err, problem.Error())
	}
	if errors.Is(err, a.doubtErr) { // no attempt since
		return fmt.Errorf("%w: %w", ErrCommitUnknown, err)
	}
	return fmt.Errorf("%w: %w; after that %w", ErrCommitUnknown, a.doubtErr, err)
}

// An attemptsError is the error after the last attempt. It has a type so that an
// InTx around it does not multiply the attempts.
type attemptsError struct {
	n   int
	err error
}

func (e *attemptsError) Error() string {
	return fmt.Sprintf("sqlxhelper: %d attempts: %v", e.n, e.err)
}

func (e *attemptsError) Unwrap() error { return e.err }

// gaveUp reports whether err is from an InTx inside of the function. That one has
// tried long enough, or must not run again. A new start would forget which keys are
// in doubt.
func gaveUp(err error) bool {
	var inner *attemptsError
	return errors.As(err, &inner) || errors.Is(err, ErrCommitUnknown)
}

// delay returns how long to wait after the nth attempt: a random time, up to a
// limit that doubles. Two transactions that wait for the same time would meet
// again. n may be large, because there can be many looks for a row.
func delay(n int) time.Duration {
	return rand.N(min(firstDelay<<min(n-1, 10), maxDelay))
}
