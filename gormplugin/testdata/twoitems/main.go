// Command twoitems creates an order with two items, for package functions.
package main

import (
	"context"
	"log"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/internal/proof/functions"
	"github.com/snowkey/snowkey/types"
)

type order struct {
	gormplugin.Model
	Number string
	Items  []item
}

type item struct {
	gormplugin.Model
	OrderID types.Snowflake
	SKU     string
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	generator, err := core.New(core.Config{Worker: core.StaticWorker(1)})
	if err != nil {
		return err
	}
	db, err := gorm.Open(sqlite.Open(":memory:"), &gorm.Config{})
	if err != nil {
		return err
	}
	if err := db.Use(gormplugin.New(generator)); err != nil {
		return err
	}
	pool, err := db.DB()
	if err != nil {
		return err
	}
	pool.SetMaxOpenConns(1)
	if err := db.AutoMigrate(&order{}, &item{}); err != nil {
		return err
	}
	return functions.Write(func() error {
		return db.WithContext(ctx).Create(&order{Number: "A-1", Items: []item{{SKU: "a"}, {SKU: "b"}}}).Error
	})
}
