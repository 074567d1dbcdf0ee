//go:build cgo

package coretest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/jmoiron/sqlx"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/coretest"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// The page docs/testing.md shows the models and some of these tests.

type Order struct {
	types.Model
	Number string `db:"number" json:"number"`
	Items  []Item `db:"-" json:"items" snowkey:"order_items,fk=order_id"`
}

type Item struct {
	types.Model
	OrderID types.Snowflake `db:"order_id" json:"order_id"`
	SKU     string          `db:"sku" json:"sku"`
}

// open returns an empty database in memory whose keys come from gen.
func open(t *testing.T, gen gormplugin.Source) *gorm.DB {
	t.Helper()
	db, err := gorm.Open(sqlite.Open(":memory:"), &gorm.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Use(gormplugin.New(gen)); err != nil {
		t.Fatal(err)
	}
	if err := db.AutoMigrate(&Order{}, &Item{}); err != nil {
		t.Fatal(err)
	}
	return db
}

func TestAnOrderAsADocument(t *testing.T) {
	t.Parallel()
	db := open(t, coretest.NewGenerator(coretest.Config{}))
	order := Order{Number: "A-1", Items: []Item{{SKU: "cup"}}}
	if err := db.Create(&order).Error; err != nil {
		t.Fatal(err)
	}
	got, err := json.MarshalIndent(order, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/order.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, bytes.TrimSpace(want)) {
		t.Errorf("the document = %s; want %s", got, want)
	}
}

func TestTheReportHasTheOrdersOfLastMonday(t *testing.T) {
	t.Parallel()
	monday := time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC)
	clock := coretest.NewClock(monday.Add(-time.Minute))
	db := open(t, coretest.NewGenerator(coretest.Config{Now: clock.Now}))
	for _, number := range []string{"of Sunday", "of Monday", "of Tuesday"} {
		if err := db.Create(&Order{Number: number}).Error; err != nil {
			t.Fatal(err)
		}
		clock.Advance(24 * time.Hour)
	}
	var orders []Order
	span := gormplugin.CreatedBetween(monday, monday.AddDate(0, 0, 1))
	if err := db.Where(span).Find(&orders).Error; err != nil {
		t.Fatal(err)
	}
	if len(orders) != 1 || orders[0].Number != "of Monday" {
		t.Errorf("orders of Monday = %v; want one", orders)
	}
}

func TestAnOrderIsInsertedWithItsItem(t *testing.T) {
	t.Parallel()
	db, mock, err := sqlmock.New()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	gen := coretest.NewGenerator(coretest.Config{})
	mock.ExpectBegin()
	mock.ExpectExec("INSERT INTO .orders.").
		WithArgs(gen.Key(1), "A-1").WillReturnResult(sqlmock.NewResult(0, 1))
	mock.ExpectExec("INSERT INTO .order_items.").
		WithArgs(coretest.AnyKey(), gen.Key(1), "cup").WillReturnResult(sqlmock.NewResult(0, 1))
	mock.ExpectCommit()

	order := Order{Number: "A-1", Items: []Item{{SKU: "cup"}}}
	helper := sqlxhelper.New(gen)
	if err := helper.InsertGraph(t.Context(), sqlx.NewDb(db, "mysql"), "orders", &order); err != nil {
		t.Error(err)
	}
	if err := mock.ExpectationsWereMet(); err != nil {
		t.Error(err)
	}
}

func TestNoKeyMeansNoOrder(t *testing.T) {
	t.Parallel()
	gen := coretest.NewGenerator(coretest.Config{})
	db := open(t, gen)
	gen.Fail(core.ErrReservationExhausted)
	err := db.Create(&Order{Number: "A-1"}).Error
	if !errors.Is(err, core.ErrReservationExhausted) {
		t.Errorf("Create() = %v; want ErrReservationExhausted", err)
	}
}

func TestKeysEndAndReturnWithTheStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(coretest.Start()))
		store := coretest.NewStore(nil)
		worker, err := lease.Acquire(t.Context(), store, lease.Config{Namespace: store.Namespace()})
		if err != nil {
			t.Fatal(err)
		}
		gen, err := core.New(core.Config{Worker: worker})
		if err != nil {
			t.Fatal(err)
		}
		defer gen.Close(context.Background())

		store.Fail(errors.New("connection refused"))
		time.Sleep(2 * time.Minute)
		if _, err := gen.Next(t.Context()); !errors.Is(err, core.ErrReservationExhausted) {
			t.Errorf("Next() without the store = %v; want ErrReservationExhausted", err)
		}
		if err := worker.Check(t.Context()); err == nil {
			t.Error("Check() without the store = nil; want a readiness probe that fails")
		}

		store.Fail(nil)
		time.Sleep(time.Minute)
		if _, err := gen.Next(t.Context()); err != nil {
			t.Errorf("Next() with the store = %v; want a key", err)
		}
	})
}

// Users run their tests in parallel and several times, and copy these.
func TestTheTestsOfThePageRunInParallelWithThemselves(t *testing.T) {
	for range 4 {
		for _, test := range []func(*testing.T){
			TestAnOrderAsADocument, TestTheReportHasTheOrdersOfLastMonday, TestAnOrderIsInsertedWithItsItem,
			TestNoKeyMeansNoOrder, TestKeysEndAndReturnWithTheStore,
		} {
			t.Run("", test) // it is parallel by itself
		}
	}
}

// The page shows code that is compiled and run here.
func TestThePageShowsTheseTests(t *testing.T) {
	source := read(t, "page_test.go")
	blocks := strings.Split(read(t, "../../docs/testing.md"), "\n```")
	if len(blocks) < 6 {
		t.Fatalf("the page has %d blocks; want at least 3 with their ends", len(blocks))
	}
	for i := 1; i < len(blocks); i += 2 { // every second one is inside of a block
		if text, ok := strings.CutPrefix(blocks[i], "go\n"); ok && !strings.Contains(source, "\n"+text+"\n") {
			t.Errorf("the page shows what is in no test:\n%s", text)
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
