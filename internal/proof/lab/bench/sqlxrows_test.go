package main

import (
	"context"
	"fmt"
	"time"

	"github.com/snowkey/snowkey/types"
)

// An order and an item are the rows of the tables, as sqlxhelper takes them.
type (
	order struct {
		ID        types.Snowflake `db:"id"`
		Number    string          `db:"number"`
		Total     int64           `db:"total"`
		CreatedAt time.Time       `db:"created_at"`
		Items     []item          `db:"-" snowkey:"order_items,fk=order_id"`
	}
	item struct {
		ID        types.Snowflake `db:"id"`
		OrderID   types.Snowflake `db:"order_id"`
		SKU       string          `db:"sku"`
		Quantity  int             `db:"quantity"`
		Price     int64           `db:"price"`
		CreatedAt time.Time       `db:"created_at"`
	}
)

// The keys begin where a generator of today is, so that they have as many digits.
const (
	firstOrder = 1_900_000_000_000_000_000
	firstItem  = firstOrder + 1_000_000_000
)

// epoch is when the first row was created. Each row has a microsecond of its own. All
// databases here keep microseconds.
var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// awkward are texts that have to arrive as they are, however a variant quotes or
// escapes them.
var awkward = []string{
	"", "it's", `"`, "`", `\`, `\N`, `\\`, "a\tb", "a\nb", "a\r\nb", "?", "??", "$1", ":id", "::", "%s", ",", "(", ")", "{}", `{"a":"b"}`,
	"NULL", "null", "-- x", "/*", "größer", "漢字", "🙂", " x ", "; DROP TABLE order_items", "\x01\x1f\x7f", "\u2028",
}

// newItems returns n rows of orders of five items each. Of every hundred, one has
// an awkward text.
func newItems(n int) []item {
	items := make([]item, n)
	for i := range items {
		sku := fmt.Sprintf("SKU-%06d", i)
		if i%100 == 0 {
			sku = awkward[i/100%len(awkward)]
		}
		items[i] = item{
			ID:        firstItem + types.Snowflake(i),
			OrderID:   firstOrder + types.Snowflake(i/itemsPerOrder),
			SKU:       sku,
			Quantity:  i%7 - 1,
			Price:     int64(i) * 199,
			CreatedAt: epoch.Add(time.Duration(i) * time.Microsecond),
		}
	}
	return items
}

const itemsPerOrder = 5

// sizes are how many rows the loads have.
type sizes struct{ lines, orders int }

// fewRows are enough for two batches and a rest, for every awkward text, and for a chunk
// size that divides neither.
var fewRows = sizes{lines: 3_317, orders: 237}

// newOrders returns n orders with their items.
func newOrders(n int) []order {
	items := newItems(n * itemsPerOrder)
	orders := make([]order, n)
	for i := range orders {
		orders[i] = order{
			ID:        firstOrder + types.Snowflake(i),
			Number:    fmt.Sprintf("2026-%06d", i),
			Total:     int64(i) * 1001,
			CreatedAt: epoch.Add(time.Duration(i) * time.Second),
			Items:     items[i*itemsPerOrder : (i+1)*itemsPerOrder : (i+1)*itemsPerOrder],
		}
	}
	return orders
}

// allItems returns the items of all orders.
func allItems(orders []order) []item {
	var items []item
	for i := range orders {
		items = append(items, orders[i].Items...)
	}
	return items
}

// A counter is a source of keys that costs nothing.
type counter struct{ last types.Snowflake }

// Next is for sqlxhelper.
func (c *counter) Next(context.Context) (types.Snowflake, error) {
	c.last++
	return c.last, nil
}

// Fill is preferred by sqlxhelper.
func (c *counter) Fill(_ context.Context, ids []types.Snowflake) error {
	for i := range ids {
		c.last++
		ids[i] = c.last
	}
	return nil
}
