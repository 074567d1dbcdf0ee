package sqlxhelper_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// pairs returns a sequence of n rows. At row at, counted from 0, it does something else.
func pairs(n, at int, do func() error) iter.Seq2[pair, error] {
	return func(yield func(pair, error) bool) {
		for i := range n {
			var err error
			if i == at {
				err = do()
			}
			if !yield(pair{N: i}, err) {
				return
			}
		}
	}
}

func plainly() error { return nil }

func newPairs(t *testing.T) *sqlx.DB {
	t.Helper()
	db := openSQLite(t)
	db.MustExec("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER UNIQUE)")
	return db
}

func stored(t *testing.T, db sqlx.QueryerContext) (n int) {
	t.Helper()
	if err := sqlx.GetContext(ctx, db, &n, "SELECT count(*) FROM t"); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestSequenceIsStoredWhole(t *testing.T) {
	for _, rows := range []int{0, 1, 4999, 5000, 5001, 12000} {
		db := newPairs(t)
		var reports [][2]int
		h := newHelper(sqlxhelper.SQLite).With(sqlxhelper.OnProgress(func(done, total int) { reports = append(reports, [2]int{done, total}) }))
		n, err := sqlxhelper.InsertSeq(ctx, h, db, "t", pairs(rows, -1, plainly))
		if err != nil || n != int64(rows) || stored(t, db) != rows {
			t.Errorf("InsertSeq(%d rows) = %d, %v, and %d are stored", rows, n, err, stored(t, db))
		}
		if !slices.IsSortedFunc(reports, func(a, b [2]int) int { return a[0] - b[0] }) || rows > 0 && reports[len(reports)-1] != [2]int{rows, -1} {
			t.Errorf("InsertSeq(%d rows) reports %v; want growing numbers up to %d, of -1", rows, reports, rows)
		}
	}
}

func TestRowsBehindPointersGetTheirKeys(t *testing.T) {
	db := newPairs(t)
	rows := []*pair{{N: 1}, {N: 2}, {N: 3}}
	n, err := sqlxhelper.InsertSeq(ctx, newHelper(sqlxhelper.SQLite), db, "t", func(yield func(*pair, error) bool) {
		for _, row := range rows {
			if !yield(row, nil) {
				return
			}
		}
	})
	if err != nil || n != 3 {
		t.Fatalf("InsertSeq() = %d, %v; want 3", n, err)
	}
	for _, row := range rows {
		var id types.Snowflake
		if err := db.Get(&id, "SELECT id FROM t WHERE n = ?", row.N); err != nil || id != row.ID || id == 0 {
			t.Errorf("the key of row %d = %d, and %d is stored, %v", row.N, row.ID, id, err)
		}
	}
}

// How a sequence of 12,000 rows may end in the middle of its second part.
func TestSequenceThatEndsInTheMiddleLeavesNothing(t *testing.T) {
	for name, end := range map[string]struct {
		do   func(cancel context.CancelFunc) error
		want error // nil: it panics, or ends its goroutine
	}{
		"error":    {func(context.CancelFunc) error { return errMine }, errMine},
		"canceled": {func(cancel context.CancelFunc) error { cancel(); return nil }, context.Canceled},
		"panic":    {func(context.CancelFunc) error { panic(errMine) }, nil},
		"exit":     {func(context.CancelFunc) error { runtime.Goexit(); return nil }, nil},
	} {
		for _, inTx := range []bool{false, true} {
			t.Run(fmt.Sprint(name, inTx), func(t *testing.T) {
				db := newPairs(t)
				var at sqlxhelper.DB = db
				if inTx {
					tx := db.MustBegin()
					defer func() { _ = tx.Rollback() }()
					tx.MustExec("INSERT INTO t VALUES (1000000, -1)")
					at = tx
				}
				ending, cancel := context.WithCancel(ctx)
				defer cancel()
				asked := 0
				rows := pairs(12000, 7000, func() error { return end.do(cancel) })
				counted := func(yield func(pair, error) bool) {
					rows(func(p pair, err error) bool { asked++; return yield(p, err) })
				}
				var n int64
				var err error
				done := make(chan struct{})
				go func() {
					defer close(done)
					defer func() { _ = recover() }()
					n, err = sqlxhelper.InsertSeq(ending, newHelper(sqlxhelper.SQLite), at, "t", counted)
				}()
				<-done
				if !errors.Is(err, end.want) || n != 0 {
					t.Errorf("InsertSeq() = %d, %v; want 0 and %v", n, err, end.want)
				}
				if name == "error" && (asked != 7001 || !strings.Contains(err.Error(), "row 7001 of the sequence")) {
					t.Errorf("InsertSeq() has asked for %d rows: %v; want 7001, and that row named", asked, err)
				}
				want := 0
				if inTx {
					want = 1
					if name == "canceled" && errors.Is(err, sqlxhelper.ErrTxBroken) {
						t.Errorf("InsertSeq() = %v; want the transaction to go on", err)
					}
				}
				if got := stored(t, at); got != want {
					t.Errorf("%d rows are left; want %d", got, want)
				}
			})
		}
	}
}

func TestRefusedRowIsCountedFromTheBeginOfTheSequence(t *testing.T) {
	db := newPairs(t)
	rows := func(yield func(pair, error) bool) {
		for i := range 12000 {
			n := i
			if i == 7003 {
				n = 7001
			}
			if !yield(pair{N: n}, nil) {
				return
			}
		}
	}
	n, err := sqlxhelper.InsertSeq(ctx, newHelper(sqlxhelper.SQLite), db, "t", rows)
	var e *sqlxhelper.InsertError
	if n != 0 || !errors.Is(err, sqlxhelper.ErrDuplicateKey) || !errors.As(err, &e) {
		t.Fatalf("InsertSeq() = %d, %v; want ErrDuplicateKey", n, err)
	}
	if e.Row != 7003 || e.Path != "sqlxhelper_test.pair[7003]" || e.First > 7003 || e.Last < 7003 || e.Rows != 10000 {
		t.Errorf("the error = %+v; want row 7003 of the 10000 that were read", e)
	}
	if got := stored(t, db); got != 0 {
		t.Errorf("%d rows are left; want none", got)
	}
}

func TestSequenceIsNotBegunIfItCannotBeStored(t *testing.T) {
	h, db := newHelper(sqlxhelper.SQLite), newPairs(t)
	never := func(func(pair, error) bool) { t.Error("the sequence has begun") }
	for name, c := range map[string]struct {
		call func() (int64, error)
		want error
	}{
		"nil sequence": {func() (int64, error) { return sqlxhelper.InsertSeq[pair](ctx, h, db, "t", nil) }, sqlxhelper.ErrArgument},
		"no struct": {func() (int64, error) {
			return sqlxhelper.InsertSeq(ctx, h, db, "t", func(func(int, error) bool) { t.Error("the sequence has begun") })
		}, sqlxhelper.ErrArgument},
		"no database": {func() (int64, error) { return sqlxhelper.InsertSeq(ctx, h, nil, "t", never) }, sqlxhelper.ErrDB},
		"bad name":    {func() (int64, error) { return sqlxhelper.InsertSeq(ctx, h, db, "t;", never) }, sqlxhelper.ErrName},
		"ended": {func() (int64, error) {
			ended, cancel := context.WithCancel(ctx)
			cancel()
			return sqlxhelper.InsertSeq(ended, h, db, "t", never)
		}, context.Canceled},
	} {
		if n, err := c.call(); n != 0 || !errors.Is(err, c.want) {
			t.Errorf("%s: InsertSeq() = %d, %v; want %v", name, n, err, c.want)
		}
	}
}

// 60,000 rows of a kilobyte each, which are 60 MB.
func TestSequenceTakesLittleMemory(t *testing.T) {
	type wide struct {
		types.Model
		Text string `db:"text"`
	}
	db := openSQLite(t)
	db.MustExec("CREATE TABLE t (id INTEGER PRIMARY KEY, created_at TIMESTAMP, updated_at TIMESTAMP, text TEXT)")
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var most uint64
	h := newHelper(sqlxhelper.SQLite).With(sqlxhelper.OnProgress(func(done, _ int) {
		if done%10000 == 0 {
			runtime.GC()
			runtime.ReadMemStats(&now)
			most = max(most, now.HeapAlloc)
		}
	}))
	n, err := sqlxhelper.InsertSeq(ctx, h, db, "t", func(yield func(wide, error) bool) {
		for range 60_000 {
			if !yield(wide{Text: strings.Repeat("x", 1000)}, nil) {
				return
			}
		}
	})
	if err != nil || n != 60_000 {
		t.Fatalf("InsertSeq() = %d, %v", n, err)
	}
	if grown := int64(most) - int64(before.HeapAlloc); grown > 24<<20 {
		t.Errorf("the heap has grown by %d bytes; want at most 24 MiB", grown)
	}
}

// A savepoint of the program's own ends the sequence. What was noted for InTx is gone too.
func TestSequenceThatFailedInTransactionIsNotWhatProvesItsCommit(t *testing.T) {
	db := newPairs(t)
	kept := pair{N: -1}
	err := sqlxhelper.InTx(ctx, db, nil, func(tx *sqlx.Tx) error {
		h := newHelper(sqlxhelper.SQLite)
		if err := h.Insert(ctx, tx, "t", &kept); err != nil {
			return err
		}
		before := sqlxhelper.Noted(tx)
		if _, err := sqlxhelper.InsertSeq(ctx, h, tx, "t", pairs(7000, 6000, func() error { return errMine })); !errors.Is(err, errMine) {
			t.Errorf("InsertSeq() = %v; want %v", err, errMine)
		}
		if after := sqlxhelper.Noted(tx); !slices.Equal(after, before) || len(after) != 1 || after[0] != kept.ID {
			t.Errorf("noted are %v; want %v, the row that is there", after, before)
		}
		return nil
	})
	if err != nil || stored(t, db) != 1 {
		t.Errorf("InTx() = %v, and %d rows are stored; want 1", err, stored(t, db))
	}
}

// preparing keeps the statements that are prepared.
type preparing struct {
	forwardTx
	prepared *[]*sql.Stmt
}

func (p preparing) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	stmt, err := p.forwardTx.PrepareContext(ctx, query)
	*p.prepared = append(*p.prepared, stmt)
	return stmt, err
}

// database/sql keeps prepared statements until the transaction ends. One for each part
// would be memory that grows with the sequence.
func TestSequencePreparesOneStatementAndClosesIt(t *testing.T) {
	db := newPairs(t)
	tx := db.MustBegin()
	defer func() { _ = tx.Rollback() }()
	var prepared []*sql.Stmt
	n, err := sqlxhelper.InsertSeq(ctx, newHelper(sqlxhelper.SQLite), preparing{forwardTx{forward{tx}}, &prepared}, "t", pairs(12000, -1, plainly))
	if err != nil || n != 12000 || stored(t, tx) != 12000 || len(prepared) != 1 {
		t.Fatalf("InsertSeq(12000 rows) = %d, %v, with %d statements prepared; want 12000 with 1", n, err, len(prepared))
	}
	if _, err := prepared[0].ExecContext(ctx); err == nil || !strings.Contains(err.Error(), "statement is closed") {
		t.Errorf("ExecContext after InsertSeq = %v; want that the statement is closed", err)
	}
}
