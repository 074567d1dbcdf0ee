package main

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"slices"

	"github.com/snowkey/snowkey/types"
)

// verified is what a verification without findings reports.
type verified struct {
	keys     int64  // in the whole file
	finished []int  // complete imports in the file, per store
	example  *Order // the first, read through the first store; nil: there is none
}

// verifyAll reads back what was just written, checks it against the input, and
// then checks the whole file.
func verifyAll(ctx context.Context, db *sql.DB, writers []*writer, d *dataset) (v verified, err error) {
	for _, w := range writers {
		stored, err := w.read(ctx, w.imp.ID)
		if err == nil {
			err = verifyImport(d, stored)
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
		v.finished = append(v.finished, finished)
	}
	if err := verifyForeignKeys(ctx, db); err != nil {
		return v, err
	}
	v.keys, err = countKeys(ctx, db, writers)
	return v, err
}

// verifyImport compares what a store has read back with what the files say. It
// follows every foreign key to the row that it stands for.
func verifyImport(d *dataset, stored rows) error {
	got := stored.withoutKeys()
	if err := cmp.Or(
		compare("customer", got.customers, d.customers, func(c Customer) any { return c.Code }),
		compare("product", got.products, d.products, func(p Product) any { return p.Number }),
		compare("order", got.orders, d.orders, func(o Order) any { return o.Number }),
	); err != nil {
		return err
	}
	lines, sum := int64(0), new(big.Rat)
	for _, o := range got.orders {
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

// compare compares stored rows with those of the input, one by one.
func compare[T any](kind string, stored, input []T, name func(T) any) error {
	if len(stored) != len(input) {
		return fmt.Errorf("%d %ss are stored, the input has %d", len(stored), kind, len(input))
	}
	for i, want := range input {
		if got := stored[i]; !reflect.DeepEqual(got, want) {
			return fmt.Errorf("%s %v is stored as %s, the input says %s", kind, name(want), asJSON(got), asJSON(want))
		}
	}
	return nil
}

// withoutKeys returns a copy of the rows as the input has them: without keys, and
// with codes and numbers in the place of foreign keys. A foreign key that leads to
// no row of the import stays, and so differs from the input.
func (r rows) withoutKeys() rows {
	customers, products := map[types.Snowflake]string{}, map[types.Snowflake]int64{}
	plain := rows{slices.Clone(r.customers), slices.Clone(r.products), slices.Clone(r.orders)}
	for i := range plain.customers {
		c := &plain.customers[i]
		customers[c.ID] = c.Code
		c.ID, c.ImportID = 0, 0
	}
	for i := range plain.products {
		p := &plain.products[i]
		products[p.ID] = p.Number
		p.ID, p.ImportID = 0, 0
	}
	for i := range plain.orders {
		o := &plain.orders[i]
		if code, ok := customers[o.CustomerID]; ok {
			o.CustomerCode, o.CustomerID = code, 0
		}
		// Drivers may return a time in another zone: the same instant, but not equal.
		o.OrderedAt = o.OrderedAt.UTC()
		if o.ShippedAt != nil {
			shipped := o.ShippedAt.UTC()
			o.ShippedAt = &shipped
		}
		o.Items = append([]OrderItem(nil), o.Items...)
		for j := range o.Items {
			item := &o.Items[j]
			if number, ok := products[item.ProductID]; ok {
				item.ProductNumber, item.ProductID = number, 0
			}
			if item.OrderID == o.ID {
				item.OrderID = 0
			}
			item.ID = 0
		}
		o.ID, o.ImportID = 0, 0
	}
	return plain
}

// allTables are the names, without the prefix, of what each store keeps.
var allTables = [...]string{"imports", "customers", "products", "orders", "order_items"}

// countKeys returns how many keys are in all tables of both stores. It returns an
// error if one is there twice or missing.
func countKeys(ctx context.Context, db *sql.DB, writers []*writer) (int64, error) {
	union := ""
	for _, w := range writers {
		for _, table := range allTables {
			if union != "" {
				union += " UNION ALL "
			}
			union += "SELECT id FROM " + w.prefix() + table
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

// countFinished returns how many imports of a store are complete. It returns an
// error if one no longer has the orders, lines and total that it ended with.
func countFinished(ctx context.Context, db *sql.DB, w *writer) (finished int, err error) {
	p := w.prefix()
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

// asJSON renders a value for an error: fmt would print the addresses of
// optional fields.
func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
