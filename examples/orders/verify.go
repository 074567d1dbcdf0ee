package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"

	"github.com/snowkey/snowkey/types"
)

// verified is what there is to tell after a verification that found nothing.
type verified struct {
	keys     int64 // in the whole file
	finished []int // complete imports in the file, per store
}

// verifyAll reads back what the stores have just written, checks it against
// the input, and then checks the whole file.
func verifyAll(ctx context.Context, db *sql.DB, stores []store, d *dataset) (verified, error) {
	var v verified
	for _, s := range stores {
		stored, err := s.read(ctx)
		if err == nil {
			err = verifyImport(d, stored)
		}
		if err != nil {
			return verified{}, fmt.Errorf("%s: %w", s.name(), err)
		}
		finished, err := countFinished(ctx, db, s)
		if err != nil {
			return verified{}, fmt.Errorf("%s: %w", s.name(), err)
		}
		v.finished = append(v.finished, finished)
	}
	if err := verifyForeignKeys(ctx, db); err != nil {
		return verified{}, err
	}
	var err error
	if v.keys, err = countKeys(ctx, db, stores); err != nil {
		return verified{}, err
	}
	return v, nil
}

// verifyImport compares what a store has read back with what the files say. It
// follows every key back to what it stands for, and then the values must be
// equal, row by row, and the totals too.
func verifyImport(d *dataset, c *contents) error {
	if err := verifyCustomers(d, c); err != nil {
		return err
	}
	if err := verifyProducts(d, c); err != nil {
		return err
	}
	if len(c.orders) != len(d.orders) {
		return fmt.Errorf("%d orders are stored, the input has %d", len(c.orders), len(d.orders))
	}
	lines, sum := 0, new(big.Rat)
	for i, stored := range c.orders {
		want, err := d.order(i)
		if err != nil {
			return err
		}
		got, err := c.resolve(stored)
		if err != nil {
			return err
		}
		if !reflect.DeepEqual(got, want) {
			return fmt.Errorf("order %d is stored as %s, the input says %s", want.Number, asJSON(got), asJSON(want))
		}
		lines += len(got.Lines)
		sum.Add(sum, big.NewRat(int64(got.Total), int64(100*cent)))
	}
	if lines != d.lines {
		return fmt.Errorf("%d order lines are stored, the input has %d", lines, d.lines)
	}
	return verifyTotal(d, sum)
}

// verifyTotal compares the total of the stored orders with that of the input.
// All that verifyImport compares row by row went through our own integer
// arithmetic on both sides; the total of the input did not.
func verifyTotal(d *dataset, sum *big.Rat) error {
	exact, err := d.exactTotal()
	if err != nil {
		return err
	}
	if sum.Cmp(exact) != 0 {
		return fmt.Errorf("the orders add up to %s, the input to %s", sum.FloatString(4), exact.FloatString(4))
	}
	return nil
}

func verifyCustomers(d *dataset, c *contents) error {
	if len(c.customers) != len(d.customers) {
		return fmt.Errorf("%d customers are stored, the input has %d", len(c.customers), len(d.customers))
	}
	stored := make(map[string]customer, len(c.customers))
	for _, got := range c.customers {
		stored[got.Code] = got
	}
	for _, want := range d.customers {
		if got := stored[want.Code]; !reflect.DeepEqual(got, want) {
			return fmt.Errorf("customer %s is stored as %s, the input says %s", want.Code, asJSON(got), asJSON(want))
		}
	}
	return nil
}

func verifyProducts(d *dataset, c *contents) error {
	if len(c.products) != len(d.products) {
		return fmt.Errorf("%d products are stored, the input has %d", len(c.products), len(d.products))
	}
	stored := make(map[int64]product, len(c.products))
	for _, got := range c.products {
		stored[got.Number] = got
	}
	for _, want := range d.products {
		if got := stored[want.Number]; got != want {
			return fmt.Errorf("product %d is stored as %s, the input says %s", want.Number, asJSON(got), asJSON(want))
		}
	}
	return nil
}

// resolve puts the customer's code and the products' numbers in the place of
// their keys.
func (c *contents) resolve(s storedOrder) (order, error) {
	customer, ok := c.customers[s.customerID]
	if !ok {
		return order{}, fmt.Errorf("order %d has customer key %d, which is no customer of the import", s.Number, s.customerID)
	}
	o := s.order
	o.CustomerCode = customer.Code
	// Drivers may return a time in another zone: the same instant, but not equal.
	o.OrderedAt = o.OrderedAt.UTC()
	if o.ShippedAt != nil {
		shipped := o.ShippedAt.UTC()
		o.ShippedAt = &shipped
	}
	for i, keys := range s.lines {
		if keys.orderID != s.id {
			return order{}, fmt.Errorf("line %d of order %d has order key %d, want %d", i+1, s.Number, keys.orderID, s.id)
		}
		product, ok := c.products[keys.productID]
		if !ok {
			return order{}, fmt.Errorf("line %d of order %d has product key %d, which is no product of the import", i+1, s.Number, keys.productID)
		}
		o.Lines[i].ProductNumber = product.Number
	}
	return o, nil
}

// exactTotal adds up the lines of the input once more, from their text and in
// rational numbers.
func (d *dataset) exactTotal() (*big.Rat, error) {
	sum, one := new(big.Rat), big.NewRat(1, 1)
	for _, rows := range d.orders {
		for _, r := range rows.lines {
			s := r.scan()
			product := big.NewRat(1, 1)
			for _, column := range []string{"unitPrice", "quantity", "discount"} {
				factor, ok := new(big.Rat).SetString(s.text(column))
				if !ok {
					s.fail("%s is not a number", column)
					return nil, s.err
				}
				if column == "discount" {
					factor.Sub(one, factor)
				}
				product.Mul(product, factor)
			}
			sum.Add(sum, product)
		}
	}
	return sum, nil
}

// allTables are the names, without the prefix, of what each store keeps.
var allTables = [...]string{"imports", "customers", "products", "orders", "order_items"}

// countKeys returns how many keys there are in all tables of both stores, of
// this and all earlier imports, and an error if one is there twice or missing.
func countKeys(ctx context.Context, db *sql.DB, stores []store) (int64, error) {
	union := ""
	for _, s := range stores {
		for _, table := range allTables {
			if union != "" {
				union += " UNION ALL "
			}
			union += "SELECT id FROM " + s.prefix() + table
		}
	}
	// count(*) counts NULL and count(DISTINCT id) does not: SQLite lets a
	// primary key that is not INTEGER be NULL.
	var keys, distinct int64
	err := db.QueryRowContext(ctx, "SELECT count(*), count(DISTINCT id) FROM ("+union+")").Scan(&keys, &distinct)
	if err != nil {
		return 0, err
	}
	if keys != distinct {
		return 0, fmt.Errorf("the file holds %d rows, but %d distinct keys", keys, distinct)
	}
	return keys, nil
}

// verifyForeignKeys asks SQLite for rows anywhere in the file whose foreign key
// leads nowhere. Lines without an order would not show in verifyImport.
func verifyForeignKeys(ctx context.Context, db *sql.DB) error {
	var (
		table, parent string
		rowID         sql.NullInt64
		constraint    int64
	)
	err := db.QueryRowContext(ctx, "PRAGMA foreign_key_check").Scan(&table, &rowID, &parent, &constraint)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("row %d of %s points at a row of %s that is not there", rowID.Int64, table, parent)
}

// countFinished returns how many imports of a store are complete, and an error
// if one of them has not the orders, lines and total that it ended with.
func countFinished(ctx context.Context, db *sql.DB, s store) (finished int, err error) {
	p := s.prefix()
	rows, err := db.QueryContext(ctx, `
		SELECT id, orders, lines, total,
			(SELECT count(*) FROM `+p+`orders o WHERE o.import_id = i.id),
			(SELECT count(*) FROM `+p+`order_items l JOIN `+p+`orders o ON o.id = l.order_id WHERE o.import_id = i.id),
			(SELECT coalesce(sum(l.total), 0) FROM `+p+`order_items l JOIN `+p+`orders o ON o.id = l.order_id WHERE o.import_id = i.id),
			(SELECT coalesce(sum(o.total), 0) FROM `+p+`orders o WHERE o.import_id = i.id)
		FROM `+p+`imports i WHERE finished_at IS NOT NULL`)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var (
			id         types.Snowflake
			ended, now totals
			ofOrders   Money
		)
		err := rows.Scan(&id, &ended.orders, &ended.lines, &ended.total, &now.orders, &now.lines, &now.total, &ofOrders)
		if err != nil {
			return 0, err
		}
		if now != ended {
			return 0, fmt.Errorf("import %d ended with %v, and now has %v", id, ended, now)
		}
		if ofOrders != now.total {
			return 0, fmt.Errorf("the orders of import %d add up to %s, their lines to %s", id, ofOrders, now.total)
		}
		finished++
	}
	return finished, rows.Err()
}

func (t totals) String() string {
	return fmt.Sprintf("%d orders, %d lines, total %s", t.orders, t.lines, t.total)
}

// asJSON renders a value for an error: fmt would print the addresses of
// optional fields.
func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
