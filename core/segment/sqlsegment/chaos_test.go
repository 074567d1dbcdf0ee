//go:build cgo && (darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd)

package sqlsegment_test

import (
	"database/sql"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/snowkey/snowkey/core/segment/sqlsegment"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/proof/robust/chaos"
	"github.com/snowkey/snowkey/internal/proof/servers/sqlitetest"
)

func init() {
	chaos.Main(chaos.Stores{Segments: map[string]chaos.Open[chaos.SegmentStore]{
		"SQLite": func(path string) (chaos.SegmentStore, error) { return openChaos(path) },
	}})
}

func openChaos(path string) (*sqlsegment.Store, error) {
	db, err := sql.Open("sqlite3", "file:"+path+"?_journal_mode=WAL")
	if err != nil {
		return nil, err
	}
	return sqlsegment.New(db, sqlstore.Config{Dialect: sqlstore.SQLite, Logger: slog.New(slog.DiscardHandler)})
}

// Five processes are killed, stopped, continued and restarted, and their requests get
// lost. By default there is one run; with a longer -chaos.for there is one that
// must repeat numbers, too.
func TestProcessesInChaosRepeatNoNumber(t *testing.T) {
	t.Parallel()
	for _, torn := range []bool{false, true} {
		if torn && !chaos.Long() {
			return
		}
		path := filepath.Join(sqlitetest.Folder(t), "segments.db")
		s, err := openChaos(path)
		if err == nil {
			err = s.CreateTables(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		chaos.Segments{Name: "SQLite", DSN: path, SegmentStore: s, Torn: torn}.Run(t)
	}
}
