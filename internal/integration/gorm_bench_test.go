package integration

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/uuid"
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

// The same two tables with each kind of key. The tables of each kind are named by
// a prefix, see benchDatabase.
type (
	countedOrder struct {
		ID     uint
		Number string `gorm:"size:40"`
		Total  int64
		Items  []countedItem `gorm:"foreignKey:OrderID"`
	}
	countedItem struct {
		ID       uint
		OrderID  uint   `gorm:"index"`
		SKU      string `gorm:"size:40"`
		Quantity int
	}

	keyedOrder struct {
		ID     types.Snowflake
		Number string `gorm:"size:40"`
		Total  int64
		Items  []keyedItem `gorm:"foreignKey:OrderID"`
	}
	keyedItem struct {
		ID       types.Snowflake
		OrderID  types.Snowflake `gorm:"index"`
		SKU      string          `gorm:"size:40"`
		Quantity int
	}

	uuidOrder struct {
		ID     uuidKey
		Number string `gorm:"size:40"`
		Total  int64
		Items  []uuidItem `gorm:"foreignKey:OrderID"`
	}
	uuidItem struct {
		ID       uuidKey
		OrderID  uuidKey `gorm:"index"`
		SKU      string  `gorm:"size:40"`
		Quantity int
	}
)

// A uuidKey is a UUID in 16 bytes, in the type that people use for it on each
// database.
type uuidKey uuid.UUID

// GormDBDataType is asked by AutoMigrate.
func (uuidKey) GormDBDataType(db *gorm.DB, _ *schema.Field) string {
	switch db.Name() {
	case "postgres":
		return "uuid"
	case "mysql":
		return "binary(16)"
	default:
		return "blob"
	}
}

// Value gives the 16 bytes. PostgreSQL's driver takes them for a uuid as they are.
func (k uuidKey) Value() (driver.Value, error) { return k[:], nil }

// Scan takes what Value gives.
func (k *uuidKey) Scan(v any) error { return (*uuid.UUID)(k).Scan(v) }

// newUUID gives key a UUID of version 7 unless it has one. Its time comes first, so
// rows are stored in the order of the index, as with the other keys.
func newUUID(key *uuidKey) error {
	if *key != (uuidKey{}) {
		return nil
	}
	id, err := uuid.NewV7()
	*key = uuidKey(id)
	return err
}

func (o *uuidOrder) BeforeCreate(*gorm.DB) error { return newUUID(&o.ID) }
func (i *uuidItem) BeforeCreate(*gorm.DB) error  { return newUUID(&i.ID) }

func countedOrders() []countedOrder {
	list := make([]countedOrder, benchOrders)
	for i := range list {
		list[i] = countedOrder{Number: fmt.Sprintf("2026-%06d", i), Total: int64(i), Items: make([]countedItem, benchItems)}
		for j := range list[i].Items {
			list[i].Items[j] = countedItem{SKU: fmt.Sprintf("sku-%d-%d", i, j), Quantity: j}
		}
	}
	return list
}

func keyedOrders() []keyedOrder {
	list := make([]keyedOrder, benchOrders)
	for i := range list {
		list[i] = keyedOrder{Number: fmt.Sprintf("2026-%06d", i), Total: int64(i), Items: make([]keyedItem, benchItems)}
		for j := range list[i].Items {
			list[i].Items[j] = keyedItem{SKU: fmt.Sprintf("sku-%d-%d", i, j), Quantity: j}
		}
	}
	return list
}

func uuidOrders() []uuidOrder {
	list := make([]uuidOrder, benchOrders)
	for i := range list {
		list[i] = uuidOrder{Number: fmt.Sprintf("2026-%06d", i), Total: int64(i), Items: make([]uuidItem, benchItems)}
		for j := range list[i].Items {
			list[i].Items[j] = uuidItem{SKU: fmt.Sprintf("sku-%d-%d", i, j), Quantity: j}
		}
	}
	return list
}

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

// BenchmarkGORM stores 1,000 orders of 5 items each, with each kind of key, in one
// Create and in 1,000. One operation is all 6,000 rows. Tables are emptied before,
// outside the measured time. Compare within one database and one shape, over several
// rounds:
//
//	go run ./gormreport -rounds 11
func BenchmarkGORM(b *testing.B) {
	for _, target := range gormTargets {
		if target.name == "MariaDBThatCountsFoundRows" || target.name == "MySQL" {
			continue // nothing that is done here depends on the one; the page has no figures of the other
		}
		b.Run(target.name, func(b *testing.B) {
			dialector := target.dialector(b)
			gen := benchGenerator(b)
			plugin := gormplugin.New(gen)
			db := benchDatabase(b, dialector(), plugin)
			b.Logf("%s: %s", target.name, benchVersion(b, db))
			unnested := benchDatabase(b, dialector(), gormplugin.New(gen, gormplugin.WithUnnest()))
			ctx := b.Context()
			for _, variant := range []struct {
				name   string
				tables []string // children first
				run    func() func() error
			}{
				{"one/auto-increment", []string{"counted_items", "counted_orders"}, func() func() error {
					list := countedOrders()
					return func() error { return db.Create(&list).Error }
				}},
				{"one/snowkey", []string{"keyed_items", "keyed_orders"}, func() func() error {
					list := keyedOrders()
					return func() error { return db.Create(&list).Error }
				}},
				{"one/snowkey-unnest", []string{"keyed_items", "keyed_orders"}, func() func() error {
					list := keyedOrders()
					return func() error { return unnested.Create(&list).Error }
				}},
				{"one/uuid-v7", []string{"uuid_items", "uuid_orders"}, func() func() error {
					list := uuidOrders()
					return func() error { return db.Create(&list).Error }
				}},
				{"one/snowkey-assign", []string{"keyed_items", "keyed_orders"}, func() func() error {
					list := keyedOrders()
					return func() error { return createAssigned(ctx, db, plugin, list) }
				}},
				{"each/auto-increment", []string{"counted_items", "counted_orders"}, func() func() error {
					list := countedOrders()
					return func() error { return createEach(db, list) }
				}},
				{"each/snowkey", []string{"keyed_items", "keyed_orders"}, func() func() error {
					list := keyedOrders()
					return func() error { return createEach(db, list) }
				}},
				{"each/uuid-v7", []string{"uuid_items", "uuid_orders"}, func() func() error {
					list := uuidOrders()
					return func() error { return createEach(db, list) }
				}},
			} {
				if variant.name == "one/snowkey-unnest" && db.Name() != "postgres" {
					continue // the option does nothing there
				}
				b.Run(variant.name, func(b *testing.B) { benchStore(b, db, variant.tables, variant.run) })
			}
		})
	}
}

// benchStore measures what prepare returns. Each time has empty tables and a heap
// without the garbage of the one before.
func benchStore(b *testing.B, db *gorm.DB, tables []string, prepare func() func() error) {
	b.Helper()
	once := func() {
		b.StopTimer()
		empty := []string{"DELETE FROM " + benchPrefix + tables[0], "DELETE FROM " + benchPrefix + tables[1]}
		if db.Name() == "postgres" { // which would keep the dead rows
			empty = []string{"TRUNCATE " + benchPrefix + tables[0] + ", " + benchPrefix + tables[1]}
		}
		for _, statement := range empty {
			if err := db.Exec(statement).Error; err != nil {
				b.Fatalf("%s = %v; want no error", statement, err)
			}
		}
		store := prepare()
		runtime.GC()
		b.StartTimer()
		if err := store(); err != nil {
			b.Fatalf("store = %v; want no error", err)
		}
	}
	once() // learns the models, opens the connection, warms the caches
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		once()
	}
	b.StopTimer()
	rows := float64(b.N) * benchOrders * (1 + benchItems)
	b.ReportMetric(rows/b.Elapsed().Seconds(), "rows/s")
	for i, want := range []int64{benchOrders * benchItems, benchOrders} {
		var n int64
		if err := db.Table(benchPrefix + tables[i]).Count(&n).Error; err != nil || n != want {
			b.Fatalf("rows of %s = %d (error %v); want %d", tables[i], n, err, want)
		}
	}
}

// benchGenerator returns a generator of keys.
func benchGenerator(b *testing.B) *core.Generator {
	b.Helper()
	gen, err := core.New(core.Config{Worker: core.StaticWorker(0)})
	if err != nil {
		b.Fatalf("core.New = %v; want no error", err)
	}
	b.Cleanup(func() {
		if err := gen.Close(context.Background()); err != nil {
			b.Errorf("Close = %v; want no error", err)
		}
	})
	return gen
}

const benchPrefix = "bench_"

// benchDatabase opens a database with the plugin and makes the tables.
func benchDatabase(b *testing.B, dialector gorm.Dialector, plugin *gormplugin.Plugin) *gorm.DB {
	b.Helper()
	config := &gorm.Config{Logger: logger.Discard, NamingStrategy: schema.NamingStrategy{TablePrefix: benchPrefix}}
	db, err := gorm.Open(dialector, config)
	if err != nil {
		b.Fatalf("gorm.Open = %v; want no error", err)
	}
	pool, err := db.DB()
	if err != nil {
		b.Fatalf("DB = %v; want no error", err)
	}
	b.Cleanup(func() { _ = pool.Close() })
	err = errors.Join(
		db.Use(plugin),
		db.AutoMigrate(&countedOrder{}, &countedItem{}, &keyedOrder{}, &keyedItem{}, &uuidOrder{}, &uuidItem{}),
	)
	if err != nil {
		b.Fatalf("set up = %v; want no error", err)
	}
	return db
}

// benchVersion returns the version of the server.
func benchVersion(b *testing.B, db *gorm.DB) string {
	b.Helper()
	query := "SELECT version()"
	if db.Name() == "sqlite" {
		query = "SELECT sqlite_version()"
	}
	var version string
	if err := db.Raw(query).Scan(&version).Error; err != nil {
		b.Fatalf("%s = %v; want no error", query, err)
	}
	version, _, _ = strings.Cut(version, " on ")
	return version
}
