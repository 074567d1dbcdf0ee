package gormplugin_test

import (
	"fmt"
	"log"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/coretest"
	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/types"
)

// An order and its lines are on the shard of their customer, whose key is in the tagged field.
func Example_shards() {
	type Line struct {
		ID      types.Snowflake
		OrderID types.Snowflake
		SKU     string
	}
	type Order struct {
		ID         types.Snowflake
		CustomerID types.Snowflake `snowkey:"shard"`
		Lines      []Line
	}
	layout := core.Default()
	layout.ShardBits = 8                                          // 256 shards
	gen := coretest.NewGenerator(coretest.Config{Layout: layout}) // a core.Generator in a program
	db, err := gorm.Open(sqlite.Open("file:shards?mode=memory&cache=shared"), &gorm.Config{})
	if err != nil {
		log.Fatal(err)
	}
	if err = db.Use(gormplugin.New(gen)); err != nil {
		log.Fatal(err)
	}
	if err = db.AutoMigrate(&Order{}, &Line{}); err != nil {
		log.Fatal(err)
	}
	ann, bob := types.Snowflake(1000<<8|17), types.Snowflake(1001<<8|200) // customers
	orders := []Order{
		{CustomerID: ann, Lines: []Line{{SKU: "cup"}, {SKU: "plate"}}},
		{CustomerID: bob, Lines: []Line{{SKU: "spoon"}}},
	}
	if err = db.Create(&orders).Error; err != nil {
		log.Fatal(err)
	}
	for _, o := range orders {
		for _, line := range o.Lines {
			fmt.Println(line.SKU, "is on shard", layout.Shard(line.ID), "as its order, on", layout.Shard(o.ID))
		}
	}
	// Output:
	// cup is on shard 17 as its order, on 17
	// plate is on shard 17 as its order, on 17
	// spoon is on shard 200 as its order, on 200
}
