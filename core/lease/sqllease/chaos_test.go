//go:build cgo && (darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd)

package sqllease_test

import (
	"database/sql"
	"log/slog"
	"path/filepath"
	"testing"

	_ "github.com/mattn/go-sqlite3"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/sqllease"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/proof/robust/chaos"
)

// Not in TestMain, which serves all tests of this folder and should not depend on this one.
func init() {
	chaos.Main(chaos.Stores{Leases: map[string]chaos.Open[lease.Store]{
		"SQLite": func(path string) (lease.Store, error) { return openChaos(path) },
	}})
}

func openChaos(path string) (*sqllease.Store, error) {
	db, err := sql.Open("sqlite3", "file:"+path+"?_journal_mode=WAL")
	if err != nil {
		return nil, err
	}
	return sqllease.New(db, sqlstore.Config{Dialect: sqlstore.SQLite, Logger: slog.New(slog.DiscardHandler)})
}

// Six processes on three rows repeat no ID, though everything fails. Without the fence
// they would. By default there is one run; with a longer -chaos.for there are all.
func TestProcessesInChaosRepeatIDsOnlyWithoutTheFence(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "leases.db")
	s, err := openChaos(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.CreateTables(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := []chaos.Rules{chaos.FenceStolen, chaos.Fence, chaos.TTL}
	if !chaos.Long() {
		all = all[:1]
	}
	for _, rules := range all {
		if (chaos.Leases{Store: "SQLite", DSN: path, Look: s}).Run(t, rules); t.Failed() {
			return
		}
	}
}
