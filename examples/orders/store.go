package main

import (
	"context"

	"github.com/snowkey/snowkey/types"
)

// A store writes one import through one library and reads it back.
type store interface {
	// name is what people call the library.
	name() string
	// prefix begins the names of the store's tables.
	prefix() string
	// begin writes the import's own row, all customers and all products, in
	// one transaction.
	begin(context.Context, *dataset) error
	// write writes one order with all its lines, in one transaction. Whatever
	// the error, nothing of the order is in the database, unless the commit
	// itself was sent and its answer lost.
	write(context.Context, order) error
	// finish notes that the import is complete, and what it holds.
	finish(context.Context, totals) error
	// read returns everything that the import holds now.
	read(context.Context) (*contents, error)
	// importID is the key of the import; zero before begin.
	importID() types.Snowflake
}

// totals sum up an import.
type totals struct {
	orders, lines int64
	total         Money
}

// contents are an import as a store holds it, with the keys that tie it together.
type contents struct {
	customers map[types.Snowflake]customer
	products  map[types.Snowflake]product
	orders    []storedOrder // by key, which is the order in which they were written
}

// A storedOrder is an order whose customer and products are known by key only:
// the order's CustomerCode and the lines' ProductNumber are left empty.
type storedOrder struct {
	order
	id, customerID types.Snowflake
	lines          []lineKeys // of order.Lines, one for one
}

type lineKeys struct {
	id, orderID, productID types.Snowflake
}
