package sqlxhelper_test

import (
	"context"
	"fmt"
	"log"

	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

func ExampleOnConflictDoNothing() {
	db := newDatabase()
	db.MustExec("INSERT INTO orders (id, number) VALUES (17, 'A-1')")
	h := sqlxhelper.New(newSource())

	// The first order is stored already. Its new item goes under the stored row.
	orders := []Order{
		{Number: "A-1", Items: []Item{{SKU: "x"}}},
		{Number: "A-2", Items: []Item{{SKU: "y"}}},
	}
	err := h.With(sqlxhelper.OnConflictDoNothing("number")).InsertGraph(context.Background(), db, "orders", orders)
	if err != nil {
		log.Fatal(err)
	}
	for _, o := range orders {
		fmt.Println(o.Number, o.ID, o.Items[0].OrderID)
	}
	// Output:
	// A-1 17 17
	// A-2 1002 1002
}

// Article has a column that the database computes, and one with a default.
type Article struct {
	types.Model
	SKU   string `db:"sku"`
	Net   int64  `db:"net"`
	State string `db:"state"`
	Gross int64  `db:"gross" snowkey:"-"` // only read
}

const articles = `CREATE TABLE articles (
	id INTEGER PRIMARY KEY, sku TEXT NOT NULL UNIQUE, net INTEGER NOT NULL, state TEXT NOT NULL DEFAULT 'new',
	gross INTEGER GENERATED ALWAYS AS (net + net / 5))`

func ExampleOnConflictUpdate() {
	db := newDatabase()
	db.MustExec(articles)
	db.MustExec("INSERT INTO articles (id, sku, net, state) VALUES (5, 'x', 100, 'on sale')")
	h := sqlxhelper.New(newSource(),
		sqlxhelper.ConflictTarget("sku"),
		sqlxhelper.OnConflictUpdate("net"),
		sqlxhelper.Omit("state"),
		sqlxhelper.Returning("state", "gross"))

	list := []Article{{SKU: "x", Net: 200}, {SKU: "y", Net: 300}}
	if err := h.InsertMany(context.Background(), db, "articles", list); err != nil {
		log.Fatal(err)
	}
	for _, a := range list {
		fmt.Println(a.ID, a.SKU, a.Net, a.State, a.Gross)
	}
	// Output:
	// 5 x 200 on sale 240
	// 1002 y 300 new 360
}

func ExampleReturning() {
	db := newDatabase()
	db.MustExec(articles)
	h := sqlxhelper.New(newSource())

	a := Article{SKU: "x", Net: 50}
	err := h.With(sqlxhelper.Omit("state"), sqlxhelper.Returning()).Insert(context.Background(), db, "articles", &a)
	fmt.Println(err, a.State, a.Gross)
	// Output: <nil> new 60
}

func ExampleOnProgress() {
	db := newDatabase()
	h := sqlxhelper.New(newSource(), sqlxhelper.OnProgress(func(done, total int) {
		fmt.Println(done, "of", total)
	}))

	orders := make([]Order, 400)
	for i := range orders {
		orders[i].Number = fmt.Sprint("A-", i)
	}
	if err := h.InsertMany(context.Background(), db, "orders", orders); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 150 of 400
	// 300 of 400
	// 400 of 400
}
