package sqlxhelper

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/outcome"
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
//     if no Helper has inserted anything; if fn has ignored an error by which SQLite had ended
//     the transaction, and gone on; if the transaction stays open; if the row may be
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
	c := conn{pool: db}
	if err := h.setDriver(&c, db); err != nil && h.config.dialect != nil {
		return err
	}
	return inTx(ctx, c.database(h.config.partial), opts, fn)
}

// inTx runs fn in one transaction of d after the other until one is committed.
func inTx(ctx context.Context, d *outcome.Database, opts *sql.TxOptions, fn func(*sqlx.Tx) error) error {
	a := outcome.Attempts{Database: d, Opts: opts, Fn: func(tx outcome.Tx, r *outcome.Record) error { return watch(r, fn)(tx) }}
	return a.Run(ctx)
}

// database returns the pool of c as package outcome uses it.
func (c *conn) database(partial bool) *outcome.Database {
	pool := c.pool
	d := &outcome.Database{
		Begin: func(ctx context.Context, opts *sql.TxOptions) (outcome.Tx, error) {
			tx, err := pool.BeginTxx(ctx, opts)
			if err != nil {
				return nil, err
			}
			return tx, nil
		},
		Cancels: c.cancels, OneConnection: c.one, Partial: partial, Package: "sqlxhelper", Duplicate: ErrDuplicateKey,
	}
	if c.dialect != nil {
		d.Dialect = c.dialect.Dialect
	}
	if c.hidesPooler {
		d.BeginFailed = func(ctx context.Context, err error) error { return explainBegin(ctx, pool, err) }
	}
	return d
}

// explainBegin adds to the error of a BEGIN that the database still accepts statements. PgBouncer
// in statement mode ends the connection and gives a reason; by then database/sql has tried other
// connections.
func explainBegin(ctx context.Context, pool beginner, err error) error {
	if db, ok := pool.(sqlx.ExecerContext); ok && errors.Is(err, driver.ErrBadConn) {
		if _, failed := outcome.Exec(ctx, 0, db, "SELECT 1"); failed == nil {
			return fmt.Errorf("%w: %w", dialect.ErrNoTransactions, err)
		}
	}
	return err
}

// withTx returns fn for a transaction of [database].
func withTx(fn func(*sqlx.Tx) error) func(outcome.Tx) error {
	return func(tx outcome.Tx) error { return fn(tx.(*sqlx.Tx)) }
}

// watched maps the *sql.Tx of all running InTx to their *outcome.Record. It is a variable of the
// process because InTx and a Helper have only the transaction in common, in which nothing can
// be stored. The key is the *sql.Tx because Unsafe makes another *sqlx.Tx around it.
var watched sync.Map

// watch is withTx, and records in r what Helpers insert in the transaction.
func watch(r *outcome.Record, fn func(*sqlx.Tx) error) func(outcome.Tx) error {
	return withTx(func(tx *sqlx.Tx) error {
		watched.Store(tx.Tx, r)
		defer watched.Delete(tx.Tx) // also after a panic
		if err := fn(tx); err != nil {
			return err
		}
		return usable(r) // fn may have ignored an error
	})
}

// recordOf returns the record of the InTx in whose transaction db inserts, or nil. db has
// passed connect.
func recordOf(db DB) *outcome.Record {
	all := layers(db)
	if w, ok := db.(within); ok {
		if inner, ok := w.ExtContext.(DB); ok {
			all = layers(inner)
		}
	}
	for _, layer := range all {
		// *sqlx.Tx has the method, and so has a type that embeds it.
		tx, ok := layer.(interface{ Unsafe() *sqlx.Tx })
		if !ok {
			continue
		}
		if r, ok := watched.Load(tx.Unsafe().Tx); ok {
			return r.(*outcome.Record)
		}
	}
	return nil
}
