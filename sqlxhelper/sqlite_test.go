package sqlxhelper_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/jmoiron/sqlx"
	_ "github.com/mattn/go-sqlite3"
	"github.com/snowkey/snowkey/internal/proof/cases/sqlxcases"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// openSQLite opens a database of the test's own, with foreign keys enforced. It is in memory, because
// a file takes more time than the statements.
func openSQLite(t *testing.T) *sqlx.DB {
	t.Helper()
	dsn := fmt.Sprintf("file:/sqlxhelper%d?vfs=memdb&_foreign_keys=on&_busy_timeout=60000&_txlock=immediate", databases.Add(1))
	// SQLite drops the database with its last connection. keeper has one that no test closes.
	keeper := openDSN(t, dsn)
	if err := keeper.Ping(); err != nil {
		t.Fatal(err)
	}
	return openDSN(t, dsn)
}

var databases atomic.Int64

func openDSN(t *testing.T, dsn string) *sqlx.DB {
	t.Helper()
	db, err := sqlx.Open("sqlite3", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return db
}

func TestCasesHoldOnSQLite(t *testing.T) {
	sqlxcases.Run(t, sqlxcases.Database{DB: openSQLite(t), Dialect: sqlxhelper.SQLite})
}

// execAll runs statements that must succeed.
func execAll(t *testing.T, db *sqlx.DB, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if _, err := db.Exec(text); err != nil {
			t.Fatalf("Exec(%q) = %v", text, err)
		}
	}
}

const pairTable = "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)"

// SQLite has ways to keep rows of a statement that fails.
func TestRowsOfAStatementThatSQLiteWouldKeepAreUndone(t *testing.T) {
	for name, ddl := range map[string][]string{
		"TriggerIgnores": {pairTable, "CREATE TRIGGER skip BEFORE INSERT ON t WHEN NEW.n < 0 BEGIN SELECT RAISE(IGNORE); END"},
		"TriggerFails":   {pairTable, "CREATE TRIGGER skip BEFORE INSERT ON t WHEN NEW.n < 0 BEGIN SELECT RAISE(FAIL, 'no'); END"},
		"TriggerAfter":   {pairTable, "CREATE TRIGGER skip AFTER INSERT ON t WHEN NEW.n < 0 BEGIN SELECT RAISE(FAIL, 'no'); END"},
		"Constraint":     {"CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER UNIQUE ON CONFLICT FAIL)", "INSERT INTO t VALUES (100, -1)"},
		"Ignored":        {"CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER UNIQUE ON CONFLICT IGNORE)", "INSERT INTO t VALUES (100, -1)"},
	} {
		t.Run(name, func(t *testing.T) {
			db := openSQLite(t)
			execAll(t, db, ddl...)
			var before int
			if err := db.Get(&before, "SELECT COUNT(*) FROM t"); err != nil {
				t.Fatal(err)
			}
			h := newHelper(sqlxhelper.SQLite)
			rows := []pair{{N: 1}, {N: -1}, {N: 2}}
			if err := h.InsertMany(ctx, db, "t", rows); err == nil {
				t.Error("InsertMany(pool) = nil; want an error")
			}
			wantRows(t, db, "t", before)
			if err := h.Insert(ctx, db, "t", &pair{N: -1}); err == nil {
				t.Error("Insert(pool) = nil; want an error")
			}
			wantRows(t, db, "t", before)
			err := sqlxhelper.InTx(ctx, db, nil, func(tx *sqlx.Tx) error {
				if err := h.InsertMany(ctx, tx, "t", rows); err == nil || errors.Is(err, sqlxhelper.ErrTxBroken) {
					t.Errorf("InsertMany(tx) = %v; want the error of the row", err)
				}
				return h.Insert(ctx, tx, "t", &pair{N: 9})
			})
			if err != nil {
				t.Errorf("InTx() = %v; want nil", err)
			}
			wantRows(t, db, "t", before+1)
		})
	}
}

// A constraint may leave a row out without an error of its own. An upsert then
// looks for a stored row.
func TestRowThatSQLiteLeavesOutOfAnUpsertIsAnError(t *testing.T) {
	for name, option := range map[string]sqlxhelper.Option{
		"DoNothing": sqlxhelper.OnConflictDoNothing("id"),
		"Update":    sqlxhelper.OnConflictUpdate("n"),
	} {
		db := openSQLite(t)
		execAll(t, db, "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER UNIQUE ON CONFLICT IGNORE)", "INSERT INTO t VALUES (100, 1)")
		h := newHelper(sqlxhelper.SQLite).With(sqlxhelper.ConflictTarget("id"), option)
		rows := []pair{{ID: 7, N: 1}, {ID: 8, N: 2}, {ID: 9, N: 2}}
		if err := h.InsertMany(ctx, db, "t", rows); !errors.Is(err, sqlxhelper.ErrUnresolved) || rows[0].ID != 7 || rows[2].ID != 9 {
			t.Errorf("%s: InsertMany() = %v, keys %d and %d; want ErrUnresolved, 7 and 9", name, err, rows[0].ID, rows[2].ID)
		}
		wantRows(t, db, "t", 1)
	}
}

// This is not what anybody wants, and what the package documentation says.
func TestRowThatSQLiteReplacesIsNotSeen(t *testing.T) {
	db := openSQLite(t)
	execAll(t, db, "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER UNIQUE ON CONFLICT REPLACE)", "INSERT INTO t VALUES (100, 1)")
	if err := newHelper(sqlxhelper.SQLite).InsertMany(ctx, db, "t", []pair{{N: 1}, {N: 2}, {N: 2}}); err != nil {
		t.Errorf("InsertMany(rows that replace others) = %v; want nil", err)
	}
	wantRows(t, db, "t", 2)
}

// Rows that SQLite keeps get in the way of the search for the bad one.
func TestRowThatSQLiteHasKeptIsNotBlamed(t *testing.T) {
	db := openSQLite(t)
	execAll(t, db, "CREATE TABLE t (id INTEGER PRIMARY KEY ON CONFLICT FAIL, n INTEGER)", "INSERT INTO t VALUES (7, 0)")
	rows := make([]pair, 9)
	for i := range rows {
		rows[i].ID = types.Snowflake(i + 1)
	}
	for _, rows := range [][]pair{rows, rows[5:]} {
		err := newHelper(sqlxhelper.SQLite).InsertMany(ctx, db, "t", rows)
		var e *sqlxhelper.InsertError
		if !errors.As(err, &e) || e.Row >= 0 && rows[e.Row].ID != 7 || !errors.Is(err, sqlxhelper.ErrDuplicateKey) {
			t.Errorf("InsertMany(7 is stored) = %v; want a duplicate key, and no other row than 7 to blame", err)
		}
		wantRows(t, db, "t", 1)
	}
}

// Such a constraint ends the transaction. The search for the bad row is then
// outside of it.
func TestNothingIsStoredAfterSQLiteHasRolledBack(t *testing.T) {
	db := openSQLite(t)
	execAll(t, db, "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER UNIQUE ON CONFLICT ROLLBACK)", "INSERT INTO t VALUES (100, 3)")
	h := newHelper(sqlxhelper.SQLite)
	for bad := range 9 {
		rows := make([]pair, 9)
		for i := range rows {
			rows[i].N = 10 + i
		}
		rows[bad].N = 3
		if err := h.InsertMany(ctx, db, "t", rows); !errors.Is(err, sqlxhelper.ErrDuplicateKey) {
			t.Errorf("InsertMany(bad row %d) = %v; want ErrDuplicateKey", bad, err)
		}
		wantRows(t, db, "t", 1)
		err := sqlxhelper.InTx(ctx, db, nil, func(tx *sqlx.Tx) error { return h.InsertMany(ctx, tx, "t", rows) })
		if !errors.Is(err, sqlxhelper.ErrDuplicateKey) || !errors.Is(err, sqlxhelper.ErrTxBroken) {
			t.Errorf("InTx(InsertMany(bad row %d)) = %v; want ErrDuplicateKey and ErrTxBroken", bad, err)
		}
		wantRows(t, db, "t", 1)
	}
}

// SQLite checks foreign keys when the statement ends, so a row may refer to a later one. Sent
// alone, it fails as the bad one does.
func TestRowThatRefersToALaterOneIsNotBlamedOnSQLite(t *testing.T) {
	type linked struct {
		types.Model
		ParentID types.NullSnowflake `db:"parent_id"`
	}
	to := func(id types.Snowflake) types.NullSnowflake { return types.NullSnowflake{Snowflake: id, Valid: true} }
	db := openSQLite(t)
	execAll(t, db, "CREATE TABLE t (id INTEGER PRIMARY KEY, parent_id INTEGER REFERENCES t (id))")
	h := newHelper(sqlxhelper.SQLite)
	rows := []linked{{types.Model{ID: 1}, to(3)}, {Model: types.Model{ID: 2}}, {Model: types.Model{ID: 3}}, {types.Model{ID: 4}, to(99)}}
	var e *sqlxhelper.InsertError
	if err := h.InsertMany(ctx, db, "t", rows); !errors.As(err, &e) || e.Row == 0 {
		t.Errorf("InsertMany(4 refers to nothing) = %v; want an error that does not blame 1", err)
	}
	if err := h.InsertMany(ctx, db, "t", rows[1:]); !errors.As(err, &e) || e.Row != 2 {
		t.Errorf("InsertMany(4 refers to nothing) = %v; want it blamed", err)
	}
	wantRows(t, db, "t", 0)
	if err := h.InsertMany(ctx, db, "t", rows[:3]); err != nil {
		t.Errorf("InsertMany(1 refers to 3) = %v; want nil", err)
	}
}

// An interrupted insert would end the whole transaction. The rest of the caller's
// work would be committed row by row.
func TestContextThatEndsDuringAStatementLeavesTheTransactionOnSQLite(t *testing.T) {
	db := openSQLite(t)
	execAll(t, db, pairTable)
	tx, err := db.Beginx()
	if err != nil {
		t.Fatal(err)
	}
	h := newHelper(sqlxhelper.SQLite)
	if err := h.Insert(ctx, tx, "t", &pair{}); err != nil {
		t.Fatal(err)
	}
	ending, cancel := context.WithCancel(ctx)
	rows := make([]effectRow, 400)
	rows[100].N.do = cancel
	if err := h.InsertMany(ending, tx, "t", rows); !errors.Is(err, context.Canceled) || errors.Is(err, sqlxhelper.ErrTxBroken) {
		t.Errorf("InsertMany(context that ends) = %v; want context.Canceled", err)
	}
	if err := h.Insert(ctx, tx, "t", &pair{}); err != nil {
		t.Errorf("Insert after = %v; want nil", err)
	}
	if err := tx.Commit(); err != nil {
		t.Errorf("Commit() = %v; want nil", err)
	}
	wantRows(t, db, "t", 2)
}

// These texts, and names that look like parameters, are what sqlx's parsers
// rewrite, miscount or refuse.
func TestTextAndNamesAreNotParsed(t *testing.T) {
	type odd struct {
		types.Model
		A string   `db:"why?"`
		B string   `db:":b"`
		C string   `db:"values (:x)"`
		D jsonText `db:"j"`
	}
	db := openSQLite(t)
	execAll(t, db, `CREATE TABLE odd (id INTEGER PRIMARY KEY, "why?" TEXT, ":b" TEXT, "values (:x)" TEXT, j TEXT)`)
	rows := []odd{{A: "x)", B: "12:30", C: "'x'::jsonb", D: jsonText(`{"a":"?"}`)}, {A: "??", B: ":a::int", C: "why?", D: jsonText(`[]`)}, {}}
	if err := newHelper(sqlxhelper.SQLite).InsertMany(ctx, db, "odd", rows); err != nil {
		t.Fatalf("InsertMany() = %v; want nil", err)
	}
	for _, want := range rows {
		var a, b, c, j string
		if err := db.QueryRow(`SELECT "why?", ":b", "values (:x)", COALESCE(j, '') FROM odd WHERE id = `+want.ID.String()).Scan(&a, &b, &c, &j); err != nil {
			t.Fatal(err)
		}
		if a != want.A || b != want.B || c != want.C || j != string(want.D) {
			t.Errorf("row %d = %q, %q, %q, %q; want %+v", want.ID, a, b, c, j, want)
		}
	}
}

// jsonText is a list of bytes by another name, as json.RawMessage is.
type jsonText []byte

// An ending is a value that ends the context of the transaction when it is read, and waits until
// database/sql, beside the call, has rolled back and closed the prepared statement.
type ending func()

func (e ending) Value() (driver.Value, error) {
	if e != nil {
		e()
	}
	return int64(1), nil
}

type endingRow struct {
	ID types.Snowflake `db:"id"`
	N  ending          `db:"n"`
}

func TestCallIsCanceledThoughDatabaseSQLHasClosedItsStatement(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, h *sqlxhelper.Helper, db *sqlx.DB, rows []endingRow) error{
		"InsertMany": func(ctx context.Context, h *sqlxhelper.Helper, db *sqlx.DB, rows []endingRow) error {
			return h.InsertMany(ctx, db, "t", rows)
		},
		"upsert": func(ctx context.Context, h *sqlxhelper.Helper, db *sqlx.DB, rows []endingRow) error {
			return h.With(sqlxhelper.OnConflictDoNothing("id")).InsertMany(ctx, db, "t", rows)
		},
		"InTx": func(ctx context.Context, h *sqlxhelper.Helper, db *sqlx.DB, rows []endingRow) error {
			return sqlxhelper.InTx(ctx, db, nil, func(tx *sqlx.Tx) error { return h.InsertMany(ctx, tx, "t", rows) })
		},
		"InTx around a context that goes on": func(ctx context.Context, h *sqlxhelper.Helper, db *sqlx.DB, rows []endingRow) error {
			return sqlxhelper.InTx(ctx, db, nil, func(tx *sqlx.Tx) error { return h.InsertMany(context.WithoutCancel(ctx), tx, "t", rows) })
		},
		"InsertSeq in InTx around a context that goes on": func(ctx context.Context, h *sqlxhelper.Helper, db *sqlx.DB, rows []endingRow) error {
			return sqlxhelper.InTx(ctx, db, nil, func(tx *sqlx.Tx) error {
				_, err := sqlxhelper.InsertSeq(context.WithoutCancel(ctx), h, tx, "t", func(yield func(endingRow, error) bool) {
					for _, row := range rows {
						if !yield(row, nil) {
							return
						}
					}
				})
				return err
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			db := openSQLite(t)
			execAll(t, db, "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			rows := make([]endingRow, 1000)
			rows[700].N = func() {
				cancel()
				for db.Stats().InUse > 0 {
					runtime.Gosched()
				}
			}
			err := call(ctx, newHelper(sqlxhelper.SQLite), db, rows)
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s = %v; want context.Canceled", name, err)
			}
			wantRows(t, db, "t", 0)
		})
	}
}
