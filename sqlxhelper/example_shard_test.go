package sqlxhelper_test

import (
	"context"
	"fmt"
	"log"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

type Purchase struct {
	types.Model
	CustomerID types.Snowflake `db:"customer_id" snowkey:"shard"`
	Lines      []PurchaseLine  `db:"-" snowkey:"purchase_lines,fk=purchase_id"`
}

type PurchaseLine struct {
	types.Model
	PurchaseID types.Snowflake `db:"purchase_id"`
	SKU        string          `db:"sku"`
}

// An order and its lines are on the shard of the customer, who is stored already.
func ExampleHelper_InsertGraph_shards() {
	db := sqlx.MustConnect("sqlite3", ":memory:")
	db.SetMaxOpenConns(1)
	db.MustExec(`
		CREATE TABLE purchases (id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL);
		CREATE TABLE purchase_lines (id INTEGER PRIMARY KEY, purchase_id INTEGER NOT NULL REFERENCES purchases (id), sku TEXT NOT NULL)`)
	ctx := context.Background()

	layout := core.Default()
	layout.ShardBits = 8
	generator, err := core.New(core.Config{Layout: layout, Worker: core.StaticWorker(3)})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = generator.Close(ctx) }()
	customer, err := generator.Next(core.OnShard(ctx, 77))
	if err != nil {
		log.Fatal(err)
	}

	h := sqlxhelper.New(generator)
	purchase := Purchase{CustomerID: customer, Lines: []PurchaseLine{{SKU: "apple"}, {SKU: "pear"}}}
	if err := h.InsertGraph(ctx, db, "purchases", &purchase); err != nil {
		log.Fatal(err)
	}
	fmt.Println(layout.Shard(purchase.ID), layout.Shard(purchase.Lines[0].ID), layout.Shard(purchase.Lines[1].ID))
	// Output: 77 77 77
}
