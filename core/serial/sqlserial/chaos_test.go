//go:build cgo && (darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd)

package sqlserial_test

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/base/sqlrow/sqlrowtest"
	"github.com/snowkey/snowkey/internal/serialchaos"
)

func init() {
	serialchaos.Main(map[string]serialchaos.Open{
		"SQLite": func(path string) (*sql.DB, sqlstore.Dialect, error) {
			db, err := sql.Open("sqlite3", "file:"+path+"?_journal_mode=WAL&_busy_timeout=10000&_txlock=immediate&_synchronous=OFF")
			return db, sqlstore.SQLite, err
		},
	})
}

// Four processes store invoices. They are killed, stopped and continued, and roll back.
func TestProcessesInChaosLeaveNoGap(t *testing.T) {
	t.Parallel()
	for _, torn := range []bool{false, true} {
		path := filepath.Join(sqlrowtest.Folder(t), "serials.db")
		serialchaos.Chaos{Name: "SQLite", DSN: path, DB: openSQLite(t, path), Dialect: sqlstore.SQLite, Torn: torn}.Run(t)
	}
}
