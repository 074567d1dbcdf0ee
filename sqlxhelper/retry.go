package sqlxhelper

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/wait"
)

// InTx runs fn in a transaction and commits if fn returns nil. It begins the transaction with
// opts, where nil means the driver's defaults.
//
// # When fn runs again
//
// InTx runs fn up to ten times, so fn must have no effects except on its transaction and on
// variables that each run sets anew. It runs fn again only if the previous run is certainly
// rolled back: because fn, the beginning or the commit returned a serialization failure or a
// deadlock and the rollback succeeded, or because the answer to the commit was lost and the
// transaction turned out to be over without being committed. The errors are 40001 and 40P01
// of PostgreSQL, 1213, 1205 and 1020 of MySQL and MariaDB, 3101, and 1180 with the text
// "error 149", of MySQL's group replication, 8002, 8022, 8028 and 9007 of TiDB, and SQLite's
// busy.
//
// fn must therefore return an error of the database at once, wrapped with %w. If the error
// came from a [Helper] and matches [ErrTxBroken], all further calls of Helpers on the
// transaction fail, and nothing is committed.
//
// Between two runs InTx waits a random time, up to 10 ms after the first run and up to 1 s
// after the last ones, but no longer than ctx. Rows that are created outside of fn keep their
// keys in every run; rows that are created inside get new ones.
//
// When InTx returns nil, the last run is the one that was committed, so that the variables it
// has set, rows as well as numbers that fn took from a counter, agree with what is stored.
//
// # When the answer to the commit is lost
//
// If the connection breaks during the commit, or the driver closes it because ctx ends, the
// rows may be stored or not, or may still be stored by a COMMIT that is on its way. InTx then
// uses other connections of db to find out, until one second after ctx ends, or for a minute
// at most without a deadline.
//
// On PostgreSQL it asks for the ID of the transaction, which the first insert of a [Helper] in fn
// has read, by one round trip. The ID tells nothing on another server and after a crash, and
// versions before 10 do not tell it. There, and on other databases, InTx looks for a row whose
// key a Helper has inserted in fn:
//
//   - If the row is there, the transaction is committed and InTx returns nil. On PostgreSQL
//     it first waits for the synchronous standby, if there is one.
//   - If the row is not there and the transaction is over, it was rolled back, and fn runs
//     again unless ctx has ended. On PostgreSQL the transaction is over when none is left that
//     has held a lock on these tables since. MySQL, MariaDB and SQLite answer the query only
//     when it is over.
//   - Otherwise the error matches [ErrCommitUnknown] and is an [*UnknownError]. This happens
//     if no Helper has inserted anything; if the transaction stays open; if the row may be
//     hidden, by row level security, a rule, a view, or an attached file of SQLite, or may be in
//     a table of the same name in another schema, or in another database of MySQL, which has a
//     row with that key; and if the server cannot know: a replica, Galera, a group replication
//     with several primaries, and databases that merely speak the protocol of PostgreSQL or MySQL.
//
// If opts says ReadOnly and no Helper has inserted anything, InTx returns the error of the
// commit.
//
// The rows of a Helper count if it was given the *sqlx.Tx of fn, or a type around it as [DB]
// describes, and if they cannot have been there before, as those of an upsert can. Where the ID
// does not tell, they must not be in a temporary table, whose name has another meaning on another
// connection, and fn must not delete them, even to insert them anew, nor roll back the last row of
// a table to a savepoint of its own.
//
// # Errors
//
// If fn returns an error that does not make it run again, InTx rolls back and returns that
// error, joined with one of the rollback. After the tenth run the error says so and wraps the
// last one. If fn panics, or ends its goroutine as testing's FailNow does, InTx rolls back and
// the panic continues. If ctx ends, the error matches ctx.Err().
//
// InTx returns at most a second after ctx ends, once fn has returned. A statement of fn's own
// can block for longer, because lib/pq goes on waiting for a server that is silent.
//
// An InTx inside of fn has a transaction of its own. When it has given up, the outer one does
// not start over.
//
// fn must neither use the transaction after it has returned nor end it by itself. On MySQL a
// statement that changes a table's schema commits too.
//
// [Helper.InTx] does the same with the options of a Helper.
func InTx(ctx context.Context, db *sqlx.DB, opts *sql.TxOptions, fn func(*sqlx.Tx) error) error {
	return (&Helper{}).InTx(ctx, db, opts, fn)
}

// InTx is the function [InTx] for a database that needs the options [WithDialect] or
// [WithPartialCommits] of h.
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
	return (&attempts{db: db, dialect: d, honors: honoringOf(db, d), partial: h.config.partial, opts: opts, fn: fn}).run(ctx)
}

// What runs again, and how often. Everything else is sent once.
const (
	// maxSends is how often a single statement without an answer is sent, as database/sql does,
	// see single. The look between two of them takes idle connections that the server has ended
	// out of the pool, and leaves one that works.
	maxSends = 3
	// stalePlans is how often a call sends its rows per load, see retryStale. A load has three or
	// four texts of look-ups as a rule, and each may fail once on each connection.
	stalePlans = 8
	// maxAttempts bounds the runs of one InTx. The delays between them add up to three seconds
	// at most, and a conflict that lasts longer should become visible.
	maxAttempts = 10
	// firstDelay is about the duration of a short transaction, for which the loser waits.
	firstDelay = 10 * time.Millisecond
	maxDelay   = time.Second
)

// attempts runs a function in one transaction after the other until one is committed.
//
// At most one of them is ever committed, because the next one begins only when the one before
// is known to be rolled back, by its error or by [doubt.settle]. Running again while a COMMIT
// may be on its way, and relying on equal keys to keep the two apart, would not be enough: the
// late one could be stored, and differ from the values that the function has set in memory
// meanwhile.
type attempts struct {
	db      beginner
	dialect *traits // nil: not known
	honors  honoring
	partial bool
	opts    *sql.TxOptions
	fn      func(*sqlx.Tx) error

	lost *record // of the last attempt whose outcome is lost
}

func (a *attempts) run(ctx context.Context) error {
	for n := 1; ; n++ {
		o, made, err := a.try(ctx)
		switch {
		case o == committed:
			return nil
		case o == lost:
			a.lost = made
		case o != rolledBack || !dialect.Retryable(err) || gaveUp(err):
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

// try makes one attempt, and returns what proves its outcome.
func (a *attempts) try(ctx context.Context) (outcome, *record, error) {
	t := &transaction{db: a.db, dialect: a.dialect, honors: a.honors, partial: a.partial, opts: a.opts}
	o, err := t.run(ctx, t.watched(a.fn))
	if o == rolledBack && t.record.strayed() {
		o = abandoned // something may be stored
	}
	return o, &t.record, err
}

// resolve ends the attempts with err. If an earlier attempt was lost and err is a duplicate
// key, it looks for the rows of that attempt once more. They are not there, unless settle
// misjudges the database.
func (a *attempts) resolve(ctx context.Context, err error) error {
	if a.lost == nil || !dialect.DuplicateKey(err) {
		return err
	}
	d := doubt{db: a.db, dialect: a.dialect, honors: a.honors, xact: a.lost.xact, proofs: a.lost.proofs()}
	if o, _ := d.settle(ctx); o == committed {
		return unknown(ctx, err, errEarlier, d.proofs)
	}
	return err
}

// errEarlier says why memory and table may differ.
var errEarlier = errors.New("rows of an earlier run are stored after all: read them again, with all that the function took from the database")

// An attemptsError is the error of the last attempt. Its type keeps an InTx around it from
// multiplying the attempts.
type attemptsError struct {
	n   int
	err error
}

func (e *attemptsError) Error() string {
	return fmt.Sprintf("sqlxhelper: %d attempts: %v", e.n, e.err)
}

func (e *attemptsError) Unwrap() error { return e.err }

// gaveUp reports whether err comes from an InTx inside of the function that has made all its
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

// resend sends all rows, and sends them again after a look-up has failed because a table
// has changed since pgx prepared the look-up on this connection. Everything that was sent is
// undone then, and pgx prepares that look-up anew; others that were prepared before, here and
// on other connections, fail once each.
func (w *writer) retryStale(ctx context.Context, send func() error) error {
	for try := 1; ; try++ {
		err := send()
		if err == nil || !w.stale || try > stalePlans*len(w.loads) || errors.Is(err, ErrTxBroken) || ctx.Err() != nil {
			return err
		}
		w.restart(err)
	}
}

// restart resets w after an attempt that has failed with err.
func (w *writer) restart(err error) {
	w.restoreKeys()
	w.learn(err)
	w.stale, w.readings, w.failed, w.tables = false, nil, nil, nil
	for i := range w.loads {
		w.loads[i].affected = 0
	}
}
