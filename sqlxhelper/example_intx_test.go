package sqlxhelper_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"log"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/sqlxhelper"
)

func ExampleInTx() {
	db := newDatabase()
	h := sqlxhelper.New(newSource())
	ctx := context.Background()

	// The function may run again, after a deadlock or a lost connection. Rows that are made
	// outside of it keep their keys, and are then the same rows.
	order := Order{Number: "A-1"}
	items := []Item{{SKU: "apple"}, {SKU: "pear"}}
	err := sqlxhelper.InTx(ctx, db, nil, func(tx *sqlx.Tx) error {
		if err := h.Insert(ctx, tx, "orders", &order); err != nil {
			return err
		}
		for i := range items {
			items[i].OrderID = order.ID
		}
		return h.InsertMany(ctx, tx, "order_items", items)
	})
	var n int
	if err := db.Get(&n, "SELECT COUNT(*) FROM order_items"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(err, n)
	// Output: <nil> 2
}

// After ErrCommitUnknown, any of the rows in the error tells whether all of them are stored.
func ExampleUnknownError() {
	db := newDatabase()
	order := Order{Number: "A-1"}
	if err := sqlxhelper.New(newSource()).Insert(context.Background(), db, "orders", &order); err != nil {
		log.Fatal(err)
	}
	// This error stands for one of InTx or of a call on a pool.
	var err error = &sqlxhelper.UnknownError{
		Rows: []sqlxhelper.StoredRow{{Table: "orders", Column: "id", Key: order.ID}},
		Err:  driver.ErrBadConn,
	}

	var unknown *sqlxhelper.UnknownError
	if errors.As(err, &unknown) && len(unknown.Rows) > 0 {
		row, n := unknown.Rows[0], 0
		query := fmt.Sprintf("SELECT COUNT(*) FROM %s WHERE %s = ?", row.Table, row.Column)
		if err := db.Get(&n, query, row.Key); err != nil {
			log.Fatal(err)
		}
		fmt.Println("the transaction is committed:", n == 1)
	}
	// Output: the transaction is committed: true
}
