package sqlxhelper

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/internal/base/outcome"
	"github.com/snowkey/snowkey/types"
)

var (
	errShop  = errors.New("shop: sold out")
	deadlock = postgres("40P01")
)

// repeat returns n times the same.
func repeat[T any](v T, n int) []T { return slices.Repeat([]T{v}, n) }

// sameKeys inserts the keys 1 and 2 in every run.
func sameKeys(tx *sqlx.Tx, _ int) error { return insert(tx, 1, 2) }

// otherKeys inserts a row in each run that was made inside of it.
func otherKeys(tx *sqlx.Tx, run int) error { return insert(tx, types.Snowflake(run)) }

// The two promises: nothing is inserted twice, and nil is returned if and only
// if the rows are stored. What is not known is said.
func TestInTxCommitsAtMostOnce(t *testing.T) {
	for _, c := range []struct {
		name  string
		db    *faulty
		fn    func(tx *sqlx.Tx, run int) error
		opts  *sql.TxOptions
		want  []error // what the error matches; none for nil
		never error   // what it does not match
		rows  []int64
		runs  int
		looks int // -1: any number
	}{
		{name: "Succeeds", db: &faulty{}, fn: sameKeys, rows: []int64{1, 2}, runs: 1},

		// Rolled back for certain: any keys will do.
		{name: "Deadlock", db: &faulty{inserts: repeat(deadlock, 3)}, fn: sameKeys, rows: []int64{1, 2}, runs: 4},
		{name: "DeadlockWithOtherKeys", db: &faulty{inserts: repeat(deadlock, 2)}, fn: otherKeys, rows: []int64{3}, runs: 3},
		{name: "DeadlockAtTheLastAttemptButOne", db: &faulty{inserts: repeat(deadlock, 9)}, fn: sameKeys, rows: []int64{1, 2}, runs: 10},
		{name: "DeadlockForEver", db: &faulty{inserts: repeat(deadlock, 50)}, fn: sameKeys, want: []error{deadlock}, never: ErrCommitUnknown, runs: 10},
		{name: "DeadlockInABrokenTransaction", db: &faulty{}, fn: func(tx *sqlx.Tx, run int) error {
			if run == 1 {
				return fmt.Errorf("insert: %w; then %w: %w", mysql(1213), ErrTxBroken, mysql(1305))
			}
			return insert(tx, 1)
		}, rows: []int64{1}, runs: 2},
		{name: "BeginBusy", db: &faulty{begins: repeat(mattn(5), 2)}, fn: sameKeys, rows: []int64{1, 2}, runs: 1},
		{name: "CommitSerialization", db: &faulty{commits: repeat(refuses(postgres("40001")), 2)}, fn: otherKeys, rows: []int64{3}, runs: 3},

		// Rolled back, and no use in another run.
		{name: "FunctionFails", db: &faulty{}, fn: func(*sqlx.Tx, int) error { return errShop }, want: []error{errShop}, runs: 1},
		{name: "FunctionFailsAfterADeadlock", db: &faulty{inserts: repeat(deadlock, 1)}, fn: func(tx *sqlx.Tx, run int) error {
			if run == 2 {
				return errShop
			}
			return insert(tx, 1)
		}, want: []error{errShop}, never: deadlock, runs: 2},
		{name: "CommitConstraint", db: &faulty{commits: []fate{refuses(postgres("23503"))}}, fn: sameKeys, want: []error{postgres("23503")}, never: ErrCommitUnknown, runs: 1},
		{name: "BeginRefused", db: &faulty{begins: []error{postgres("53300")}}, fn: sameKeys, runs: 0, want: []error{postgres("53300")}, never: ErrCommitUnknown},
		{name: "InnerUnknown", db: &faulty{}, fn: func(*sqlx.Tx, int) error { return fmt.Errorf("%w: %w", ErrCommitUnknown, deadlock) }, want: []error{ErrCommitUnknown, deadlock}, runs: 1},
		// The transaction may be open for a while, and hold its locks.
		{name: "RollbackFails", db: &faulty{inserts: repeat(deadlock, 1), rollbacks: []error{io.ErrClosedPipe}}, fn: sameKeys, want: []error{deadlock, io.ErrClosedPipe}, runs: 1},

		// The answer to the commit is lost.
		{name: "AnswerLost", db: &faulty{commits: []fate{answerLost}}, fn: sameKeys, rows: []int64{1, 2}, runs: 1, looks: 1},
		{name: "AnswerLostWithOtherKeys", db: &faulty{commits: []fate{answerLost}}, fn: otherKeys, rows: []int64{1}, runs: 1, looks: 1},
		{name: "AnswerIsThatTheServerEnds", db: &faulty{commits: []fate{{applied: true, err: postgres("57P01")}}}, fn: sameKeys, rows: []int64{1, 2}, runs: 1, looks: 1},
		// It is over, and was not committed: any keys will do again.
		{name: "CommitLost", db: &faulty{commits: []fate{commitLost}}, fn: sameKeys, rows: []int64{1, 2}, runs: 2, looks: 2},
		{name: "CommitLostWithOtherKeys", db: &faulty{commits: []fate{commitLost}}, fn: otherKeys, rows: []int64{2}, runs: 2, looks: 2},
		{name: "CommitLostThenAnswerLost", db: &faulty{commits: []fate{commitLost, answerLost}}, fn: sameKeys, rows: []int64{1, 2}, runs: 2, looks: 3},
		{name: "CommitLostForEver", db: &faulty{commits: repeat(commitLost, 50)}, fn: sameKeys, want: []error{io.ErrUnexpectedEOF}, runs: 10, looks: -1},
		{name: "CommitLostThenDeadlock", db: &faulty{commits: []fate{commitLost}, inserts: []error{nil, nil, deadlock, nil, deadlock}}, fn: sameKeys, rows: []int64{1, 2}, runs: 4, looks: 2},
		{name: "CommitLostThenDeadlockForEver", db: &faulty{commits: []fate{commitLost}, inserts: append(make([]error, 2), repeat(deadlock, 50)...)}, fn: sameKeys, want: []error{deadlock}, runs: 10, looks: 2},
		{name: "CommitLostThenFunctionFails", db: &faulty{commits: []fate{commitLost}}, fn: func(tx *sqlx.Tx, run int) error {
			if run == 2 {
				return errShop
			}
			return insert(tx, 1)
		}, want: []error{errShop}, never: io.ErrUnexpectedEOF, runs: 2, looks: 2},
		{name: "CommitLostThenBeginFails", db: &faulty{commits: []fate{commitLost}, begins: []error{nil, nil, nil, io.ErrClosedPipe}}, fn: sameKeys, want: []error{io.ErrClosedPipe}, runs: 1, looks: 2},
		{name: "CommitLostAndAReplicaAnswers", db: &faulty{commits: []fate{commitLost}, replica: 3}, fn: otherKeys, rows: []int64{2}, runs: 2, looks: 6},

		// The commit takes place after some looks.
		{name: "CommitLate", db: &faulty{commits: []fate{commitLate}}, fn: sameKeys, rows: []int64{1, 2}, runs: 1, looks: 5},
		{name: "CommitLateWithOtherKeys", db: &faulty{commits: []fate{commitLate}}, fn: otherKeys, rows: []int64{1}, runs: 1, looks: 5},
		{name: "CommitLateAndAReplicaAnswers", db: &faulty{commits: []fate{commitLate}, replica: 2}, fn: otherKeys, rows: []int64{1}, runs: 1, looks: 5},
		{name: "CommitThatStaysOnItsWay", db: &faulty{commits: []fate{{late: 1 << 30, err: io.ErrUnexpectedEOF}}}, fn: otherKeys, want: []error{ErrCommitUnknown, io.ErrUnexpectedEOF, outcome.ErrOpen}, runs: 1, looks: -1},

		// The row is not there, which proves nothing.
		{name: "CommitLostAndOnlyAReplicaAnswers", db: &faulty{commits: []fate{commitLost}, replica: 1 << 30}, fn: otherKeys, want: []error{ErrCommitUnknown, outcome.ErrReplica}, runs: 1, looks: -1},
		{name: "CommitLostOnCockroachDB", db: &faulty{commits: []fate{commitLost}, version: "CockroachDB CCL v24.1.0 (x86_64-pc-linux-gnu, built 2024/05/15 21:28:29, go1.22.2)"}, fn: otherKeys, want: []error{ErrCommitUnknown, outcome.ErrServers}, runs: 1, looks: 1},
		{name: "AnswerLostOnCockroachDB", db: &faulty{commits: []fate{answerLost}, version: "CockroachDB CCL v24.1.0", writes: []error{postgres("42883")}}, fn: otherKeys, rows: []int64{1}, runs: 1, looks: 1},

		// Should that ever be wrong, it is said.
		{name: "RowsOfTheEarlierRunAreThereAfterAll", db: &faulty{commits: []fate{commitLost}}, fn: func(tx *sqlx.Tx, run int) error {
			if run == 2 {
				tx.MustExec("STORE", 1)
			}
			return insert(tx, 1)
		}, want: []error{ErrCommitUnknown, outcome.ErrEarlier, postgres("23505")}, rows: []int64{1}, runs: 2, looks: 3},

		// Nothing can be looked for.
		{name: "NothingInserted", db: &faulty{commits: []fate{commitLost}}, fn: func(*sqlx.Tx, int) error { return nil }, want: []error{ErrCommitUnknown, io.ErrUnexpectedEOF}, runs: 1},
		{name: "NothingInsertedSerializable", db: &faulty{commits: []fate{commitLost}}, opts: &sql.TxOptions{Isolation: sql.LevelSerializable}, fn: func(*sqlx.Tx, int) error { return nil },
			want: []error{ErrCommitUnknown, io.ErrUnexpectedEOF}, runs: 1},
		{name: "OnlyUpserted", db: &faulty{commits: []fate{commitLost}}, fn: func(tx *sqlx.Tx, _ int) error {
			recordOf(tx).Add(orders, 0)
			return nil
		}, want: []error{ErrCommitUnknown, outcome.ErrNoProof}, runs: 1},
		{name: "ReadOnly", db: &faulty{commits: []fate{commitLost}}, opts: &sql.TxOptions{ReadOnly: true}, fn: func(*sqlx.Tx, int) error { return nil },
			want: []error{io.ErrUnexpectedEOF}, never: ErrCommitUnknown, runs: 1},
		{name: "ReadOnlyThatTheDriverIgnores", db: &faulty{commits: []fate{answerLost}}, opts: &sql.TxOptions{ReadOnly: true}, fn: sameKeys, rows: []int64{1, 2}, runs: 1, looks: 1},
		{name: "LookRefused", db: &faulty{commits: []fate{answerLost}, looks: repeat(postgres("42501"), 5)}, fn: sameKeys, want: []error{ErrCommitUnknown, driver.ErrBadConn}, rows: []int64{1, 2}, runs: 1, looks: 1},
		{name: "LookBreaksAtFirst", db: &faulty{commits: []fate{answerLost}, looks: []error{io.EOF, postgres("57P03"), postgres("40001")}}, fn: sameKeys, rows: []int64{1, 2}, runs: 1, looks: 4},
		{name: "LookIsNotEnsuredAtFirst", db: &faulty{commits: []fate{answerLost}, ensures: repeat(io.EOF, 2)}, fn: sameKeys, rows: []int64{1, 2}, runs: 1, looks: 3},
		{name: "LookIsNotEnsured", db: &faulty{commits: []fate{answerLost}, writes: repeat(postgres("42501"), 5)}, fn: sameKeys, want: []error{ErrCommitUnknown}, rows: []int64{1, 2}, runs: 1, looks: 1},
		{name: "LookCannotBeEnsured", db: &faulty{commits: []fate{answerLost}, writes: []error{postgres("42883")}, ensures: []error{io.EOF}}, fn: sameKeys, rows: []int64{1, 2}, runs: 1, looks: 1},
		{name: "LookCannotBegin", db: &faulty{commits: []fate{answerLost}, begins: []error{nil, io.EOF}}, fn: sameKeys, rows: []int64{1, 2}, runs: 1, looks: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := c.db.open(t)
				runs := 0
				err := InTx(t.Context(), db, c.opts, func(tx *sqlx.Tx) error {
					runs++
					return c.fn(tx, runs)
				})
				if (err == nil) != (c.want == nil) {
					t.Errorf("InTx() = %v; want %v", err, c.want)
				}
				for _, want := range c.want {
					wantIn(t, err, want)
				}
				if c.never != nil && errors.Is(err, c.never) {
					t.Errorf("InTx() = %v; want nothing of %v", err, c.never)
				}
				if errors.Is(err, ErrCommitUnknown) != slices.Contains(c.want, ErrCommitUnknown) {
					t.Errorf("InTx() = %v; matches ErrCommitUnknown: %v", err, errors.Is(err, ErrCommitUnknown))
				}
				if got := c.db.rows(); !slices.Equal(got, c.rows) {
					t.Errorf("rows = %v; want %v", got, c.rows)
				}
				if runs != c.runs || c.looks >= 0 && c.db.lookCount != c.looks {
					t.Errorf("%d runs and %d looks; want %d and %d", runs, c.db.lookCount, c.runs, c.looks)
				}
				if n := db.Stats().InUse; n != 0 {
					t.Errorf("%d connections are in use; want none", n)
				}
				watched.Range(func(tx, _ any) bool {
					t.Errorf("%p is still watched", tx)
					return true
				})
			})
		})
	}
}

func TestErrorAfterTheLastAttemptSaysHowManyThereWere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := (&faulty{inserts: repeat(deadlock, 50)}).open(t)
		err := InTx(t.Context(), db, nil, func(tx *sqlx.Tx) error { return insert(tx, 1) })
		if want := "sqlxhelper: 10 attempts: SQLSTATE 40P01"; err == nil || err.Error() != want {
			t.Errorf("InTx() = %v; want %s", err, want)
		}
	})
}

// An InTx that gives up after ten attempts is not begun ten times by the one
// around it.
func TestNestedInTxDoesNotMultiplyTheAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := (&faulty{inserts: repeat(deadlock, 500)}).open(t)
		runs := 0
		err := InTx(t.Context(), db, nil, func(*sqlx.Tx) error {
			return InTx(t.Context(), db, nil, func(tx *sqlx.Tx) error { runs++; return insert(tx, 1) })
		})
		if !errors.Is(err, deadlock) || runs != 10 {
			t.Errorf("InTx() = %v after %d runs; want %v after 10", err, runs, deadlock)
		}
	})
}

// The keys of the inner transaction are not those of the outer one. The outer one
// may be lost when the inner one is stored.
func TestNestedInTxHasARecordOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faulty{commits: []fate{{applied: true}, commitLost}}
		db := f.open(t)
		err := InTx(t.Context(), db, nil, func(*sqlx.Tx) error {
			return InTx(t.Context(), db, nil, func(tx *sqlx.Tx) error { return insert(tx, 1) })
		})
		if !errors.Is(err, ErrCommitUnknown) {
			t.Errorf("InTx() = %v; want ErrCommitUnknown", err)
		}
		if got := f.rows(); !slices.Equal(got, []int64{1}) {
			t.Errorf("rows = %v; want those of the inner transaction", got)
		}
	})
}

func TestContextThatEndsBetweenTwoRunsEndsInTx(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := (&faulty{inserts: repeat(deadlock, 50)}).open(t)
		ctx, cancel := context.WithCancel(t.Context())
		runs := 0
		start := time.Now()
		err := InTx(ctx, db, nil, func(tx *sqlx.Tx) error {
			if runs++; runs == 3 {
				time.AfterFunc(1, cancel) // when InTx waits, for time stands still until then
			}
			return insert(tx, 1)
		})
		if !errors.Is(err, context.Canceled) || !errors.Is(err, deadlock) || runs != 3 {
			t.Errorf("InTx() = %v after %d runs; want %v and %v", err, runs, context.Canceled, deadlock)
		}
		if waited := time.Since(start); waited > 30*time.Millisecond { // of the two delays before
			t.Errorf("InTx() took %v; want it to end with its context", waited)
		}
	})
}

func TestDeadlineBoundsTheAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := (&faulty{inserts: repeat(deadlock, 50)}).open(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		start := time.Now()
		err := InTx(ctx, db, nil, func(tx *sqlx.Tx) error { return insert(tx, 1) })
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, deadlock) {
			t.Errorf("InTx() = %v; want %v and %v", err, context.DeadlineExceeded, deadlock)
		}
		if !strings.HasPrefix(err.Error(), "sqlxhelper: ") {
			t.Errorf("InTx() = %v; want it to say that the time ran out here", err)
		}
		if waited := time.Since(start); waited > time.Millisecond {
			t.Errorf("InTx(timeout of 1 ms) took %v", waited)
		}
	})
}

// A driver may return the bare error of the context in two cases. It has sent
// nothing, or it has closed the connection over the commit. It may also return nil:
// PostgreSQL has then stopped waiting for its standby, and calls that a commit.
func TestContextThatEndsDuringTheCommitLeavesItInDoubt(t *testing.T) {
	for _, told := range []error{context.Canceled, nil} {
		for _, applied := range []bool{true, false} {
			t.Run(fmt.Sprint("Told", told, "Applied", applied), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithCancel(t.Context())
					f := &faulty{commits: []fate{{applied: applied, err: told, cancel: true}}, cancel: cancel}
					db := f.open(t)
					runs := 0
					err := InTx(ctx, db, nil, func(tx *sqlx.Tx) error { runs++; return insert(tx, 1) })
					switch unknown := errors.Is(err, ErrCommitUnknown); {
					case applied && err != nil:
						t.Errorf("InTx() = %v; want nil, the row is stored", err)
					case !applied && told == nil && !unknown: // a failover has forgotten it
						t.Errorf("InTx() = %v; want ErrCommitUnknown, since the server has said that it is stored", err)
					case !applied && told != nil && (unknown || !errors.Is(err, context.Canceled)):
						t.Errorf("InTx() = %v; want %v alone, it is known that the row is not stored", err, context.Canceled)
					case !applied && strings.Count(err.Error(), "commit:") != 1:
						t.Errorf("InTx() = %v; want the commit once", err)
					}
					if runs != 1 || f.lookCount == 0 {
						t.Errorf("%d runs and %d looks; want no run after the context has ended, and a look", runs, f.lookCount)
					}
				})
			})
		}
	}
}

func TestContextThatEndsBeforeTheCommitIsNoDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		f := &faulty{}
		db := f.open(t)
		err := InTx(ctx, db, nil, func(tx *sqlx.Tx) error { defer cancel(); return insert(tx, 1) })
		if !errors.Is(err, context.Canceled) || errors.Is(err, ErrCommitUnknown) || f.lookCount > 0 || len(f.rows()) > 0 {
			t.Errorf("InTx() = %v, %d looks, rows %v; want %v alone, and nothing stored", err, f.lookCount, f.rows(), context.Canceled)
		}
	})
}

// detached is a pool whose transactions do not end with the context.
type detached struct{ *sqlx.DB }

func (d detached) BeginTxx(ctx context.Context, opts *sql.TxOptions) (*sqlx.Tx, error) {
	return d.DB.BeginTxx(context.WithoutCancel(ctx), opts)
}

func TestRollbackThatFailsAfterTheContextHasEndedIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := (&faulty{rollbacks: []error{io.ErrClosedPipe}}).open(t)
		ctx, cancel := context.WithCancel(t.Context())
		err := inTx(ctx, (&conn{pool: detached{db}, cancels: outcome.CancelsAll}).database(false), nil, func(*sqlx.Tx) error { cancel(); return errShop })
		if !errors.Is(err, errShop) || !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("InTx() = %v; want %v and %v", err, errShop, io.ErrClosedPipe)
		}
	})
}

// ending is a handle of a transaction that ends with the context, at a statement.
type ending struct {
	DB
	at     string
	cancel context.CancelFunc
}

func (e ending) ExecContext(_ context.Context, text string, _ ...any) (sql.Result, error) {
	if text == e.at {
		e.cancel()
		return nil, sql.ErrTxDone
	}
	return driver.RowsAffected(0), nil
}

// The rollback that a context starts may be faster than the error that it has
// ended.
func TestTransactionThatEndsWithItsContextIsTheErrorOfTheContext(t *testing.T) {
	for _, at := range []string{"SAVEPOINT snowkey_insert", "INSERT", "RELEASE SAVEPOINT snowkey_insert"} {
		ctx, cancel := context.WithCancel(t.Context())
		tx := ending{at: at, cancel: cancel}
		err := inSavepoint(ctx, tx, outcome.CancelsAll, savepointName, func() error {
			if _, err := tx.ExecContext(ctx, "INSERT"); err != nil {
				return fmt.Errorf("sqlxhelper: insert: %w", err)
			}
			return nil
		})
		if !errors.Is(err, context.Canceled) || !errors.Is(err, sql.ErrTxDone) || !strings.HasPrefix(err.Error(), "sqlxhelper: ") {
			t.Errorf("inSavepoint(ends at %s) = %v; want %v and %v", at, err, sql.ErrTxDone, context.Canceled)
		}
		if again := outcome.WithCause(ctx, err); again != err {
			t.Errorf("WithCause(%v) = %v; want the same", err, again)
		}
		if other := outcome.WithCause(ctx, errShop); other != errShop {
			t.Errorf("WithCause(%v) = %v; want the same, which says nothing of the transaction", errShop, other)
		}
	}
}

// surprising is a context that calls next when it is asked for its error. It then
// says that there is none.
type surprising struct {
	context.Context
	next func()
}

func (s *surprising) Err() error {
	if next := s.next; next != nil {
		s.next = nil
		next()
		return nil
	}
	return s.Context.Err()
}

// This is the last moment at which the context can end without a doubt.
// database/sql has rolled back when Commit is called, and Commit sends nothing.
func TestContextThatEndsJustBeforeTheCommitIsNoDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faulty{}
		db := f.open(t)
		ending, cancel := context.WithCancel(t.Context())
		ctx := &surprising{Context: ending}
		err := InTx(ctx, db, nil, func(tx *sqlx.Tx) error {
			ctx.next = func() { cancel(); synctest.Wait() }
			return insert(tx, 1)
		})
		if !errors.Is(err, context.Canceled) || errors.Is(err, ErrCommitUnknown) || f.lookCount > 0 || len(f.rows()) > 0 {
			t.Errorf("InTx() = %v, %d looks, rows %v; want %v alone, and nothing stored", err, f.lookCount, f.rows(), context.Canceled)
		}
	})
}

// Without a deadline there is a limit. With one, that is the limit, and a second more.
func TestLookEndsWithTheContext(t *testing.T) {
	for _, c := range []struct{ limit, want time.Duration }{{0, time.Minute}, {3 * time.Second, 4 * time.Second}, {2 * time.Minute, 2*time.Minute + time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			ctx := t.Context()
			if c.limit > 0 {
				limited, cancel := context.WithTimeout(ctx, c.limit)
				defer cancel()
				ctx = limited
			}
			db := (&faulty{commits: []fate{answerLost}, looks: repeat(io.EOF, 100000)}).open(t)
			start := time.Now()
			err := InTx(ctx, db, nil, func(tx *sqlx.Tx) error { return insert(tx, 1) })
			if !errors.Is(err, ErrCommitUnknown) || errors.Is(err, context.DeadlineExceeded) != (c.limit > 0) {
				t.Errorf("InTx(limit %v) = %v; want ErrCommitUnknown, and no deadline that the caller has not set", c.limit, err)
			}
			if waited := time.Since(start); waited != c.want {
				t.Errorf("InTx(limit %v) took %v; want %v", c.limit, waited, c.want)
			}
		})
	}
}

// A mock says that it expects no look. To ask it for a minute would do no good.
func TestLookEndsAtAnErrorOfNobodyKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faulty{commits: []fate{answerLost}, looks: repeat(errShop, 9)}
		err := InTx(t.Context(), f.open(t), nil, func(tx *sqlx.Tx) error { return insert(tx, 1) })
		if !errors.Is(err, ErrCommitUnknown) || f.lookCount != 1 {
			t.Errorf("InTx() = %v after %d looks; want ErrCommitUnknown after 1", err, f.lookCount)
		}
	})
}

func TestUnknownErrorHasTheKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := (&faulty{commits: []fate{answerLost}, looks: []error{postgres("42501")}}).open(t)
		err := InTx(t.Context(), db, nil, func(tx *sqlx.Tx) error { return insert(tx, 1, 2) })
		var e *UnknownError
		if !errors.As(err, &e) || !slices.Equal(e.Rows, []StoredRow{{Table: "orders", Column: "id", Key: 2}}) || !strings.HasSuffix(err.Error(), "id 2 of orders") {
			t.Errorf("InTx() = %v; want the last key", err)
		}
	})
}

func TestPanicAndGoexitAreNotRunAgain(t *testing.T) {
	for name, end := range map[string]func(){"Panic": func() { panic(deadlock) }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &faulty{inserts: repeat(deadlock, 1)}
				db := f.open(t)
				runs, returned := 0, false
				var wg sync.WaitGroup
				wg.Go(func() {
					defer func() { _ = recover() }()
					_ = InTx(t.Context(), db, nil, func(tx *sqlx.Tx) error {
						if runs++; runs == 1 {
							return insert(tx, 1)
						}
						_ = insert(tx, 1)
						end()
						return nil
					})
					returned = true
				})
				wg.Wait()
				if runs != 2 || returned || len(f.rows()) != 0 {
					t.Errorf("%d runs, returned %v, rows %v; want 2, false, none", runs, returned, f.rows())
				}
				watched.Range(func(any, any) bool { t.Error("a transaction is still watched"); return true })
			})
		})
	}
}
