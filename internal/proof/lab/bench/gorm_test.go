package main

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	gormmysql "gorm.io/driver/mysql"
	gormpostgres "gorm.io/driver/postgres"
	gormsqlite "gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
	"gorm.io/gorm/schema"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/types"
)

// How many rows one operation of BenchmarkGORM stores: orders, and items of each.
const (
	benchOrders = 1000
	benchItems  = 5
)

// The same rows with each kind of key. The tables of each kind are named by a prefix, see
// benchPlain.
type (
	orderOf[K, I any] struct {
		ID     K
		Number string `gorm:"size:40"`
		Total  int64
		Items  []I `gorm:"foreignKey:OrderID"`
	}
	itemOf[K any] struct {
		ID       K
		OrderID  K      `gorm:"index"`
		SKU      string `gorm:"size:40"`
		Quantity int
	}
	shipmentOf[K, C any] struct { // belongs to a customer
		ID         K
		Number     string `gorm:"size:40"`
		CustomerID K      `gorm:"index"`
		Customer   C
	}
	namedOf[K any] struct {
		ID   K
		Name string `gorm:"size:40"`
	}

	countedOrder    orderOf[uint, countedItem]
	countedItem     itemOf[uint]
	countedShipment shipmentOf[uint, countedCustomer]
	countedCustomer namedOf[uint]
	countedTag      namedOf[uint]
	countedArticle  struct {
		ID   uint
		Name string       `gorm:"size:40"`
		Tags []countedTag `gorm:"many2many:counted_article_tags"`
	}

	keyedOrder    orderOf[types.Snowflake, keyedItem]
	keyedItem     itemOf[types.Snowflake]
	keyedShipment shipmentOf[types.Snowflake, keyedCustomer]
	keyedCustomer namedOf[types.Snowflake]
	keyedTag      namedOf[types.Snowflake]
	keyedArticle  struct {
		ID   types.Snowflake
		Name string     `gorm:"size:40"`
		Tags []keyedTag `gorm:"many2many:keyed_article_tags"`
	}
)

// list returns n rows.
func list[T any](n int, row func(i int) T) []T {
	rows := make([]T, n)
	for i := range rows {
		rows[i] = row(i)
	}
	return rows
}

func orderNumber(i int) string { return fmt.Sprintf("2026-%06d", i) }
func sku(i, j int) string      { return fmt.Sprintf("sku-%d-%d", i, j) }

func countedOrders() []countedOrder {
	return list(benchOrders, func(i int) countedOrder {
		return countedOrder{Number: orderNumber(i), Total: int64(i), Items: list(benchItems, func(j int) countedItem {
			return countedItem{SKU: sku(i, j), Quantity: j}
		})}
	})
}

func keyedOrders() []keyedOrder {
	return list(benchOrders, func(i int) keyedOrder {
		return keyedOrder{Number: orderNumber(i), Total: int64(i), Items: list(benchItems, func(j int) keyedItem {
			return keyedItem{SKU: sku(i, j), Quantity: j}
		})}
	})
}

// presetOrders returns keyedOrders that have their keys.
func presetOrders() []keyedOrder {
	rows, last := keyedOrders(), types.Snowflake(1<<50)
	next := func() types.Snowflake { last++; return last }
	for i := range rows {
		rows[i].ID = next()
		for j := range rows[i].Items {
			rows[i].Items[j].ID, rows[i].Items[j].OrderID = next(), rows[i].ID
		}
	}
	return rows
}

func customer(i int) string { return fmt.Sprintf("customer-%d", i) }

func countedShipments() []countedShipment {
	return list(benchOrders, func(i int) countedShipment {
		return countedShipment{Number: orderNumber(i), Customer: countedCustomer{Name: customer(i)}}
	})
}

func keyedShipments() []keyedShipment {
	return list(benchOrders, func(i int) keyedShipment {
		return keyedShipment{Number: orderNumber(i), Customer: keyedCustomer{Name: customer(i)}}
	})
}

func article(i int) (name, tag1, tag2 string) {
	return fmt.Sprintf("article-%d", i), fmt.Sprintf("a-%d", i), fmt.Sprintf("b-%d", i)
}

func countedArticles() []countedArticle {
	return list(benchOrders, func(i int) countedArticle {
		name, a, b := article(i)
		return countedArticle{Name: name, Tags: []countedTag{{Name: a}, {Name: b}}}
	})
}

func keyedArticles() []keyedArticle {
	return list(benchOrders, func(i int) keyedArticle {
		name, a, b := article(i)
		return keyedArticle{Name: name, Tags: []keyedTag{{Name: a}, {Name: b}}}
	})
}

func create[T any](db *gorm.DB, list []T) error { return db.Create(&list).Error }

func save[T any](db *gorm.DB, list []T) error { return db.Save(&list).Error }

// createEach creates one row after the other, in one transaction.
func createEach[T any](db *gorm.DB, list []T) error {
	return db.Transaction(func(tx *gorm.DB) error {
		for i := range list {
			if err := tx.Create(&list[i]).Error; err != nil {
				return err
			}
		}
		return nil
	})
}

// createAssigned assigns all keys of orders, and creates them in one statement per
// table, in one transaction.
func createAssigned(ctx context.Context, db *gorm.DB, plugin *gormplugin.Plugin, orders []keyedOrder) error {
	return db.Transaction(func(tx *gorm.DB) error {
		if err := plugin.Assign(ctx, tx, &orders); err != nil {
			return err
		}
		items := make([]keyedItem, 0, benchOrders*benchItems)
		for i := range orders {
			items = append(items, orders[i].Items...)
		}
		if err := tx.Omit(clause.Associations).Create(&orders).Error; err != nil {
			return err
		}
		return tx.Create(&items).Error
	})
}

// A benchTable is a table that a benchmark fills, and how many rows it has then.
type benchTable struct {
	name string
	rows int64
}

// benchTables returns the tables of one kind of key, children first.
var (
	benchLines = func(kind string) []benchTable {
		return []benchTable{{kind + "_items", benchOrders * benchItems}, {kind + "_orders", benchOrders}}
	}
	benchBelongs = func(kind string) []benchTable {
		return []benchTable{{kind + "_shipments", benchOrders}, {kind + "_customers", benchOrders}}
	}
	benchMany = func(kind string) []benchTable {
		return []benchTable{{kind + "_article_tags", 2 * benchOrders}, {kind + "_articles", benchOrders}, {kind + "_tags", 2 * benchOrders}}
	}
)

// A gormTarget is a database of the GORM benchmarks.
type gormTarget struct {
	name string
	database
	withoutReturning bool // as MariaDB before 10.5: an INSERT returns nothing
}

var benchGORMTargets = []gormTarget{
	{"SQLite", sqlite, false}, {"PostgreSQL", postgres, false}, {"MariaDB", mariaDB, false}, {"MariaDBWithoutReturning", mariaDB, true}, {"MySQL", mySQL, false},
}

// dialector opens a file, a schema or a database of its own.
func (t gormTarget) dialector(b *testing.B) func() gorm.Dialector {
	dsn := t.space(b)
	return func() gorm.Dialector {
		switch t.dialect {
		case "sqlite":
			return gormsqlite.Open(strings.Replace(dsn, "_synchronous=NORMAL", "_synchronous=OFF", 1))
		case "postgres":
			return gormpostgres.Open(dsn)
		}
		return gormmysql.New(gormmysql.Config{DSN: dsn, DisableWithReturning: t.withoutReturning})
	}
}

// BenchmarkGORM stores 1,000 orders of 5 items each, with each kind of key, in one
// Create, in one Save, and in 1,000 Creates. It stores 1,000 rows that belong to another
// new row each, and 1,000 rows with two new tags each. One operation is all rows. Tables
// are emptied before, outside the measured time. Compare within one database and one
// shape, over several rounds.
func BenchmarkGORM(b *testing.B) {
	for _, target := range benchGORMTargets {
		b.Run(target.name, func(b *testing.B) {
			dialector := target.dialector(b)
			gen := newSnowkey(b, core.Default(), core.StaticWorker(0))
			plugin := gormplugin.New(gen)
			db := benchDatabase(b, dialector(), plugin)
			pool, err := db.DB()
			must(b, err)
			target.printVersion(b, pool)
			unnested := benchDatabase(b, dialector(), gormplugin.New(gen, gormplugin.WithUnnest()))
			plain := benchPlain(b, dialector())
			for _, variant := range []struct {
				name   string
				db     *gorm.DB
				tables []benchTable
				run    func() func() error
			}{
				{"one/auto-increment", db, benchLines("counted"), stores(db, create, countedOrders)},
				{"one/snowkey", db, benchLines("keyed"), stores(db, create, keyedOrders)},
				{"one/snowkey-unnest", unnested, benchLines("keyed"), stores(unnested, create, keyedOrders)},
				{"one/preset", plain, benchLines("keyed"), stores(plain, create, presetOrders)},
				{"one/snowkey-assign", db, benchLines("keyed"), func() func() error {
					list := keyedOrders()
					return func() error { return createAssigned(b.Context(), db, plugin, list) }
				}},
				{"each/auto-increment", db, benchLines("counted"), stores(db, createEach, countedOrders)},
				{"each/snowkey", db, benchLines("keyed"), stores(db, createEach, keyedOrders)},
				{"each/preset", plain, benchLines("keyed"), stores(plain, createEach, presetOrders)},
				{"save/auto-increment", db, benchLines("counted"), stores(db, save, countedOrders)},
				{"save/snowkey", db, benchLines("keyed"), stores(db, save, keyedOrders)},
				{"save/snowkey-unnest", unnested, benchLines("keyed"), stores(unnested, save, keyedOrders)},
				{"belongs/auto-increment", db, benchBelongs("counted"), stores(db, create, countedShipments)},
				{"belongs/snowkey", db, benchBelongs("keyed"), stores(db, create, keyedShipments)},
				{"belongs/snowkey-unnest", unnested, benchBelongs("keyed"), stores(unnested, create, keyedShipments)},
				{"many/auto-increment", db, benchMany("counted"), stores(db, create, countedArticles)},
				{"many/snowkey", db, benchMany("keyed"), stores(db, create, keyedArticles)},
				{"many/snowkey-unnest", unnested, benchMany("keyed"), stores(unnested, create, keyedArticles)},
			} {
				if variant.db == unnested && target.dialect != "postgres" {
					continue // the option does nothing there
				}
				b.Run(variant.name, func(b *testing.B) { benchStore(b, variant.db, variant.tables, variant.run) })
			}
		})
	}
}

// benchPlain opens a database without the plugin.
func benchPlain(b *testing.B, dialector gorm.Dialector) *gorm.DB {
	b.Helper()
	plain, err := gorm.Open(dialector, &gorm.Config{Logger: logger.Discard, NamingStrategy: schema.NamingStrategy{TablePrefix: benchPrefix}})
	must(b, err)
	pool, err := plain.DB()
	must(b, err)
	b.Cleanup(func() { _ = pool.Close() })
	pool.SetMaxOpenConns(1) // as that of benchDatabase
	return plain
}

// stores is what is measured: one of three ways to store the list.
func stores[T any](db *gorm.DB, store func(db *gorm.DB, list []T) error, list func() []T) func() func() error {
	return func() func() error {
		rows := list()
		return func() error { return store(db, rows) }
	}
}

// benchStore measures what prepare returns. Each time has empty tables and a heap
// without the garbage of the one before.
func benchStore(b *testing.B, db *gorm.DB, tables []benchTable, prepare func() func() error) {
	b.Helper()
	once := func() {
		b.StopTimer()
		benchEmpty(b, db, tables)
		store := prepare()
		runtime.GC()
		b.StartTimer()
		must(b, store())
		b.StopTimer()
		b.StartTimer()
	}
	once() // learns the models, opens the connection, warms the caches
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		once()
	}
	b.StopTimer()
	var rows int64
	for _, table := range tables {
		rows += table.rows
		var n int64
		if err := db.Table(benchPrefix + table.name).Count(&n).Error; err != nil || n != table.rows {
			b.Fatalf("rows of %s = %d (error %v); want %d", table.name, n, err, table.rows)
		}
	}
	b.ReportMetric(float64(b.N)*float64(rows)/b.Elapsed().Seconds(), "rows/s")
}

// benchEmpty empties the tables. A DELETE on the servers leaves work for later, in the
// measured time.
func benchEmpty(b *testing.B, db *gorm.DB, tables []benchTable) {
	b.Helper()
	var names, empty []string
	for _, table := range tables {
		names = append(names, benchPrefix+table.name)
	}
	switch db.Name() {
	case "postgres":
		empty = []string{"TRUNCATE " + strings.Join(names, ", ")}
	case "mysql": // one by one, though other tables refer to them
		empty = append(empty, "SET foreign_key_checks = 0")
		for _, name := range names {
			empty = append(empty, "TRUNCATE TABLE "+name)
		}
		empty = append(empty, "SET foreign_key_checks = 1")
	default:
		for _, name := range names {
			empty = append(empty, "DELETE FROM "+name)
		}
	}
	for _, statement := range empty {
		if err := db.Exec(statement).Error; err != nil {
			b.Fatalf("%s = %v; want no error", statement, err)
		}
	}
}

const benchPrefix = "bench_"

// benchDatabase opens a database with the plugin and makes the tables.
func benchDatabase(b *testing.B, dialector gorm.Dialector, plugin *gormplugin.Plugin) *gorm.DB {
	b.Helper()
	db := benchPlain(b, dialector)
	must(b, db.Use(plugin))
	must(b, db.AutoMigrate(&countedOrder{}, &countedItem{}, &keyedOrder{}, &keyedItem{},
		&countedShipment{}, &keyedShipment{}, &countedArticle{}, &keyedArticle{}))
	return db
}
