package shard_test

import (
	"context"
	"fmt"
	"log"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/coretest"
	"github.com/snowkey/snowkey/core/shard"
	"github.com/snowkey/snowkey/types"
)

// An order is in the database of its customer.
func Example() {
	layout := core.Default()
	layout.ShardBits = 8
	gen := coretest.NewGenerator(coretest.Config{Layout: layout}) // in a program: snowkey.Open

	// In a program the four are a *sqlx.DB or a *gorm.DB each.
	databases, err := shard.Spread(layout, "orders-1", "orders-2", "orders-3", "orders-4")
	if err != nil {
		log.Fatal(err)
	}
	customer, err := gen.Next(core.OnShard(context.Background(), 100))
	if err != nil {
		log.Fatal(err)
	}
	order, err := gen.Next(core.OnShardOf(context.Background(), customer))
	if err != nil {
		log.Fatal(err)
	}
	for _, id := range []types.Snowflake{customer, order} {
		db, err := databases.Of(id)
		fmt.Println(layout.Shard(id), db, err)
	}
	// Output:
	// 100 orders-2 <nil>
	// 100 orders-2 <nil>
}
