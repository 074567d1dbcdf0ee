package gormcases

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/snowkey/snowkey/types"
)

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

// CountedOrder and CountedItem are those after a counter.
type (
	CountedOrder = guideOrder[types.Snowflake]
	CountedItem  = guideItem[types.Snowflake]
)

var guideModels = []any{&CountedOrder{}, &CountedItem{}}

// The table names are the guide's.
func (guideOrder[K]) TableName(namer schema.Namer) string { return namer.TableName("order") }
func (guideItem[K]) TableName(namer schema.Namer) string  { return namer.TableName("order_item") }

// guideTables creates the tables of a program whose keys come from a counter or are UUIDs.
func (e *env) guideTables(keys string) {
	e.Helper()
	types := map[string][3]string{
		"counter mysql":     {"INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY", "INT UNSIGNED", ""},
		"counter postgres":  {"SERIAL PRIMARY KEY", "INTEGER", ""},
		"counter sqlite":    {"INTEGER PRIMARY KEY AUTOINCREMENT", "INTEGER", ""},
		"identity postgres": {"BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY", "BIGINT", ""},
		"uuid mysql":        {"VARCHAR(36) NOT NULL PRIMARY KEY", "VARCHAR(36)", ", created_at DATETIME(6)"},
		"uuid postgres":     {"VARCHAR(36) NOT NULL PRIMARY KEY", "VARCHAR(36)", ", created_at TIMESTAMPTZ"},
		"uuid sqlite":       {"TEXT NOT NULL PRIMARY KEY", "TEXT", ", created_at DATETIME"},
	}[keys+" "+e.db.Name()]
	e.ddl("CREATE TABLE PRE_orders (id " + types[0] + ", number VARCHAR(40)" + types[2] + ")")
	e.ddl("CREATE TABLE PRE_order_items (id " + types[0] + ", order_id " + types[1] + " NOT NULL, sku VARCHAR(40)" + types[2] +
		", CONSTRAINT fk_PRE_orders_items FOREIGN KEY (order_id) REFERENCES PRE_orders (id) ON DELETE CASCADE)")
}

// A guideShop is the tables of the guide, with a model of their rows. The old program leaves the
// keys to the database, the new one has the plugin.
type guideShop struct {
	*env
	constraints []string
	items       map[int64]int // how many each order should have
	last        int64         // the key of the last order of the old program
	n           int           // of its orders
}

func (e *env) shop(keys string) *guideShop {
	e.Helper()
	e.guideTables(keys)
	return &guideShop{env: e, constraints: e.constraints(), items: map[int64]int{}}
}

// number returns that of the last order of the old program.
func (p *guideShop) number() string { return fmt.Sprint("old ", p.n) }

// work is the old program. It stores an order with two items, moves one to it from the order
// before, and deletes some of the orders before.
func (p *guideShop) work() {
	p.Helper()
	before := p.last
	p.n++
	p.ddl("INSERT INTO PRE_orders (number) VALUES ('" + p.number() + "')")
	p.last = p.keys("orders", "id", "number", p.number())[0]
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

func (p *guideShop) item(order int64) {
	p.Helper()
	p.ddl(fmt.Sprintf("INSERT INTO PRE_order_items (order_id, sku) VALUES (%d, 'x')", order))
	p.items[order]++
}

// fill is the new program. It stores an order with two items, and an item of the last order of
// the old program.
func (p *guideShop) fill() {
	p.Helper()
	order := CountedOrder{Number: fmt.Sprint("new ", p.n), Items: []CountedItem{{SKU: "a"}, {SKU: "b"}}}
	p.must(p.db.Create(&order))
	p.fresh("ID", order.ID)
	p.items[order.ID.Int64()] = 2
	p.must(p.db.Create(&CountedItem{OrderID: types.Snowflake(p.last), SKU: "c"}))
	p.items[p.last]++
}

// compare fails the test unless the tables have what was stored, and their foreign keys.
func (p *guideShop) compare() {
	p.Helper()
	var total int64
	for order, want := range p.items {
		equal(p.env, fmt.Sprintf("items of order %d", order), len(p.keys("order_items", "id", "order_id", order)), want)
		total += int64(want)
	}
	p.count("orders", int64(len(p.items)))
	p.count("order_items", total)
	equal(p.env, "foreign keys", p.env.constraints(), p.constraints)
	p.noItemWithoutAnOrder()
}

func (e *env) noItemWithoutAnOrder() {
	e.Helper()
	if e.db.Create(&CountedItem{SKU: "x", OrderID: 99999}).Error == nil {
		e.Error("Create of an item of no order = nil; want the error of the foreign key")
	}
}

// hasColumns fails the test unless these are the columns of a table, and the primary key is id.
func (e *env) hasColumns(table string, want ...string) {
	e.Helper()
	columns, err := e.db.Migrator().ColumnTypes(e.prefix + table)
	e.ok("ColumnTypes", err)
	var got []string
	for _, c := range columns {
		got = append(got, c.Name())
		if primary, ok := c.PrimaryKey(); ok && primary != (c.Name() == "id") {
			e.Errorf("column %s of %s is in the primary key: %t; want %t", c.Name(), table, primary, !primary)
		}
	}
	slices.Sort(got)
	equal(e, "columns of "+table, got, want)
}

// A guideBlock is a block of SQL in docs/migrating.md or docs/existing.md, or a step of their
// scripts, with the names of the tables of the case.
type guideBlock struct {
	section, step string // the step with ", identity" at its end, if the block is for that
	mine          bool   // it is for the database of the case
	statements    []string
}

var (
	scriptStep = regexp.MustCompile(`(?m)^-- ### (.*)$`)
	guideTitle = regexp.MustCompile(`^-- (SQLite|PostgreSQL|MySQL, MariaDB)(, identity)?$`)
	sqlComment = regexp.MustCompile(`(?m)^-- .*\n`)
	tableName  = regexp.MustCompile(`\b(fk_)?(orders|order_items)`)
)

// guideBlocks returns all blocks of the guide.
func (e *env) guideBlocks() (list []guideBlock) {
	e.Helper()
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(repository(e), "docs", name))
		e.ok("read the guide", err)
		return "\n" + string(text)
	}
	guide := read("migrating.md") + read("existing.md")
	databases := map[string]string{"SQLite": "sqlite", "PostgreSQL": "postgresql", "MySQL, MariaDB": "mysql"}
	for title, database := range databases {
		for script, section := range map[string]string{"widen": running, "uuids": uuids, "back": wayOut} {
			if script != "widen" || database != "sqlite" { // a section of the page, with a block in each step
				text := read("migrating/" + script + "-" + database + ".sql")
				guide += "\n## " + section + scriptStep.ReplaceAllString(text, "```\n### $1\n```sql\n-- "+title) + "```"
			}
		}
	}
	for part := range strings.SplitSeq(guide, "\n## ") {
		section, part, _ := strings.Cut(part, "\n")
		for part := range strings.SplitSeq("\n"+part, "\n### ") {
			step, part, _ := strings.Cut(part, "\n")
			for _, block := range strings.Split(part, "```sql\n")[1:] {
				block, _, _ = strings.Cut(block, "```")
				first, text, _ := strings.Cut(block, "\n")
				title := guideTitle.FindStringSubmatch(first)
				if title == nil {
					e.Fatalf("a block of the guide is for no database: %q", first)
				}
				mine := strings.HasPrefix(databases[title[1]], e.db.Name()) // which is postgres
				list = append(list, guideBlock{section, step + title[2], mine, e.statements(text)})
			}
		}
	}
	return list
}

// statements returns those of text, with the names of the tables of e.
func (e *env) statements(text string) (list []string) {
	text = tableName.ReplaceAllString(sqlComment.ReplaceAllString(text, ""), "${1}"+e.prefix+"${2}")
	for statement := range strings.SplitSeq(text, ";\n") {
		if statement = strings.TrimSpace(statement); statement != "" {
			list = append(list, statement)
		}
	}
	return list
}

// blocks returns those of a step that are for the database.
func (e *env) blocks(section, step string) []guideBlock {
	e.Helper()
	others := func(b guideBlock) bool { return b.section != section || b.step != step }
	list := slices.DeleteFunc(e.guideBlocks(), others)
	if len(list) == 0 {
		e.Fatalf("the guide has no SQL in the step %q of %q", step, section)
	}
	return slices.DeleteFunc(list, func(b guideBlock) bool { return !b.mine })
}

// guide runs the SQL of steps for the database, each block on one connection. Between statements
// the case goes on, but not in a transaction.
func (e *env) guide(section string, steps ...string) {
	e.Helper()
	for _, step := range steps {
		e.ran = append(e.ran, section+", "+step)
		for _, block := range e.blocks(section, step) {
			e.ok(section+", "+step, e.db.Connection(func(tx *gorm.DB) error {
				tx = tx.Session(&gorm.Session{})
				for _, statement := range block.statements {
					if err := tx.Exec(statement).Error; err != nil {
						return fmt.Errorf("%s: %w", statement, err)
					}
					if e.between != nil && block.statements[0] != "BEGIN" {
						e.between()
					}
				}
				return nil
			}))
		}
		e.reconnect()
	}
}

// reconnect closes the idle connections, as a restart of the program does. On PostgreSQL their
// prepared statements are of the old types.
func (e *env) reconnect() {
	e.Helper()
	pool, err := e.db.DB()
	e.ok("DB", err)
	pool.SetMaxIdleConns(-1)
	pool.SetMaxIdleConns(2)
}

// guided fails the test if a block of a section was not run. The same holds for a
// section that no case runs.
func (e *env) guided(section string) {
	e.Helper()
	for _, block := range e.guideBlocks() {
		if !slices.Contains([]string{stopped, running, uuids, wayOut}, block.section) {
			e.Errorf("the guide has SQL in %q, which no test runs: %s", block.section, block.statements)
		}
		step := block.section + ", " + block.step
		if block.section == section && block.mine && !strings.HasSuffix(step, ", identity") && !slices.Contains(e.ran, step) {
			e.Errorf("SQL of the guide was not run: %s", step)
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
