package main

import (
	"context"
	"io/fs"
	"iter"
	"math"
	"strings"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/examples/internal/csvload"
	"github.com/snowkey/snowkey/types"
)

// A table is where the rows of one file go.
type table[R any] struct {
	file, name string
	columns    []string
	parse      func(*csvload.File, types.Model) R
}

// A chunk is some rows of one file. Their keys are set. Their foreign keys lead to rows of
// earlier files.
type chunk[R any] struct {
	rows []R
	read int64 // bytes of all files up to here
}

// chunkRows is how many rows the reader hands over at a time. One by one would cost more
// than to read them.
const chunkRows = 1000

// A reader turns a folder of CSV files into rows with keys.
type reader struct {
	files fs.FS
	keys  *core.Generator
	read  int64 // bytes of the files that are done

	// A load keeps these in memory: an entry for each customer, product and order,
	// and nothing for an order line.
	customers csvload.Index[string, types.Snowflake]
	products  csvload.Index[int64, types.Snowflake]
	orders    csvload.Index[int64, types.Snowflake]
}

func newReader(files fs.FS, keys *core.Generator) *reader {
	return &reader{
		files:     files,
		keys:      keys,
		customers: csvload.NewIndex[string, types.Snowflake](csvload.CustomersFile, "customer"),
		products:  csvload.NewIndex[int64, types.Snowflake](csvload.ProductsFile, "product"),
		orders:    csvload.NewIndex[int64, types.Snowflake](csvload.OrdersFile, "order"),
	}
}

// size returns how many bytes the four files have.
func size(files fs.FS) (total int64, err error) {
	for _, name := range []string{csvload.CustomersFile, csvload.ProductsFile, csvload.OrdersFile, csvload.LinesFile} {
		info, err := fs.Stat(files, name)
		if err != nil {
			return 0, err
		}
		total += info.Size()
	}
	return total, nil
}

// chunks reads one file, after those that it refers to. It ends at the first row that is
// wrong, with the error.
//
// Every row gets its key here, before any SQL, so the reader can run ahead of the
// database: it gives an order line the key of an order that is not inserted yet.
func chunks[R any](ctx context.Context, r *reader, t table[R]) iter.Seq2[chunk[R], error] {
	return func(yield func(chunk[R], error) bool) {
		f, err := csvload.Open(r.files, t.file, t.columns...)
		if err != nil {
			yield(chunk[R]{}, err)
			return
		}
		defer f.Close()
		rows := make([]R, 0, chunkRows)
		for f.Next() {
			id, err := r.keys.Next(ctx)
			if err != nil {
				yield(chunk[R]{}, err)
				return
			}
			if rows = append(rows, t.parse(f, types.Model{ID: id})); len(rows) == chunkRows && f.Err() == nil {
				if !yield(chunk[R]{rows, r.read + f.Offset()}, nil) {
					return
				}
				rows = make([]R, 0, chunkRows)
			}
		}
		if err := f.Err(); err != nil {
			yield(chunk[R]{}, err)
			return
		}
		r.read += f.Offset()
		yield(chunk[R]{rows, r.read}, nil)
	}
}

// lineOf returns the line of a file in which a row begins, counted from 0. It reads the
// file again: only a load that fails wants to know.
func lineOf(files fs.FS, file string, row int) (line int, err error) {
	f, err := csvload.Open(files, file)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for range row + 1 {
		f.Next()
	}
	return f.Line(), f.Err()
}

func (r *reader) customerTable() table[customer] {
	return table[customer]{csvload.CustomersFile, "customers", []string{"customerID", "companyName", "city", "country"}, r.customer}
}

func (r *reader) productTable() table[product] {
	return table[product]{csvload.ProductsFile, "products", []string{"productID", "productName", "unitPrice"}, r.product}
}

func (r *reader) orderTable() table[order] {
	return table[order]{
		csvload.OrdersFile, "orders",
		[]string{"orderID", "customerID", "orderDate", "shippedDate", "freight", "shipCity", "shipCountry"}, r.order,
	}
}

func (r *reader) lineTable() table[orderLine] {
	return table[orderLine]{
		csvload.LinesFile, "order_lines",
		[]string{"orderID", "productID", "unitPrice", "quantity", "discount"}, r.orderLine,
	}
}

func (r *reader) customer(f *csvload.File, m types.Model) customer {
	c := customer{
		Model:   m,
		Code:    f.Text("customerID"),
		Company: f.Text("companyName"),
		City:    f.Optional("city"),
		Country: f.Optional("country"),
	}
	// A clone, because the fields of a row are parts of one string, and the index
	// would keep all of it.
	r.customers.Add(f, strings.Clone(c.Code), m.ID)
	return c
}

func (r *reader) product(f *csvload.File, m types.Model) product {
	p := product{
		Model:          m,
		Number:         f.Integer("productID", math.MaxInt32),
		Name:           f.Text("productName"),
		UnitPriceCents: f.Hundredths("unitPrice", csvload.MaxCents),
	}
	r.products.Add(f, p.Number, m.ID)
	return p
}

func (r *reader) order(f *csvload.File, m types.Model) order {
	o := order{
		Model:        m,
		Number:       f.Integer("orderID", math.MaxInt64),
		CustomerID:   r.customers.Find(f, f.Text("customerID")),
		OrderedAt:    f.Time("orderDate"),
		ShippedAt:    f.OptionalTime("shippedDate"),
		FreightCents: f.Hundredths("freight", csvload.MaxCents),
		ShipCity:     f.Optional("shipCity"),
		ShipCountry:  f.Optional("shipCountry"),
	}
	r.orders.Add(f, o.Number, m.ID)
	return o
}

func (r *reader) orderLine(f *csvload.File, m types.Model) orderLine {
	return orderLine{
		Model:           m,
		OrderID:         r.orders.Find(f, f.Integer("orderID", math.MaxInt64)),
		ProductID:       r.products.Find(f, f.Integer("productID", math.MaxInt32)),
		UnitPriceCents:  f.Hundredths("unitPrice", csvload.MaxCents),
		Quantity:        f.Integer("quantity", csvload.MaxQuantity),
		DiscountPercent: f.Hundredths("discount", 100),
	}
}

// ahead runs seq in a goroutine of its own, a few items ahead of the loop over
// the sequence that it returns. The goroutine ends before the loop does.
func ahead[T any](seq iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		type item struct {
			value T
			err   error
		}
		items, stop := make(chan item, 4), make(chan struct{})
		go func() {
			defer close(items)
			for value, err := range seq {
				select {
				case items <- item{value, err}:
				case <-stop:
					return
				}
			}
		}()
		defer func() {
			close(stop)
			for range items { // until the goroutine closes it
			}
		}()
		for i := range items {
			if !yield(i.value, i.err) {
				return
			}
		}
	}
}
