// Shards keeps customers and orders in four SQLite files. An order is in the file of its customer, with
// all of its lines, because the lowest bits of their keys are the same. The program reads the newest
// orders of all files as one page, and shows that no order lies in two files.
//
//	go run ./examples/shards
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"

	"github.com/snowkey/snowkey"
	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/shard"
	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/types"
)

type Customer struct {
	types.Model
	Name string
}

// Order is on the shard of its customer, because of the tag.
type Order struct {
	types.Model
	CustomerID types.Snowflake `gorm:"index" snowkey:"shard"`
	Customer   *Customer
	Number     int
	Lines      []Line
}

// Line is on the shard of its order, as every row that is created with another.
type Line struct {
	types.Model
	OrderID types.Snowflake `gorm:"index"`
	SKU     string
}

func main() {
	dir, err := os.MkdirTemp("", "shards")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := run(context.Background(), dir, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, dir string, out io.Writer) (err error) {
	files, pools := make([]*gorm.DB, 4), make([]*sql.DB, 4)
	for i := range files {
		if files[i], err = gorm.Open(sqlite.Open(filepath.Join(dir, fmt.Sprintf("shop-%d.db", i+1))), &gorm.Config{}); err != nil {
			return err
		}
		if pools[i], err = files[i].DB(); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, pools[i].Close()) }()
	}

	// 256 shards, 64 in each file. A fifth file would get some of them, and no key would change.
	layout := core.Default()
	layout.ShardBits = 8
	databases, err := shard.Spread(layout, files...)
	if err != nil {
		return err
	}

	// One generator for all files, with a lease beside the first.
	gen, err := snowkey.Open(ctx, pools[0], snowkey.Config{Layout: layout})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, gen.Close(ctx)) }()
	plugin := gormplugin.New(gen)
	for _, db := range files {
		if err := errors.Join(db.Use(plugin), db.AutoMigrate(&Customer{}, &Order{}, &Line{})); err != nil {
			return err
		}
	}

	// Customers are spread evenly. They get their keys first, because the key says the file.
	customers := make([]Customer, 256)
	for i := range customers {
		customers[i].Name = fmt.Sprintf("customer %d", i+1)
	}
	if err := plugin.Assign(ctx, files[0], &customers); err != nil {
		return err
	}
	parts, err := shard.Split(databases, customers, func(c Customer) types.Snowflake { return c.ID })
	if err != nil {
		return err
	}
	for db, part := range parts {
		if err := db.WithContext(ctx).Create(&part).Error; err != nil {
			return err
		}
	}

	// Each order, in one transaction on one file.
	for n := range 300 {
		customer := customers[n*7%len(customers)]
		db, err := databases.Of(customer.ID)
		if err != nil {
			return err
		}
		order := Order{CustomerID: customer.ID, Number: n + 1, Lines: []Line{{SKU: "cup"}, {SKU: "pot"}}}
		if err := db.WithContext(ctx).Create(&order).Error; err != nil {
			return err
		}
	}

	// The newest orders of all files: one page, ordered by key.
	newest, err := shard.ReadPage(ctx, databases, shard.Page{Limit: 5, Descending: true}, func(o Order) types.Snowflake { return o.ID },
		func(ctx context.Context, db *gorm.DB, p shard.Page) (orders []Order, err error) {
			err = db.WithContext(ctx).Preload("Customer").Preload("Lines").
				Where("id BETWEEN ? AND ?", p.First, p.Last).Order("id DESC").Limit(p.Limit).Find(&orders).Error
			return orders, err
		})
	if err != nil {
		return err
	}
	for _, o := range newest {
		_, _ = fmt.Fprintf(out, "order %d of %s, %d lines, on shard %d\n", o.Number, o.Customer.Name, len(o.Lines), layout.Shard(o.ID))
	}

	for i, db := range databases.Databases() {
		var customers, orders, whole int
		err := db.WithContext(ctx).Raw(`SELECT (SELECT count(*) FROM customers), (SELECT count(*) FROM orders),
			(SELECT count(*) FROM orders JOIN customers ON customers.id = customer_id
				WHERE 2 = (SELECT count(*) FROM lines WHERE order_id = orders.id))`).Row().Scan(&customers, &orders, &whole)
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(out, "file %d: %d customers, %d orders, %d of them whole\n", i+1, customers, orders, whole)
	}
	return nil
}
