package sqlxhelper_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/internal/proof/servers/drivererrors"
	"github.com/snowkey/snowkey/sqlxhelper"
)

// A failing is a transaction in which statements that begin so fail. They fail
// once, or all fail from then on, as on a closed connection.
type failing struct {
	*sqlx.Tx
	begins string
	err    error
	closes bool
	after  bool // the statement fails after the database has run it
	cancel context.CancelFunc

	failed *bool
}

func (f failing) ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error) {
	if *f.failed && f.closes {
		return nil, f.err
	}
	if *f.failed || !strings.HasPrefix(text, f.begins) {
		return f.Tx.ExecContext(ctx, text, args...)
	}
	*f.failed = true
	if f.after {
		if _, err := f.Tx.ExecContext(ctx, text, args...); err != nil {
			return nil, err
		}
	}
	f.cancel()
	return nil, f.err
}

// Any statement of a call may cost the transaction. The error says so, and names
// the context that has ended.
func TestCallThatCostsTheTransactionSaysSo(t *testing.T) {
	for _, begins := range []string{"SAVEPOINT", "INSERT", "RELEASE", "ROLLBACK TO"} {
		for _, canceled := range []bool{false, true} {
			for name, said := range map[string]error{"BadConn": driver.ErrBadConn, "TxDone": sql.ErrTxDone, "Mine": errMine} {
				t.Run(fmt.Sprint(begins, name, canceled), func(t *testing.T) {
					ending, cancel := context.WithCancel(ctx)
					defer cancel()
					db := openSQLite(t)
					db.MustExec("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)")
					tx := db.MustBegin()
					defer func() { _ = tx.Rollback() }()
					f := failing{Tx: tx, begins: begins, err: said, closes: true, cancel: func() {}, failed: new(bool)}
					if canceled {
						f.cancel = cancel
					}
					rows := make([]pair, 3)
					if begins == "ROLLBACK TO" { // which a call sends that has failed
						rows[1].ID, rows[2].ID = 7, 7
					}
					err := newHelper(sqlxhelper.SQLite).InsertMany(ending, f, "t", rows)
					if !*f.failed || !errors.Is(err, sqlxhelper.ErrTxBroken) || !errors.Is(err, said) {
						t.Errorf("InsertMany(%s fails) = %v; want ErrTxBroken and %v", begins, err, said)
					}
					if canceled && !errors.Is(err, context.Canceled) {
						t.Errorf("InsertMany(%s is canceled) = %v; want context.Canceled too", begins, err)
					}
				})
			}
		}
	}
}

// A statement of a call that fails, while the connection is fine, costs nothing.
func TestCallThatFailsWithoutCostingTheTransactionDoesNotSayBroken(t *testing.T) {
	for _, begins := range []string{"SAVEPOINT", "INSERT"} {
		for _, after := range []bool{false, true} {
			for _, canceled := range []bool{false, true} {
				t.Run(fmt.Sprint(begins, after, canceled), func(t *testing.T) {
					ending, cancel := context.WithCancel(ctx)
					defer cancel()
					db := openSQLite(t)
					db.MustExec("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)")
					tx := db.MustBegin()
					tx.MustExec("INSERT INTO t VALUES (1000, 0)")
					f := failing{Tx: tx, begins: begins, err: errMine, after: after, cancel: func() {}, failed: new(bool)}
					if canceled {
						f.cancel = cancel
					}
					err := newHelper(sqlxhelper.SQLite).InsertMany(ending, f, "t", make([]pair, 3))
					if !*f.failed || !errors.Is(err, errMine) || errors.Is(err, sqlxhelper.ErrTxBroken) {
						t.Errorf("InsertMany(%s fails, after it was run: %v) = %v; want %v and not ErrTxBroken", begins, after, err, errMine)
					}
					if err := newHelper(sqlxhelper.SQLite).InsertMany(ctx, tx, "t", make([]pair, 2)); err != nil {
						t.Errorf("InsertMany(after %s has failed, after it was run: %v) = %v; want nil", begins, after, err)
					}
					if err := tx.Commit(); err != nil {
						t.Errorf("Commit() = %v; want nil", err)
					}
					wantRows(t, db, "t", 3)
				})
			}
		}
	}
}

// pgx calls the connection bad if ctx ended before it had sent anything. The
// transaction goes on then. Other drivers have other words.
func TestCallWhoseContextEndedDuringItsStatementNamesTheContext(t *testing.T) {
	for _, said := range []error{
		driver.ErrBadConn, sql.ErrConnDone, net.ErrClosed,
		&net.OpError{Op: "read", Net: "tcp", Err: net.ErrClosed},
		drivererrors.Postgres("57014"), drivererrors.MySQL(1317),
	} {
		ending, cancel := context.WithCancel(ctx)
		db := openSQLite(t)
		db.MustExec("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)")
		tx := db.MustBegin()
		f := failing{Tx: tx, begins: "INSERT", err: said, cancel: cancel, failed: new(bool)}
		err := newHelper(sqlxhelper.SQLite).InsertMany(ending, f, "t", make([]pair, 3))
		if !errors.Is(err, context.Canceled) || !errors.Is(err, said) || errors.Is(err, sqlxhelper.ErrTxBroken) {
			t.Errorf("InsertMany(%v) = %v; want context.Canceled, and not ErrTxBroken", said, err)
		}
		if _, err := tx.Exec("INSERT INTO t VALUES (1, 1)"); err != nil {
			t.Errorf("%v: the next statement = %v; want no error", said, err)
		}
		_ = tx.Rollback()
	}
}

// A breaking is a pool whose one statement ends with the context.
type breaking struct {
	*sqlx.DB
	cancel context.CancelFunc
}

func (b breaking) ExecContext(context.Context, string, ...any) (sql.Result, error) {
	b.cancel()
	return nil, net.ErrClosed
}

func TestStatementWithoutATransactionNamesTheContextToo(t *testing.T) {
	ending, cancel := context.WithCancel(ctx)
	err := newHelper(sqlxhelper.PostgreSQL).Insert(ending, breaking{openSQLite(t), cancel}, "t", &pair{})
	if !errors.Is(err, context.Canceled) || !errors.Is(err, net.ErrClosed) {
		t.Errorf("Insert() = %v; want context.Canceled and %v", err, net.ErrClosed)
	}
}

// What the rows are to blame for comes with or without the end of a context.
func TestAnErrorOfTheRowsIsNotTakenForTheEndOfTheContext(t *testing.T) {
	ending, cancel := context.WithCancel(ctx)
	db := openSQLite(t)
	db.MustExec("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)")
	tx := db.MustBegin()
	defer func() { _ = tx.Rollback() }()
	duplicate := drivererrors.Mattn(2067)
	f := failing{Tx: tx, begins: "INSERT", err: duplicate, cancel: cancel, failed: new(bool)}
	err := newHelper(sqlxhelper.SQLite).InsertMany(ending, f, "t", make([]pair, 3))
	if !errors.Is(err, duplicate) || errors.Is(err, context.Canceled) {
		t.Errorf("InsertMany() = %v; want %v alone", err, duplicate)
	}
}
