//go:build cgo

package sqlsegment_test

import (
	"database/sql"
	"errors"
	"math"
	"path/filepath"
	"testing"

	_ "github.com/mattn/go-sqlite3"

	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/core/segment/segmenttest"
	"github.com/snowkey/snowkey/core/segment/sqlsegment"
)

func open(t *testing.T, file string) *sqlsegment.Store {
	t.Helper()
	db, err := sql.Open("sqlite3", file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	s, err := sqlsegment.New(db, sqlsegment.Config{Dialect: sqlsegment.SQLite})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.CreateTables(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSQLitePassesTheSuite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "segments.db")
	segmenttest.Run(t, func(t *testing.T) segmenttest.Store { return open(t, file) })
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
