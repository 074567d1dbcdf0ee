// Package ncruces runs the suites of SQLite on ncruces' driver, which needs no cgo. The driver
// registers the same name as mattn's, so the two cannot be in one program.
package ncruces

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	_ "github.com/ncruces/go-sqlite3/driver"
	_ "github.com/ncruces/go-sqlite3/vfs/memdb"

	"github.com/snowkey/snowkey"
	"github.com/snowkey/snowkey/core/keysql"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/leasetest"
	"github.com/snowkey/snowkey/core/lease/sqllease"
	"github.com/snowkey/snowkey/core/segment/segmenttest"
	"github.com/snowkey/snowkey/core/segment/sqlsegment"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/proof/cases/keysqlcases"
	"github.com/snowkey/snowkey/internal/proof/cases/sqlxcases"
	"github.com/snowkey/snowkey/internal/proof/servers/foreign"
	"github.com/snowkey/snowkey/sqlxhelper"
)

var quiet = slog.New(slog.DiscardHandler)

// file returns the DSN of a file of the test's own.
func file(t *testing.T) string {
	t.Helper()
	return "file:" + filepath.Join(t.TempDir(), "test.db") +
		"?_pragma=busy_timeout(60000)&_pragma=foreign_keys(1)&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)&_txlock=immediate"
}

func open(t *testing.T, dsn string) *sqlx.DB {
	t.Helper()
	db, err := sqlx.Connect("sqlite3", dsn)
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// ncruces stores a nil []byte as an empty blob.
func TestSqlxCasesHold(t *testing.T) {
	sqlxcases.Run(t, sqlxcases.Database{DB: open(t, file(t)), Dialect: sqlxhelper.SQLite, Inexact: true})
}

// Its own file systems in memory have paths, by which they cannot be told from a server's.
func TestOpenTakesOnlyADatabaseWithoutAFileForOneInMemory(t *testing.T) {
	name := "/" + rand.Text() + ".db"
	if gen, err := snowkey.Open(t.Context(), open(t, "file:"+name+"?vfs=memdb").DB, snowkey.Config{}); gen != nil || err == nil || !strings.Contains(err.Error(), "core.StaticWorker") {
		t.Errorf("Open() on memdb = %v, %v; want an error that names core.StaticWorker", gen, err)
	}
	if _, err := os.Stat(name + "-leases"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Stat(%s-leases) = %v; want no such file", name, err)
	}
	gen, err := snowkey.Open(t.Context(), open(t, ":memory:").DB, snowkey.Config{})
	must(t, err)
	if _, ok := gen.Worker().(*lease.Lease); ok {
		t.Errorf("Worker() is a lease; want a number that is free in the process")
	}
	must(t, gen.Close(t.Context()))
}

func TestKeySQLIsRight(t *testing.T) {
	keysqlcases.Run(t, open(t, file(t)).DB, keysql.SQLite)
}

func TestSegmentStoresPassTheSuite(t *testing.T) {
	dsn := file(t)
	segmenttest.Run(t, segmenttest.Harness{
		Open: func(t *testing.T) segmenttest.Store {
			t.Helper()
			s, err := sqlsegment.New(open(t, dsn).DB, sqlstore.Config{Dialect: sqlstore.SQLite, Logger: quiet})
			return made(t, s, err)
		},
		Foreign: func(t *testing.T, tag, column string, value any) segmenttest.Store {
			t.Helper()
			db := open(t, file(t))
			for _, text := range foreign.Segments("leaf_alloc", tag, column, value, value == segmenttest.NoColumn) {
				db.MustExec(text)
			}
			s, err := sqlsegment.New(db.DB, sqlstore.Config{Dialect: sqlstore.SQLite, Table: "leaf_alloc", Logger: quiet})
			must(t, err)
			return s
		},
	})
}

func TestLeaseStoresPassTheSuite(t *testing.T) {
	leasetest.Run(t, func(t *testing.T) leasetest.Harness {
		t.Helper()
		dsn := file(t)
		admin := open(t, dsn)
		exec := func(t *testing.T, text string, s leasestore.Space, worker int64) {
			t.Helper()
			admin.MustExec(text+" WHERE namespace = ? AND datacenter = ? AND worker = ?", s.Namespace, s.Datacenter, worker)
		}
		return leasetest.Harness{
			Seed: 1, // the same in every run: a release must not depend on luck
			Open: func(t *testing.T) leasetest.Store {
				t.Helper()
				s, err := sqllease.New(open(t, dsn).DB, sqlstore.Config{Dialect: sqlstore.SQLite, Logger: quiet})
				return made(t, s, err)
			},
			SetUntil: func(t *testing.T, s leasestore.Space, worker int64, until leasestore.Millis) {
				t.Helper()
				exec(t, fmt.Sprintf("UPDATE snowkey_leases SET reserved_until = %d", until), s, worker)
			},
			Delete: func(t *testing.T, s leasestore.Space, worker int64) {
				t.Helper()
				exec(t, "DELETE FROM snowkey_leases", s, worker)
			},
		}
	})
}

// made returns a store whose tables are there.
func made[S interface {
	CreateTables(ctx context.Context) error
}](t *testing.T, store S, err error) S {
	t.Helper()
	must(t, err)
	must(t, store.CreateTables(t.Context()))
	return store
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("error = %v; want none", err)
	}
}
