package gormplugin_test

import (
	"context"
	"fmt"
	"log"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// Rows that lack a key get one; a key that is set is kept.
func Example_slice() {
	db := memory("slice")
	orders := []Order{{Number: "A"}, {Number: "B"}, {Number: "C"}}
	orders[1].ID = 7
	if err := db.Create(&orders).Error; err != nil {
		log.Fatal(err)
	}
	for _, o := range orders {
		fmt.Println(o.Number, o.ID)
	}
	// Output:
	// A 1001
	// B 7
	// C 1002
}

// Each batch is one statement, and asks for its keys at once.
func Example_batches() {
	db := memory("batches")
	items := make([]Item, 1000)
	if err := db.CreateInBatches(&items, 300).Error; err != nil {
		log.Fatal(err)
	}
	fmt.Println(items[0].ID, "to", items[999].ID)
	// Output: 1001 to 2000
}

// A map needs the model beside it. The key appears in it under the column's name.
func Example_map() {
	db := memory("map")
	order := map[string]any{"number": "A"}
	if err := db.Model(&Order{}).Create(order).Error; err != nil {
		log.Fatal(err)
	}
	fmt.Println(order["id"])
	// Output: 1001
}

// Save creates what has no key, and updates what has one.
func Example_save() {
	db := memory("save")
	order := Order{Number: "A"}
	if err := db.Save(&order).Error; err != nil {
		log.Fatal(err)
	}
	order.Number = "B"
	if err := db.Save(&order).Error; err != nil {
		log.Fatal(err)
	}
	var stored []Order
	db.Find(&stored)
	fmt.Println(len(stored), stored[0].ID, stored[0].Number)
	// Output: 1 1001 B
}

// A new order that has its key already, with items, is for an upsert: Save would
// store the items first.
func Example_saveWithAKey() {
	db := memory("savekey")
	order := Order{Number: "A", Items: []Item{{SKU: "cup"}}}
	order.ID = 7
	if err := db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&order).Error; err != nil {
		log.Fatal(err)
	}
	fmt.Println(order.ID, order.Items[0].OrderID)
	// Output: 7 7
}

// The row that is found keeps its key, the row that is made gets one.
func Example_firstOrCreate() {
	db := memory("first")
	var made, found Order
	for _, order := range []*Order{&made, &found} {
		if err := db.Where(Order{Number: "A"}).FirstOrCreate(order).Error; err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(made.ID, found.ID)
	// Output: 1001 1001
}

// The generic interface of GORM 1.30 and later.
func Example_generics() {
	db := memory("generics")
	ctx := context.Background()
	order := Order{Number: "A", Items: []Item{{SKU: "cup"}}}
	if err := gorm.G[Order](db).Create(ctx, &order); err != nil {
		log.Fatal(err)
	}
	fmt.Println(order.ID, order.Items[0].ID)
	// Output: 1001 1002
}

// Of three rows two are stored already. Each has the key of the stored row.
func Example_upsertSlice() {
	db := memory("upsertslice")
	if err := db.Create(&[]Order{{Number: "A"}, {Number: "C"}}).Error; err != nil {
		log.Fatal(err)
	}
	orders := []Order{{Number: "A"}, {Number: "B"}, {Number: "C"}}
	byNumber := clause.OnConflict{
		Columns:   []clause.Column{{Name: "number"}},
		DoUpdates: clause.AssignmentColumns([]string{"updated_at"}),
	}
	if err := db.Clauses(byNumber).Create(&orders).Error; err != nil {
		log.Fatal(err)
	}
	for _, o := range orders {
		fmt.Println(o.Number, o.ID)
	}
	// Output:
	// A 1001
	// B 1004
	// C 1002
}

// What is only shown takes keys too. The create that follows writes them.
func Example_toSQL() {
	db := memory("tosql")
	item := Item{SKU: "cup"}
	fmt.Println(db.ToSQL(func(tx *gorm.DB) *gorm.DB { return tx.Create(&item) }))
	fmt.Println(item.ID)
	// Output:
	// INSERT INTO `items` (`id`,`order_id`,`sku`) VALUES (1001,0,"cup")
	// 1001
}
