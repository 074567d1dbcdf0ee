package servers

import (
	"database/sql"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"

	"github.com/snowkey/snowkey/core/keysql"
	"github.com/snowkey/snowkey/core/lease/sqllease"
	"github.com/snowkey/snowkey/core/segment/segmenttest"
	"github.com/snowkey/snowkey/core/segment/sqlsegment"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/proof/cases/gormcases"
	"github.com/snowkey/snowkey/internal/proof/cases/keysqlcases"
	"github.com/snowkey/snowkey/internal/proof/cases/sqlxcases"
	"github.com/snowkey/snowkey/internal/proof/servers/foreign"
	"github.com/snowkey/snowkey/sqlxhelper"

	_ "modernc.org/sqlite"
)

// The tests of the packages use mattn's driver of SQLite. modernc's is without cgo.
const modernc = "sqlite"

// moderncFile is the DSN of a file of the test's own.
func moderncFile(t *testing.T) string {
	t.Helper()
	return "file:" + filepath.Join(t.TempDir(), "test.db") +
		"?_pragma=busy_timeout(60000)&_pragma=foreign_keys(1)&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)&_txlock=immediate"
}

func openModernc(t *testing.T, dsn string) *sql.DB { t.Helper(); return openSqlx(t, modernc, dsn).DB }

// modernc returns a moment from a column of another type than its three for times as text.
// And 1.44, the last one for Go 1.25, leaves a transaction open whose COMMIT has failed.
// Its connection is of no use then, and nothing of it is ever committed.
func TestSqlxCasesHoldOnModernc(t *testing.T) {
	t.Parallel()
	sqlxcases.Run(t, sqlxcases.Database{
		DB: openSqlx(t, modernc, moderncFile(t)), Dialect: sqlxhelper.SQLite,
		Inexact: true, Fails: []string{"CommitThatFailsIsAnErrorAndLeavesNothing"},
	})
}

func TestKeySQLIsRightOnModernc(t *testing.T) {
	keysqlcases.Run(t, openModernc(t, moderncFile(t)), keysql.SQLite)
}

func TestGormCasesHoldOnModernc(t *testing.T) {
	gormcases.Run(t, gormcases.Target{Returning: true, Database: func(t *testing.T) func(*gorm.Config) *gorm.DB {
		t.Helper()
		dsn := moderncFile(t)
		return opener(t, func() gorm.Dialector { return sqlite.New(sqlite.Config{DriverName: modernc, DSN: dsn}) })
	}})
}

func TestSegmentStoresPassTheSuiteOnModernc(t *testing.T) {
	dsn := moderncFile(t)
	over := func(db *sql.DB, table string) *sqlsegment.Store {
		s, err := sqlsegment.New(db, sqlstore.Config{Dialect: sqlstore.SQLite, Table: table, Logger: slog.New(slog.DiscardHandler)})
		must(t, err)
		return s
	}
	segmenttest.Run(t, segmenttest.Harness{
		Open: func(t *testing.T) segmenttest.Store {
			s := over(openModernc(t, dsn), "")
			must(t, s.CreateTables(t.Context()))
			return s
		},
		Foreign: func(t *testing.T, tag, column string, value any) segmenttest.Store {
			db := openModernc(t, moderncFile(t))
			for _, text := range foreign.Segments("leaf_alloc", tag, column, value, value == segmenttest.NoColumn) {
				_, err := db.Exec(text)
				must(t, err)
			}
			return over(db, "leaf_alloc")
		},
	})
}

// Two pools stand for two processes. Whoever loses has waited for the lock.
func TestLeasesOnModerncAreDistinctAndDurable(t *testing.T) {
	dsn := moderncFile(t)
	quiet := slog.New(slog.DiscardHandler)
	var (
		wg      sync.WaitGroup
		mu      sync.Mutex
		workers = map[int64]bool{}
	)
	for range 2 {
		db := openModernc(t, dsn)
		s, err := sqllease.New(db, sqlstore.Config{Dialect: sqlstore.SQLite, Logger: quiet})
		must(t, err)
		must(t, s.CreateTables(t.Context()))
		for range 20 {
			wg.Go(func() {
				c := newLease()
				r, err := s.Claim(t.Context(), c)
				if err != nil {
					t.Errorf("Claim() = %v; want a row", err)
					return
				}
				if _, err := s.Renew(t.Context(), leaseRenewal(c, r)); err != nil {
					t.Errorf("Renew() = %v; want it renewed", err)
				}
				mu.Lock()
				defer mu.Unlock()
				if workers[r.Row.Worker] {
					t.Errorf("Claim() = worker %d, which another has", r.Row.Worker)
				}
				workers[r.Row.Worker] = true
			})
		}
	}
	wg.Wait()
	var level int
	db := openModernc(t, dsn)
	db.SetMaxOpenConns(1)
	s, err := sqllease.New(db, sqlstore.Config{Dialect: sqlstore.SQLite, Logger: quiet})
	must(t, err)
	mustClaim(t, s, newLease())
	if err := db.QueryRow("PRAGMA synchronous").Scan(&level); err != nil || level != 0 {
		t.Errorf("synchronous after a claim = %d, %v; want 0, as before", level, err)
	}
}
