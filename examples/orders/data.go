package main

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/big"
	"os"

	"github.com/snowkey/snowkey/examples/internal/csvload"
)

// sample is a small shop of our own invention, in the columns of Northwind.
//
//go:embed data/*.csv
var sample embed.FS

// A dataset is one folder of input, read and checked. Its rows have no keys yet.
type dataset struct {
	source string // for people
	rows
	totals totals
	// exact is the total once more: from the text of the lines, in rational numbers.
	exact *big.Rat

	customerOf csvload.Index[string, struct{}]
	productOf  csvload.Index[int64, struct{}]
	orderOf    csvload.Index[int64, int] // index in orders
}

// totals sum up an import.
type totals struct {
	orders, lines int64
	total         Money
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
	// A RowError names its file. An error of the file system has only the name
	// within the folder.
	if bad := (*csvload.RowError)(nil); err != nil && !errors.As(err, &bad) {
		err = fmt.Errorf("folder %s: %w", folder, err)
	}
	return d, err
}

// readData reads the files one after the other, each after those that it refers
// to, and finds every mistake in them before anything is written.
func readData(source string, files fs.FS) (*dataset, error) {
	d := &dataset{
		source:     source,
		exact:      new(big.Rat),
		customerOf: csvload.NewIndex[string, struct{}](csvload.CustomersFile, "customer"),
		productOf:  csvload.NewIndex[int64, struct{}](csvload.ProductsFile, "product"),
		orderOf:    csvload.NewIndex[int64, int](csvload.OrdersFile, "order"),
	}
	for _, file := range []struct {
		name    string
		row     func(*csvload.File)
		columns []string
	}{
		{csvload.CustomersFile, d.customer, []string{"customerID", "companyName", "city", "country"}},
		{csvload.ProductsFile, d.product, []string{"productID", "productName", "unitPrice"}},
		{csvload.OrdersFile, d.order, []string{"orderID", "customerID", "orderDate", "shippedDate", "freight", "shipCity", "shipCountry"}},
		{csvload.LinesFile, d.item, []string{"orderID", "productID", "unitPrice", "quantity", "discount"}},
	} {
		f, err := csvload.Open(files, file.name, file.columns...)
		if err != nil {
			return nil, err
		}
		for f.Next() {
			file.row(f)
		}
		f.Close()
		if f.Err() != nil {
			return nil, f.Err()
		}
	}
	return d, nil
}

func (d *dataset) customer(f *csvload.File) {
	c := Customer{
		Code:    f.Text("customerID"),
		Company: f.Text("companyName"),
		City:    f.Optional("city"),
		Country: f.Optional("country"),
	}
	d.customerOf.Add(f, c.Code, struct{}{})
	d.customers = append(d.customers, c)
}

func (d *dataset) product(f *csvload.File) {
	p := Product{
		Number:    f.Integer("productID", math.MaxInt32),
		Name:      f.Text("productName"),
		UnitPrice: amount(f, "unitPrice"),
	}
	d.productOf.Add(f, p.Number, struct{}{})
	d.products = append(d.products, p)
}

func (d *dataset) order(f *csvload.File) {
	o := Order{
		Number:       f.Integer("orderID", math.MaxInt64),
		CustomerCode: f.Text("customerID"),
		OrderedAt:    f.Time("orderDate"),
		ShippedAt:    f.OptionalTime("shippedDate"),
		Freight:      amount(f, "freight"),
		ShipCity:     f.Optional("shipCity"),
		ShipCountry:  f.Optional("shipCountry"),
	}
	d.customerOf.Find(f, o.CustomerCode)
	d.orderOf.Add(f, o.Number, len(d.orders))
	d.orders = append(d.orders, o)
	d.totals.orders++
}

func (d *dataset) item(f *csvload.File) {
	at := d.orderOf.Find(f, f.Integer("orderID", math.MaxInt64))
	i := OrderItem{
		ProductNumber:   f.Integer("productID", math.MaxInt32),
		UnitPrice:       amount(f, "unitPrice"),
		Quantity:        f.Integer("quantity", csvload.MaxQuantity),
		DiscountPercent: f.Hundredths("discount", 100),
	}
	d.productOf.Find(f, i.ProductNumber)
	i.Total = lineTotal(i.UnitPrice, i.Quantity, i.DiscountPercent)
	if f.Err() != nil {
		return
	}
	d.exact.Add(d.exact, exactTotal(f.Text("unitPrice"), f.Text("quantity"), f.Text("discount")))
	if d.exact.Cmp(most) > 0 {
		f.Fail("with this line the total of all orders is too large")
		return
	}
	d.orders[at].Items = append(d.orders[at].Items, i)
	d.orders[at].Total += i.Total
	d.totals.lines++
	d.totals.total += i.Total
}

// most is the greatest total that Money can hold.
var most = big.NewRat(math.MaxInt64, int64(100*cent))

// amount returns an amount of money in whole cents.
func amount(f *csvload.File, column string) Money {
	return Money(f.Hundredths(column, csvload.MaxCents)) * cent
}

// exactTotal returns the total of a line from the text of its factors, which are
// numbers.
func exactTotal(price, quantity, discount string) *big.Rat {
	rat := func(text string) *big.Rat {
		r, _ := new(big.Rat).SetString(text)
		return r
	}
	total := rat(price)
	total.Mul(total, rat(quantity))
	return total.Mul(total, new(big.Rat).Sub(big.NewRat(1, 1), rat(discount)))
}
