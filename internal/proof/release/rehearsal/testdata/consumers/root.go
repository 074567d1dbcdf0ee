// Program consumer uses the root module as a user's program does.
package main

import (
	"context"
	"database/sql"
	"errors"
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

func main() {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "consumer-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	db, err := sql.Open("sqlite3", filepath.Join(folder, "leases.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	store, err := sqllease.New(db, sqlstore.Config{Dialect: sqlstore.SQLite})
	if err == nil {
		err = store.CreateTables(ctx)
	}
	if err != nil {
		log.Fatal(err)
	}
	worker, err := lease.Acquire(ctx, store, lease.Config{Namespace: "shop"})
	if err != nil {
		log.Fatal(err)
	}
	keys, err := core.New(core.Config{Worker: worker})
	if err != nil {
		log.Fatal(err)
	}
	if err := insert(ctx, keys, filepath.Join(folder, "shop.db")); err != nil {
		log.Fatal(err)
	}
	var ids [100]types.Snowflake
	if err := keys.Fill(ctx, ids[:]); err != nil {
		log.Fatal(err)
	}
	if err := keys.Close(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(ids), "keys with a leased worker number, and orders by GORM and sqlx")
}

type Order struct {
	types.Model
	Items []Item `db:"-" snowkey:"items,fk=order_id"`
}

type Item struct {
	types.Model
	OrderID types.Snowflake `db:"order_id"`
}

// insert stores an order by GORM and one by sqlx, and reads them back.
func insert(ctx context.Context, keys *core.Generator, file string) error {
	db, err := gorm.Open(sqlite.Open(file), &gorm.Config{})
	if err != nil {
		return err
	}
	if err := errors.Join(db.Use(gormplugin.New(keys)), db.AutoMigrate(&Order{}, &Item{})); err != nil {
		return err
	}
	if err := db.WithContext(ctx).Create(&Order{Items: make([]Item, 2)}).Error; err != nil {
		return err
	}
	pool, err := db.DB()
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := sqlxhelper.New(keys).InsertGraph(ctx, sqlx.NewDb(pool, "sqlite3"), "orders", &Order{Items: make([]Item, 3)}); err != nil {
		return err
	}
	var items int64
	err = db.Model(&Item{}).Where("order_id IN (?)", db.Model(&Order{}).Select("id")).Count(&items).Error
	if err == nil && items != 5 {
		err = fmt.Errorf("%d items are stored; want 5", items)
	}
	return err
}
