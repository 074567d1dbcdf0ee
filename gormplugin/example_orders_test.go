package gormplugin_test

import (
	"context"
	"fmt"
	"log"
	"sync/atomic"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/types"
)

type Order struct {
	gormplugin.Model
	Number string `gorm:"uniqueIndex"`
	Items  []Item
}

type Item struct {
	ID      types.Snowflake
	OrderID types.Snowflake
	SKU     string
}

// source stands for a core.Generator, with keys that a reader can compare.
func source() gormplugin.Source {
	var last atomic.Int64
	last.Store(1000)
	return gormplugin.SourceFunc(func(context.Context) (types.Snowflake, error) {
		return types.Snowflake(last.Add(1)), nil
	})
}

func memory(name string) *gorm.DB {
	db, err := gorm.Open(sqlite.Open("file:"+name+"?mode=memory&cache=shared"), &gorm.Config{})
	if err != nil {
		log.Fatal(err)
	}
	if err = db.Use(gormplugin.New(source())); err != nil {
		log.Fatal(err)
	}
	if err = db.AutoMigrate(&Order{}, &Item{}); err != nil {
		log.Fatal(err)
	}
	return db
}

func Example() {
	db := memory("example")
	order := Order{Number: "2026-1", Items: []Item{{SKU: "cup"}, {SKU: "plate"}}}
	if err := db.Create(&order).Error; err != nil {
		log.Fatal(err)
	}
	fmt.Println("order", order.ID)
	for _, item := range order.Items {
		fmt.Println(item.SKU, item.ID, "of order", item.OrderID)
	}
	// Output:
	// order 1001
	// cup 1002 of order 1001
	// plate 1003 of order 1001
}

// After an upsert, memory has the key of the stored row, and new children are
// stored under it.
func Example_upsert() {
	db := memory("upsert")
	if err := db.Create(&Order{Number: "2026-1"}).Error; err != nil {
		log.Fatal(err)
	}
	again := Order{Number: "2026-1", Items: []Item{{SKU: "spoon"}}}
	if err := db.Clauses(clause.OnConflict{DoNothing: true}).Create(&again).Error; err != nil {
		log.Fatal(err)
	}
	fmt.Println("order", again.ID, "has a", again.Items[0].SKU, "of order", again.Items[0].OrderID)
	// Output: order 1001 has a spoon of order 1001
}

// A tag asks for keys in further columns, or in a key of another type.
func Example_tag() {
	type Invoice struct {
		ID     uint            // the database's own
		Public types.Snowflake `gorm:"snowflake;uniqueIndex;<-:create"`
	}
	db := memory("tag")
	if err := db.AutoMigrate(&Invoice{}); err != nil {
		log.Fatal(err)
	}
	invoice := Invoice{}
	if err := db.Create(&invoice).Error; err != nil {
		log.Fatal(err)
	}
	fmt.Println(invoice.ID, invoice.Public)
	// Output: 1 1001
}
