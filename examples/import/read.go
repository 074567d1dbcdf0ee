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

// A batch is some rows of one file, ready to be inserted. Their keys are set. Their
// foreign keys lead to rows of earlier batches.
type batch struct {
	file, table string
	rows        any   // []customer, []product, []order or []orderLine
	lines       []int // where row i is in the file
	read        int64 // bytes of the file up to here
	last        bool  // of its file
}

// batchRows is how many rows go into a batch. The speed is the same from 500 to
// 10,000. A batch takes some milliseconds, and Ctrl-C waits for its end.
const batchRows = 2000

// A reader turns a folder of CSV files into batches.
type reader struct {
	files fs.FS
	keys  *core.Generator

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

// batches reads the files one after the other, each after those that it refers
// to. It ends at the first row that is wrong, which comes with the error.
//
// Every row gets its key here, before any SQL. So the reader can run ahead of the
// database: it gives an order line the key of an order that is not inserted yet.
func (r *reader) batches(ctx context.Context) iter.Seq2[batch, error] {
	return func(yield func(batch, error) bool) {
		_ = readFile(ctx, r, yield, csvload.CustomersFile, "customers", r.customer,
			"customerID", "companyName", "city", "country") &&
			readFile(ctx, r, yield, csvload.ProductsFile, "products", r.product,
				"productID", "productName", "unitPrice") &&
			readFile(ctx, r, yield, csvload.OrdersFile, "orders", r.order,
				"orderID", "customerID", "orderDate", "shippedDate", "freight", "shipCity", "shipCountry") &&
			readFile(ctx, r, yield, csvload.LinesFile, "order_lines", r.orderLine,
				"orderID", "productID", "unitPrice", "quantity", "discount")
	}
}

// readFile yields the batches of one file, and reports whether to go on.
func readFile[R any](ctx context.Context, r *reader, yield func(batch, error) bool, file, table string, parse func(*csvload.File, types.Model) R, columns ...string) bool {
	f, err := csvload.Open(r.files, file, columns...)
	if err != nil {
		yield(batch{}, err)
		return false
	}
	defer f.Close()
	for last := false; !last; {
		rows, lines := make([]R, 0, batchRows), make([]int, 0, batchRows)
		for len(rows) < batchRows && !last {
			if last = !f.Next(); last {
				break
			}
			id, err := r.keys.Next(ctx)
			if err != nil {
				yield(batch{}, err)
				return false
			}
			rows, lines = append(rows, parse(f, types.Model{ID: id})), append(lines, f.Line())
		}
		if err := f.Err(); err != nil {
			yield(batch{}, err)
			return false
		}
		if !yield(batch{file, table, rows, lines, f.Offset(), last}, nil) {
			return false
		}
	}
	return true
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

// ahead runs seq in a goroutine of its own, a few batches ahead of the loop over
// the sequence that it returns. The goroutine ends before the loop does.
func ahead(seq iter.Seq2[batch, error]) iter.Seq2[batch, error] {
	return func(yield func(batch, error) bool) {
		type item struct {
			batch batch
			err   error
		}
		items, stop := make(chan item, 2), make(chan struct{})
		go func() {
			defer close(items)
			for b, err := range seq {
				select {
				case items <- item{b, err}:
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
			if !yield(i.batch, i.err) {
				return
			}
		}
	}
}
