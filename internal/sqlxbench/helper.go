package main

import (
	"context"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/sqlxhelper"
)

// helpers returns what sqlxhelper does with database/sql alone.
func helpers() []variant {
	return []variant{
		{lines, "snowkey", "**snowkey** `InsertMany`", nil, false, helperLines()},
		{graph, "snowkey", "**snowkey** `InsertGraph`", nil, false, helperGraph()},
		{graph, "snowkey-two", "snowkey, two `InsertMany` of rows that have their keys", nil, false, helperTwo()},
	}
}

// copying returns what sqlxhelper does with the module for COPY.
func copying() []variant {
	options := copyOptions()
	pgxOnly := []string{"PostgreSQL-pgx"}
	return []variant{
		{lines, "snowkey-copy", "**snowkey** `InsertMany`, with pgxcopy", pgxOnly, false, helperLines(options...)},
		{graph, "snowkey-copy", "**snowkey** `InsertGraph`, with pgxcopy", pgxOnly, false, helperGraph(options...)},
		{graph, "snowkey-two-copy", "snowkey, two `InsertMany` of rows that have their keys, with pgxcopy", pgxOnly, false, helperTwo(options...)},
	}
}

// helperLines inserts rows without keys. As in a program, one Helper serves all rounds.
// It learns types and tables in the first, which does not count.
func helperLines(options ...sqlxhelper.Option) func(context.Context, *job) (load, error) {
	keys := new(counter)
	h := sqlxhelper.New(keys, options...)
	return func(ctx context.Context, j *job) (load, error) {
		rows := keyedItems(j.items)
		for i := range rows {
			rows[i].ID = 0
		}
		keys.last = firstItem
		return load{
			run: func() error {
				return j.inTx(ctx, func(tx *sqlx.Tx) error { return h.InsertMany(ctx, tx, "order_items", rows) })
			},
			stored: func() ([]order, []item) { return nil, plainItems(rows) },
		}, nil
	}
}

// helperGraph inserts orders and items that have neither keys nor foreign keys.
func helperGraph(options ...sqlxhelper.Option) func(context.Context, *job) (load, error) {
	keys := new(counter)
	h := sqlxhelper.New(keys, options...)
	return func(ctx context.Context, j *job) (load, error) {
		rows := keyedOrders(j.orders)
		for i := range rows {
			rows[i].ID = 0
			for k := range rows[i].Items {
				rows[i].Items[k].ID, rows[i].Items[k].OrderID = 0, 0
			}
		}
		keys.last = firstOrder
		return load{
			run: func() error {
				return j.inTx(ctx, func(tx *sqlx.Tx) error { return h.InsertGraph(ctx, tx, "orders", rows) })
			},
			stored: func() ([]order, []item) {
				orders := plainOrders(rows)
				return orders, allItems(orders)
			},
		}, nil
	}
}

// helperTwo is what InsertGraph is compared with: the same rows, with all keys set
// and the items in one slice before the clock starts.
func helperTwo(options ...sqlxhelper.Option) func(context.Context, *job) (load, error) {
	h := sqlxhelper.New(nil, options...)
	return func(ctx context.Context, j *job) (load, error) {
		orders, items := keyedOrders(j.orders), keyedItems(j.items)
		return load{run: func() error {
			return j.inTx(ctx, func(tx *sqlx.Tx) error {
				if err := h.InsertMany(ctx, tx, "orders", orders); err != nil {
					return err
				}
				return h.InsertMany(ctx, tx, "order_items", items)
			})
		}}, nil
	}
}
