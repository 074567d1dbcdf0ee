//go:build cgo && (darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd)

package sqlserial_test

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/proof/robust/chaos"
	"github.com/snowkey/snowkey/internal/proof/servers/sqlitetest"
)

func init() {
	chaos.Main(chaos.Stores{Serials: map[string]chaos.Open[chaos.SerialDatabase]{
		"SQLite": func(path string) (chaos.SerialDatabase, error) {
			db, err := sql.Open("sqlite3", "file:"+path+"?_journal_mode=WAL&_busy_timeout=10000&_txlock=immediate&_synchronous=OFF")
			return chaos.SerialDatabase{DB: db, Dialect: sqlstore.SQLite}, err
		},
	}})
}

// Four processes store invoices. They are killed, stopped and continued, and roll back. By
// default there is one run; with a longer -chaos.for there is one that must leave gaps, too.
func TestProcessesInChaosLeaveNoGap(t *testing.T) {
	t.Parallel()
	for _, torn := range []bool{false, true} {
		if torn && !chaos.Long() {
			return
		}
		path := filepath.Join(sqlitetest.Folder(t), "serials.db")
		db := chaos.SerialDatabase{DB: openSQLite(t, path), Dialect: sqlstore.SQLite}
		chaos.Serials{Name: "SQLite", DSN: path, SerialDatabase: db, Torn: torn}.Run(t)
	}
}
