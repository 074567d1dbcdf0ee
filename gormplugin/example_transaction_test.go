package gormplugin_test

import (
	"errors"
	"fmt"
	"log"

	"gorm.io/gorm"

	"github.com/snowkey/snowkey/gormplugin"
)

// A transaction that is retried writes the same keys, because they stay in the structs, which
// are built outside of the closure. A retry after a commit whose answer was lost is then a
// duplicate key, and not a second order.
func Example_retry() {
	db := memory("retry")
	order := Order{Number: "A", Items: []Item{{SKU: "cup"}}}
	deadlock := errors.New("deadlock")
	for attempt := 1; attempt <= 2; attempt++ {
		err := db.Transaction(func(tx *gorm.DB) error {
			if err := tx.Create(&order).Error; err != nil {
				return err
			}
			fmt.Println("attempt", attempt, "writes", order.ID, order.Items[0].ID)
			if attempt == 1 {
				return deadlock // everything is rolled back
			}
			return nil
		})
		if err != nil && !errors.Is(err, deadlock) {
			log.Fatal(err)
		}
	}
	var n int64
	db.Model(&Order{}).Count(&n)
	fmt.Println(n, "order")
	// Output:
	// attempt 1 writes 1001 1002
	// attempt 2 writes 1001 1002
	// 1 order
}

// Before production: a program without the plugin would store the key zero.
func ExampleInstalled() {
	db := memory("installed")
	fmt.Println(gormplugin.Installed(db))
	// Output: true
}
