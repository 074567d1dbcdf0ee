package main

import (
	"context"
	"slices"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/types"
)

// A store writes and reads through one library.
type store interface {
	// name is what people call the library.
	name() string
	// prefix begins the names of the store's tables.
	prefix() string
	// begin writes an import, its customers and its products in one transaction.
	begin(context.Context, *Import, []Customer, []Product) error
	// order writes one order with all its items in one transaction. After an
	// error nothing of the order is in the database, unless the answer to the
	// commit was lost.
	order(context.Context, *Order) error
	// finish updates the import's row.
	finish(context.Context, *Import) error
	// read returns all rows of an import.
	read(context.Context, types.Snowflake) (rows, error)
}

// A writer writes one import through a store. It puts keys in the place of the
// input's codes and numbers.
type writer struct {
	store
	keys      *core.Generator
	imp       Import                     // its ID is zero before begin
	customers map[string]types.Snowflake // key by code
	products  map[int64]types.Snowflake  // key by number
	written   int                        // orders
}

// begin writes all customers and all products.
func (w *writer) begin(ctx context.Context, d *dataset) error {
	// The key of the import is known before its row is written, so the other rows
	// can refer to it. Keys that are zero are set by the plugin or the helper.
	id, err := w.keys.Next(ctx)
	if err != nil {
		return err
	}
	imp := Import{Model: types.Model{ID: id}, Source: d.source}
	customers, products := slices.Clone(d.customers), slices.Clone(d.products)
	for i := range customers {
		customers[i].ImportID = id
	}
	for i := range products {
		products[i].ImportID = id
	}
	if err := w.store.begin(ctx, &imp, customers, products); err != nil {
		return err
	}
	w.imp, w.customers, w.products = imp, map[string]types.Snowflake{}, map[int64]types.Snowflake{}
	for _, c := range customers {
		w.customers[c.Code] = c.ID
	}
	for _, p := range products {
		w.products[p.Number] = p.ID
	}
	return nil
}

// order writes one order of the input.
func (w *writer) order(ctx context.Context, o Order) error {
	o.ImportID, o.CustomerID = w.imp.ID, w.customers[o.CustomerCode]
	o.Items = slices.Clone(o.Items) // the input stays without keys, for the next store
	for i := range o.Items {
		o.Items[i].ProductID = w.products[o.Items[i].ProductNumber]
	}
	if err := w.store.order(ctx, &o); err != nil {
		return err
	}
	w.written++
	return nil
}
