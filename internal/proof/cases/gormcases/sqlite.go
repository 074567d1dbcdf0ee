package gormcases

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
)

// SQLite returns SQLite as a target, with a database for each case. It is in memory, because a
// file takes more time than the statements. Only cases of concurrency get a file in WAL mode, as
// programs have it: in memory a reader blocks writers.
func SQLite() Target {
	return Target{
		Returning: true,
		Runs:      1,
		Database: func(t *testing.T) func(*gorm.Config) *gorm.DB {
			t.Helper()
			database := inMemory(t)
			if strings.Contains(t.Name(), "/Concurrent") {
				database = filepath.Join(t.TempDir(), "test.db") + "?_journal_mode=WAL&_sync=0"
			}
			return func(config *gorm.Config) *gorm.DB {
				t.Helper()
				return openSQLite(t, database, config)
			}
		},
	}
}

// OpenSQLite opens a new database in memory, which ends with t.
func OpenSQLite(t *testing.T, config *gorm.Config) *gorm.DB {
	t.Helper()
	return openSQLite(t, inMemory(t), config)
}

var databases atomic.Int64

// inMemory names a database that the connections of this process share. It is there until t ends:
// SQLite drops it with its last connection, and database/sql may close all that a test has.
func inMemory(t *testing.T) (database string) {
	t.Helper()
	database = fmt.Sprintf("/gormcases%d?vfs=memdb", databases.Add(1))
	keeper, err := sql.Open("sqlite3", "file:"+database)
	if err == nil {
		err = keeper.PingContext(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = keeper.Close() })
	return database
}

func openSQLite(t *testing.T, database string, config *gorm.Config) *gorm.DB {
	t.Helper()
	dsn := "file:" + database + "&_foreign_keys=on&_busy_timeout=60000&_txlock=immediate"
	db, err := gorm.Open(sqlite.Open(dsn), config)
	if err != nil {
		t.Fatalf("gorm.Open(%q) = %v; want no error", dsn, err)
	}
	pool, err := db.DB()
	if err != nil {
		t.Fatalf("DB() = %v; want no error", err)
	}
	t.Cleanup(func() {
		if err := pool.Close(); err != nil {
			t.Errorf("Close() = %v; want no error", err)
		}
	})
	return db
}
