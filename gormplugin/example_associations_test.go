package gormplugin_test

import (
	"fmt"
	"log"

	"github.com/snowkey/snowkey/types"
)

// New rows of an order that is stored get keys as well.
func Example_association() {
	db := memory("association")
	order := Order{Number: "A"}
	if err := db.Create(&order).Error; err != nil {
		log.Fatal(err)
	}
	item := Item{SKU: "cup"}
	if err := db.Model(&order).Association("Items").Append(&item); err != nil {
		log.Fatal(err)
	}
	fmt.Println(item.ID, "of order", item.OrderID)
	// Output: 1002 of order 1001
}

// A customer of whom only the email is known: the stored one is found, and the
// ticket refers to him.
func Example_belongsTo() {
	type Customer struct {
		ID    types.Snowflake
		Email string `gorm:"uniqueIndex"`
	}
	type Ticket struct {
		ID         types.Snowflake
		CustomerID types.NullSnowflake
		Customer   *Customer
	}
	db := memory("belongsto")
	if err := db.AutoMigrate(&Customer{}, &Ticket{}); err != nil {
		log.Fatal(err)
	}
	for range 2 {
		ticket := Ticket{Customer: &Customer{Email: "a@example.com"}}
		if err := db.Create(&ticket).Error; err != nil {
			log.Fatal(err)
		}
		fmt.Println("ticket", ticket.ID, "of customer", ticket.CustomerID)
	}
	// Output:
	// ticket 1001 of customer 1002
	// ticket 1003 of customer 1002
}

// The rows of the join table consist of two foreign keys, and need no keys.
func Example_manyToMany() {
	type Tag struct {
		ID   types.Snowflake
		Name string `gorm:"uniqueIndex"`
	}
	type Post struct {
		ID   types.Snowflake
		Tags []Tag `gorm:"many2many:post_tags"`
	}
	db := memory("m2m")
	if err := db.AutoMigrate(&Tag{}, &Post{}); err != nil {
		log.Fatal(err)
	}
	post := Post{Tags: []Tag{{Name: "go"}, {Name: "sql"}}}
	if err := db.Create(&post).Error; err != nil {
		log.Fatal(err)
	}
	again := Post{Tags: []Tag{{Name: "sql"}}} // the tag of the first post
	if err := db.Create(&again).Error; err != nil {
		log.Fatal(err)
	}
	fmt.Println(post.ID, post.Tags[0].ID, post.Tags[1].ID)
	fmt.Println(again.ID, again.Tags[0].ID)
	// Output:
	// 1001 1002 1003
	// 1004 1003
}

// The column that refers to owners of any kind has the type of their keys.
func Example_polymorphic() {
	type Photo struct {
		ID        types.Snowflake
		OwnerID   types.Snowflake
		OwnerType string
	}
	type Product struct {
		ID     types.Snowflake
		Photos []Photo `gorm:"polymorphic:Owner"`
	}
	db := memory("polymorphic")
	if err := db.AutoMigrate(&Photo{}, &Product{}); err != nil {
		log.Fatal(err)
	}
	product := Product{Photos: []Photo{{}}}
	if err := db.Create(&product).Error; err != nil {
		log.Fatal(err)
	}
	photo := product.Photos[0]
	fmt.Println(photo.ID, "of", photo.OwnerType, photo.OwnerID)
	// Output: 1002 of products 1001
}

// A parent that can be absent is a types.NullSnowflake.
func Example_tree() {
	type Category struct {
		ID       types.Snowflake
		ParentID types.NullSnowflake
		Name     string
		Children []Category `gorm:"foreignKey:ParentID"`
	}
	db := memory("tree")
	if err := db.AutoMigrate(&Category{}); err != nil {
		log.Fatal(err)
	}
	root := Category{Name: "animals", Children: []Category{{Name: "cats"}}}
	if err := db.Create(&root).Error; err != nil {
		log.Fatal(err)
	}
	fmt.Println(root.ID, root.ParentID, root.Children[0].ID, root.Children[0].ParentID)
	// Output: 1001 NULL 1002 1001
}

// Of a key of several columns the one that is called ID is filled.
func Example_compositeKey() {
	type Invoice struct {
		TenantID int64           `gorm:"primaryKey;autoIncrement:false"`
		ID       types.Snowflake `gorm:"primaryKey"`
	}
	db := memory("composite")
	if err := db.AutoMigrate(&Invoice{}); err != nil {
		log.Fatal(err)
	}
	invoice := Invoice{TenantID: 3}
	if err := db.Create(&invoice).Error; err != nil {
		log.Fatal(err)
	}
	fmt.Println(invoice.TenantID, invoice.ID)
	// Output: 3 1001
}

// Keys of other types need the tag. An opt-out leaves the key to you.
func Example_tagKinds() {
	type Number struct {
		ID int64 `gorm:"primaryKey;autoIncrement:false;snowflake"`
	}
	type Text struct {
		ID string `gorm:"primaryKey;snowflake"`
	}
	type Own struct {
		ID types.Snowflake `gorm:"primaryKey;snowflake:-"`
	}
	db := memory("kinds")
	if err := db.AutoMigrate(&Number{}, &Text{}, &Own{}); err != nil {
		log.Fatal(err)
	}
	number, text, own := Number{}, Text{}, Own{ID: 5}
	for _, row := range []any{&number, &text, &own} {
		if err := db.Create(row).Error; err != nil {
			log.Fatal(err)
		}
	}
	fmt.Printf("%d %q %d\n", number.ID, text.ID, own.ID)
	// Output: 1001 "1002" 5
}
