package sqlxhelper_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"
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
	if !errors.Is(err, errMine) || !errors.Is(err, sqlxhelper.ErrCommitUnknown) || !strings.Contains(err.Error(), "sqlxhelper: commit: mine") {
		t.Errorf("InTx(commit fails) = %v; want ErrCommitUnknown and %v", err, errMine)
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

// MySQLError has what this package reads of an error of go-sql-driver/mysql.
type MySQLError struct{ Number uint16 }

func (e *MySQLError) Error() string { return fmt.Sprintf("Error %d", e.Number) }

// On MySQL a deadlock ends the transaction, and what is sent after it is committed
// by itself. A function that goes on all the same must not lose the rows before it.
// Nor must it store those after it twice.
func TestInTxDoesNotGoOnWithABrokenTransaction(t *testing.T) {
	deadlock, gone := &MySQLError{1213}, &MySQLError{1305}
	for _, c := range []struct {
		name   string
		insert error // what the first statement says; nil if it is the savepoint that is gone
		end    func(first error) error
		runs   int
	}{
		{"DeadlockSwallowed", deadlock, func(error) error { return nil }, 1},
		{"DeadlockReturnedLate", deadlock, func(first error) error { return first }, 2},
		{"EndedBefore", nil, func(error) error { return nil }, 1},
		// The row has been committed by itself.
		{"EndedBeforeByADeadlock", nil, func(first error) error { return errors.Join(deadlock, first) }, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			db, mock := newMock(t)
			h := newHelper(sqlxhelper.MySQL)
			expect := func(text string) *sqlmock.ExpectedExec { return mock.ExpectExec(text).WillReturnResult(done(1)) }
			mock.ExpectBegin()
			expect("SAVEPOINT snowkey_insert")
			if insert := expect("INSERT INTO `t` (`id`, `n`) VALUES (?, ?)"); c.insert != nil {
				insert.WillReturnError(c.insert)
			} else {
				expect("RELEASE SAVEPOINT snowkey_insert").WillReturnError(gone)
			}
			expect("ROLLBACK TO SAVEPOINT snowkey_insert").WillReturnError(gone)
			mock.ExpectRollback()
			if c.runs == 2 {
				mock.ExpectBegin()
				mock.ExpectCommit()
			}
			runs := 0
			err := sqlxhelper.InTx(ctx, db, nil, func(tx *sqlx.Tx) error {
				if runs++; runs == 2 {
					return nil
				}
				first := h.Insert(ctx, tx, "t", &pair{})
				for _, handle := range []sqlxhelper.DB{tx, tx.Unsafe()} {
					if err := h.Insert(ctx, handle, "t", &pair{}); !errors.Is(err, sqlxhelper.ErrTxBroken) {
						t.Errorf("Insert(broken transaction) = %v; want ErrTxBroken", err)
					}
				}
				return c.end(first)
			})
			if runs != c.runs || (err == nil) != (c.runs == 2) || err != nil && !errors.Is(err, sqlxhelper.ErrTxBroken) {
				t.Errorf("InTx() = %v after %d runs; want %d, and ErrTxBroken after a single one", err, runs, c.runs)
			}
		})
	}
}

// Only the rollback that the end of the context has caused needs no word.
func TestInTxSaysThatItsFunctionHasEndedTheTransaction(t *testing.T) {
	for name, end := range map[string]func(*sqlx.Tx) error{"Rollback": (*sqlx.Tx).Rollback, "Commit": (*sqlx.Tx).Commit} {
		for _, fails := range []error{nil, errMine} {
			t.Run(fmt.Sprint(name, fails), func(t *testing.T) {
				runs := 0
				err := sqlxhelper.InTx(ctx, openSQLite(t), nil, func(tx *sqlx.Tx) error {
					runs++
					if err := end(tx); err != nil {
						t.Error(err)
					}
					return fails
				})
				if !errors.Is(err, sql.ErrTxDone) || fails != nil && !errors.Is(err, fails) || errors.Is(err, sqlxhelper.ErrCommitUnknown) || runs != 1 {
					t.Errorf("InTx() = %v after %d runs; want %v and %v after 1", err, runs, fails, sql.ErrTxDone)
				}
			})
		}
	}
}
