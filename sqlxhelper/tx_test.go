package sqlxhelper_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/sqlxhelper"
)

func TestInTxJoinsTheErrorOfTheRollback(t *testing.T) {
	db, mock := newMock(t)
	broken := errors.New("broken")
	mock.ExpectBegin()
	mock.ExpectRollback().WillReturnError(broken)
	err := sqlxhelper.InTx(ctx, db, nil, func(*sqlx.Tx) error { return errMine })
	if !errors.Is(err, errMine) || !errors.Is(err, broken) {
		t.Errorf("InTx() = %v; want %v and %v", err, errMine, broken)
	}
}

func TestInTxReturnsTheErrorOfItsFunctionAsItIs(t *testing.T) {
	db, mock := newMock(t)
	mock.ExpectBegin()
	mock.ExpectRollback()
	if err := sqlxhelper.InTx(ctx, db, nil, func(*sqlx.Tx) error { return errMine }); err != errMine {
		t.Errorf("InTx() = %v; want %v itself", err, errMine)
	}
}

func TestInTxWrapsTheErrorsOfBeginAndCommit(t *testing.T) {
	db, mock := newMock(t)
	mock.ExpectBegin().WillReturnError(errMine)
	called := false
	err := sqlxhelper.InTx(ctx, db, nil, func(*sqlx.Tx) error { called = true; return nil })
	if !errors.Is(err, errMine) || err.Error() != "sqlxhelper: begin: mine" || called {
		t.Errorf("InTx(begin fails) = %v, called %v; want %v, not called", err, called, errMine)
	}
	mock.ExpectBegin()
	mock.ExpectCommit().WillReturnError(errMine)
	err = sqlxhelper.InTx(ctx, db, nil, func(*sqlx.Tx) error { return nil })
	if !errors.Is(err, errMine) || err.Error() != "sqlxhelper: commit: mine" {
		t.Errorf("InTx(commit fails) = %v; want %v", err, errMine)
	}
}

func TestInTxRollsBackWhenItsGoroutineEnds(t *testing.T) {
	db, mock := newMock(t)
	mock.ExpectBegin()
	mock.ExpectRollback()
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = sqlxhelper.InTx(ctx, db, nil, func(*sqlx.Tx) error {
			runtime.Goexit()
			return nil
		})
	})
	wg.Wait()
}

// beginDriver is a driver that can only begin transactions, and records how.
type beginDriver struct{ got *driver.TxOptions }

func (d beginDriver) Connect(context.Context) (driver.Conn, error) { return d, nil }
func (d beginDriver) Driver() driver.Driver                        { return nil }
func (d beginDriver) Prepare(string) (driver.Stmt, error)          { return nil, errMine }
func (d beginDriver) Begin() (driver.Tx, error)                    { return nil, errMine }
func (d beginDriver) Close() error                                 { return nil }
func (d beginDriver) Commit() error                                { return nil }
func (d beginDriver) Rollback() error                              { return nil }

func (d beginDriver) BeginTx(_ context.Context, opts driver.TxOptions) (driver.Tx, error) {
	*d.got = opts
	return d, nil
}

func TestInTxPassesItsOptions(t *testing.T) {
	var got driver.TxOptions
	db := sqlx.NewDb(sql.OpenDB(beginDriver{&got}), "x")
	opts := &sql.TxOptions{Isolation: sql.LevelSerializable, ReadOnly: true}
	if err := sqlxhelper.InTx(ctx, db, opts, func(*sqlx.Tx) error { return nil }); err != nil {
		t.Errorf("InTx() = %v; want nil", err)
	}
	if want := (driver.TxOptions{Isolation: driver.IsolationLevel(sql.LevelSerializable), ReadOnly: true}); got != want {
		t.Errorf("InTx(%+v) began with %+v; want %+v", opts, got, want)
	}
}

func TestInTxNeedsADatabaseAndAFunction(t *testing.T) {
	fn := func(*sqlx.Tx) error { return nil }
	for _, db := range []*sqlx.DB{nil, {}} {
		if err := sqlxhelper.InTx(ctx, db, nil, fn); !errors.Is(err, sqlxhelper.ErrDB) {
			t.Errorf("InTx(nil) = %v; want ErrDB", err)
		}
	}
	db, _ := newMock(t)
	if err := sqlxhelper.InTx(ctx, db, nil, nil); !errors.Is(err, sqlxhelper.ErrArgument) {
		t.Errorf("InTx(nil function) = %v; want ErrArgument", err)
	}
}

func TestInTxRespectsItsContext(t *testing.T) {
	db := openSQLite(t)
	if _, err := db.Exec("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)"); err != nil {
		t.Fatal(err)
	}
	h := newHelper(sqlxhelper.SQLite)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	called := false
	if err := sqlxhelper.InTx(ended, db, nil, func(*sqlx.Tx) error { called = true; return nil }); !errors.Is(err, context.Canceled) || called {
		t.Errorf("InTx(ended context) = %v, called %v; want context.Canceled, not called", err, called)
	}
	// wait returns when database/sql has rolled back, with the error that says so.
	wait := func(tx *sqlx.Tx) (err error) {
		for err == nil {
			_, err = tx.Exec("DELETE FROM t")
		}
		return err
	}
	for name, after := range map[string]func(tx *sqlx.Tx) error{
		"ReturnsNil":   func(*sqlx.Tx) error { return nil },
		"InsertsAgain": func(tx *sqlx.Tx) error { return h.InsertMany(context.Background(), tx, "t", make([]pair, 2)) },
		"ReturnsError": wait,
		"CommitsLate":  func(tx *sqlx.Tx) error { _ = wait(tx); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			ending, cancel := context.WithCancel(ctx)
			defer cancel()
			err := sqlxhelper.InTx(ending, db, nil, func(tx *sqlx.Tx) error {
				if err := h.Insert(ctx, tx, "t", &pair{}); err != nil {
					t.Errorf("Insert() = %v; want nil", err)
				}
				cancel()
				return after(tx)
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("InTx(context that ends) = %v; want context.Canceled", err)
			}
			if strings.Contains(err.Error(), "then rollback") {
				t.Errorf("InTx(context that ends) = %v; want no word of the rollback that it caused", err)
			}
			wantRows(t, db, "t", 0)
		})
	}
}
