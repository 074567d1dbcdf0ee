package sqlxhelper_test

import (
	"context"
	"fmt"
	"log"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/sqlxhelper"
)

func ExampleHelper_InsertGraph() {
	db := newDatabase()
	h := sqlxhelper.New(newSource())

	// Two statements in one transaction, however many orders there are.
	orders := []Order{
		{Number: "A-1", Items: []Item{{SKU: "apple"}, {SKU: "pear"}}},
		{Number: "A-2", Items: []Item{{SKU: "plum"}}},
	}
	if err := h.InsertGraph(context.Background(), db, "orders", orders); err != nil {
		log.Fatal(err)
	}
	for _, o := range orders {
		for _, i := range o.Items {
			fmt.Println(o.Number, o.ID, i.SKU, i.OrderID == o.ID)
		}
	}
	// Output:
	// A-1 1001 apple true
	// A-1 1001 pear true
	// A-2 1002 plum true
}

func ExampleInTx() {
	db := newDatabase()
	h := sqlxhelper.New(newSource())
	ctx := context.Background()

	err := sqlxhelper.InTx(ctx, db, nil, func(tx *sqlx.Tx) error {
		order := Order{Number: "A-1"}
		if err := h.Insert(ctx, tx, "orders", &order); err != nil {
			return err
		}
		items := []Item{{OrderID: order.ID, SKU: "apple"}, {OrderID: order.ID, SKU: "pear"}}
		return h.InsertMany(ctx, tx, "order_items", items)
	})
	var n int
	if err := db.Get(&n, "SELECT COUNT(*) FROM order_items"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(err, n)
	// Output: <nil> 2
}
