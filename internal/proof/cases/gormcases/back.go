package gormcases

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/keysql"
	"github.com/snowkey/snowkey/types"
)

// The way from keys of the plugin back to those of before, by the SQL of docs/existing.md.
var backCases = []testCase{
	{"GuideBackToACounterAfterIntegerKeysWorks", func(e *env) {
		shop := e.shop("counter")
		e.guide(stopped, "Columns of 64 bits")
		e.integers()
		shop.work()
		counted := shop.last
		filled := guideOrder[uint]{Number: "filled", Items: []guideItem[uint]{{SKU: "a"}}}
		e.must(e.db.Create(&filled))
		e.fresh("ID", types.Snowflake(filled.ID))
		shop.items[int64(filled.ID)] = 1

		// The old program is back, or beside the new one, and nothing else was done.
		shop.work()
		if e.postgres() {
			equal(e, "next key of the sequence", shop.last, counted+1)
		} else {
			equal(e, "next key of the counter", shop.last, int64(filled.ID)+1)
		}
		shop.back("")
	}},
	{"GuideBackToACounterAfterStringsWorks", func(e *env) {
		shop := e.shop("counter")
		shop.work()
		e.guide(stopped, "Columns of 64 bits", "Remove the counter")
		shop.fill()
		shop.back("")
	}},
	{"GuideToUUIDsWorks", func(e *env) {
		shop := e.shop("counter")
		e.guide(stopped, "Columns of 64 bits")
		for i := range 5 {
			e.must(e.db.Create(&CountedOrder{Number: fmt.Sprint(i), Items: []CountedItem{{SKU: fmt.Sprint(i)}}}))
		}
		e.ddl("INSERT INTO PRE_orders (id, number) VALUES (1, 'small'), (9223372036854775807, 'last')")
		keys := e.keys("orders", "id", "1", 1)
		e.guide(wayOut, "To UUIDs")
		e.hasColumns("orders", "id", "number")
		e.hasColumns("order_items", "id", "order_id", "sku")
		if e.mariadb() {
			e.ddl("ALTER TABLE PRE_order_items DROP FOREIGN KEY fk_PRE_orders_items")
			e.ddl("ALTER TABLE PRE_orders MODIFY id UUID NOT NULL")
			e.ddl("ALTER TABLE PRE_order_items MODIFY id UUID NOT NULL, MODIFY order_id UUID NOT NULL")
		}
		var rows []struct{ ID, Number, SKU string }
		e.must(e.db.Raw("SELECT o.id, number, COALESCE(sku, number) AS sku FROM " + e.prefix + "orders o LEFT JOIN " + e.prefix + "order_items i ON order_id = o.id ORDER BY o.id").Scan(&rows))
		var got []int64
		for _, row := range rows {
			got = append(got, e.keyOf(row.ID).Int64())
			equal(e, "item of the order "+row.Number, row.SKU, row.Number)
		}
		equal(e, "keys of the UUIDs, in their order", got, keys)
		e.count("order_items", 5)
		if !e.mariadb() {
			equal(e, "foreign keys after the guide", e.constraints(), shop.constraints)
			e.ddl("DELETE FROM PRE_orders WHERE number = '3'")
			e.count("order_items", 4)
		}
	}},
	{"GuideToUUIDsHasTheExpressionsOfKeysql", func(e *env) {
		dialect := map[string]keysql.Dialect{"postgres": keysql.PostgreSQL, "mysql": keysql.MySQL, "sqlite": keysql.SQLite}[e.db.Name()]
		text := strings.Join(e.blocks(wayOut, "To UUIDs")[0].statements, "; ")
		for name, want := range map[string]int{"id": 2, "order_id": 1} {
			c, err := keysql.New(dialect, core.Default(), name)
			e.ok("keysql.New", err)
			equal(e, "number of times that the guide has "+c.UUID(), strings.Count(text, c.UUID()), want)
		}
	}},
}

// back runs the guide back to a counter, after which the keys of the old program follow the
// greatest.
func (p *guideShop) back(special string) {
	p.Helper()
	greatest := func(table string) (key int64) {
		p.must(p.db.Raw("SELECT MAX(id) FROM " + p.prefix + table).Scan(&key))
		return key
	}
	last, item := greatest("orders"), greatest("order_items")
	p.guide(wayOut, "Back to a counter"+special)
	if p.mysql() {
		p.guide(stopped, "Columns of 64 bits")
	}
	for range 3 {
		p.work()
		last++
		item += 2
		equal(p.env, "keys of the order and of its second item", []int64{p.last, greatest("order_items")}, []int64{last, item})
	}
	p.compare()
}

// keyOf returns the key of the text of a UUID.
func (e *env) keyOf(text string) types.Snowflake {
	e.Helper()
	u, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	if err != nil || len(u) != 16 {
		e.Fatalf("%q is no UUID: %v", text, err)
	}
	id, err := types.FromUUID([16]byte(u))
	e.ok("FromUUID", err)
	return id
}
