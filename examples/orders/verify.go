package main

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/snowkey/snowkey/types"
)

// verified is what a verification without findings reports.
type verified struct {
	keys     int64  // in the whole file
	finished string // complete imports in the file, per store
	example  *Order // the first, read through the first store; nil: there is none
}

// verifyAll reads back what was just written, checks it against the input, and
// then checks the whole file.
func verifyAll(ctx context.Context, db *sql.DB, writers []*writer, d *dataset) (v verified, err error) {
	var finishes []string
	for _, w := range writers {
		stored, err := w.read(ctx, w.imp.ID)
		if err == nil {
			err = verifyImport(d, w.imp.ID, stored)
		}
		if err != nil {
			return v, fmt.Errorf("%s: %w", w.name(), err)
		}
		if v.example == nil && len(stored.orders) > 0 {
			v.example = &stored.orders[0]
		}
		finished, err := countFinished(ctx, db, w)
		if err != nil {
			return v, fmt.Errorf("%s: %w", w.name(), err)
		}
		finishes = append(finishes, fmt.Sprintf("%s %d", w.name(), finished))
	}
	if err := verifyForeignKeys(ctx, db); err != nil {
		return v, err
	}
	v.finished = strings.Join(finishes, ", ")
	v.keys, err = countKeys(ctx, db, writers)
	return v, err
}

// verifyImport compares what a store has read back with what the files say, foreign keys
// included.
func verifyImport(d *dataset, importID types.Snowflake, stored rows) error {
	want := expected(d, importID, stored)
	if err := cmp.Or(
		compare("customer", stored.customers, want.customers, func(c Customer) any { return c.Code }),
		compare("product", stored.products, want.products, func(p Product) any { return p.Number }),
		compare("order", stored.orders, want.orders, func(o Order) any { return o.Number }),
	); err != nil {
		return err
	}
	lines, sum := int64(0), new(big.Rat)
	for _, o := range stored.orders {
		lines += int64(len(o.Items))
		sum.Add(sum, big.NewRat(int64(o.Total), int64(100*cent)))
	}
	if lines != d.totals.lines {
		return fmt.Errorf("%d order lines are stored, the input has %d", lines, d.totals.lines)
	}
	// Both sides of the comparison above come from our integer arithmetic. The
	// exact total does not.
	if sum.Cmp(d.exact) != 0 {
		return fmt.Errorf("the orders add up to %s, the input to %s", sum.FloatString(4), d.exact.FloatString(4))
	}
	return nil
}

// compare compares stored rows with those of the input, one by one, as JSON: with ==
// a time in another zone would differ, though it is the same moment.
func compare[T any](kind string, stored, input []T, name func(T) any) error {
	if len(stored) != len(input) {
		return fmt.Errorf("%d %ss are stored, the input has %d", len(stored), kind, len(input))
	}
	for i := range input {
		if got, want := asJSON(stored[i]), asJSON(input[i]); got != want {
			return fmt.Errorf("%s %v is stored as %s, the input says %s", kind, name(input[i]), got, want)
		}
	}
	return nil
}

// expected returns the rows of the input with the keys of the stored rows, and with
// the foreign keys that these must have.
func expected(d *dataset, importID types.Snowflake, stored rows) rows {
	customers, products := map[string]types.Snowflake{}, map[int64]types.Snowflake{}
	want := rows{slices.Clone(d.customers), slices.Clone(d.products), slices.Clone(d.orders)}
	for i := range min(len(want.customers), len(stored.customers)) {
		c := &want.customers[i]
		c.ID, c.ImportID = stored.customers[i].ID, importID
		customers[c.Code] = c.ID
	}
	for i := range min(len(want.products), len(stored.products)) {
		p := &want.products[i]
		p.ID, p.ImportID = stored.products[i].ID, importID
		products[p.Number] = p.ID
	}
	for i := range min(len(want.orders), len(stored.orders)) {
		o, s := &want.orders[i], stored.orders[i]
		o.ID, o.ImportID, o.CustomerID, o.CustomerCode = s.ID, importID, customers[o.CustomerCode], ""
		o.Items = slices.Clone(o.Items)
		for j := range min(len(o.Items), len(s.Items)) {
			item := &o.Items[j]
			item.ID, item.OrderID, item.ProductID, item.ProductNumber = s.Items[j].ID, s.ID, products[item.ProductNumber], 0
		}
	}
	return want
}

// allTables are the names, without the prefix, of what each store keeps.
var allTables = [...]string{"imports", "customers", "products", "orders", "order_items"}

// countKeys returns how many keys are in all tables of both stores. It returns an
// error if one is there twice or missing.
func countKeys(ctx context.Context, db *sql.DB, writers []*writer) (int64, error) {
	var tables []string
	for _, w := range writers {
		for _, table := range allTables {
			tables = append(tables, "SELECT id FROM "+w.prefix()+table)
		}
	}
	union := strings.Join(tables, " UNION ALL ")
	// count(*) counts NULL and count(DISTINCT id) does not: SQLite lets a
	// primary key that is not INTEGER be NULL.
	var keys, distinct int64
	err := db.QueryRowContext(ctx, "SELECT count(*), count(DISTINCT id) FROM ("+union+")").Scan(&keys, &distinct)
	if err == nil && keys != distinct {
		err = fmt.Errorf("the file holds %d rows, but %d distinct keys", keys, distinct)
	}
	return keys, err
}

// verifyForeignKeys asks SQLite for rows anywhere in the file whose foreign key
// leads nowhere. Lines without an order would not show in verifyImport.
func verifyForeignKeys(ctx context.Context, db *sql.DB) error {
	var broken int64
	err := db.QueryRowContext(ctx, "SELECT count(*) FROM pragma_foreign_key_check").Scan(&broken)
	if err == nil && broken > 0 {
		err = fmt.Errorf("%d rows point at a row that is not there", broken)
	}
	return err
}

// countFinished returns how many imports of a store are complete. It returns an
// error if one no longer has the orders, lines and total that it ended with.
func countFinished(ctx context.Context, db *sql.DB, w *writer) (finished int, err error) {
	query := strings.ReplaceAll(`
		SELECT count(*), count(CASE WHEN orders = o AND lines = l AND total = lt AND total = ot THEN 1 END) FROM (
			SELECT orders, lines, total,
				(SELECT count(*) FROM $orders o WHERE o.import_id = i.id) AS o,
				(SELECT coalesce(sum(o.total), 0) FROM $orders o WHERE o.import_id = i.id) AS ot,
				(SELECT count(*) FROM $order_items l JOIN $orders o ON o.id = l.order_id WHERE o.import_id = i.id) AS l,
				(SELECT coalesce(sum(l.total), 0) FROM $order_items l JOIN $orders o ON o.id = l.order_id WHERE o.import_id = i.id) AS lt
			FROM $imports i WHERE finished_at IS NOT NULL)`, "$", w.prefix())
	var complete int
	err = db.QueryRowContext(ctx, query).Scan(&finished, &complete)
	if err == nil && complete != finished {
		return 0, fmt.Errorf("%d of %d finished imports no longer have the orders, lines and total that they ended with", finished-complete, finished)
	}
	return finished, err
}

// asJSON renders a row, which always succeeds.
func asJSON(row any) string {
	text, _ := json.Marshal(row)
	return string(text)
}
