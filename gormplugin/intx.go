package gormplugin

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"

	"gorm.io/gorm"

	"github.com/snowkey/snowkey/internal/base/outcome"
)

// InTx runs fn in a transaction and commits if fn returns nil, as db.Transaction does. It also runs
// fn again after a deadlock, and finds out whether a commit took place whose answer was lost. It
// begins the transaction with ctx and opts, where nil means the driver's defaults. db has the
// plugin:
//
//	err := gormplugin.InTx(ctx, db, nil, func(tx *gorm.DB) error {
//		return tx.Create(&order).Error
//	})
//
// # When fn runs again
//
// InTx runs fn up to ten times, so fn must have no effects except on its transaction and on
// variables that each run sets anew. It runs fn again only if the previous run is certainly
// rolled back: because fn, the beginning or the commit returned a serialization failure or a
// deadlock and the rollback succeeded, or because the answer to the commit was lost and the
// transaction turned out to be over without being committed. The errors are 40001 and 40P01
// of PostgreSQL, 1213, 1205 and 1020 of MySQL and MariaDB, 3101, and 1180 with the text
// "error 149", of MySQL's group replication, 8002, 8022, 8028 and 9007 of TiDB, SQLite's busy, and
// [ErrTableChanged].
//
// fn must therefore return an error of the database at once, wrapped with %w. If MySQL or MariaDB
// has answered one of them and fn goes on, its creates, updates and deletes fail with
// [ErrTxBroken], and nothing is committed.
//
// Between two runs InTx waits a random time, up to 10 ms after the first run and up to 1 s
// after the last ones, but no longer than ctx. Rows that are created outside of fn keep their
// keys in every run, and rows that are created inside get new ones. A key that the database
// counts stays in its row after a run, so make such rows inside.
//
// When InTx returns nil, the last run is the one that was committed, so that the variables it
// has set agree with what is stored.
//
// # When the answer to the commit is lost
//
// If the connection breaks during the commit, or the driver closes it because ctx ends, the
// rows may be stored or not, or may still be stored by a COMMIT that is on its way. InTx then
// uses other connections of db to find out, until one second after ctx ends, or for a minute
// at most without a deadline.
//
// On PostgreSQL it asks for the ID of the transaction, which the plugin has read before GORM's
// first create, update or delete in fn, by one round trip. The ID tells nothing on another server
// and after a crash, and versions before 10 do not tell it. There, and on other databases, InTx
// looks for a row that was created in fn under a key of the plugin, or under one that was set
// before:
//
//   - If the row is there, the transaction is committed and InTx returns nil. On PostgreSQL
//     it first waits for the synchronous standby, if there is one.
//   - If the row is not there and the transaction is over, it was rolled back, and fn runs
//     again unless ctx has ended. On PostgreSQL the transaction is over when none is left that
//     has held a lock on these tables since. MySQL, MariaDB and SQLite answer the query only
//     when it is over.
//   - Otherwise the error matches [ErrCommitUnknown] and is an [*UnknownError]. This happens if no
//     such row was created, as with raw SQL alone; if fn has ignored an error by which SQLite had
//     ended the transaction, and gone on; if the transaction stays open; if the row may
//     be hidden, by row level security, a rule, a view, or an attached file of SQLite, or may be
//     in a table of the same name in another schema, or in another database of MySQL, which has a
//     row with that key; if db is one connection, see db.Connection; and if the server cannot
//     know: a replica, Galera, a group replication with several primaries, and databases that
//     merely speak the protocol of PostgreSQL or MySQL.
//
// If opts says ReadOnly and fn has written nothing, InTx returns the error of the commit.
//
// A row counts if it cannot have been there before, as that of an upsert can unless it was
// inserted under a new key. It must not be in a temporary table, whose name has another meaning on
// another connection. What fn does through GORM is taken into account: a savepoint to which it
// rolls back, such as that of a tx.Transaction that fails, and a delete, a new value of a key or
// raw SQL, after which the rows may be gone. Before the commit, one SELECT a table shows which are
// there; PostgreSQL is not asked, where the ID tells.
//
// # Sessions
//
// Conditions and settings of db apply in fn, as in db.Transaction. With the plugin dbresolver, InTx
// uses the source that db.Begin would. If ctx has no deadline, DefaultTransactionTimeout of
// gorm.Config bounds all runs together.
//
// # Errors
//
// If fn returns an error that does not make it run again, InTx rolls back and returns that
// error, joined with one of the rollback. After the tenth run the error says so and wraps the
// last one. If fn panics, or ends its goroutine as testing's FailNow does, InTx rolls back and
// the panic continues. If ctx ends, the error matches ctx.Err(). With TranslateError the error of
// the commit matches what GORM translates it to.
//
// InTx returns at most a second after ctx ends, once fn has returned. A statement of fn's own
// can block for longer, because lib/pq goes on waiting for a server that is silent.
//
// A transaction cannot begin again inside of another one: a db that is one, such as the tx of fn, or
// one connection on which a statement has begun one, is [ErrInTransaction]. For a savepoint call tx.Transaction. An InTx inside of fn on the database
// itself has a transaction of its own, and when it has given up, the outer one does not start over.
//
// Before it begins, InTx also returns the error that db has from before, [ErrNotInstalled],
// gorm.ErrInvalidDB, and gorm.ErrInvalidValue for a nil fn.
//
// fn must neither use the transaction after it has returned nor end it by itself. On MySQL a
// statement that changes a table's schema commits too.
func InTx(ctx context.Context, db *gorm.DB, opts *sql.TxOptions, fn func(tx *gorm.DB) error) error {
	p, err := inTxOn(db, fn)
	if err != nil {
		return fmt.Errorf("gormplugin: InTx: %w", err)
	}
	if limit := db.DefaultTransactionTimeout; limit > 0 {
		if _, ok := ctx.Deadline(); !ok {
			limited, cancel := context.WithTimeout(ctx, limit)
			defer cancel()
			ctx = limited
		}
	}
	on := transactionsOf(db)
	a := outcome.Attempts{Database: on, Opts: opts, Fn: func(tx outcome.Tx, r *outcome.Record) error {
		if err := p.watch(tx.(*transaction), r, fn); err != nil {
			return err
		}
		if err := broken(r); err != nil {
			return err // which fn has ignored
		}
		if err := r.Recheck(ctx, on.Cancels, tx); err != nil {
			return fmt.Errorf("gormplugin: look for the rows before the commit: %w", err)
		}
		return nil
	}}
	return a.Run(ctx)
}

// inTxOn returns the plugin on db, or why InTx cannot begin.
func inTxOn(db *gorm.DB, fn func(*gorm.DB) error) (*Plugin, error) {
	switch {
	case db == nil || db.Config == nil || db.Statement == nil || db.Dialector == nil:
		return nil, gorm.ErrInvalidDB
	case fn == nil:
		return nil, fmt.Errorf("%w: a nil function", gorm.ErrInvalidValue)
	case db.Error != nil:
		return nil, fmt.Errorf("the db has an error from before: %w", db.Error)
	case isTransaction(db.Statement.ConnPool):
		return nil, ErrInTransaction
	}
	p, _ := db.Plugins[pluginName].(*Plugin)
	if p == nil {
		return nil, ErrNotInstalled
	}
	return p, inPlace(db)
}

// isTransaction reports whether pool is what GORM takes for a transaction.
func isTransaction(pool gorm.ConnPool) bool {
	committer, ok := pool.(gorm.TxCommitter)
	return ok && committer != nil
}

// transactionsOf returns db as package outcome uses it.
func transactionsOf(db *gorm.DB) *outcome.Database {
	c, one := bare(db.Statement.ConnPool).(*sql.Conn)
	d := &outcome.Database{
		Begin: func(ctx context.Context, opts *sql.TxOptions) (outcome.Tx, error) {
			if one { // in the transaction of a raw BEGIN, a second one of MySQL would commit it
				switch open, err := outcome.InTransaction(ctx, traitsOf(db).Dialect, c); {
				case err != nil:
					return nil, err
				case open:
					return nil, ErrInTransaction
				}
			}
			tx := db.WithContext(ctx).Begin(opts)
			if tx.Error != nil {
				return nil, tx.Error
			}
			return &transaction{bare(tx.Statement.ConnPool), tx}, nil
		},
		Dialect: traitsOf(db).Dialect, Package: "gormplugin", Duplicate: gorm.ErrDuplicatedKey, OneConnection: one,
	}
	// Which driver it is GORM does not tell, and programs wrap drivers. Where one may not end a
	// call with its context, a goroutine waits for it, which takes some microseconds.
	if traitsOf(db).EndsCalls {
		d.Cancels = outcome.CancelsAll
	}
	return d
}

// A transaction is one that [InTx] has begun. Its own statements are not kept prepared.
type transaction struct {
	gorm.ConnPool
	db *gorm.DB
}

// Commit commits the transaction. GORM's Commit would keep only the translation of an error,
// which says less of what became of the transaction.
func (t *transaction) Commit() error {
	err := t.db.Statement.ConnPool.(gorm.TxCommitter).Commit()
	if translator, ok := t.db.Dialector.(gorm.ErrorTranslator); ok && err != nil && t.db.TranslateError {
		if translated := translator.Translate(err); !errors.Is(err, translated) {
			err = fmt.Errorf("%w: %w", translated, err)
		}
	}
	return err
}

// Rollback rolls the transaction back.
func (t *transaction) Rollback() error {
	return t.db.Statement.ConnPool.(gorm.TxCommitter).Rollback()
}

// watch runs fn, and has the callbacks note in r what is written in the transaction.
func (p *Plugin) watch(t *transaction, r *outcome.Record, fn func(*gorm.DB) error) error {
	if reflect.ValueOf(t.ConnPool).Comparable() {
		p.records.Store(t.ConnPool, r)
		defer p.records.Delete(t.ConnPool) // also after a panic
	}
	return fn(t.db)
}

// recordOf returns what is noted of the transaction that pool is, if [InTx] has begun it, or nil.
//
// It goes by the pool because nothing else remains of a transaction in all of its sessions: a new
// statement loses GORM's settings, and WithContext the context.
func (p *Plugin) recordOf(pool gorm.ConnPool) *outcome.Record {
	if pool = bare(pool); !reflect.ValueOf(pool).Comparable() {
		return nil
	}
	r, _ := p.records.Load(pool)
	record, _ := r.(*outcome.Record)
	return record
}

// bare returns pool without the layers that keep statements prepared.
func bare(pool gorm.ConnPool) gorm.ConnPool {
	for {
		switch p := pool.(type) {
		case *gorm.PreparedStmtDB:
			pool = p.ConnPool
		case *gorm.PreparedStmtTX:
			pool = p.Tx
		default:
			return pool
		}
	}
}

// broken returns ErrTxBroken if the transaction of r is over.
func broken(r *outcome.Record) error {
	if why := r.Broken(); why != nil {
		// It is not wrapped, because only the caller that met it may decide to start over.
		return fmt.Errorf("%w: a statement before this has failed: %s", ErrTxBroken, why.Error())
	}
	return nil
}
