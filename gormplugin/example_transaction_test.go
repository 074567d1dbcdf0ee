//go:build cgo

package gormplugin_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"log"

	"github.com/mattn/go-sqlite3"
	"gorm.io/gorm"

	"github.com/snowkey/snowkey/gormplugin"
)

// A transaction that a deadlock has ended is run again, and writes the same keys: they stay in the
// structs, which are made outside of the function.
func ExampleInTx() {
	db := memory("retry")
	order := Order{Number: "A", Items: []Item{{SKU: "cup"}}}
	run := 0
	err := gormplugin.InTx(context.Background(), db, nil, func(tx *gorm.DB) error {
		run++
		if err := tx.Create(&order).Error; err != nil {
			return err
		}
		fmt.Println("run", run, "writes", order.ID, order.Items[0].ID)
		if run == 1 {
			return sqlite3.Error{Code: sqlite3.ErrBusy} // as from a statement; everything is rolled back
		}
		return nil
	})
	var n int64
	db.Model(&Order{}).Count(&n)
	fmt.Println(err, n, "order")
	// Output:
	// run 1 writes 1001 1002
	// run 2 writes 1001 1002
	// <nil> 1 order
}

// After ErrCommitUnknown, any of the rows in the error tells whether all of them are stored.
func ExampleUnknownError() {
	db := memory("unknown")
	order := Order{Number: "A"}
	if err := db.Create(&order).Error; err != nil {
		log.Fatal(err)
	}
	// This error stands for one of InTx.
	var err error = &gormplugin.UnknownError{
		Rows: []gormplugin.StoredRow{{Table: "orders", Column: "id", Key: order.ID}},
		Err:  driver.ErrBadConn,
	}

	var unknown *gormplugin.UnknownError
	if errors.As(err, &unknown) && len(unknown.Rows) > 0 {
		row, n := unknown.Rows[0], int64(0)
		db.Table(row.Table).Where(map[string]any{row.Column: row.Key}).Count(&n)
		fmt.Println("the transaction is committed:", n == 1)
	}
	// Output: the transaction is committed: true
}

// Before production: a program without the plugin would store the key zero.
func ExampleInstalled() {
	db := memory("installed")
	fmt.Println(gormplugin.Installed(db))
	// Output: true
}
