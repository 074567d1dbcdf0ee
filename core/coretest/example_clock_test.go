//go:build cgo

package coretest_test

import (
	"fmt"
	"log"
	"time"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"

	"github.com/snowkey/snowkey/core/coretest"
	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/types"
)

// A report selects the orders of last Monday. Its test makes one on Sunday, one on Monday
// and one on Tuesday.
func ExampleClock() {
	type Order struct {
		types.Model
		Number string
	}
	clock := coretest.NewClock(time.Date(2026, 5, 3, 12, 0, 0, 0, time.UTC)) // a Sunday
	gen := coretest.NewGenerator(coretest.Config{Now: clock.Now})
	db, err := gorm.Open(sqlite.Open(":memory:"), &gorm.Config{NowFunc: clock.Now})
	if err != nil {
		log.Fatal(err)
	}
	if err := db.Use(gormplugin.New(gen)); err != nil {
		log.Fatal(err)
	}
	if err := db.AutoMigrate(&Order{}); err != nil {
		log.Fatal(err)
	}
	for _, number := range []string{"of Sunday", "of Monday", "of Tuesday"} {
		if err := db.Create(&Order{Number: number}).Error; err != nil {
			log.Fatal(err)
		}
		clock.Advance(24 * time.Hour)
	}

	monday := time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC)
	var orders []Order
	db.Where(gormplugin.CreatedBetween(monday, monday.AddDate(0, 0, 1))).Find(&orders)
	for _, order := range orders {
		fmt.Println(order.ID, order.Number)
	}
	// Output: 177026472345600000 of Monday
}
