package gormcases

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/types"
)

// The SQL of docs/migrating.md, run as it stands there on tables with rows.
var migratingCases = []testCase{
	{"GuideFromACounterWorks", func(e *env) {
		const section = "From a counter"
		e.guide(section, "The tables")
		constraints, rest := e.constraints(), e.rest()
		e.ddl("INSERT INTO PRE_orders (number) VALUES ('1'), ('2')")
		e.ddl("INSERT INTO PRE_order_items (order_id, sku) VALUES (1, 'a'), (2, 'b')")
		e.guide(section, "Columns of 64 bits")
		e.ddl("INSERT INTO PRE_orders (number) VALUES ('still counted')")
		e.guide(section, "Remove the counter")
		e.guided(section)
		if got := e.constraints(); !slices.Equal(got, constraints) {
			e.Errorf("foreign keys after the guide = %q; want %q", got, constraints)
		}
		if got := e.rest(); e.mysql() && !slices.Equal(got, rest) { // elsewhere the counter is a default
			e.Errorf("columns after the guide = %q; want %q", got, rest)
		}
		type OrderItem struct {
			ID      types.Snowflake
			OrderID types.Snowflake
			SKU     string `gorm:"size:40"`
		}
		type Order struct {
			ID     types.Snowflake
			Number string `gorm:"size:40;uniqueIndex"`
			Items  []OrderItem
		}
		if findings := e.check(e.db, &Order{}, &OrderItem{}); !e.sqlite() && len(findings) > 0 {
			e.Errorf("Check after the guide = %v; want nothing", findings)
		}
		e.migrate(&Order{}, &OrderItem{})
		e.stored("orders", "number", "2", 2)
		e.stored("order_items", "sku", "b", 2)
		o := Order{Number: "3", Items: []OrderItem{{SKU: "c"}}}
		e.must(e.db.Create(&o))
		e.stored("orders", "number", "3", o.ID)
		e.stored("order_items", "order_id", o.ID, o.Items[0].ID)
		item := OrderItem{SKU: "d", OrderID: 2} // of an old order
		e.must(e.db.Create(&item))
		e.stored("order_items", "sku", "d", item.ID)
		if e.db.Create(&OrderItem{SKU: "e", OrderID: 99}).Error == nil {
			e.Error("Create of an item of no order = nil; want the error of the foreign key, which is to be there again")
		}
		if e.db.Name() != "sqlite" && e.db.Exec("INSERT INTO "+e.prefix+"orders (number) VALUES ('x')").Error == nil {
			e.Error("INSERT without a key = nil; want an error, since nothing counts any more")
		}
		again := Order{Number: "2", Items: []OrderItem{{SKU: "f"}}}
		e.must(e.db.Clauses(doNothing()).Create(&again))
		equal(e, "ID of the old order", again.ID, 2)
	}},
	{"GuideFromUUIDsWorks", func(e *env) {
		const uuids = "From UUIDs"
		old := e.open(&gorm.Config{}) // without the plugin
		begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		func() {
			type OrderItem struct {
				ID        string `gorm:"primaryKey;size:36"`
				OrderID   string `gorm:"size:36"`
				SKU       string `gorm:"size:40"`
				CreatedAt time.Time
			}
			type Order struct {
				ID        string `gorm:"primaryKey;size:36"`
				Number    string `gorm:"size:40"`
				CreatedAt time.Time
				Items     []OrderItem
			}
			e.guide(uuids, "The tables to begin with")
			for i := range 25 { // UUIDs in any order, and several rows in a millisecond
				at := begin.Add(time.Duration(i/3) * time.Millisecond)
				o := Order{ID: fmt.Sprintf("%08d-0000-4000-8000-000000000000", i*7%25), Number: fmt.Sprint(i), CreatedAt: at}
				o.Items = []OrderItem{{ID: fmt.Sprintf("%08d-0000-4000-8000-000000000001", i*7%25), SKU: fmt.Sprint(i), CreatedAt: at}}
				e.must(old.Create(&o))
			}
		}()
		e.guide(uuids, "Add columns")
		dual := dualOrder{
			ID: "ffffffff-0000-4000-8000-000000000000", Number: "dual",
			Items: []dualOrderItem{{ID: "ffffffff-0000-4000-8000-000000000001", SKU: "dual"}},
		}
		e.must(e.db.Create(&dual))
		var first dualOrder // one that has no new key yet
		e.must(e.db.Where("number = ?", "0").Take(&first))
		added := dualOrderItem{ID: "ffffffff-0000-4000-8000-000000000002", SKU: "added"}
		if err := e.db.Model(&first).Association("Items").Append(&added); err != nil {
			e.Fatalf("Append = %v; want no error", err)
		}
		ctx := context.Background()
		late := core.Default()
		late.Epoch = begin.Add(time.Millisecond)
		if backfill(ctx, e.db, late, e.prefix+"orders") == nil {
			e.Error("backfill of rows from before the epoch = nil; want an error, since their keys could not tell the time")
		}
		var left int64
		e.must(e.db.Table(e.prefix + "orders").Where("new_id IS NULL").Count(&left))
		equal(e, "orders without a new key after the error", left, 25)
		for _, table := range []string{"orders", "order_items"} {
			if err := backfill(ctx, e.db, core.Default(), e.prefix+table); err != nil {
				e.Fatalf("backfill(%s) = %v; want no error", table, err)
			}
		}
		e.guide(uuids, "Fill the foreign keys")
		e.guide(uuids, "Switch")
		type OrderItem struct {
			ID        types.Snowflake
			OrderID   types.Snowflake
			SKU       string `gorm:"size:40"`
			CreatedAt time.Time
		}
		type Order struct {
			ID        types.Snowflake
			OldID     *string `gorm:"size:36"`
			Number    string  `gorm:"size:40"`
			CreatedAt time.Time
			Items     []OrderItem
		}
		o := Order{Number: "new", Items: []OrderItem{{SKU: "new"}}}
		e.must(e.db.Create(&o))
		var all []Order
		e.must(e.db.Preload("Items").Where("number NOT IN ?", []string{"new", "dual"}).Order("id").Find(&all))
		equal(e, "orders", len(all), 25)
		layout := core.Default()
		for i, o := range all {
			want := begin.Add(time.Duration(i/3) * time.Millisecond)
			if at := layout.Parts(o.ID).Time; !at.Equal(want) {
				e.Errorf("time in the key of order %d = %v; want %v, when it was created", i, at, want)
			}
			items := []string{o.Number}
			if o.Number == "0" {
				items = append(items, "added")
			}
			var got []string
			for _, item := range o.Items {
				got = append(got, item.SKU)
			}
			slices.Sort(got)
			if !slices.Equal(got, items) || o.OldID == nil {
				e.Errorf("order %s = %+v; want the items %v and its UUID", o.Number, o, items)
			}
		}
		e.stored("orders", "number", "dual", dual.NewID.Snowflake)
		equal(e, "items of the order of two keys", len(e.keys("order_items", "id", "order_id", dual.NewID.Snowflake)), 1)
		if e.db.Create(&OrderItem{SKU: "x", OrderID: 99}).Error == nil {
			e.Error("Create of an item of no order = nil; want the error of the foreign key, which is to be there again")
		}
		e.guide(uuids, "Drop what is left")
		e.guided(uuids)
		e.must(e.db.Create(&[]OrderItem{{SKU: "last", OrderID: o.ID}}))
	}},
}

type (
	// dualOrder has its old key and its new one, which old rows lack yet.
	dualOrder struct {
		ID        string              `gorm:"primaryKey;size:36"`
		NewID     types.NullSnowflake `gorm:"snowflake;<-:create"`
		Number    string              `gorm:"size:40"`
		CreatedAt time.Time
		Items     []dualOrderItem `gorm:"foreignKey:OrderID"`
	}
	dualOrderItem struct {
		ID         string              `gorm:"primaryKey;size:36"`
		NewID      types.NullSnowflake `gorm:"snowflake;<-:create"`
		OrderID    string              `gorm:"size:36"`
		NewOrderID types.NullSnowflake
		SKU        string `gorm:"size:40"`
		CreatedAt  time.Time
	}
)

// The plugin has set NewID by now.
func (o *dualOrder) BeforeCreate(*gorm.DB) error {
	for i := range o.Items {
		o.Items[i].NewOrderID = o.NewID
	}
	return nil
}

// The tables are those of the types before and after.
func (dualOrder) TableName(namer schema.Namer) string     { return namer.TableName("order") }
func (dualOrderItem) TableName(namer schema.Namer) string { return namer.TableName("order_item") }

// backfill gives the rows of table keys in the order in which they were created.
// It can be stopped and started again.
func backfill(ctx context.Context, db *gorm.DB, layout core.Layout, table string) error {
	db = db.WithContext(ctx)
	for {
		var rows []struct {
			ID        string
			CreatedAt time.Time
		}
		todo := db.Table(table).Where("new_id IS NULL").Order("created_at, id").Limit(1000)
		if err := todo.Find(&rows).Error; err != nil || len(rows) == 0 {
			return err
		}
		// Where an earlier batch has stopped, within the same millisecond.
		var last types.Snowflake
		at := rows[0].CreatedAt
		same := db.Table(table).Where("new_id BETWEEN ? AND ?", layout.Min(at), layout.Max(at))
		if err := same.Select("COALESCE(MAX(new_id), 0)").Scan(&last).Error; err != nil {
			return err
		}
		err := db.Transaction(func(tx *gorm.DB) error {
			for _, row := range rows {
				if row.CreatedAt.Before(layout.Epoch) {
					return fmt.Errorf("%s %s is of %v; keys begin at %v", table, row.ID, row.CreatedAt, layout.Epoch)
				}
				last = max(layout.Min(row.CreatedAt), last+1)
				if err := tx.Table(table).Where("id = ?", row.ID).Update("new_id", last).Error; err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
}

var tableName = regexp.MustCompile(`\b(fk_)?(orders|order_items)`)

// A guideBlock is a block of SQL in docs/migrating.md.
type guideBlock struct{ section, step, title, statements string }

// mine reports whether the block is for the database of e.
func (b guideBlock) mine(e *env) bool {
	e.Helper()
	for _, name := range []string{"sqlite", "postgres", "mysql", ""} {
		title := map[string]string{"sqlite": "-- SQLite", "postgres": "-- PostgreSQL", "mysql": "-- MySQL, MariaDB", "": "-- every database"}[name]
		if strings.HasPrefix(b.title, title) {
			return name == "" || name == e.db.Name()
		}
	}
	e.Fatalf("a block of the guide is for no database: %q", b.title)
	return false
}

// guideBlocks returns all blocks of SQL in the guide.
func guideBlocks(e *env) (list []guideBlock) {
	e.Helper()
	text, err := os.ReadFile(filepath.Join(repository(e), "docs", "migrating.md"))
	if err != nil {
		e.Fatalf("read the guide: %v", err)
	}
	for part := range strings.SplitSeq("\n"+string(text), "\n## ") {
		section, part, _ := strings.Cut(part, "\n")
		for part := range strings.SplitSeq("\n"+part, "\n### ") {
			step, part, _ := strings.Cut(part, "\n")
			for _, block := range strings.Split(part, "```sql\n")[1:] {
				block, _, _ = strings.Cut(block, "```")
				title, statements, _ := strings.Cut(block, "\n")
				list = append(list, guideBlock{section, step, title, statements})
			}
		}
	}
	return list
}

// guide runs the SQL for the database from a step in docs/migrating.md.
func (e *env) guide(section, step string) {
	e.Helper()
	found := false
	for _, block := range guideBlocks(e) {
		if block.section != section || block.step != step {
			continue
		}
		found = true
		if !block.mine(e) {
			continue
		}
		e.ran = append(e.ran, block)
		for statement := range strings.SplitSeq(block.statements, ";\n") {
			if statement = strings.TrimSpace(statement); statement == "" {
				continue
			}
			if tx := e.db.Exec(tableName.ReplaceAllString(statement, "${1}"+e.prefix+"${2}")); tx.Error != nil {
				e.Fatalf("%s, %s: %s = %v; want no error", section, step, statement, tx.Error)
			}
		}
	}
	if !found {
		e.Fatalf("the guide has no SQL in the step %q of %q", step, section)
	}
}

// guided fails the test if a block of a section was not run. The same holds for a
// section that no case runs.
func (e *env) guided(section string) {
	e.Helper()
	for _, block := range guideBlocks(e) {
		if block.section != "From a counter" && block.section != "From UUIDs" {
			e.Errorf("the guide has SQL in %q, which no test runs: %s", block.section, block.statements)
		}
		if block.section == section && block.mine(e) && !slices.Contains(e.ran, block) {
			e.Errorf("SQL of the guide was not run: %s, %s, %s", section, block.step, block.statements)
		}
	}
}

// repository returns the folder of the root module, above that of the test.
func repository(e *env) string {
	e.Helper()
	dir, err := os.Getwd()
	if err != nil {
		e.Fatalf("Getwd = %v; want no error", err)
	}
	for dir != filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "docs", "migrating.md")); err == nil {
			return dir
		}
		dir = filepath.Dir(dir)
	}
	e.Fatal("no docs/migrating.md above the folder of the test")
	return ""
}
