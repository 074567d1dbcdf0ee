package gormplugin_test

import (
	"fmt"
	"log"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"

	"github.com/snowkey/snowkey/gormplugin"
)

// With postgres.Open this is one statement per table, with one parameter per column. With
// VALUES each item needs three of the 65,535 parameters that PostgreSQL accepts. On SQLite, as
// here, the option does nothing, so it can stay where a program runs on both.
func ExampleWithUnnest() {
	db, err := gorm.Open(sqlite.Open("file:unnest?mode=memory&cache=shared"), &gorm.Config{})
	if err != nil {
		log.Fatal(err)
	}
	if err = db.Use(gormplugin.New(source(), gormplugin.WithUnnest())); err != nil {
		log.Fatal(err)
	}
	if err = db.AutoMigrate(&Order{}, &Item{}); err != nil {
		log.Fatal(err)
	}
	orders := []Order{{Number: "A", Items: make([]Item, 1000)}, {Number: "B", Items: make([]Item, 1000)}}
	if err = db.Create(&orders).Error; err != nil {
		log.Fatal(err)
	}
	var stored int64
	db.Model(&Item{}).Where("order_id = ?", orders[1].ID).Count(&stored)
	fmt.Println(stored, "items of order", orders[1].ID)
	// Output: 1000 items of order 1002
}
