package main

import (
	"context"
	"database/sql"
	_ "embed" // for the schema

	"github.com/jmoiron/sqlx"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

//go:embed sqlxschema.sql
var sqlxSchema string

// A sqlxStore is a store that uses sqlx.
type sqlxStore struct {
	db     *sqlx.DB
	helper *sqlxhelper.Helper
}

// newSqlxStore creates the tables that are not there.
func newSqlxStore(ctx context.Context, conn *sql.DB, keys *core.Generator) (sqlxStore, error) {
	s := sqlxStore{sqlx.NewDb(conn, "sqlite3"), sqlxhelper.New(keys)}
	_, err := s.db.ExecContext(ctx, sqlxSchema)
	return s, err
}

func (sqlxStore) name() string   { return "sqlx" }
func (sqlxStore) prefix() string { return "sqlx_" }

func (s sqlxStore) begin(ctx context.Context, imp *Import, customers []Customer, products []Product) error {
	// InTx may run the function again. A row that has its key keeps it, so every
	// run writes the same rows.
	return sqlxhelper.InTx(ctx, s.db, nil, func(tx *sqlx.Tx) error {
		if err := s.helper.Insert(ctx, tx, "sqlx_imports", imp); err != nil {
			return err
		}
		if err := s.helper.InsertMany(ctx, tx, "sqlx_customers", customers); err != nil {
			return err
		}
		return s.helper.InsertMany(ctx, tx, "sqlx_products", products)
	})
}

func (s sqlxStore) order(ctx context.Context, o *Order) error {
	// InsertGraph alone is one transaction. InTx is where your second statement
	// goes.
	return sqlxhelper.InTx(ctx, s.db, nil, func(tx *sqlx.Tx) error {
		return s.helper.InsertGraph(ctx, tx, "sqlx_orders", o)
	})
}

func (s sqlxStore) finish(ctx context.Context, imp *Import) error {
	_, err := s.db.NamedExecContext(ctx, `UPDATE sqlx_imports
		SET finished_at = :finished_at, orders = :orders, lines = :lines, total = :total WHERE id = :id`, imp)
	return err
}

func (s sqlxStore) read(ctx context.Context, importID types.Snowflake) (r rows, err error) {
	// By key: keys rise with time, so that is the order in which the rows were
	// written.
	var items []OrderItem
	for _, q := range []struct {
		into  any
		query string
	}{
		{&r.customers, "SELECT * FROM sqlx_customers WHERE import_id = ? ORDER BY id"},
		{&r.products, "SELECT * FROM sqlx_products WHERE import_id = ? ORDER BY id"},
		{&r.orders, "SELECT * FROM sqlx_orders WHERE import_id = ? ORDER BY id"},
		{&items, "SELECT * FROM sqlx_order_items WHERE order_id IN (SELECT id FROM sqlx_orders WHERE import_id = ?) ORDER BY id"},
	} {
		if err := s.db.SelectContext(ctx, q.into, q.query, importID); err != nil {
			return r, err
		}
	}
	itemsOf := make(map[types.Snowflake][]OrderItem, len(r.orders))
	for _, i := range items {
		itemsOf[i.OrderID] = append(itemsOf[i.OrderID], i)
	}
	for i := range r.orders {
		r.orders[i].Items = itemsOf[r.orders[i].ID]
	}
	return r, nil
}
