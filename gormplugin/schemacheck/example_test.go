package schemacheck_test

import (
	"context"
	"fmt"
	"log"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"

	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/gormplugin/schemacheck"
	"github.com/snowkey/snowkey/types"
)

type Order struct{ ID types.Snowflake }

type Payment struct {
	ID      types.Snowflake
	OrderID types.Snowflake
	Order   *Order
}

// memory opens an empty database with the plugin.
func memory(name string) *gorm.DB {
	db, err := gorm.Open(sqlite.Open("file:"+name+"?mode=memory&cache=shared"), &gorm.Config{})
	if err != nil {
		log.Fatal(err)
	}
	source := gormplugin.SourceFunc(func(context.Context) (types.Snowflake, error) { return 1001, nil })
	if err = db.Use(gormplugin.New(source)); err != nil {
		log.Fatal(err)
	}
	return db
}

// In a test, or when a service starts.
func ExampleCheck() {
	db := memory("check")
	if err := db.Exec("CREATE TABLE payments (id integer PRIMARY KEY, order_id text)").Error; err != nil {
		log.Fatal(err)
	}
	findings, err := schemacheck.Check(context.Background(), db, &Payment{})
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range findings {
		fmt.Printf("%s: %s is %s, want %s\n", f.Problem, f.Column, f.Is, f.Want)
	}
	// Output:
	// column is of the wrong type: order_id is text, want bigint
}

// A Finding is an error in one line.
func ExampleFinding_Error() {
	f := schemacheck.Finding{
		Problem: schemacheck.NarrowColumn, Model: "shop.Order", Field: "ID", Table: "orders", Column: "id",
		Is: "int", Want: "bigint", Fix: "change its type",
	}
	fmt.Println(f)
	// Output:
	// schemacheck: column is too narrow: shop.Order.ID, table orders, column id: is int, want bigint; change its type
}
