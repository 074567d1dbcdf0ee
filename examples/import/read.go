package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"math"
	"strings"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/types"
)

// The names of the four files.
const (
	customersFile = "customers.csv"
	productsFile  = "products.csv"
	ordersFile    = "orders.csv"
	linesFile     = "order-details.csv"
)

// The limits of the values.
const (
	maxQuantity = 100_000
	maxCents    = 1_000_000 * 100
)

// A batch is some rows of one file, ready to be inserted: their keys are set, and
// their foreign keys lead to rows of earlier batches.
type batch struct {
	file, table string
	rows        any   // []customer, []product, []order or []orderLine
	lines       []int // where row i is in the file
	read        int64 // bytes of the file up to here
	last        bool  // of its file
}

// batchRows is how many rows go into a batch. Between 500 and 10,000 the speed
// is the same; this many are inserted in some milliseconds, which is how often
// the progress can move and Ctrl-C is heard.
const batchRows = 2000

// A reader turns a folder of CSV files into batches.
type reader struct {
	files fs.FS
	keys  *core.Generator

	// What the rows so far are called in the files. This is what a load keeps in
	// memory: an entry for each customer, product and order, and nothing for an
	// order line.
	customers map[string]place
	products  map[int64]place
	orders    map[int64]place
}

// A place is where a row goes, and where it came from.
type place struct {
	key  types.Snowflake
	line int
}

func newReader(files fs.FS, keys *core.Generator) *reader {
	return &reader{
		files:     files,
		keys:      keys,
		customers: map[string]place{},
		products:  map[int64]place{},
		orders:    map[int64]place{},
	}
}

// size returns how many bytes the four files have.
func size(files fs.FS) (total int64, err error) {
	for _, name := range []string{customersFile, productsFile, ordersFile, linesFile} {
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
// Every row gets its key here, before any SQL. That is what lets the reader run
// ahead of the database: it can give an order line the key of an order that is
// not inserted yet.
func (r *reader) batches(ctx context.Context) iter.Seq2[batch, error] {
	return func(yield func(batch, error) bool) {
		_ = readFile(ctx, r, yield, customersFile, "customers", r.customer,
			"customerID", "companyName", "city", "country") &&
			readFile(ctx, r, yield, productsFile, "products", r.product,
				"productID", "productName", "unitPrice") &&
			readFile(ctx, r, yield, ordersFile, "orders", r.order,
				"orderID", "customerID", "orderDate", "shippedDate", "freight", "shipCity", "shipCountry") &&
			readFile(ctx, r, yield, linesFile, "order_lines", r.orderLine,
				"orderID", "productID", "unitPrice", "quantity", "discount")
	}
}

// readFile yields the batches of one file, and reports whether to go on.
func readFile[R any](ctx context.Context, r *reader, yield func(batch, error) bool, file, table string, parse func(*csvFile, types.Model) R, columns ...string) bool {
	f, err := openCSV(r.files, file, columns)
	if err != nil {
		yield(batch{}, err)
		return false
	}
	defer f.close()
	for last := false; !last; {
		rows, lines := make([]R, 0, batchRows), make([]int, 0, batchRows)
		for len(rows) < batchRows {
			err := f.next()
			if errors.Is(err, io.EOF) {
				last = true
				break
			}
			var row R
			if err == nil {
				var id types.Snowflake
				id, err = r.keys.Next(ctx)
				row = parse(f, types.Model{ID: id})
			}
			if err = errors.Join(err, f.err); err != nil {
				yield(batch{}, err)
				return false
			}
			rows, lines = append(rows, row), append(lines, f.line)
		}
		b := batch{
			file:  file,
			table: table,
			rows:  rows,
			lines: lines,
			read:  f.reader.InputOffset(),
			last:  last,
		}
		if !yield(b, nil) {
			return false
		}
	}
	return true
}

func (r *reader) customer(f *csvFile, m types.Model) customer {
	c := customer{
		Model:   m,
		Code:    f.text("customerID"),
		Company: f.text("companyName"),
		City:    f.optional("city"),
		Country: f.optional("country"),
	}
	// A clone, because the fields of a row are parts of one string, and the map
	// would keep all of it.
	enter(f, r.customers, "customer", strings.Clone(c.Code), m.ID)
	return c
}

func (r *reader) product(f *csvFile, m types.Model) product {
	p := product{
		Model:          m,
		Number:         f.integer("productID", math.MaxInt32),
		Name:           f.text("productName"),
		UnitPriceCents: f.hundredths("unitPrice", maxCents),
	}
	enter(f, r.products, "product", p.Number, m.ID)
	return p
}

func (r *reader) order(f *csvFile, m types.Model) order {
	o := order{
		Model:        m,
		Number:       f.integer("orderID", math.MaxInt64),
		CustomerID:   find(f, r.customers, customersFile, "customer", f.text("customerID")),
		OrderedAt:    f.time("orderDate"),
		ShippedAt:    f.optionalTime("shippedDate"),
		FreightCents: f.hundredths("freight", maxCents),
		ShipCity:     f.optional("shipCity"),
		ShipCountry:  f.optional("shipCountry"),
	}
	enter(f, r.orders, "order", o.Number, m.ID)
	return o
}

func (r *reader) orderLine(f *csvFile, m types.Model) orderLine {
	return orderLine{
		Model:           m,
		OrderID:         find(f, r.orders, ordersFile, "order", f.integer("orderID", math.MaxInt64)),
		ProductID:       find(f, r.products, productsFile, "product", f.integer("productID", math.MaxInt32)),
		UnitPriceCents:  f.hundredths("unitPrice", maxCents),
		Quantity:        f.integer("quantity", maxQuantity),
		DiscountPercent: f.hundredths("discount", 100),
	}
}

// enter notes the key of the present row under its name, which must be new.
func enter[K comparable](f *csvFile, places map[K]place, kind string, name K, key types.Snowflake) {
	if f.err != nil {
		return
	}
	if before, twice := places[name]; twice {
		f.fail("%s %v is in line %d already", kind, name, before.line)
		return
	}
	places[name] = place{key, f.line}
}

// find returns the key of the row that has this name in an earlier file.
func find[K comparable](f *csvFile, places map[K]place, file, kind string, name K) types.Snowflake {
	p, ok := places[name]
	if !ok {
		f.fail("%s %v is not in %s", kind, name, file)
	}
	return p.key
}

// ahead runs seq in a goroutine of its own, a few batches ahead of the loop over
// the sequence that it returns. The goroutine has ended when the loop has, for
// whatever reason.
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
