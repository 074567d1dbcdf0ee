// Quickstart stores an order with its items through GORM and another one through
// sqlx, each in one transaction, in a new SQLite file. Then it reads one back,
// prints it as JSON, and takes its key apart.
//
//	go run ./examples/quickstart
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/jmoiron/sqlx"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"

	"github.com/snowkey/snowkey"
	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// Order has its primary key from types.Model: a field ID of type types.Snowflake.
type Order struct {
	types.Model
	Number string `db:"number" json:"number" gorm:"uniqueIndex"`
	// For sqlxhelper: the table of the items, and their column with the order's key.
	Items []OrderItem `db:"-" json:"items" snowkey:"order_items,fk=order_id"`
}

// OrderItem is a row of the order.
type OrderItem struct {
	types.Model
	OrderID  types.Snowflake `db:"order_id" json:"order_id" gorm:"index"`
	SKU      string          `db:"sku" json:"sku"`
	Quantity int             `db:"quantity" json:"quantity"`
}

func main() {
	dir, err := os.MkdirTemp("", "quickstart")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := run(context.Background(), filepath.Join(dir, "orders.db")); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, file string) (err error) {
	db, err := gorm.Open(sqlite.Open(file), &gorm.Config{})
	if err != nil {
		return err
	}
	pool, err := db.DB()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()

	// One generator for the whole process, with a worker number that no other process of
	// the database has. Close gives the number back.
	gen, err := snowkey.Open(ctx, pool, snowkey.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, gen.Close(ctx)) }()

	// GORM: register the plugin, then create as always.
	if err := errors.Join(db.Use(gormplugin.New(gen)), db.AutoMigrate(&Order{}, &OrderItem{})); err != nil {
		return err
	}
	first := Order{Number: "2026-1", Items: []OrderItem{{SKU: "cup", Quantity: 4}, {SKU: "pot", Quantity: 1}}}
	if err := db.WithContext(ctx).Create(&first).Error; err != nil {
		return err
	}

	// sqlx, on the same connections: all keys are set before the first INSERT.
	xdb := sqlx.NewDb(pool, "sqlite3")
	helper := sqlxhelper.New(gen)
	second := Order{Number: "2026-2", Items: []OrderItem{{SKU: "tray", Quantity: 2}}}
	if err := helper.InsertGraph(ctx, xdb, "orders", &second); err != nil {
		return err
	}

	// Read the first order back by its key. In JSON a key is a string, because
	// numbers in JavaScript would lose its last digits.
	var stored Order
	if err := db.WithContext(ctx).Preload("Items").First(&stored, first.ID).Error; err != nil {
		return err
	}
	text, err := json.MarshalIndent(stored, "", "  ")
	if err != nil {
		return err
	}
	fmt.Println(string(text))

	// Keys sort by the time they were made, and tell it.
	parts := gen.Layout().Parts(second.ID)
	fmt.Printf("key %d: made %s, worker %d, sequence %d\n",
		second.ID, parts.Time.Format(time.RFC3339Nano), parts.Worker, parts.Sequence)

	// The primary key serves as an index of time.
	var recent []Order
	err = xdb.SelectContext(ctx, &recent, "SELECT id, number FROM orders WHERE id >= ? ORDER BY id",
		gen.Min(time.Now().Add(-time.Minute)))
	if err != nil {
		return err
	}
	fmt.Printf("%d orders in the last minute, the last is %s\n", len(recent), recent[len(recent)-1].Number)
	return nil
}
