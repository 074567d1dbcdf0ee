package servers

import (
	"context"
	"errors"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"
	_ "gorm.io/driver/sqlite" // registers sqlite3

	"github.com/snowkey/snowkey/internal/proof/cases/sqlxcases"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// openSqlx opens a pool that is closed at the end of the test.
func openSqlx(t *testing.T, driver, dsn string) *sqlx.DB {
	t.Helper()
	db, err := sqlx.Connect(driver, dsn)
	if err != nil {
		t.Fatalf("Connect(%q) = %v", driver, err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return db
}

// execSqlx runs one statement that must succeed.
func execSqlx(t *testing.T, db *sqlx.DB, text string) {
	t.Helper()
	if _, err := db.Exec(text); err != nil {
		t.Fatalf("Exec(%q) = %v", text, err)
	}
}

// sqlxOn returns a database of the test's own by a way.
func sqlxOn(t *testing.T, way string, parameters ...string) sqlxcases.Database {
	t.Helper()
	return wayTo(way).place(t, parameters...).sqlx(t)
}

// onMariaDBAndMySQL runs test on both. Their errors and triggers are alike, but each has
// a parser and an optimizer of its own.
func onMariaDBAndMySQL(t *testing.T, test func(t *testing.T, w way)) {
	t.Helper()
	for _, name := range []string{"MariaDB", "MySQL"} {
		t.Run(name, func(t *testing.T) { test(t, wayTo(name)) })
	}
}

func TestSqlxCasesHoldOnSQLite(t *testing.T) {
	t.Parallel()
	db := openSqlx(t, "sqlite3", "file:"+t.TempDir()+"/test.db?_foreign_keys=on&_journal_mode=WAL&_synchronous=OFF&_busy_timeout=60000&_txlock=immediate")
	sqlxcases.Run(t, sqlxcases.Database{DB: db, Dialect: sqlxhelper.SQLite})
}

func TestSqlxCasesHoldOnPostgresByPgx(t *testing.T) {
	t.Parallel()
	sqlxcases.Run(t, sqlxOn(t, "pgx"))
}

// The modes for poolers: parameters go as text, without asking the server for
// their types first.
func TestSqlxCasesHoldOnPostgresByPgxInItsOtherModes(t *testing.T) {
	t.Parallel()
	modes := []string{"pgx simple protocol"}
	if *bulkPairs == 0 { // what exec sends differs less
		modes = append(modes, "pgx exec")
	}
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := wayTo(mode)
			w.driver = "pgx/v5" // its other name
			sqlxcases.Run(t, w.place(t).sqlx(t))
		})
	}
}

func TestSqlxCasesHoldOnPostgresByPq(t *testing.T) {
	t.Parallel()
	sqlxcases.Run(t, sqlxOn(t, "pq"))
}

func TestSqlxCasesHoldOnMariaDB(t *testing.T) {
	t.Parallel()
	sqlxcases.Run(t, sqlxOn(t, "MariaDB"))
}

func TestSqlxCasesHoldOnMariaDBWithInterpolatedParameters(t *testing.T) {
	t.Parallel()
	sqlxcases.Run(t, sqlxOn(t, "MariaDBInterpolated"))
}

func TestSqlxCasesHoldOnMySQL(t *testing.T) {
	t.Parallel()
	for _, w := range waysTo("MySQL") {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			sqlxcases.Run(t, w.place(t).sqlx(t))
		})
	}
}

type suppressed struct {
	types.Model
	N int `db:"n"`
}

func TestRowsThatATriggerSuppressesAreAnErrorOnPostgres(t *testing.T) {
	d := sqlxOn(t, "pgx")
	execSqlx(t, d.DB, "CREATE TABLE suppressed (id BIGINT PRIMARY KEY, n BIGINT)")
	execSqlx(t, d.DB, "CREATE FUNCTION skip() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF NEW.n < 0 THEN RETURN NULL; END IF; RETURN NEW; END'")
	execSqlx(t, d.DB, "CREATE TRIGGER skip BEFORE INSERT ON suppressed FOR EACH ROW EXECUTE FUNCTION skip()")
	h := sqlxhelper.New(sqlxcases.NewCounter(0))
	rows := []suppressed{{N: 1}, {N: -1}, {N: 2}}
	err := sqlxhelper.InTx(context.Background(), d.DB, nil, func(tx *sqlx.Tx) error {
		var count *sqlxhelper.CountError
		if err := h.InsertMany(context.Background(), tx, "suppressed", rows); !errors.As(err, &count) || count.Rows != 3 || count.Affected != 2 {
			t.Errorf("InsertMany(rows of which one is suppressed) = %v; want a CountError with 3 rows, 2 affected", err)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("InTx() = %v; want nil", err)
	}
	var n int
	if err := d.DB.Get(&n, "SELECT COUNT(*) FROM suppressed"); err != nil || n != 0 {
		t.Errorf("rows = %d, %v; want 0", n, err)
	}
}

// PostgreSQL cuts a name of more than 63 bytes. It would then insert into the other
// table.
func TestLongNameIsNotCutOnPostgres(t *testing.T) {
	d := sqlxOn(t, "pgx")
	name := "n23456789012345678901234567890123456789012345678901234567890123"
	execSqlx(t, d.DB, "CREATE TABLE "+name+" (id BIGINT PRIMARY KEY, n BIGINT)")
	h := sqlxhelper.New(sqlxcases.NewCounter(0))
	if err := h.Insert(context.Background(), d.DB, name, &suppressed{}); err != nil {
		t.Errorf("Insert(63 bytes) = %v; want nil", err)
	}
	if err := h.Insert(context.Background(), d.DB, name+"4", &suppressed{}); !errors.Is(err, sqlxhelper.ErrName) {
		t.Errorf("Insert(64 bytes) = %v; want ErrName", err)
	}
}

// Not only constraints refuse rows. What does so names no row.
func TestRowThatATriggerAViewOrPartitionsRefuseIsAnErrorOnMariaDBAndMySQL(t *testing.T) {
	onMariaDBAndMySQL(t, func(t *testing.T, w way) {
		d := w.place(t).sqlx(t)
		for _, text := range []string{
			"CREATE TABLE triggered (id BIGINT PRIMARY KEY, n BIGINT)",
			"CREATE TRIGGER refuse BEFORE INSERT ON triggered FOR EACH ROW IF NEW.n < 0 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no'; END IF",
			"CREATE TABLE viewed_from (id BIGINT PRIMARY KEY, n BIGINT)",
			"CREATE VIEW viewed AS SELECT id, n FROM viewed_from WHERE n >= 0 WITH CHECK OPTION",
			"CREATE TABLE parted (id BIGINT, n BIGINT, PRIMARY KEY (id, n)) PARTITION BY LIST (n) (PARTITION p VALUES IN (0, 1))",
		} {
			execSqlx(t, d.DB, text)
		}
		for table, number := range map[string]uint16{"triggered": 1644, "viewed": 1369, "parted": 1526} {
			rows := make([]suppressed, 1100)
			rows[777].N = -1
			refuses(t, d, table, rows, number)
		}
	})
}

// refuses inserts rows, on a pool and in a transaction, and fails the test unless the server refuses them with an error, of no row
// by name, and has none.
func refuses(t *testing.T, d sqlxcases.Database, table string, rows any, number uint16) {
	t.Helper()
	tx := d.DB.MustBegin()
	for _, db := range []sqlxhelper.DB{d.DB, tx} {
		err := sqlxhelper.New(sqlxcases.NewCounter(0)).InsertMany(t.Context(), db, table, rows)
		var said *mysql.MySQLError
		var in *sqlxhelper.InsertError
		if !errors.As(err, &said) || said.Number != number || !errors.As(err, &in) || in.Row != -1 {
			t.Errorf("InsertMany(%s by %T) = %v; want error %d, about no row", table, db, err, number)
		}
	}
	must(t, tx.Commit())
	if n := counting(t, d.DB, table)(); n != 0 {
		t.Errorf("rows in %s = %d; want 0", table, n)
	}
}
