// Program consumer uses the root module as a user's program does.
package main

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

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/sqllease"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

type Order struct {
	types.Model
	Items []Item `db:"-" snowkey:"items,fk=order_id"`
}

type Item struct {
	types.Model
	OrderID types.Snowflake `db:"order_id"`
}

// It stores an order by GORM and one by sqlx, with keys of a leased worker number.
func main() {
	ctx := context.Background()
	folder := must(os.MkdirTemp("", "consumer-"))
	defer os.RemoveAll(folder)
	leases := must(sql.Open("sqlite3", filepath.Join(folder, "leases.db")))
	defer leases.Close()
	store := must(sqllease.New(leases, sqlstore.Config{Dialect: sqlstore.SQLite}))
	check(store.CreateTables(ctx))
	keys := must(core.New(core.Config{Worker: must(lease.Acquire(ctx, store, lease.Config{Namespace: "shop"}))}))

	db := must(gorm.Open(sqlite.Open(filepath.Join(folder, "shop.db")), &gorm.Config{}))
	pool := must(db.DB())
	defer pool.Close()
	check(db.Use(gormplugin.New(keys)))
	check(db.AutoMigrate(&Order{}, &Item{}))
	check(db.WithContext(ctx).Create(&Order{Items: make([]Item, 2)}).Error)
	check(sqlxhelper.New(keys).InsertGraph(ctx, sqlx.NewDb(pool, "sqlite3"), "orders", &Order{Items: make([]Item, 3)}))
	var items int64
	check(db.Model(&Item{}).Where("order_id IN (?)", db.Model(&Order{}).Select("id")).Count(&items).Error)
	check(keys.Close(ctx))
	if items != 5 {
		log.Fatalf("%d items are stored; want 5", items)
	}
	fmt.Println("orders by GORM and sqlx, with a leased worker number")
}

func must[T any](v T, err error) T {
	check(err)
	return v
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
