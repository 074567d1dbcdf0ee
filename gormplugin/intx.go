package gormplugin

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"

	"gorm.io/gorm"

	"github.com/snowkey/snowkey/internal/base/dialect"
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
// It does for GORM what [github.com/snowkey/snowkey/sqlxhelper.InTx] does for sqlx, whose comment says
// in full which errors make fn run again, how long InTx waits, and which servers cannot tell what
// became of a commit.
//
// # When fn runs again
//
// InTx runs fn up to ten times, so fn must have no effects except on its transaction and on
// variables that each run sets anew. It runs fn again only if the previous run is certainly rolled
// back: after a serialization failure, a deadlock, a busy SQLite or [ErrTableChanged], or if the
// answer to the commit was lost and the transaction turned out to be over without being committed.
// When InTx returns nil, the last run is the one that was committed.
//
// fn must therefore return an error of the database at once, wrapped with %w. If MySQL or MariaDB
// has answered one of them and fn goes on, its creates, updates and deletes fail with
// [ErrTxBroken], and nothing is committed.
//
// Rows that are created outside of fn keep their keys in every run, and rows that are created
// inside get new ones. A key that the database counts stays in its row after a run, so make such
// rows inside.
//
// # When the answer to the commit is lost
//
// InTx then uses other connections of db to find out, until one second after ctx ends, or for a
// minute at most without a deadline. On PostgreSQL it asks for the ID of the transaction, which the
// plugin has read before GORM's first create, update or delete in fn, by one round trip. Where that
// tells nothing, and on other databases, InTx looks for a row that was created in fn under a key of
// the plugin, or under one that was set before. If it cannot find out, the error matches
// [ErrCommitUnknown] and is an [*UnknownError]: also if no such row was created, as with raw SQL
// alone, and if db is one connection, see db.Connection. If opts says ReadOnly and fn has written
// nothing, InTx returns the error of the commit.
//
// A row counts if it cannot have been there before, as that of an upsert can unless it was
// inserted under a new key. What fn does through GORM is taken into account: a savepoint to which it
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
// If fn returns an error that does not make it run again, InTx rolls back and returns that error,
// joined with one of the rollback. If fn panics, InTx rolls back and the panic continues. If ctx
// ends, the error matches ctx.Err(), and InTx returns at most a second later, once fn has returned.
// With TranslateError the error of the commit matches what GORM translates it to.
//
// A transaction cannot begin again inside of another one: a db that is one, such as the tx of fn, or
// one connection on which a statement has begun one, is [ErrInTransaction]. For a savepoint call
// tx.Transaction. An InTx inside of fn on the database itself has a transaction of its own, and when
// it has given up, the outer one does not start over.
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
			if one && dialect.InTransaction(tx.Error) { // as SQLite says it, which was not asked
				return nil, ErrInTransaction
			}
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
