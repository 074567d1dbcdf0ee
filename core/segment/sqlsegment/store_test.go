//go:build cgo

package sqlsegment_test

import (
	"database/sql"
	"errors"
	"log/slog"
	"math"
	"path/filepath"
	"testing"

	_ "github.com/mattn/go-sqlite3"

	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/core/segment/segmenttest"
	"github.com/snowkey/snowkey/core/segment/sqlsegment"
	"github.com/snowkey/snowkey/internal/sqlrow/sqlrowtest"
)

// over returns a store on a database, which the test closes at its end.
func over(t *testing.T, db *sql.DB, table string) *sqlsegment.Store {
	t.Helper()
	t.Cleanup(func() { _ = db.Close() })
	s, err := sqlsegment.New(db, sqlsegment.Config{Dialect: sqlsegment.SQLite, Table: table, Logger: slog.New(slog.DiscardHandler)})
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
			return over(t, sql.OpenDB(&sqlrowtest.Connector{DSN: file, After: func(query string) error {
				if query == "COMMIT" {
					return errors.New("the reply is lost")
				}
				return nil
			}}), "")
		},
		Foreign: func(t *testing.T, tag, column string, value any) segmenttest.Store {
			db, err := sql.Open("sqlite3", filepath.Join(sqlrowtest.Folder(t), "foreign.db"))
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range sqlrowtest.Foreign("leaf_alloc", tag, column, value, value == segmenttest.NoColumn) {
				if _, err := db.Exec(text); err != nil {
					t.Fatalf("%s: %v", text, err)
				}
			}
			return over(t, db, "leaf_alloc")
		},
	})
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
