// Package ncruces runs the suites of SQLite on ncruces' driver, which is without cgo. Its
// name is that of mattn's driver, so it cannot be in a program with that one.
package ncruces

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/jmoiron/sqlx"
	_ "github.com/ncruces/go-sqlite3/driver"

	"github.com/snowkey/snowkey/core/keysql"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/leasetest"
	"github.com/snowkey/snowkey/core/lease/sqllease"
	"github.com/snowkey/snowkey/core/segment/segmenttest"
	"github.com/snowkey/snowkey/core/segment/sqlsegment"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/base/sqlrow/foreign"
	"github.com/snowkey/snowkey/internal/conformance/keysqlcases"
	"github.com/snowkey/snowkey/internal/conformance/sqlxcases"
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
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// ncruces stores a nil []byte as an empty blob.
func TestSqlxCasesHold(t *testing.T) {
	sqlxcases.Run(t, sqlxcases.Database{DB: open(t, file(t)), Dialect: sqlxhelper.SQLite, Fails: []string{"EveryTypeOfColumnIsReadBackEqual"}})
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
			if err != nil {
				t.Fatal(err)
			}
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
	if err == nil {
		err = store.CreateTables(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return store
}
