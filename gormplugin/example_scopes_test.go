package gormplugin_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/gormplugin"
)

// Visit has no column for the time: its key tells it.
type Visit struct {
	gormplugin.Model
	Page string
}

// visits returns a database with a visit at noon and one at each of the next
// three seconds.
func visits(name string) (*gorm.DB, time.Time) {
	db, err := gorm.Open(sqlite.Open("file:"+name+"?mode=memory&cache=shared"), &gorm.Config{})
	if err != nil {
		log.Fatal(err)
	}
	layout := core.Default()
	// With a core.Generator as the source, the option is not needed.
	if err = db.Use(gormplugin.New(source(), gormplugin.WithLayout(layout))); err != nil {
		log.Fatal(err)
	}
	if err = db.AutoMigrate(&Visit{}); err != nil {
		log.Fatal(err)
	}
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for i, page := range []string{"start", "shop", "cart", "paid"} {
		visit := Visit{Page: page}
		visit.ID = layout.Min(noon.Add(time.Duration(i) * time.Second))
		if err = db.Create(&visit).Error; err != nil {
			log.Fatal(err)
		}
	}
	return db, noon
}

// Rows between two times are found by the primary key. The first time is
// included, the second is not.
func ExampleCreatedBetween() {
	db, noon := visits("between")
	span := gormplugin.CreatedBetween(noon.Add(time.Second), noon.Add(3*time.Second))
	var list []Visit
	if err := db.Where(span).Order("id").Find(&list).Error; err != nil {
		log.Fatal(err)
	}
	for _, v := range list {
		fmt.Println(v.Page)
	}
	// The same in the generic API.
	n, err := gorm.G[Visit](db).Where(span).Count(context.Background(), "*")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(n, "visits")
	// Output:
	// shop
	// cart
	// 2 visits
}

// The newest first, two at a time.
func ExampleOlderThan() {
	db, _ := visits("pages")
	page := db.Order("id DESC").Limit(2).Session(&gorm.Session{})
	var list []Visit
	for tx := page.Find(&list); tx.Error == nil && len(list) > 0; {
		for i, v := range list {
			fmt.Println(i, v.Page)
		}
		last := list[len(list)-1].ID
		list = nil
		tx = page.Where(gormplugin.OlderThan(last)).Find(&list)
	}
	// Output:
	// 0 paid
	// 1 cart
	// 0 shop
	// 1 start
}

// UseRowIDs before AutoMigrate makes the key of a SQLite table the table's own
// order, instead of an index beside it.
func ExampleUseRowIDs() {
	type Parcel struct {
		gormplugin.Model
		Code string
	}
	db := memory("rowids")
	if err := gormplugin.UseRowIDs(db, &Parcel{}); err != nil {
		log.Fatal(err)
	}
	if err := db.AutoMigrate(&Parcel{}); err != nil {
		log.Fatal(err)
	}
	kinds, err := db.Migrator().ColumnTypes(&Parcel{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(kinds[0].Name(), kinds[0].DatabaseTypeName())
	// Output: id integer
}
