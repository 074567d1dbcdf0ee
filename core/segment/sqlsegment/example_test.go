//go:build cgo

package sqlsegment_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/jmoiron/sqlx"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"

	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/core/segment/sqlsegment"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// openStore returns a store with the row of the tag orders, in a file of its own.
func openStore(ctx context.Context, dir string) *sqlsegment.Store {
	db, err := sql.Open("sqlite3", filepath.Join(dir, "segments.db"))
	if err != nil {
		log.Fatal(err)
	}
	store, err := sqlsegment.New(db, sqlstore.Config{Dialect: sqlstore.SQLite})
	if err != nil {
		log.Fatal(err)
	}
	if err := store.CreateTables(ctx); err != nil {
		log.Fatal(err)
	}
	if err := store.Create(ctx, segment.Row{Tag: "orders", Next: 1, Step: 100, Stride: 1}); err != nil {
		log.Fatal(err)
	}
	return store
}

// An Allocator is the source of the GORM plugin.
func Example_gorm() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "segment-*")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	orders, err := segment.New(openStore(ctx, dir), segment.Config{Tag: "orders"})
	if err != nil {
		log.Fatal(err)
	}
	defer orders.Close(ctx)

	type Item struct {
		types.Model
		OrderID types.Snowflake
		SKU     string
	}
	type Order struct {
		types.Model
		Number string
		Items  []Item
	}
	db, err := gorm.Open(sqlite.Open(filepath.Join(dir, "shop.db")), &gorm.Config{})
	if err != nil {
		log.Fatal(err)
	}
	if err := db.Use(gormplugin.New(orders)); err != nil {
		log.Fatal(err)
	}
	if err := db.AutoMigrate(&Order{}, &Item{}); err != nil {
		log.Fatal(err)
	}
	order := Order{Number: "A-1", Items: []Item{{SKU: "cup"}, {SKU: "plate"}}}
	if err := db.Create(&order).Error; err != nil {
		log.Fatal(err)
	}
	fmt.Println(order.ID, order.Items[0].ID, order.Items[1].ID, order.Items[1].OrderID)
	// Output: 1 2 3 1
}

// A table has keys of another kind. Its program moves to segments, and has stopped.
func ExampleStore_RaiseAboveMax() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "segment-*")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	shop := sqlx.MustConnect("sqlite3", filepath.Join(dir, "shop.db"))
	defer shop.Close()
	shop.MustExec("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
	shop.MustExec("INSERT INTO orders VALUES (1), (2), (41)")

	store := openStore(ctx, dir)
	keys := sqlsegment.Column{Table: "orders", Name: "id", DB: shop.DB}
	if _, err := store.RaiseAboveMax(ctx, "orders", keys); err != nil {
		log.Fatal(err)
	}
	orders, err := segment.New(store, segment.Config{
		Tag:   "orders",
		Floor: store.Floor(keys), // refuses to start below a key that is in use
	})
	if err != nil {
		log.Fatal(err)
	}
	defer orders.Close(ctx)
	fmt.Println(orders.Next(ctx))
	// Output: 42 <nil>
}

// An Allocator is a source of sqlxhelper.
func Example_sqlx() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "segment-*")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	orders, err := segment.New(openStore(ctx, dir), segment.Config{Tag: "orders"})
	if err != nil {
		log.Fatal(err)
	}
	defer orders.Close(ctx)

	type Order struct {
		types.Model
		Number string `db:"number"`
	}
	db := sqlx.MustConnect("sqlite3", filepath.Join(dir, "shop.db"))
	defer db.Close()
	db.MustExec("CREATE TABLE orders (id INTEGER PRIMARY KEY, number TEXT NOT NULL)")
	rows := []Order{{Number: "A-1"}, {Number: "A-2"}}
	if err := sqlxhelper.New(orders).InsertMany(ctx, db, "orders", rows); err != nil {
		log.Fatal(err)
	}
	fmt.Println(rows[0].ID, rows[1].ID)
	// Output: 1 2
}
