package main

import (
	"context"
	"database/sql"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	"gorm.io/gorm/schema"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/types"
)

// gormBatch is how many rows GORM puts into one INSERT, and reads at a time. SQLite
// takes 32,766 parameters per statement, and GORM does not split by parameters.
const gormBatch = 500

// A gormStore is a store that uses GORM.
type gormStore struct{ db *gorm.DB }

// newGORMStore installs the plugin and creates the tables that are not there.
func newGORMStore(ctx context.Context, conn *sql.DB, keys *core.Generator) (gormStore, error) {
	db, err := gorm.Open(sqlite.New(sqlite.Config{Conn: conn}), &gorm.Config{
		CreateBatchSize: gormBatch,
		Logger:          logger.Discard, // errors are returned, and printed once
		// Two libraries share one file, so every table says whose it is.
		NamingStrategy: schema.NamingStrategy{TablePrefix: "gorm_"},
	})
	if err != nil {
		return gormStore{}, err
	}
	if err := db.Use(gormplugin.New(keys)); err != nil {
		return gormStore{}, err
	}
	return gormStore{db}, db.WithContext(ctx).AutoMigrate(&Import{}, &Customer{}, &Product{}, &Order{}, &OrderItem{})
}

func (gormStore) name() string   { return "GORM" }
func (gormStore) prefix() string { return "gorm_" }

func (s gormStore) begin(ctx context.Context, imp *Import, customers []Customer, products []Product) error {
	return s.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		if err := tx.Create(imp).Error; err != nil {
			return err
		}
		if err := tx.Create(customers).Error; err != nil {
			return err
		}
		return tx.Create(products).Error
	})
}

func (s gormStore) order(ctx context.Context, o *Order) error {
	// Create alone is one transaction: GORM begins it, saves the order, then its
	// items, and commits. Transaction is where your second statement goes.
	return s.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		return tx.Create(o).Error
	})
}

func (s gormStore) finish(ctx context.Context, imp *Import) error {
	// Select, because Updates with a struct leaves out fields that are zero.
	return s.db.WithContext(ctx).Model(imp).Select("FinishedAt", "Orders", "Lines", "Total").Updates(imp).Error
}

func (s gormStore) read(ctx context.Context, importID types.Snowflake) (r rows, err error) {
	// By key: keys rise with time, so that is the order in which the rows were
	// written. FindInBatches goes by key as well.
	byKey := func(db *gorm.DB) *gorm.DB { return db.Order("id") }
	of := s.db.WithContext(ctx).Where("import_id = ?", importID).Session(&gorm.Session{})
	if err := of.Scopes(byKey).Find(&r.customers).Error; err != nil {
		return r, err
	}
	if err := of.Scopes(byKey).Find(&r.products).Error; err != nil {
		return r, err
	}
	var batch []Order
	err = of.Preload("Items", byKey).FindInBatches(&batch, gormBatch, func(*gorm.DB, int) error {
		r.orders = append(r.orders, batch...)
		return nil
	}).Error
	return r, err
}
