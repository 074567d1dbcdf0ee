//go:build cgo

package sqllease

import (
	"bytes"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/proof/servers/sqlitetest"
)

// A file of an older version has two tables.
func TestLeasesInAnOlderFileGoOn(t *testing.T) {
	db := openSQLite(t, filepath.Join(sqlitetest.Folder(t), "leases.db"), "_journal_mode=WAL&_busy_timeout=20000")
	var log bytes.Buffer
	c := sqlstore.Config{Dialect: sqlstore.SQLite, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	s := newStore(t, db, c)
	execAll(t, db, "DROP TABLE snowkey_leases_past")
	claim := func(holder string) leasestore.Reply {
		t.Helper()
		c := testClaim(time.Now())
		c.Only, c.Holder, c.Window = []int64{3}, holder, 1
		for {
			r, err := s.Claim(t.Context(), c)
			if err == nil {
				return r
			}
			if !errors.Is(err, leasestore.ErrNoFreeWorker) {
				t.Fatalf("Claim() = %v; want the row", err)
			}
		}
	}
	old := claim("old")
	space := testClaim(time.Now()).Space
	if _, err := s.History(t.Context(), space, 3); !errors.Is(err, sqlstore.ErrNoTable) || !strings.Contains(err.Error(), s.Statements()[2]) {
		t.Errorf("History() without the table = %v; want ErrNoTable, and the statement", err)
	}
	s = newStore(t, db, c) // creates it
	recent := claim("new")
	want := []leasestore.Holder{
		{Worker: 3, Epoch: 1, Holder: "old", Until: old.Row.Until},
		{Worker: 3, Epoch: 2, Holder: "new", From: recent.Now, Until: recent.Row.Until},
	}
	if all, err := s.History(t.Context(), space, 3); err != nil || !slices.Equal(all, want) {
		t.Errorf("History() = %+v, %v; want %+v", all, err, want)
	}

	// A view that has the name is not the table, and no reason to start without leases.
	execAll(t, db, "DROP TABLE snowkey_leases_past", "CREATE VIEW snowkey_leases_past AS SELECT 1 AS one")
	s = newStore(t, db, c)
	if !strings.Contains(log.String(), "sqllease: no table of past holders") || !strings.Contains(log.String(), "level=WARN") {
		t.Errorf("CreateTables() with a foreign table logs %q; want a warning", &log)
	}
	claim("without")
}
