//go:build cgo

package sqlserial_test

import (
	"database/sql"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/serial"
	"github.com/snowkey/snowkey/core/serial/sqlserial"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/proof/cases/serialcases"
	"github.com/snowkey/snowkey/internal/proof/servers/sqlitetest"
)

func openSQLite(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+path+"?_journal_mode=WAL&_synchronous=OFF&_busy_timeout=60000&_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestSQLitePassesTheCases(t *testing.T) {
	path := filepath.Join(sqlitetest.Folder(t), "serials.db")
	serialcases.Run(t, serialcases.Target{
		Dialect: sqlstore.SQLite,
		Driver:  "sqlite3",
		Open:    func(t *testing.T) *sql.DB { t.Helper(); return openSQLite(t, path) },
		Levels:  []sql.IsolationLevel{sql.LevelDefault},
	})
}

func TestMissingTablesAreNamedWithTheirStatements(t *testing.T) {
	db := openSQLite(t, filepath.Join(sqlitetest.Folder(t), "serials.db"))
	s, err := sqlserial.New(db, sqlstore.Config{Dialect: sqlstore.SQLite})
	if err != nil {
		t.Fatal(err)
	}
	series := serial.Series{Name: "x", Digits: 3}
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, in := s.NextIn(t.Context(), tx, series, time.Now())
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	for call, err := range map[string]error{"Define": s.Define(t.Context(), series), "NextIn": in} {
		if !errors.Is(err, sqlstore.ErrNoTable) || !strings.Contains(err.Error(), s.Statements()[0]) || !strings.HasPrefix(err.Error(), "sqlserial: ") {
			t.Errorf("%s without tables = %v; want %v and the statements", call, err, sqlstore.ErrNoTable)
		}
	}
}

// Two processes with a log each would give out the same numbers. That NextIn is in the
// caller's transaction changes nothing about that.
func TestAFileWithTwoNamesGivesNoNumber(t *testing.T) {
	path := filepath.Join(sqlitetest.Folder(t), "serials.db")
	db := openSQLite(t, path)
	s, err := sqlserial.New(db, sqlstore.Config{Dialect: sqlstore.SQLite, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	series := serial.Series{Name: "x", Digits: 3}
	if err := errors.Join(s.CreateTables(t.Context()), s.Define(t.Context(), series)); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(path, path+".second"); err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	n, in := s.NextIn(t.Context(), tx, series, time.Now())
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	_, take := s.Take(t.Context(), "x", "", time.Now(), 1)
	for call, err := range map[string]error{"NextIn": in, "Take": take, "Define": s.Define(t.Context(), series)} {
		if !errors.Is(err, sqlstore.ErrNotDurable) || !strings.Contains(err.Error(), path+": it has 2 names") {
			t.Errorf("%s in a file with two names = %v; want ErrNotDurable and the file", call, err)
		}
	}
	if n != (serial.Number{}) {
		t.Errorf("NextIn() in a file with two names = %v; want none", n)
	}
}

// The numbers of a log that others do not see would be given out again.
func TestALogThatWasRemovedGivesNoNumber(t *testing.T) {
	path := filepath.Join(sqlitetest.Folder(t), "serials.db")
	db := openSQLite(t, path)
	s, err := sqlserial.New(db, sqlstore.Config{Dialect: sqlstore.SQLite, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	series := serial.Series{Name: "x", Digits: 3}
	if err := errors.Join(s.CreateTables(t.Context()), s.Define(t.Context(), series)); err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	next := func() (n serial.Number, err error) {
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if n, err = s.NextIn(t.Context(), tx, series, time.Now()); err != nil {
			return n, errors.Join(err, tx.Rollback())
		}
		return n, tx.Commit()
	}
	for range 2 {
		if _, err := next(); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Remove(path+"-wal"), os.Remove(path+"-shm")); err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	if n, err := next(); n != (serial.Number{}) || !errors.Is(err, sqlstore.ErrReplaced) || !strings.Contains(err.Error(), path+"-wal") {
		t.Errorf("NextIn() without the log = %v, %v; want ErrReplaced and the log", n, err)
	}
}

func TestArgumentsOutOfRangeAreRefused(t *testing.T) {
	db := openSQLite(t, filepath.Join(sqlitetest.Folder(t), "serials.db"))
	for _, c := range []struct {
		db     *sql.DB
		config sqlstore.Config
		name   string
	}{
		{nil, sqlstore.Config{Dialect: sqlstore.SQLite}, "db"},
		{db, sqlstore.Config{}, "Config.Dialect"},
		{db, sqlstore.Config{Dialect: sqlstore.SQLite, Table: "a b"}, "Config.Table"},
		{db, sqlstore.Config{Dialect: sqlstore.SQLite, Table: strings.Repeat("a", 57)}, "Config.Table"}, // with _series it has 64 bytes
	} {
		var wrong *core.ValueError
		if s, err := sqlserial.New(c.db, c.config); s != nil || !errors.As(err, &wrong) || wrong.Name != c.name {
			t.Errorf("New(%+v) = %v, %v; want a ValueError for %s", c.config, s, err, c.name)
		}
	}
	s, err := sqlserial.New(db, sqlstore.Config{Dialect: sqlstore.SQLite})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.CreateTables(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Define(t.Context(), serial.Series{Name: "x", Digits: 3, Period: serial.Daily}); err != nil {
		t.Fatal(err)
	}
	noon := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		period string
		at     time.Time
		count  int64
		name   string
	}{
		{"20261122", noon, 0, "count"}, {"20261122", noon, -1, "count"}, {"2026", noon, 1, "period"}, {"20261123", noon, 1, "period"},
		{"20261122", noon.AddDate(8000, 0, 0), 1, "at"},
	} {
		var wrong *core.ValueError
		if n, err := s.Take(t.Context(), "x", c.period, c.at, c.count); n != 0 || !errors.As(err, &wrong) || wrong.Name != c.name {
			t.Errorf("Take(%q, %v, %d) = %d, %v; want a ValueError for %s", c.period, c.at, c.count, n, err, c.name)
		}
	}
}

// The names of the three tables: the standard ones, those in a schema, and those of a table of
// another name.
func TestTheTablesAreNamedAfterTheFirst(t *testing.T) {
	db := openSQLite(t, filepath.Join(sqlitetest.Folder(t), "serials.db"))
	for table, want := range map[string][]string{
		"":                       {"snowkey_series", "snowkey_counters", "snowkey_counter_events"},
		"snowkey_counters":       {"snowkey_series", "snowkey_counters", "snowkey_counter_events"},
		"books.snowkey_counters": {`books"."snowkey_series`, `books"."snowkey_counters`, `books"."snowkey_counter_events`},
		"numbers":                {"numbers_series", "numbers", "numbers_events"},
		"my_snowkey_counters":    {"my_snowkey_counters_series", "my_snowkey_counters", "my_snowkey_counters_events"},
		strings.Repeat("a", 56):  {strings.Repeat("a", 56) + "_series", strings.Repeat("a", 56), strings.Repeat("a", 56) + "_events"},
	} {
		s, err := sqlserial.New(db, sqlstore.Config{Dialect: sqlstore.PostgreSQL, Table: table})
		if err != nil {
			t.Fatalf("New with table %q = %v", table, err)
		}
		got := s.Statements()
		for i, name := range want {
			if !strings.HasPrefix(got[i], `CREATE TABLE IF NOT EXISTS "`+name+`" (`) {
				t.Errorf("Statements with table %q = %q...; want %s", table, got[i][:60], name)
			}
		}
	}
}
