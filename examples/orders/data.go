package main

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strconv"
	"time"
)

// sample is a small shop of our own invention, in the columns of Northwind.
//
//go:embed data/*.csv
var sample embed.FS

// The names of the four files.
const (
	customersFile = "customers.csv"
	productsFile  = "products.csv"
	ordersFile    = "orders.csv"
	detailsFile   = "order-details.csv"
)

// The values below are what the files say, before any library or key comes in.
// Both stores write from them and read back into them, which makes the final
// comparison simple.
type (
	customer struct {
		Code    string // Northwind's customerID, such as ALFKI
		Company string
		City    *string
		Country *string
	}
	product struct {
		Number    int64 // Northwind's productID
		Name      string
		UnitPrice Money
	}
	order struct {
		Number       int64 // Northwind's orderID
		CustomerCode string
		OrderedAt    time.Time
		ShippedAt    *time.Time // nil: not yet
		Freight      Money
		ShipCity     *string
		ShipCountry  *string
		Total        Money // of the lines, without freight
		Lines        []line
	}
	line struct {
		ProductNumber   int64
		UnitPrice       Money // may differ from the product's of today
		Quantity        int64
		DiscountPercent int64
		Total           Money
	}
)

// A dataset is one folder of input. Customers and products are read and checked;
// orders are turned into values one by one, by order.
type dataset struct {
	source    string // for people
	customers []customer
	products  []product

	customerLine map[string]int // where a customer is defined; tells known from unknown
	productLine  map[int64]int

	orders []orderRows
	lines  int // rows in order-details.csv
}

// orderRows are the rows of one order, not yet looked into.
type orderRows struct {
	order row
	lines []row
	blame error // why this order must not be written, where the reason is not in its rows
}

// openData reads the folder, or the built-in sample for "".
func openData(folder string) (*dataset, error) {
	if folder == "" {
		files, err := fs.Sub(sample, "data")
		if err != nil {
			return nil, err
		}
		return readData("the built-in sample", files)
	}
	d, err := readData(folder, os.DirFS(folder))
	// A rowError names its file; an error of the file system knows only the
	// name within the folder.
	if bad := (*rowError)(nil); err != nil && !errors.As(err, &bad) {
		err = fmt.Errorf("folder %s: %w", folder, err)
	}
	return d, err
}

func readData(source string, files fs.FS) (*dataset, error) {
	d := &dataset{source: source, customerLine: map[string]int{}, productLine: map[int64]int{}}

	rows, err := readRows(files, customersFile, "customerID", "companyName", "city", "country")
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		s := r.scan()
		c := customer{
			Code:    s.text("customerID"),
			Company: s.text("companyName"),
			City:    s.optional("city"),
			Country: s.optional("country"),
		}
		if first, twice := d.customerLine[c.Code]; twice {
			s.fail("customer %s is in line %d already", c.Code, first)
		}
		if s.err != nil {
			return nil, s.err
		}
		d.customerLine[c.Code] = r.line
		d.customers = append(d.customers, c)
	}

	if rows, err = readRows(files, productsFile, "productID", "productName", "unitPrice"); err != nil {
		return nil, err
	}
	for _, r := range rows {
		s := r.scan()
		p := product{
			Number:    s.integer("productID", math.MaxInt32),
			Name:      s.text("productName"),
			UnitPrice: s.money("unitPrice"),
		}
		if first, twice := d.productLine[p.Number]; twice {
			s.fail("product %d is in line %d already", p.Number, first)
		}
		if s.err != nil {
			return nil, s.err
		}
		d.productLine[p.Number] = r.line
		d.products = append(d.products, p)
	}

	orders, err := readRows(files, ordersFile, "orderID", "customerID", "orderDate", "shippedDate",
		"freight", "shipCity", "shipCountry")
	if err != nil {
		return nil, err
	}
	lines, err := readRows(files, detailsFile, "orderID", "productID", "unitPrice", "quantity", "discount")
	if err != nil {
		return nil, err
	}
	d.orders, d.lines = group(orders, lines), len(lines)
	if len(lines) > 0 && len(orders) == 0 {
		return nil, lines[0].errorf("its order is not in %s, which has no orders", ordersFile)
	}
	return d, nil
}

// group finds the lines of each order. It looks at nothing but order numbers.
//
// Three things can be wrong with those, and in each case some order could be
// written without all of its own lines. So the orders in question are marked,
// and the import stops at the first of them:
//
//   - An order number is there twice. Nobody can tell whose the lines are, so
//     neither is written.
//   - A line names no order of the file, or its number cannot be read. By
//     mistake it may have left the order above it or the one below, so both are
//     marked.
//   - An order's own number cannot be read. That row fails when its turn comes,
//     and lines that name no other order are taken to be its lines.
func group(orders, lines []row) []orderRows {
	grouped := make([]orderRows, len(orders))
	index := make(map[int64]int, len(orders))
	unreadable := false
	for i, r := range orders {
		grouped[i].order = r
		number, ok := orderNumber(r)
		if !ok {
			unreadable = true
			continue
		}
		if first, twice := index[number]; twice {
			grouped[first].mark(r.errorf("order %d is in line %d already", number, orders[first].line))
			continue
		}
		index[number] = i
	}

	above := 0     // the order that the last good line belongs to
	var lost error // set while the line above belongs to nobody
	for _, r := range lines {
		number, readable := orderNumber(r)
		if i, ok := index[number]; readable && ok {
			grouped[i].lines = append(grouped[i].lines, r)
			grouped[i].mark(lost)
			above, lost = i, nil
			continue
		}
		if readable && unreadable || len(grouped) == 0 {
			continue
		}
		s := r.scan()
		number = s.integer("orderID", math.MaxInt64)
		s.fail("order %d is not in %s", number, ordersFile)
		grouped[above].mark(s.err)
		lost = s.err
	}
	return grouped
}

// mark blames o for err, unless it has been blamed for something before.
func (o *orderRows) mark(err error) {
	if o.blame == nil {
		o.blame = err
	}
}

// orderNumber reads the number from a broken row too: a row that lost its last
// field still says whose it is, and fails when that order's turn comes.
func orderNumber(r row) (int64, bool) {
	i := r.columns["orderID"]
	if i >= len(r.fields) {
		return 0, false
	}
	number, err := strconv.ParseInt(r.fields[i], 10, 64)
	return number, err == nil && isDigits(r.fields[i])
}

// check turns the rows of all orders into values once, and returns their sums. So
// every mistake in the files is found before anything is written.
func (d *dataset) check() (sum totals, err error) {
	for i, rows := range d.orders {
		o, err := d.order(i)
		if err != nil {
			return totals{}, err
		}
		total, fits := sum.total.plus(o.Total)
		if !fits {
			return totals{}, rows.order.errorf("with order %d the total of all orders is too large", o.Number)
		}
		sum = totals{orders: sum.orders + 1, lines: sum.lines + int64(len(o.Lines)), total: total}
	}
	return sum, nil
}

// order turns the rows of order i into values. The error names file and line.
func (d *dataset) order(i int) (order, error) {
	rows := d.orders[i]
	s := rows.order.scan()
	o := order{
		Number:       s.integer("orderID", math.MaxInt64),
		CustomerCode: s.text("customerID"),
		OrderedAt:    s.time("orderDate"),
		ShippedAt:    s.optionalTime("shippedDate"),
		Freight:      s.money("freight"),
		ShipCity:     s.optional("shipCity"),
		ShipCountry:  s.optional("shipCountry"),
	}
	if _, known := d.customerLine[o.CustomerCode]; !known {
		s.fail("customer %s is not in %s", o.CustomerCode, customersFile)
	}
	if s.err != nil {
		return order{}, s.err
	}
	if rows.blame != nil {
		return order{}, rows.blame
	}

	for _, r := range rows.lines {
		s := r.scan()
		l := line{
			ProductNumber:   s.integer("productID", math.MaxInt32),
			UnitPrice:       s.money("unitPrice"),
			Quantity:        s.integer("quantity", maxQuantity),
			DiscountPercent: s.percent("discount"),
		}
		if _, known := d.productLine[l.ProductNumber]; !known {
			s.fail("product %d is not in %s", l.ProductNumber, productsFile)
		}
		l.Total = lineTotal(l.UnitPrice, l.Quantity, l.DiscountPercent)
		total, fits := o.Total.plus(l.Total)
		if !fits {
			s.fail("the total of order %d is too large", o.Number)
		}
		if s.err != nil {
			return order{}, s.err
		}
		o.Total = total
		o.Lines = append(o.Lines, l)
	}
	return o, nil
}
