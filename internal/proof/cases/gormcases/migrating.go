package gormcases

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/backfill"
	"github.com/snowkey/snowkey/internal/proof/release/markdown"
	"github.com/snowkey/snowkey/types"
)

// Sections of the guide.
const (
	stopped = "From a counter"
	running = "From a counter without downtime"
	uuids   = "From UUIDs"
	wayOut  = "The way out"
)

// The SQL of docs/migrating.md, run as it stands there on tables with rows.
var migratingCases = []testCase{
	{"GuideFromACounterWorks", func(e *env) {
		shop := e.shop("counter")
		rest := e.rest()
		shop.work()
		shop.work()
		e.guide(stopped, "Columns of 64 bits")
		shop.work()
		if e.sqlite() { // AutoMigrate builds a table again, and its counter starts from the largest key
			e.migrate(guideModels...)
		}
		e.guide(stopped, "Remove the counter")
		e.guided(stopped)
		if got := e.rest(); e.mysql() && !slices.Equal(got, rest) { // elsewhere the counter is a default
			e.Errorf("columns after the guide = %q; want %q", got, rest)
		}
		e.finds(guideModels)
		e.migrate(guideModels...)
		shop.fill()
		e.countsNoMore(e.prefix + "orders")
		again := CountedOrder{Number: shop.number(), Items: []CountedItem{{SKU: "again"}}}
		e.must(e.db.Clauses(doNothing()).Create(&again))
		equal(e, "ID of the old order", again.ID.Int64(), shop.last)
		shop.items[shop.last]++
		shop.compare()
	}},
	{"GuideFromACounterWithoutDowntimeWorks", func(e *env) {
		e.only(!e.sqlite(), "SQLite's integers have 64 bits")
		shop := e.shop("counter")
		shop.work()
		shop.work()
		// The old program goes on between any two statements.
		e.between = shop.work
		copying, exchange := []string{"Widen: copy"}, []string{"Widen: exchange", "Widen: old tables"}
		if e.postgres() {
			copying, exchange = []string{"Widen: copy", "Widen: old rows", "Widen: constraints"}, exchange[:1]
		}
		e.guide(running, slices.Concat(copying, []string{"Widen: back"}, copying, exchange)...)
		shop.compare()
		e.finds(guideModels, counts+"ID", counts+"ID")
		e.guide(running, "Prepare the counter")
		for range 5 { // side by side
			shop.work()
			shop.fill()
			if small := shop.last < 1<<31; small != e.postgres() || e.mysql() && shop.last < 9_000_000_000_000_000_000 {
				e.Errorf("key of the old program = %d; want a small one on PostgreSQL, and one from 9,000,000,000,000,000,000 on MySQL", shop.last)
			}
		}
		e.between = nil
		e.guide(running, "Stop counting")
		if e.postgres() {
			e.countsNoMore(e.prefix + "orders")
			e.guide(wayOut, "Back to a counter")
			shop.work()
			e.guide(running, "Stop counting")
			e.guide(stopped, "Remove the counter")
			e.finds(guideModels)
		}
		shop.compare()
		e.hasColumns("orders", "id", "number")
		e.hasColumns("order_items", "id", "order_id", "sku")
		helpers := "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name LIKE ?"
		left := int64(2)
		if e.postgres() {
			helpers, left = "SELECT COUNT(*) FROM pg_proc WHERE proname LIKE ?", 0
		}
		var got int64
		e.must(e.db.Raw(helpers, e.prefix+"order%").Scan(&got))
		equal(e, "tables on MySQL, functions on PostgreSQL", got, left)
		e.guided(running)
	}},
	{"GuideForIdentitiesWorks", func(e *env) {
		e.only(e.postgres(), "only PostgreSQL has identities")
		shop := e.shop("identity")
		if e.db.Create(&CountedOrder{Number: "1"}).Error == nil {
			e.Error("Create with a key of the program = nil; want the error of GENERATED ALWAYS")
		}
		e.guide(running, "Prepare the counter, identity")
		shop.work()
		shop.fill()
		equal(e, "key of the identity", shop.last, 1)
		shop.back(", identity")
		e.guide(stopped, "Remove the counter, identity")
		e.countsNoMore(e.prefix + "orders")
	}},
	{"GuideLocksTheRowsThatItCopies", func(e *env) {
		e.only(e.mysql(), "a trigger of PostgreSQL writes into the row itself")
		e.shop("counter").work()
		for _, statement := range e.blocks(running, "Widen: copy")[0].statements {
			if !strings.HasPrefix(statement, "INSERT ") {
				e.must(e.db.Exec(statement))
				continue
			}
			_, source, _ := strings.Cut(statement, " FROM ")
			source, _, _ = strings.Cut(source, " ")
			// Otherwise a row that was deleted meanwhile would come back in the copy.
			err := e.db.Transaction(func(tx *gorm.DB) error {
				err := tx.Exec(statement).Error
				if e.db.Exec("SELECT id FROM "+source+" FOR UPDATE NOWAIT").Error == nil {
					e.Errorf("a row of %s that is being copied can be changed; want it locked", source)
				}
				return err
			}, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
			e.ok(statement, err)
		}
	}},
	{"GuideFromUUIDsWorks", func(e *env) {
		e.hasTheCode("migrating.md")
		e.guideTables("uuid")
		begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		for i := range 25 { // UUIDs in any order, and several rows in a millisecond
			at, id := begin.Add(time.Duration(i/3)*time.Millisecond), fmt.Sprintf("%08d-0000-4000-8000-000000000000", i*7%25)
			e.must(e.db.Exec("INSERT INTO "+e.prefix+"orders (id, number, created_at) VALUES (?, ?, ?)", id, fmt.Sprint(i), at))
			e.must(e.db.Exec("INSERT INTO "+e.prefix+"order_items (id, order_id, sku, created_at) VALUES (?, ?, ?, ?)", id, id, fmt.Sprint(i), at))
		}
		e.guide(uuids, "Add columns")
		dual := dualOrder{
			ID: "ffffffff-0000-4000-8000-000000000000", Number: "dual",
			Items: []dualOrderItem{{ID: "ffffffff-0000-4000-8000-000000000001", SKU: "dual"}},
		}
		e.must(e.db.Create(&dual))
		for _, table := range []string{"orders", "order_items"} {
			if e.db.Exec("UPDATE "+e.prefix+table+" SET new_id = 1").Error == nil {
				e.Errorf("all rows of %s have one new key; want an error of the index", table)
			}
		}
		var first dualOrder // one that has no new key yet
		e.must(e.db.Where("number = ?", "0").Take(&first))
		added := dualOrderItem{ID: "ffffffff-0000-4000-8000-000000000002", SKU: "added"}
		e.ok("Append", e.db.Model(&first).Association("Items").Append(&added))
		ctx := context.Background()
		late := core.Default()
		late.Epoch = begin.Add(time.Millisecond)
		if err := fill(ctx, e.db, e.prefix+"orders", backfill.Config{Layout: late, Worker: 1022}); !errors.Is(err, backfill.ErrEarly) {
			e.Errorf("fill of rows from before the epoch = %v; want %v", err, backfill.ErrEarly)
		}
		var left int64
		e.must(e.db.Table(e.prefix + "orders").Where("new_id IS NULL").Count(&left))
		equal(e, "orders without a new key after the error", left, 25)
		var keys [2][]int64
		for i := range keys { // the second time as after a stop, among rows of one millisecond
			for table, worker := range map[string]int64{"orders": 1022, "order_items": 1023} {
				e.ok(fmt.Sprintf("fill(%s)", table), fill(ctx, e.db, e.prefix+table, backfill.Config{Worker: worker}))
			}
			keys[i] = append(e.keys("orders", "new_id", "number", "21"), e.keys("orders", "new_id", "number", "24")...)
			e.ddl("UPDATE PRE_orders SET new_id = NULL WHERE number IN ('21', '24')")
		}
		if err := fill(ctx, e.db, e.prefix+"orders", backfill.Config{Worker: 1022}); err != nil || !slices.Equal(keys[0], keys[1]) {
			e.Errorf("keys after a stop = %v, %v; want %v", keys[1], err, keys[0])
		}
		e.guide(uuids, "Fill the foreign keys", "Switch")
		o := CountedOrder{Number: "new", Items: []CountedItem{{SKU: "new"}}}
		e.must(e.db.Create(&o))
		var all []CountedOrder
		e.must(e.db.Preload("Items").Where("old_id IS NOT NULL AND number <> 'dual'").Order("id").Find(&all))
		equal(e, "orders that have their UUIDs", len(all), 25)
		layout := core.Default()
		for i, o := range all {
			equal(e, fmt.Sprint("time in the key of order ", i), layout.Parts(o.ID).Time, begin.Add(time.Duration(i/3)*time.Millisecond))
			items := []string{o.Number}
			if o.Number == "0" {
				items = append(items, "added")
			}
			var got []string
			for _, item := range o.Items {
				got = append(got, item.SKU)
			}
			slices.Sort(got)
			equal(e, "items of order "+o.Number, got, items)
		}
		e.stored("orders", "number", "dual", dual.NewID.Snowflake)
		equal(e, "items of the order of two keys", len(e.keys("order_items", "id", "order_id", dual.NewID.Snowflake)), 1)
		e.noItemWithoutAnOrder()
		e.guide(uuids, "Drop what is left")
		e.guided(uuids)
		e.must(e.db.Create(&CountedItem{SKU: "last", OrderID: o.ID}))
		e.hasColumns("orders", "created_at", "id", "number", "old_id")
		e.hasColumns("order_items", "created_at", "id", "order_id", "sku")
	}},
}

// dualOrder has its old key and its new one, which old rows lack yet.
type dualOrder struct {
	ID        string              `gorm:"primaryKey;size:36"`
	NewID     types.NullSnowflake `gorm:"snowflake;<-:create"`
	Number    string              `gorm:"size:40"`
	CreatedAt time.Time
	Items     []dualOrderItem `gorm:"foreignKey:OrderID"`
}

type dualOrderItem struct {
	ID         string              `gorm:"primaryKey;size:36"`
	NewID      types.NullSnowflake `gorm:"snowflake;<-:create"`
	OrderID    string              `gorm:"size:36"`
	NewOrderID types.NullSnowflake
	SKU        string `gorm:"size:40"`
	CreatedAt  time.Time
}

// The plugin has set NewID by now.
func (o *dualOrder) BeforeCreate(*gorm.DB) error {
	for i := range o.Items {
		o.Items[i].NewOrderID = o.NewID
	}
	return nil
}

// The types before and after share their tables.
func (dualOrder) TableName(namer schema.Namer) string     { return namer.TableName("order") }
func (dualOrderItem) TableName(namer schema.Namer) string { return namer.TableName("order_item") }

// fill gives the rows of table keys of their times.
func fill(ctx context.Context, db *gorm.DB, table string, config backfill.Config) error {
	past, err := backfill.New(config)
	if err != nil {
		return err
	}
	db = db.WithContext(ctx)
	made := db.Table(table).Where("new_id >> 12 & 1023 = ?", config.Worker) // where core.Default() has the worker
	var last types.Snowflake
	err = made.Select("COALESCE(MAX(new_id), 0)").Scan(&last).Error
	if err == nil && last > 0 {
		err = past.Resume(last)
	}
	for err == nil {
		var rows []backfill.Row[string]
		todo := db.Table(table).Select("id AS old, created_at AS time").Where("new_id IS NULL")
		if err = todo.Order("created_at, id").Limit(1000).Scan(&rows).Error; err != nil || len(rows) == 0 {
			break
		}
		err = db.Transaction(func(tx *gorm.DB) error {
			keys, err := backfill.Keys(past, rows)
			for i := 0; i < len(keys) && err == nil; i++ {
				err = tx.Table(table).Where("id = ?", rows[i].Old).Update("new_id", keys[i]).Error
			}
			return err
		})
	}
	return err
}

// hasTheCode fails the test if this file is without the Go code of a page.
func (e *env) hasTheCode(page string) {
	e.Helper()
	source, err := os.ReadFile(filepath.Join(repository(e), "internal", "proof", "cases", "gormcases", "migrating.go"))
	text, err2 := os.ReadFile(filepath.Join(repository(e), "docs", page))
	blocks, err3 := markdown.Blocks(string(text))
	if err := errors.Join(err, err2, err3); err != nil {
		e.Fatal(err)
	}
	for _, b := range blocks {
		if b.Language == "go" && !strings.Contains(string(source), b.Text) {
			e.Errorf("%s:%d: code that no test runs:\n%s", page, b.Line, b.Text)
		}
	}
}
