package coretest_test

import (
	"context"
	"fmt"
	"log"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/jmoiron/sqlx"

	"github.com/snowkey/snowkey/core/coretest"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// The keys of an order and its item, in the order in which the helper asks for them.
func ExampleGenerator_Key() {
	type Item struct {
		types.Model
		OrderID types.Snowflake `db:"order_id"`
		SKU     string          `db:"sku"`
	}
	type Order struct {
		types.Model
		Number string `db:"number"`
		Items  []Item `db:"-" snowkey:"order_items,fk=order_id"`
	}
	db, mock, err := sqlmock.New()
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	gen := coretest.NewGenerator(coretest.Config{})
	mock.ExpectBegin()
	mock.ExpectExec("INSERT INTO .orders.").
		WithArgs(gen.Key(1), "A-1").WillReturnResult(sqlmock.NewResult(0, 1))
	mock.ExpectExec("INSERT INTO .order_items.").
		WithArgs(coretest.AnyKey(), gen.Key(1), "cup").WillReturnResult(sqlmock.NewResult(0, 1))
	mock.ExpectCommit()

	order := Order{Number: "A-1", Items: []Item{{SKU: "cup"}}}
	helper := sqlxhelper.New(gen)
	err = helper.InsertGraph(context.Background(), sqlx.NewDb(db, "mysql"), "orders", &order)
	fmt.Println(err, mock.ExpectationsWereMet())
	// Output: <nil> <nil>
}
