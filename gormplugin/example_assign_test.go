package gormplugin_test

import (
	"context"
	"fmt"
	"log"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/snowkey/snowkey/gormplugin"
)

// All keys and foreign keys of a graph are set before any SQL. The tables are then
// inserted in one statement each, the orders first, since the items refer to them.
func ExamplePlugin_Assign() {
	db := memory("assign")
	plugin := gormplugin.New(source())
	orders := []Order{
		{Number: "2026-1", Items: []Item{{SKU: "cup"}, {SKU: "plate"}}},
		{Number: "2026-2", Items: []Item{{SKU: "spoon"}}},
	}
	if err := plugin.Assign(context.Background(), db, orders); err != nil {
		log.Fatal(err)
	}
	var items []Item
	for _, order := range orders {
		items = append(items, order.Items...)
	}
	err := db.Transaction(func(tx *gorm.DB) error {
		if err := tx.Omit(clause.Associations).Create(&orders).Error; err != nil {
			return err
		}
		return tx.CreateInBatches(&items, 1000).Error
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, item := range items {
		fmt.Println(item.SKU, item.ID, "of order", item.OrderID)
	}
	// Output:
	// cup 1003 of order 1001
	// plate 1004 of order 1001
	// spoon 1005 of order 1002
}
