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
// fn may run up to ten times. It must have no effects but those on its transaction and on
// variables that each run sets anew. It runs again only if the run before is certainly
// rolled back, because fn, the beginning or the commit returned a serialization failure or
// a deadlock and the rollback succeeded, or because the answer to the commit was lost and
// the transaction turned out to be over without being committed. The errors are 40001 and
// 40P01 of PostgreSQL, 1213, 1205 and 1020 of MySQL and MariaDB, and busy of SQLite.
// MySQL's group replication also says 3101, and 1180 with the text "error 149"; TiDB says
// 8002, 8022, 8028 and 9007.
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
// When InTx returns nil, the run that was committed is the last one, so what it has set in
// memory is what is stored: rows, and numbers that fn took from a counter.
//
// # When the answer to the commit is lost
//
// If the connection breaks during the commit, the rows may be stored or not, or may be
// stored later, by a COMMIT that is still on its way. The same is true if the driver closes
// the connection because ctx ends. InTx then finds out, on other connections of db, until
// ctx ends and one second longer. Without a deadline it takes a minute at most. It looks
// for a row whose key a [Helper] has inserted in fn.
//
//   - If the row is there, the commit has taken place, and InTx returns nil. On
//     PostgreSQL it first waits for the synchronous standby, if there is one.
//   - If the row is not there and the transaction is over, it is rolled back, and fn runs
//     again unless ctx has ended. On PostgreSQL it is over when no transaction is left that
//     has held a lock on these tables since. MySQL, MariaDB and SQLite answer the look only
//     when it is over.
//   - Otherwise the error matches [ErrCommitUnknown] and is an [*UnknownError]: if no Helper
//     has inserted anything, if the transaction stays open, or if this server cannot know.
//     That is a replica, Galera, a group replication with several primaries, and databases
//     that only speak like PostgreSQL or MySQL.
//
// If opts says ReadOnly and no Helper has inserted anything, the error of the commit is
// returned.
//
// The rows of a Helper count if it was given the *sqlx.Tx of fn, or a type around it as
// [DB] describes, and if they were not there before, as those of an upsert may be. The name
// of the table must mean the same on another connection, unlike that of a temporary one. Do
// not delete such rows in fn, even to insert them anew. Nor may it roll back the last row
// of a table to a savepoint of its own.
//
// # Errors
//
// If fn returns an error that does not make it run again, the transaction is rolled
// back. InTx returns that error, joined with one of the rollback. After the tenth run
// the error says so and wraps the last one. If fn panics, or ends its goroutine as
// testing's FailNow does, InTx rolls back and the panic goes on. If ctx ends, the
// error matches ctx.Err().
//
// InTx returns a second after the end of ctx at most, once fn has returned. In a statement
// of fn's own, lib/pq may wait on for a server that is silent.
//
// An InTx inside of fn has a transaction of its own. When it has given up, the one
// around it does not start over.
//
// fn must not use the transaction after it has returned, nor commit or roll back by
// itself. On MySQL a statement that changes a table's schema commits too.
//
// [Helper.InTx] does the same with the options of a Helper.
func InTx(ctx context.Context, db *sqlx.DB, opts *sql.TxOptions, fn func(*sqlx.Tx) error) error {
	return (&Helper{}).InTx(ctx, db, opts, fn)
}

// InTx is the function of that name for a database that an option of h describes, by
// [WithDialect] or [WithPartialCommits].
func (h *Helper) InTx(ctx context.Context, db *sqlx.DB, opts *sql.TxOptions, fn func(*sqlx.Tx) error) error {
	if db == nil || db.DB == nil {
		return fmt.Errorf("%w: InTx got a nil *sqlx.DB", ErrDB)
	}
	if fn == nil {
		return fmt.Errorf("%w: InTx got a nil function", ErrArgument)
	}
	d, err := h.dialectFor(db)
	if err != nil && h.config.dialect != nil {
		return err
	}
	return (&attempts{db: db, dialect: d, heeds: heedingOf(db, d), partial: h.config.partial, opts: opts, fn: fn}).run(ctx)
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
// At most one of them ever is: the next one begins only when the one before is over and
// rolled back, by its error or by what [doubt.settle] has found out. It would not do to run again
// while a COMMIT may be on its way, and to let equal keys keep the two apart. Then the late
// one is stored, and what the function has set in memory meanwhile is not.
type attempts struct {
	db      beginner
	dialect *traits // nil: not known
	heeds   heeding
	partial bool
	opts    *sql.TxOptions
	fn      func(*sqlx.Tx) error

	lost []proof // of the last attempt that is lost
}

func (a *attempts) run(ctx context.Context) error {
	for n := 1; ; n++ {
		o, proofs, err := a.try(ctx)
		switch {
		case o == committed:
			return nil
		case o == lost:
			a.lost = proofs
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

// try is one attempt. It returns the rows by which its outcome can be told.
func (a *attempts) try(ctx context.Context) (outcome, []proof, error) {
	t := &transaction{db: a.db, dialect: a.dialect, heeds: a.heeds, partial: a.partial, opts: a.opts}
	o, err := t.run(ctx, t.watched(a.fn))
	if o == rolledBack && t.record.strayed() {
		o = abandoned // not to do again what may be stored
	}
	return o, t.record.proofs(), err
}

// resolve ends the attempts with err. If an attempt before was lost and err is a duplicate
// key, its rows are looked for once more. They are not there, unless the database is none
// of those that settle knows.
func (a *attempts) resolve(ctx context.Context, err error) error {
	if a.lost == nil || !sqlerror.DuplicateKey(err) {
		return err
	}
	if o, _ := (doubt{db: a.db, dialect: a.dialect, heeds: a.heeds, proofs: a.lost}).settle(ctx); o == committed {
		return unknown(ctx, err, errEarlier, a.lost)
	}
	return err
}

// errEarlier is why memory and table may differ.
var errEarlier = errors.New("rows of an earlier run are stored after all: read them again, with all that the function took from the database")

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
