package gormcases

import (
	"context"
	"database/sql"
	"errors"
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
	"github.com/snowkey/snowkey/core/backfill"
	"github.com/snowkey/snowkey/internal/proof/release/markdown"
	"github.com/snowkey/snowkey/types"
)

// The SQL of docs/migrating.md, run as it stands there on tables with rows.
var migratingCases = []testCase{
	{"GuideFromACounterWorks", func(e *env) {
		const section = "From a counter"
		e.tablesOf("counter")
		constraints, rest := e.constraints(), e.rest()
		e.ddl("INSERT INTO PRE_orders (number) VALUES ('1'), ('2')")
		e.ddl("INSERT INTO PRE_order_items (order_id, sku) VALUES (1, 'a'), (2, 'b')")
		e.guide(section, "Columns of 64 bits")
		e.ddl("INSERT INTO PRE_orders (number) VALUES ('still counted')")
		if e.sqlite() { // AutoMigrate builds a table again, and its counter starts from the largest key
			e.migrate(&CountedOrder{}, &CountedItem{})
		}
		e.guide(section, "Remove the counter")
		e.guided(section)
		equal(e, "foreign keys after the guide", e.constraints(), constraints)
		if got := e.rest(); e.mysql() && !slices.Equal(got, rest) { // elsewhere the counter is a default
			e.Errorf("columns after the guide = %q; want %q", got, rest)
		}
		if findings := e.check(e.db, &CountedOrder{}, &CountedItem{}); len(findings) > 0 {
			e.Errorf("Check after the guide = %v; want nothing", findings)
		}
		e.migrate(&CountedOrder{}, &CountedItem{})
		e.stored("orders", "number", "2", 2)
		e.stored("order_items", "sku", "b", 2)
		o := CountedOrder{Number: "3", Items: []CountedItem{{SKU: "c"}}}
		e.must(e.db.Create(&o))
		e.stored("orders", "number", "3", o.ID)
		e.stored("order_items", "order_id", o.ID, o.Items[0].ID)
		item := CountedItem{SKU: "d", OrderID: 2} // of an old order
		e.must(e.db.Create(&item))
		e.stored("order_items", "sku", "d", item.ID)
		if e.db.Create(&CountedItem{SKU: "e", OrderID: 99}).Error == nil {
			e.Error("Create of an item of no order = nil; want the error of the foreign key, which is to be there again")
		}
		e.countsNoMore(e.prefix + "orders")
		again := CountedOrder{Number: "2", Items: []CountedItem{{SKU: "f"}}}
		e.must(e.db.Clauses(doNothing()).Create(&again))
		equal(e, "ID of the old order", again.ID, 2)
	}},
	{"GuideFromACounterWithoutDowntimeWorks", func(e *env) {
		e.only(!e.sqlite(), "SQLite's integers have 64 bits")
		const section = "From a counter without downtime"
		e.tablesOf("counter")
		constraints := e.constraints()
		old := &countingProgram{env: e, items: map[int64]int{}}
		old.work()
		old.work()
		// The old program goes on between any two statements.
		e.between = old.work
		copying, exchange := []string{"Widen: copy"}, []string{"Widen: exchange", "Widen: old tables"}
		if e.postgres() {
			copying, exchange = []string{"Widen: copy", "Widen: old rows", "Widen: constraints"}, exchange[:1]
		}
		for _, step := range slices.Concat(copying, []string{"Widen: back"}, copying, exchange) {
			e.guide(section, step)
		}
		e.reconnect() // PostgreSQL's prepared statements are of the old type
		old.compare()
		equal(e, "foreign keys after the exchange", e.constraints(), constraints)
		const counts = "database counts as well ID"
		models := []any{&CountedOrder{}, &CountedItem{}}
		e.finds(models, counts, counts)

		e.guide(section, "Prepare the counter")
		for i := range 5 { // side by side
			order := CountedOrder{Number: fmt.Sprint("new ", i), Items: []CountedItem{{SKU: "a"}, {SKU: "b"}}}
			e.must(e.db.Create(&order))
			e.fresh("ID", order.ID)
			old.items[order.ID.Int64()] = 2
			old.item(order.ID.Int64())
			old.work()
			e.must(e.db.Create(&CountedItem{OrderID: types.Snowflake(old.last), SKU: "c"}))
			old.items[old.last]++
			if small := old.last < 1<<31; small != e.postgres() || e.mysql() && old.last < 9_000_000_000_000_000_000 {
				e.Errorf("key of the old program = %d; want a small one on PostgreSQL, and one from 9,000,000,000,000,000,000 on MySQL", old.last)
			}
		}
		old.compare()
		e.between = nil
		e.guide(section, "Stop counting")
		if e.postgres() {
			e.countsNoMore(e.prefix + "orders")
			e.guide(wayOut, "Back to a counter")
			old.work()
			e.guide(section, "Stop counting")
			e.guide("From a counter", "Remove the counter")
			e.finds(models)
		}
		old.compare()
		e.guided(section)
	}},
	{"GuideForIdentitiesWorks", func(e *env) {
		e.only(e.postgres(), "only PostgreSQL has identities")
		for _, table := range []string{"orders (id BIGINT", "order_items (order_id BIGINT NOT NULL, sku TEXT, id BIGINT"} {
			e.ddl("CREATE TABLE PRE_" + table + " GENERATED ALWAYS AS IDENTITY PRIMARY KEY, number TEXT)")
		}
		if e.db.Create(&CountedOrder{Number: "1"}).Error == nil {
			e.Error("Create with a key of the program = nil; want the error of GENERATED ALWAYS")
		}
		e.guideOf("From a counter without downtime", "Prepare the counter", "identity")
		e.must(e.db.Create(&CountedOrder{Number: "1"}))
		e.ddl("INSERT INTO PRE_orders (number) VALUES ('2')")
		equal(e, "key of the identity", e.keys("orders", "id", "number", "2")[0], 1)
		e.guideOf("From a counter", "Remove the counter", "identity")
		e.countsNoMore(e.prefix + "orders")
	}},
	{"GuideLocksTheRowsThatItCopies", func(e *env) {
		e.only(e.mysql(), "a trigger of PostgreSQL writes into the row itself")
		e.tablesOf("counter")
		e.ddl("INSERT INTO PRE_orders (number) VALUES ('1')")
		e.ddl("INSERT INTO PRE_order_items (order_id, sku) VALUES (1, 'a')")
		step := func(b guideBlock) bool { return b.step == "Widen: copy" && b.mine(e) }
		blocks := guideBlocks(e)
		for _, statement := range e.statements(blocks[slices.IndexFunc(blocks, step)]) {
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
		const uuids = "From UUIDs"
		e.hasTheCode("migrating.md")
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
			e.tablesOf("uuid")
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

// A guideOrder is the order of docs/migrating.md with keys of a type.
type guideOrder[K any] struct {
	ID     K
	Number string         `gorm:"size:40;uniqueIndex"`
	Items  []guideItem[K] `gorm:"foreignKey:OrderID"`
}

type guideItem[K any] struct {
	ID      K
	OrderID K
	SKU     string `gorm:"size:40"`
}

// CountedOrder and CountedItem are those after a counter, and backOrder and backItem those whose keys
// the database counts.
type (
	CountedOrder = guideOrder[types.Snowflake]
	CountedItem  = guideItem[types.Snowflake]
	backOrder    = guideOrder[uint]
	backItem     = guideItem[uint]
)

// The table names are the guide's.
func (guideOrder[K]) TableName(namer schema.Namer) string { return namer.TableName("order") }
func (guideItem[K]) TableName(namer schema.Namer) string  { return namer.TableName("order_item") }

// reconnect closes the idle connections, as a restart of the program does.
func (e *env) reconnect() {
	e.Helper()
	pool, err := e.db.DB()
	e.ok("DB", err)
	pool.SetMaxIdleConns(-1)
	pool.SetMaxIdleConns(2)
}

// A countingProgram stores rows without keys, which the database counts.
type countingProgram struct {
	*env
	items map[int64]int // how many each order should have
	last  int64         // the key of the last order
	n     int
}

// work stores an order with two items, moves one to it from the order before, and
// deletes the order before that.
func (p *countingProgram) work() {
	p.Helper()
	before := p.last
	p.n++
	number := fmt.Sprint("old ", p.n)
	p.ddl("INSERT INTO PRE_orders (number) VALUES ('" + number + "')")
	p.last = p.keys("orders", "id", "number", number)[0]
	p.item(p.last)
	p.item(p.last)
	if before == 0 {
		return
	}
	p.ddl(fmt.Sprintf("UPDATE PRE_order_items SET order_id = %d WHERE id = %d", p.last, p.keys("order_items", "id", "order_id", before)[0]))
	p.items[p.last]++
	p.items[before]--
	if p.n%3 == 0 {
		p.ddl(fmt.Sprintf("DELETE FROM PRE_orders WHERE id = %d", before))
		delete(p.items, before)
	}
}

func (p *countingProgram) item(order int64) {
	p.Helper()
	p.ddl(fmt.Sprintf("INSERT INTO PRE_order_items (order_id, sku) VALUES (%d, 'x')", order))
	p.items[order]++
}

// compare fails the test unless the tables have what was stored.
func (p *countingProgram) compare() {
	p.Helper()
	var total int64
	for order, want := range p.items {
		equal(p.env, fmt.Sprintf("items of order %d", order), len(p.keys("order_items", "id", "order_id", order)), want)
		total += int64(want)
	}
	p.count("orders", int64(len(p.items)))
	p.count("order_items", total)
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

var tableName = regexp.MustCompile(`\b(fk_)?(orders|order_items)`)

// A guideBlock is a block of SQL in docs/migrating.md or docs/existing.md.
type guideBlock struct{ section, step, title, statements string }

// mine reports whether the block is for the database of e.
func (b guideBlock) mine(e *env) bool {
	e.Helper()
	for title, name := range map[string]string{"-- SQLite": "sqlite", "-- PostgreSQL": "postgres", "-- MySQL, MariaDB": "mysql", "-- every database": e.db.Name()} {
		if strings.HasPrefix(b.title, title) {
			return name == e.db.Name()
		}
	}
	e.Fatalf("a block of the guide is for no database: %q", b.title)
	return false
}

// special returns what stands in the title beside the database: when the block is run.
func (b guideBlock) special() string {
	if strings.HasSuffix(b.title, "identity") {
		return "identity"
	}
	return ""
}

// guideBlocks returns all blocks of SQL in the guide, and the steps of its scripts.
func guideBlocks(e *env) (list []guideBlock) {
	e.Helper()
	docs := filepath.Join(repository(e), "docs")
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(docs, name))
		if err != nil {
			e.Fatalf("read the guide: %v", err)
		}
		return "\n" + string(text)
	}
	for part := range strings.SplitSeq(read("migrating.md")+read("existing.md"), "\n## ") {
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
	for script, section := range map[string]string{"widen": "From a counter without downtime", "uuids": "From UUIDs", "back": "The way out"} {
		for database, title := range map[string]string{"postgresql": "-- PostgreSQL", "mysql": "-- MySQL, MariaDB", "sqlite": "-- SQLite"} {
			if script == "widen" && database == "sqlite" {
				continue
			}
			parts := strings.Split(read("migrating/"+script+"-"+database+".sql"), "\n-- ### ")
			for _, part := range parts[1:] {
				step, part, _ := strings.Cut(part, "\n")
				block := guideBlock{section, step, title, scriptComment.ReplaceAllString(part, "")}
				if inside, ok := strings.CutPrefix(block.statements, "BEGIN;\n"); ok {
					block.title += " (in a transaction)"
					block.statements, _, _ = strings.Cut(inside, "COMMIT;\n")
				}
				list = append(list, block)
			}
		}
	}
	return list
}

var scriptComment = regexp.MustCompile(`(?m)^-- .*\n`)

// tablesOf creates the tables of a program whose keys come from a counter or are UUIDs.
func (e *env) tablesOf(keys string) {
	e.Helper()
	types := map[string][3]string{
		"counter mysql":    {"INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY", "INT UNSIGNED", ""},
		"counter postgres": {"SERIAL PRIMARY KEY", "INTEGER", ""},
		"counter sqlite":   {"INTEGER PRIMARY KEY AUTOINCREMENT", "INTEGER", ""},
		"uuid mysql":       {"VARCHAR(36) NOT NULL PRIMARY KEY", "VARCHAR(36)", ", created_at DATETIME(6)"},
		"uuid postgres":    {"VARCHAR(36) NOT NULL PRIMARY KEY", "VARCHAR(36)", ", created_at TIMESTAMPTZ"},
		"uuid sqlite":      {"TEXT NOT NULL PRIMARY KEY", "TEXT", ", created_at DATETIME"},
	}[keys+" "+e.db.Name()]
	e.ddl("CREATE TABLE PRE_orders (id " + types[0] + ", number VARCHAR(40)" + types[2] + ")")
	e.ddl("CREATE TABLE PRE_order_items (id " + types[0] + ", order_id " + types[1] + " NOT NULL, sku VARCHAR(40)" + types[2] +
		", CONSTRAINT fk_PRE_orders_items FOREIGN KEY (order_id) REFERENCES PRE_orders (id) ON DELETE CASCADE)")
}

// guide runs the SQL for the database from a step in docs/migrating.md.
func (e *env) guide(section, step string) {
	e.Helper()
	e.guideOf(section, step, "")
}

// guideOf does so with the blocks whose title ends with special.
func (e *env) guideOf(section, step, special string) {
	e.Helper()
	found := false
	for _, block := range guideBlocks(e) {
		if block.section != section || block.step != step || block.special() != special {
			continue
		}
		found = true
		if block.mine(e) {
			e.ran = append(e.ran, block)
			e.runBlock(block)
		}
	}
	if !found {
		e.Fatalf("the guide has no SQL %q in the step %q of %q", special, step, section)
	}
}

// statements returns those of block, with the names of the tables of e.
func (e *env) statements(block guideBlock) (list []string) {
	e.Helper()
	for statement := range strings.SplitSeq(block.statements, ";\n") {
		if statement = strings.TrimSpace(statement); statement != "" {
			list = append(list, tableName.ReplaceAllString(statement, "${1}"+e.prefix+"${2}"))
		}
	}
	return list
}

// runBlock runs block on one connection. In a transaction nothing else goes on.
func (e *env) runBlock(block guideBlock) {
	e.Helper()
	between, run := e.between, e.db.Connection
	if strings.Contains(block.title, "(in a transaction") {
		between, run = nil, func(work func(*gorm.DB) error) error { return e.db.Transaction(work) }
	}
	err := run(func(tx *gorm.DB) error {
		tx = tx.Session(&gorm.Session{})
		for _, statement := range e.statements(block) {
			if err := tx.Exec(statement).Error; err != nil {
				return fmt.Errorf("%s: %w", statement, err)
			}
			if between != nil {
				between()
			}
		}
		return nil
	})
	if err != nil {
		e.Fatalf("%s, %s: %v; want no error", block.section, block.step, err)
	}
}

// guided fails the test if a block of a section was not run. The same holds for a
// section that no case runs.
func (e *env) guided(section string) {
	e.Helper()
	for _, block := range guideBlocks(e) {
		if !slices.Contains([]string{"From a counter", "From a counter without downtime", "From UUIDs", "The way out"}, block.section) {
			e.Errorf("the guide has SQL in %q, which no test runs: %s", block.section, block.statements)
		}
		if block.section == section && block.mine(e) && block.special() != "identity" && !slices.Contains(e.ran, block) {
			e.Errorf("SQL of the guide was not run: %s, %s, %s", section, block.step, block.statements)
		}
	}
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

// repository returns the folder of the root module, above that of the test.
func repository(e *env) string {
	e.Helper()
	dir, err := os.Getwd()
	e.ok("Getwd", err)
	for dir != filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "docs", "migrating.md")); err == nil {
			return dir
		}
		dir = filepath.Dir(dir)
	}
	e.Fatal("no docs/migrating.md above the folder of the test")
	return ""
}
