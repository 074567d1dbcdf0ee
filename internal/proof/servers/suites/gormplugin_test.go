package servers

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/driver/mysql"
	"gorm.io/driver/postgres"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/internal/proof/cases/gormcases"
	"github.com/snowkey/snowkey/types"
)

// A gormTarget is a database, and a way to reach it.
type gormTarget struct {
	name      string
	returning bool
	dialector func(t testing.TB) func() gorm.Dialector // called once per test, then once per pool
}

var gormTargets = []gormTarget{
	{"SQLite", true, func(t testing.TB) func() gorm.Dialector {
		t.Helper()
		dir := t.TempDir()
		return func() gorm.Dialector {
			return sqlite.Open("file:" + filepath.Join(dir, "test.db") + "?_foreign_keys=on&_busy_timeout=60000&_txlock=immediate&_journal_mode=WAL&_sync=0")
		}
	}},
	{"PostgreSQL", true, func(t testing.TB) func() gorm.Dialector {
		t.Helper()
		dsn := wayTo("pgx").place(t).dsn
		return func() gorm.Dialector { return postgres.Open(dsn) }
	}},
	{"MariaDB", true, func(t testing.TB) func() gorm.Dialector {
		t.Helper()
		dsn := wayTo("MariaDB").place(t).dsn
		return func() gorm.Dialector { return mysql.New(mysql.Config{DSN: dsn}) }
	}},
	// As MariaDB before 10.5: an INSERT returns nothing.
	{"MariaDBWithoutReturning", false, func(t testing.TB) func() gorm.Dialector {
		t.Helper()
		dsn := wayTo("MariaDB").place(t).dsn
		return func() gorm.Dialector { return mysql.New(mysql.Config{DSN: dsn, DisableWithReturning: true}) }
	}},
	// RowsAffected then counts rows that were met like rows that were stored. MySQL counts
	// them alike, so one of the two is enough.
	{"MariaDBThatCountsFoundRows", false, func(t testing.TB) func() gorm.Dialector {
		t.Helper()
		dsn := wayTo("MariaDB").place(t, "clientFoundRows", "true").dsn
		return func() gorm.Dialector { return mysql.New(mysql.Config{DSN: dsn, DisableWithReturning: true}) }
	}},
	mySQLTarget,
}

var mySQLTarget = gormTarget{"MySQL", false, func(t testing.TB) func() gorm.Dialector {
	t.Helper()
	dsn := wayTo("MySQL").place(t).dsn
	return func() gorm.Dialector { return mysql.New(mysql.Config{DSN: dsn}) }
}}

// cases returns the target as the cases take it.
func (target gormTarget) cases(t *testing.T) gormcases.Target {
	t.Helper()
	dialector := target.dialector(t)
	return gormcases.Target{
		Returning: target.returning,
		Database: func(t *testing.T) func(*gorm.Config) *gorm.DB {
			t.Helper()
			if target.name == "SQLite" {
				dialector = target.dialector(t) // a file per case; the servers have a table prefix
			}
			return opener(t, dialector)
		},
	}
}

func TestGormPluginCases(t *testing.T) {
	t.Parallel()
	for _, target := range gormTargets {
		t.Run(target.name, func(t *testing.T) {
			t.Parallel()
			gormcases.Run(t, target.cases(t))
		})
	}
}

// withPlugin installs the plugin on db and makes the tables of the tests here.
func withPlugin(t *testing.T, db *gorm.DB) *gorm.DB {
	t.Helper()
	must(t, db.Use(newPlugin()))
	must(t, db.AutoMigrate(&box{}, &thing{}))
	return db
}

func newPlugin(options ...gormplugin.Option) *gormplugin.Plugin {
	var last atomic.Int64
	last.Store(1 << 60)
	return gormplugin.New(gormplugin.SourceFunc(func(context.Context) (types.Snowflake, error) {
		return types.Snowflake(last.Add(4096)), nil
	}), options...)
}

type box struct {
	ID     types.Snowflake
	Name   string `gorm:"size:40;uniqueIndex"`
	Note   string `gorm:"size:40"`
	Things []thing
}

type thing struct {
	ID    types.Snowflake
	BoxID *types.Snowflake
	Name  string `gorm:"size:40"`
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("error = %v; want none", err)
	}
}

// wantBox fails the test unless the box of that name is stored under id.
func wantBox(t *testing.T, db *gorm.DB, name string, id types.Snowflake) {
	t.Helper()
	var stored box
	if err := db.Where("name = ?", name).Take(&stored).Error; err != nil || stored.ID != id || id == 0 {
		t.Errorf("box %s is stored under %d (error %v); in memory it has %d, want the same and not 0", name, stored.ID, err, id)
	}
}

// The cases cannot have it, as the lowest version of GORM lacks the methods.
func TestGormPluginFillsGenericSet(t *testing.T) {
	for _, target := range gormTargets {
		t.Run(target.name, func(t *testing.T) {
			db := withPlugin(t, opener(t, target.dialector(t))(&gorm.Config{Logger: logger.Discard}))
			must(t, gorm.G[box](db).Set(clause.Assignment{Column: clause.Column{Name: "name"}, Value: "A"}).Create(t.Context()))
			b := box{Name: "B"}
			must(t, gorm.G[box](db).Select("name").Create(t.Context(), &b))
			wantBox(t, db, "B", b.ID)
			var keys []types.Snowflake
			if must(t, db.Model(&box{}).Order("id").Pluck("id", &keys).Error); len(keys) != 2 || keys[0] <= 1<<60 {
				t.Errorf("stored keys = %d; want two of the source", keys)
			}
		})
	}
}

// Under MySQL's default isolation, a transaction that has read sees the past. An upsert
// meets the present.
func TestGormPluginFindsARowThatTheTransactionCannotSee(t *testing.T) {
	for _, target := range gormTargets {
		if target.name == "SQLite" || target.name == "PostgreSQL" {
			continue
		}
		t.Run(target.name, func(t *testing.T) {
			db := withPlugin(t, opener(t, target.dialector(t))(&gorm.Config{Logger: logger.Discard}))
			for _, with := range []clause.Expression{clause.OnConflict{DoNothing: true}, clause.Insert{Modifier: "IGNORE"}} {
				must(t, db.Where("1 = 1").Delete(&thing{}).Error)
				must(t, db.Where("1 = 1").Delete(&box{}).Error)
				tx := repeatable(t, db)
				var n int64
				must(t, tx.Model(&box{}).Count(&n).Error)
				other := box{Name: "A"}
				must(t, db.Create(&other).Error)
				b := box{Name: "A", Things: []thing{{Name: "x"}}}
				must(t, tx.Clauses(with).Create(&b).Error)
				must(t, tx.Commit().Error)
				if b.ID != other.ID || *b.Things[0].BoxID != other.ID {
					t.Errorf("key after %#v = %d, of the child's box %d; want %d", with, b.ID, *b.Things[0].BoxID, other.ID)
				}
				tx = repeatable(t, db)
				must(t, tx.Model(&box{}).Count(&n).Error)
				must(t, db.Create(&box{ID: 77, Name: "B"}).Error)
				preset := box{ID: 77, Name: "C"}
				must(t, tx.Clauses(with).Create(&preset).Error)
				must(t, tx.Commit().Error)
				if preset.ID != 77 {
					t.Errorf("preset key after %#v = %d; want 77, which is stored", with, preset.ID)
				}
			}
		})
	}
}

// Nothing but the optimizer leaves such an index out: it is unique all the same.
func TestGormPluginFindsRowsByAnIndexThatIsInvisible(t *testing.T) {
	for _, target := range gormTargets {
		hide := map[string]string{"MySQL": "INVISIBLE", "MariaDBWithoutReturning": "IGNORED", "MariaDB": "IGNORED"}[target.name]
		if hide == "" {
			continue
		}
		t.Run(target.name, func(t *testing.T) {
			db := withPlugin(t, opener(t, target.dialector(t))(&gorm.Config{Logger: logger.Discard}))
			must(t, db.Migrator().DropTable(&part{}))
			must(t, db.AutoMigrate(&part{}))
			t.Cleanup(func() { must(t, db.Migrator().DropTable(&part{})) })
			must(t, db.Exec("ALTER TABLE parts ALTER INDEX idx_parts_code "+hide).Error)
			first := []part{{Code: "A"}, {Code: "B"}}
			must(t, db.Create(&first).Error)
			again := []part{{Code: "B"}, {Code: "C"}, {Code: "A"}}
			must(t, db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&again).Error)
			if again[0].ID != first[1].ID || again[2].ID != first[0].ID || again[1].ID == 0 {
				t.Errorf("keys after the upsert = %v; want those of %v, and a new one", again, first)
			}
		})
	}
}

// A part has a unique column.
type part struct {
	ID   types.Snowflake
	Code string `gorm:"size:40;uniqueIndex"`
	N    int
}

// repeatable begins a transaction. It ends with t, since a table that it has read
// cannot be dropped before.
func repeatable(t *testing.T, db *gorm.DB) *gorm.DB {
	t.Helper()
	tx := db.Begin(&sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	must(t, tx.Error)
	t.Cleanup(func() { tx.Rollback() })
	return tx
}

// opener returns a function that opens a new pool for t.
func opener(t *testing.T, dialector func() gorm.Dialector) func(*gorm.Config) *gorm.DB {
	t.Helper()
	return func(config *gorm.Config) *gorm.DB {
		t.Helper()
		db, err := gorm.Open(dialector(), config)
		if err != nil {
			t.Fatalf("gorm.Open = %v; want no error", err)
		}
		pool, err := db.DB()
		if err != nil {
			t.Fatalf("DB() = %v; want no error", err)
		}
		pool.SetMaxOpenConns(8)
		t.Cleanup(func() {
			if err := pool.Close(); err != nil {
				t.Errorf("Close() = %v; want no error", err)
			}
		})
		return db
	}
}

// spaceName returns a name that no other run has.
func spaceName() string {
	return fmt.Sprintf("snowkey_gorm_%d_%d", os.Getpid(), time.Now().UnixNano())
}
