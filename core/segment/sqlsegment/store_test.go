//go:build cgo

package sqlsegment_test

import (
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/mattn/go-sqlite3"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/keysql"
	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/core/segment/segmenttest"
	"github.com/snowkey/snowkey/core/segment/sqlsegment"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/proof/servers/foreign"
	"github.com/snowkey/snowkey/internal/proof/servers/sqlitetest"
)

// over returns a store on a database, which the test closes at its end.
func over(t *testing.T, db *sql.DB, table string) *sqlsegment.Store {
	t.Helper()
	t.Cleanup(func() { _ = db.Close() })
	s, err := sqlsegment.New(db, sqlstore.Config{Dialect: sqlstore.SQLite, Table: table, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func open(t *testing.T, file string) *sqlsegment.Store {
	t.Helper()
	db, err := sql.Open("sqlite3", file)
	if err != nil {
		t.Fatal(err)
	}
	s := over(t, db, "")
	if err := s.CreateTables(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSQLitePassesTheSuite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "segments.db")
	segmenttest.Run(t, segmenttest.Harness{
		Open: func(t *testing.T) segmenttest.Store { return open(t, file) },
		LosesReplies: func(t *testing.T) segmenttest.Store {
			return over(t, sql.OpenDB(&sqlitetest.Connector{DSN: file, After: func(query string) error {
				if query == "COMMIT" {
					return errors.New("the reply is lost")
				}
				return nil
			}}), "")
		},
		Foreign: func(t *testing.T, tag, column string, value any) segmenttest.Store {
			db, err := sql.Open("sqlite3", filepath.Join(sqlitetest.Folder(t), "foreign.db"))
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range foreign.Segments("leaf_alloc", tag, column, value, value == segmenttest.NoColumn) {
				if _, err := db.Exec(text); err != nil {
					t.Fatalf("%s: %v", text, err)
				}
			}
			return over(t, db, "leaf_alloc")
		},
	})
}

// Two processes with a log each would take the same ranges.
func TestAFileWithTwoNamesGivesNoRange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "segments.db")
	s := open(t, path)
	if err := s.Create(t.Context(), segment.Row{Tag: "orders", Next: 1, Step: 10, Stride: 1}); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(path, path+".second"); err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	if r, err := s.Take(t.Context(), segment.Take{Tag: "orders"}); r != (segment.Range{}) || !errors.Is(err, sqlstore.ErrNotDurable) || !strings.Contains(err.Error(), path+": it has 2 names") {
		t.Errorf("Take() from a file with two names = %+v, %v; want ErrNotDurable and the file", r, err)
	}
}

func TestARowThatIsRaisedAboveTheLastNumberOfAllGivesNoMore(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "segments.db"))
	if err := s.Create(t.Context(), segment.Row{Tag: "orders", Next: 1, Step: 1, Stride: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.RaiseAbove(t.Context(), "orders", math.MaxInt64); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Take(t.Context(), segment.Take{Tag: "orders"}); !errors.Is(err, segment.ErrExhausted) {
		t.Errorf("Take = %+v, %v; want %v", r, err, segment.ErrExhausted)
	}
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	db, err := sql.Open("sqlite3", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	for _, c := range []struct {
		db                *sql.DB
		config            sqlstore.Config
		name, value, want string
	}{
		{nil, sqlstore.Config{Dialect: sqlstore.SQLite}, "db", "nil", "an open *sql.DB"},
		{db, sqlstore.Config{}, "Config.Dialect", "Dialect(0)", "SQLite, PostgreSQL or MySQL"},
		{db, sqlstore.Config{Dialect: 99}, "Config.Dialect", "Dialect(99)", "SQLite, PostgreSQL or MySQL"},
		{db, sqlstore.Config{Dialect: keysql.DuckDB}, "Config.Dialect", "DuckDB", "SQLite, PostgreSQL or MySQL"}, // which only reads
		{db, sqlstore.Config{Dialect: sqlstore.SQLite, Table: "a b"}, "Config.Table", `"a b"`, "1..63 letters"},
		{db, sqlstore.Config{Dialect: sqlstore.SQLite, Table: `x"; DROP TABLE y; --`}, "Config.Table", "DROP", "1..63 letters"},
		{db, sqlstore.Config{Dialect: sqlstore.SQLite, Table: strings.Repeat("x", 1000)}, "Config.Table", `"` + strings.Repeat("x", 64) + `"`, "1..63 letters"},
	} {
		s, err := sqlsegment.New(c.db, c.config)
		var value *core.ValueError
		if s != nil || !errors.As(err, &value) || value.Name != c.name || !strings.Contains(fmt.Sprint(value.Value), c.value) || !strings.Contains(value.Want, c.want) {
			t.Errorf("New(%v, %+v) = %v, %v; want a *ValueError of %s, which is %s, want %s", c.db != nil, c.config, s, err, c.name, c.value, c.want)
		}
	}
	s := over(t, db, "")
	for _, tag := range []string{"", "a\n", strings.Repeat("x", 129)} {
		if _, err := s.Take(t.Context(), segment.Take{Tag: tag}); !errors.As(err, new(*core.ValueError)) {
			t.Errorf("Take of tag %q = %v; want a *ValueError", tag, err)
		}
	}
	if err := s.CreateTables(t.Context()); !errors.Is(err, sqlstore.ErrNotDurable) {
		t.Errorf("CreateTables in memory = %v; want %v", err, sqlstore.ErrNotDurable)
	}
}

func TestATableThatIsMissingIsNamedWithTheStatementThatMakesIt(t *testing.T) {
	s := over(t, shop(t), "")
	if _, err := s.Take(t.Context(), segment.Take{Tag: "orders"}); !errors.Is(err, sqlstore.ErrNoTable) || !strings.Contains(err.Error(), s.Statements()[0]) {
		t.Errorf("Take without a table = %v; want %v, and %s", err, sqlstore.ErrNoTable, s.Statements()[0])
	}
	if err := s.CreateTables(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := s.Take(t.Context(), segment.Take{Tag: "orders"})
	if want := `INSERT INTO "main"."snowkey_segments" (biz_tag, max_id, step) VALUES ('orders', 1, 1000)`; !errors.Is(err, segment.ErrNoTag) || !strings.Contains(err.Error(), want) {
		t.Errorf("Take without a row = %v; want %v, and %s", err, segment.ErrNoTag, want)
	}
}

// The statement that the error names makes a row that serves.
func TestTheStatementOfErrNoTagMakesTheRow(t *testing.T) {
	db := shop(t)
	s := over(t, db, "")
	if err := s.CreateTables(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, tag := range []string{"orders", "o'clock"} {
		_, err := s.Take(t.Context(), segment.Take{Tag: tag})
		_, statement, found := strings.Cut(err.Error(), "or run ")
		if !found {
			t.Fatalf("Take without a row = %v; want a statement", err)
		}
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
		if r, err := s.Take(t.Context(), segment.Take{Tag: tag}); err != nil || r.First != 1 || r.Last != 1000 || r.Stride != 1 {
			t.Errorf("Take after %s = %+v, %v; want 1 to 1000", statement, r, err)
		}
	}
}
