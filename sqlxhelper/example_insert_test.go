package sqlxhelper_test

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/jmoiron/sqlx"
	_ "github.com/mattn/go-sqlite3"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// newSource stands for core.New: keys from 1001 on.
func newSource() sqlxhelper.Source {
	last := types.Snowflake(1000)
	return sqlxhelper.SourceFunc(func(context.Context) (types.Snowflake, error) {
		last++
		return last, nil
	})
}

// newDatabase opens an empty database with two tables. In memory it has to stay
// on one connection.
func newDatabase() *sqlx.DB {
	db := sqlx.MustConnect("sqlite3", ":memory:?_foreign_keys=on")
	db.SetMaxOpenConns(1)
	db.MustExec(`
		CREATE TABLE orders (id INTEGER PRIMARY KEY, number TEXT NOT NULL UNIQUE);
		CREATE TABLE order_items (id INTEGER PRIMARY KEY, order_id INTEGER NOT NULL REFERENCES orders (id), sku TEXT NOT NULL)`)
	return db
}

type Order struct {
	types.Model
	Number string `db:"number"`
	Items  []Item `db:"-" snowkey:"order_items,fk=order_id"`
}

type Item struct {
	types.Model
	OrderID types.Snowflake `db:"order_id"`
	SKU     string          `db:"sku"`
}

func ExampleHelper_Insert() {
	db := newDatabase()
	h := sqlxhelper.New(newSource())

	order := Order{Number: "A-1"}
	if err := h.Insert(context.Background(), db, "orders", &order); err != nil {
		log.Fatal(err)
	}
	fmt.Println(order.ID)
	// Output: 1001
}

func ExampleHelper_InsertMany() {
	db := newDatabase()
	h := sqlxhelper.New(newSource())

	orders := []Order{{Number: "A-1"}, {Number: "A-2", Model: types.Model{ID: 7}}, {Number: "A-3"}}
	if err := h.InsertMany(context.Background(), db, "orders", orders); err != nil {
		log.Fatal(err)
	}
	fmt.Println(orders[0].ID, orders[1].ID, orders[2].ID)
	// Output: 1001 7 1002
}

func ExampleHelper_InsertMany_failure() {
	db := newDatabase()
	h := sqlxhelper.New(newSource())
	ctx := context.Background()

	// Number is unique, so the call fails, and leaves nothing.
	orders := []Order{{Number: "A-1"}, {Number: "A-1"}}
	fmt.Println(h.InsertMany(ctx, db, "orders", orders) != nil)

	// The keys are still there, and the next attempt uses them.
	orders[1].Number = "A-2"
	fmt.Println(h.InsertMany(ctx, db, "orders", orders), orders[0].ID, orders[1].ID)
	// Output:
	// true
	// <nil> 1001 1002
}

// A column that the database has a default for is left to it.
func ExampleOmit() {
	db := newDatabase()
	db.MustExec("CREATE TABLE tickets (id INTEGER PRIMARY KEY, state TEXT NOT NULL DEFAULT 'open')")
	type Ticket struct {
		types.Model
		State string `db:"state"`
	}
	h := sqlxhelper.New(newSource(), sqlxhelper.Omit("state"))

	if err := h.Insert(context.Background(), db, "tickets", &Ticket{}); err != nil {
		log.Fatal(err)
	}
	var stored Ticket
	err := db.Get(&stored, "SELECT * FROM tickets")
	fmt.Println(stored.ID, stored.State, err)
	// Output: 1001 open <nil>
}

func ExampleInsertSeq() {
	db := newDatabase()
	h := sqlxhelper.New(newSource())

	// A file of any size would do.
	lines := bufio.NewScanner(strings.NewReader("A-1\nA-2\nA-3"))
	n, err := sqlxhelper.InsertSeq(context.Background(), h, db, "orders", func(yield func(Order, error) bool) {
		for lines.Scan() {
			if !yield(Order{Number: lines.Text()}, nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(Order{}, err)
		}
	})
	fmt.Println(n, err)
	// Output: 3 <nil>
}
