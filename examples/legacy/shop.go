package main

import (
	"context"
	"fmt"

	"gorm.io/gorm"

	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/types"
)

// The models of the new program: gormplugin.Model for gorm.Model, and types.Snowflake for the
// foreign keys. The columns stay as they are, because an INTEGER of SQLite has 64 bits.
type (
	// Customer may have been referred by another one.
	Customer struct {
		gormplugin.Model
		Email      string              `gorm:"uniqueIndex"`
		ReferrerID types.NullSnowflake `gorm:"index"`
		Referrer   *Customer           `json:",omitempty"`
	}

	// Order is an order of a customer.
	Order struct {
		gormplugin.Model
		Number     string          `gorm:"uniqueIndex"`
		CustomerID types.Snowflake `gorm:"index"`
		Customer   *Customer       `json:",omitempty"`
		Tags       []Tag           `gorm:"many2many:order_tags" json:",omitempty"`
	}

	// Tag is a word for orders.
	Tag struct {
		gormplugin.Model
		Name string `gorm:"uniqueIndex"`
	}
)

// byKey finds a row by its key, or by the counted one that it had. Links and other programs keep
// old keys for long, so this stays in the program. One statement sees a row before its move or
// after it, never in between.
func byKey(table string, id types.Snowflake) func(*gorm.DB) *gorm.DB {
	return func(db *gorm.DB) *gorm.DB {
		return db.Where("id = ? OR id = (SELECT new FROM moved WHERE table_name = ? AND old = ?)", id, table, id)
	}
}

// find reads an order with its customer.
func find(ctx context.Context, db *gorm.DB, id types.Snowflake) (order Order, err error) {
	err = db.WithContext(ctx).Scopes(byKey("orders", id)).First(&order).Error
	return order, err
}

// place stores an order of a customer. The transaction keeps the move out until it ends, so the key
// that it has found is still the customer's when it commits.
func place(ctx context.Context, db *gorm.DB, number string, customer types.Snowflake) error {
	return db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		var found Customer
		if err := tx.Scopes(byKey("customers", customer)).First(&found).Error; err != nil {
			return fmt.Errorf("customer %d: %w", customer, err)
		}
		var tag Tag
		if err := tx.Where("name = ?", "paid").First(&tag).Error; err != nil {
			return err
		}
		return tx.Omit("Tags.*").Create(&Order{Number: number, CustomerID: found.ID, Tags: []Tag{tag}}).Error
	})
}
