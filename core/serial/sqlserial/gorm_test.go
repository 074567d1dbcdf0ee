//go:build cgo

package sqlserial_test

import (
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/serial"
	"github.com/snowkey/snowkey/core/serial/sqlserial"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/proof/servers/sqlitetest"
	"github.com/snowkey/snowkey/types"
)

// The programs of docs/serials.md, with their hooks.

var billing = serial.Series{Name: "billing", Prefix: "INV", Period: serial.Yearly, Digits: 6}

var billingDate = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// numbersKey is by which the hooks find the store of the test.
const numbersKey = "numbers"

func numbersOf(tx *gorm.DB) *sqlserial.Store {
	store, _ := tx.Get(numbersKey)
	return store.(*sqlserial.Store)
}

// EarlyBill takes its number before it is stored.
type EarlyBill struct {
	types.Model
	Order  string `gorm:"uniqueIndex"`
	Number string
}

func (b *EarlyBill) BeforeCreate(tx *gorm.DB) error {
	n, err := numbersOf(tx).NextIn(tx.Statement.Context, tx.Statement.ConnPool, billing, billingDate)
	b.Number = n.Text
	return err
}

// LateBill takes its number when it is stored with its lines.
type LateBill struct {
	types.Model
	Order  string  `gorm:"uniqueIndex"`
	Number *string `gorm:"uniqueIndex"`
	Lines  []LateLine
}

type LateLine struct {
	types.Model
	LateBillID types.Snowflake
}

var errNotStored = errors.New("the bill was not stored, or has a number")

func (b *LateBill) AfterCreate(tx *gorm.DB) error {
	var lines int64
	if err := tx.Model(&LateLine{}).Where("late_bill_id = ?", b.ID).Count(&lines).Error; err != nil || lines < int64(len(b.Lines)) {
		return errors.Join(err, errors.New("the hook runs before the lines are stored"))
	}
	n, err := numbersOf(tx).NextIn(tx.Statement.Context, tx.Statement.ConnPool, billing, billingDate)
	if err != nil {
		return err
	}
	result := tx.Model(&LateBill{}).Where("id = ? AND number IS NULL", b.ID).UpdateColumn("number", n.Text)
	if result.Error == nil && result.RowsAffected != 1 {
		return errNotStored
	}
	b.Number = &n.Text
	return result.Error
}

// billingDB returns a database with the tables, whose hooks find the store.
func billingDB(t *testing.T, config *gorm.Config) (*gorm.DB, *sqlserial.Store) {
	t.Helper()
	gen, err := core.New(core.Config{Worker: core.StaticWorker(1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = gen.Close(t.Context()) })
	config.Logger = logger.Discard
	db, err := gorm.Open(sqlite.Open("file:"+filepath.Join(sqlitetest.Folder(t), "billing.db")+"?_txlock=immediate&_busy_timeout=10000"), config)
	if err != nil {
		t.Fatal(err)
	}
	pool, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	store, err := sqlserial.New(pool, sqlstore.Config{Dialect: sqlstore.SQLite, Logger: slog.New(slog.DiscardHandler)})
	if err == nil {
		err = errors.Join(db.Use(gormplugin.New(gen)), db.AutoMigrate(&EarlyBill{}, &LateBill{}, &LateLine{}), store.CreateTables(t.Context()), store.Define(t.Context(), billing))
	}
	if err != nil {
		t.Fatal(err)
	}
	return db.Set(numbersKey, store).Session(&gorm.Session{}), store
}

// wantGaps checks the numbers of a table.
func wantGaps(t *testing.T, db *gorm.DB, store *sqlserial.Store, model any, want ...sqlserial.Gap) {
	t.Helper()
	var texts []string
	if err := db.Model(model).Order("number").Pluck("number", &texts).Error; err != nil {
		t.Fatal(err)
	}
	var numbers []int64
	for _, text := range texts {
		n, err := billing.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, n.N)
	}
	if gaps, err := store.Gaps(t.Context(), billing.Name, "2026", slices.Values(numbers)); err != nil || !slices.Equal(gaps, want) {
		t.Errorf("Gaps of %v = %+v, %v; want %+v", texts, gaps, err, want)
	}
}

// What the page warns of. A hook does not see the clauses of its statement.
func TestAHookBeforeCreateLosesTheNumberOfARowThatOnConflictLeavesOut(t *testing.T) {
	db, store := billingDB(t, &gorm.Config{})
	for _, order := range []string{"a", "a", "b"} {
		if err := db.Clauses(clause.OnConflict{DoNothing: true}).Create(&EarlyBill{Order: order}).Error; err != nil {
			t.Fatal(err)
		}
	}
	wantGaps(t, db, store, &EarlyBill{}, sqlserial.Gap{Kind: sqlserial.Missing, First: 2, Last: 2})
}

func TestAHookAfterCreateTakesTheNumberLastAndLosesNone(t *testing.T) {
	db, store := billingDB(t, &gorm.Config{PrepareStmt: true}) // whose transactions are of another type
	bills := []LateBill{{Order: "a", Lines: make([]LateLine, 2)}, {Order: "b", Lines: make([]LateLine, 1)}, {Order: "c"}}
	if err := db.Create(&bills).Error; err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"INV2026000001", "INV2026000002", "INV2026000003"} {
		if bills[i].Number == nil || *bills[i].Number != want {
			t.Errorf("bill %d has the number %v; want %s", i, bills[i].Number, want)
		}
	}
	for name, create := range map[string]func() error{
		"DO NOTHING": func() error {
			return db.Clauses(clause.OnConflict{DoNothing: true}).Create(&LateBill{Order: "a"}).Error
		},
		"DO UPDATE": func() error {
			return db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "order"}}, DoUpdates: clause.AssignmentColumns([]string{"order"})}).Create(&LateBill{Order: "b"}).Error
		},
		"a batch": func() error {
			return db.Clauses(clause.OnConflict{DoNothing: true}).Create(&[]LateBill{{Order: "new"}, {Order: "a"}}).Error
		},
		"a transaction that is rolled back": func() error {
			return db.Transaction(func(tx *gorm.DB) error {
				return errors.Join(tx.Create(&LateBill{Order: "d"}).Error, errNotStored)
			})
		},
	} {
		if err := create(); !errors.Is(err, errNotStored) {
			t.Errorf("Create with %s = %v; want %v", name, err, errNotStored)
		}
	}
	if err := db.Create(&LateBill{Order: "e"}).Error; err != nil {
		t.Fatal(err)
	}
	wantGaps(t, db, store, &LateBill{})
}

func TestWithoutGORMsTransactionAHookGetsNoNumber(t *testing.T) {
	for _, prepare := range []bool{false, true} {
		t.Run(fmt.Sprint("prepared ", prepare), func(t *testing.T) {
			db, store := billingDB(t, &gorm.Config{SkipDefaultTransaction: true, PrepareStmt: prepare})
			if err := db.Create(&EarlyBill{Order: "a"}).Error; !errors.Is(err, serial.ErrNotInTransaction) {
				t.Errorf("Create = %v; want %v", err, serial.ErrNotInTransaction)
			}
			wantGaps(t, db, store, &EarlyBill{})
		})
	}
}

// A transaction that has read cannot write if another has written since, however long it
// waits. With _txlock=immediate it has the lock from the beginning.
func TestOnSQLiteATransactionThatReadsFirstNeedsTxlock(t *testing.T) {
	for parameters, works := range map[string]bool{"_busy_timeout=300": false, "_busy_timeout=10000&_txlock=immediate": true} {
		db, err := sql.Open("sqlite3", "file:"+filepath.Join(sqlitetest.Folder(t), "billing.db")+"?_journal_mode=WAL&"+parameters)
		if err != nil {
			t.Fatal(err)
		}
		store, err := sqlserial.New(db, sqlstore.Config{Dialect: sqlstore.SQLite, Logger: slog.New(slog.DiscardHandler)})
		if err == nil {
			err = errors.Join(store.CreateTables(t.Context()), store.Define(t.Context(), billing))
		}
		if err != nil {
			t.Fatal(err)
		}
		reads, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var n int
		if err := reads.QueryRowContext(t.Context(), "SELECT count(*) FROM snowkey_series").Scan(&n); err != nil {
			t.Fatal(err)
		}
		other := make(chan error, 1)
		go func() {
			other <- func() error {
				tx, err := db.BeginTx(t.Context(), nil)
				if err != nil {
					return err
				}
				if _, err := store.NextIn(t.Context(), tx, billing, billingDate); err != nil {
					return errors.Join(err, tx.Rollback())
				}
				return tx.Commit()
			}()
		}()
		if !works { // otherwise the other one waits for this one
			if err := <-other; err != nil {
				t.Fatal(err)
			}
		}
		_, err = store.NextIn(t.Context(), reads, billing, billingDate)
		if works && err != nil || !works && !dialect.Retryable(err) {
			t.Errorf("NextIn after a read, with %s = %v; want an error: %t", parameters, err, !works)
		}
		if err == nil {
			err = reads.Commit()
		} else {
			err = reads.Rollback()
		}
		if works {
			err = errors.Join(err, <-other)
		}
		if err = errors.Join(err, db.Close()); err != nil {
			t.Error(err)
		}
	}
}
