// Package before is the program as it was: gorm.Model, keys that the database counts, and rows of
// some years. No line of it knows snowkey.
package before

import (
	"context"
	"fmt"
	"time"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
)

// Customer may have been referred by another one.
type Customer struct {
	gorm.Model
	Email      string `gorm:"uniqueIndex"`
	ReferrerID *uint  `gorm:"index"`
	Referrer   *Customer
}

// Order is an order of a customer.
type Order struct {
	gorm.Model
	Number     string `gorm:"uniqueIndex"`
	CustomerID uint   `gorm:"index"`
	Customer   Customer
	Tags       []Tag `gorm:"many2many:order_tags"`
}

// Tag is a word for orders.
type Tag struct {
	gorm.Model
	Name string `gorm:"uniqueIndex"`
}

// Open opens the database and migrates it.
func Open(ctx context.Context, file string) (*gorm.DB, error) {
	db, err := gorm.Open(sqlite.Open("file:"+file+"?_journal_mode=WAL&_txlock=immediate&_busy_timeout=10000&_foreign_keys=1"), &gorm.Config{})
	if err != nil {
		return nil, err
	}
	return db, db.WithContext(ctx).AutoMigrate(&Customer{}, &Order{}, &Tag{})
}

// Place stores an order with a tag.
func Place(ctx context.Context, db *gorm.DB, number string, customer uint, tag Tag) (Order, error) {
	order := Order{Number: number, CustomerID: customer, Tags: []Tag{tag}}
	return order, db.WithContext(ctx).Omit("Tags.*").Create(&order).Error
}

// Fill stores customers, three times as many orders, and tags, unless it has done so before.
func Fill(ctx context.Context, db *gorm.DB, customers int) error {
	return db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		var stored int64
		if err := tx.Model(&Tag{}).Count(&stored).Error; err != nil || stored > 0 {
			return err
		}
		tags := []Tag{{Name: "gift"}, {Name: "express"}, {Name: "paid"}, {Name: "never used"}}
		if err := tx.Create(&tags).Error; err != nil {
			return err
		}
		// Of some years, and as in such tables not in the order of the keys, and many at one time.
		began := time.Date(2019, 3, 1, 9, 0, 0, 0, time.UTC)
		made := func(i int) time.Time { return began.AddDate(0, i*7919%customers*72/customers, 0) }
		people, orders := make([]Customer, customers), make([]Order, 3*customers)
		for i := range people {
			people[i] = Customer{Email: fmt.Sprintf("c%06d@example.com", i+1)}
			people[i].CreatedAt = made(i)
			if i%4 > 0 {
				referrer := uint(i/4*4 + 1)
				people[i].ReferrerID = &referrer
			}
		}
		for i := range orders {
			orders[i] = Order{Number: Number(uint(i + 1)), CustomerID: uint(i*31%customers + 1), Tags: tags[i%3 : i%3+1]}
			orders[i].CreatedAt = made(i / 3)
		}
		if err := tx.CreateInBatches(people, 500).Error; err != nil {
			return err
		}
		if err := tx.Omit("Tags.*").CreateInBatches(orders, 500).Error; err != nil {
			return err
		}
		// And a few rows have no time at all.
		return tx.Exec("UPDATE customers SET created_at = NULL WHERE id % 97 = 3").Error
	})
}

// Number returns the number of the order with the counted key id.
func Number(id uint) string { return fmt.Sprintf("N-%07d", id) }
