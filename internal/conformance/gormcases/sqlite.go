package gormcases

import (
	"path/filepath"
	"testing"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
)

// SQLite returns SQLite as a target, with a file for each case.
func SQLite() Target {
	return Target{
		Returning: true,
		Database: func(t *testing.T) func(*gorm.Config) *gorm.DB {
			t.Helper()
			path := filepath.Join(t.TempDir(), "test.db")
			return func(config *gorm.Config) *gorm.DB {
				t.Helper()
				return OpenSQLite(t, path, config)
			}
		},
	}
}

// OpenSQLite opens the database in a file until t ends.
func OpenSQLite(t *testing.T, path string, config *gorm.Config) *gorm.DB {
	t.Helper()
	dsn := "file:" + path + "?_foreign_keys=on&_busy_timeout=60000&_txlock=immediate&_journal_mode=WAL&_sync=0"
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
