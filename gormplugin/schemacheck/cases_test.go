package schemacheck_test

import (
	"path/filepath"
	"testing"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"

	"github.com/snowkey/snowkey/internal/gormcases"
)

func TestCheckOnSQLite(t *testing.T) {
	gormcases.RunChecks(t, gormcases.Target{
		Returning: true,
		Database: func(t *testing.T) func(*gorm.Config) *gorm.DB {
			t.Helper()
			dsn := "file:" + filepath.Join(t.TempDir(), "test.db") + "?_foreign_keys=on&_busy_timeout=60000&_txlock=immediate&_journal_mode=WAL&_sync=0"
			return func(config *gorm.Config) *gorm.DB {
				t.Helper()
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
		},
	})
}
