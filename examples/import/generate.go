package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/snowkey/snowkey/examples/internal/csvload"
)

// How many order lines there are for each row of the other made-up files.
const (
	linesPerOrder    = 4
	linesPerCustomer = 500
	madeProducts     = 100
)

// makeFolder writes the four files to a new temporary folder and returns its name.
// Orders and products get numbers above the last ones in the database. The same
// arguments make the same files.
func makeFolder(ctx context.Context, lines int, lastOrder, lastProduct int64) (folder string, err error) {
	folder, err = os.MkdirTemp("", "import-*")
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(folder) // the first error says what is wrong
		}
	}()
	orders := (lines + linesPerOrder - 1) / linesPerOrder
	customers := (lines + linesPerCustomer - 1) / linesPerCustomer
	// A load has no more customers than orders, so codes that count from the last
	// order number are new as well.
	code := func(i int) string { return fmt.Sprintf("C%06d", lastOrder+int64(i)) }
	first := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, file := range []struct {
		name, header string
		rows         int
		row          func(w io.Writer, i int)
	}{
		{csvload.CustomersFile, "customerID,companyName,city,country", customers, func(w io.Writer, i int) {
			_, _ = fmt.Fprintf(w, "%s,\"Company %d, Ltd.\",City %d,NULL\n", code(i), i, i%97)
		}},
		{csvload.ProductsFile, "productID,productName,unitPrice", madeProducts, func(w io.Writer, i int) {
			_, _ = fmt.Fprintf(w, "%d,Product %d,%d.%02d\n", lastProduct+int64(i)+1, i+1, 1+i%40, i)
		}},
		{csvload.OrdersFile, "orderID,customerID,orderDate,shippedDate,freight,shipCity,shipCountry", orders, func(w io.Writer, i int) {
			at := first.Add(time.Duration(i) * time.Minute).Format(time.DateTime)
			// 7919 is a prime: the customers come in no order.
			_, _ = fmt.Fprintf(w, "%d,%s,%s,NULL,%d.50,City %d,NULL\n", lastOrder+int64(i)+1, code(i*7919%customers), at, i%60, i%97)
		}},
		{csvload.LinesFile, "orderID,productID,unitPrice,quantity,discount", lines, func(w io.Writer, i int) {
			product := i * 37 % madeProducts
			_, _ = fmt.Fprintf(w, "%d,%d,%d.%02d,%d,0.%02d\n", lastOrder+int64(i/linesPerOrder)+1, lastProduct+int64(product)+1, 1+product%40, product, 1+i%20, i%4*5)
		}},
	} {
		if err := makeFile(ctx, filepath.Join(folder, file.name), file.header, file.rows, file.row); err != nil {
			return "", err
		}
	}
	return folder, nil
}

// lastNumbers returns the greatest number of an order and of a product in the
// database, 0 where there is none.
func lastNumbers(ctx context.Context, db *sqlx.DB) (order, product int64, err error) {
	for table, last := range map[string]*int64{"orders": &order, "products": &product} {
		var there bool
		if err := db.GetContext(ctx, &there, "SELECT count(*) > 0 FROM sqlite_master WHERE name = ?", table); err != nil {
			return 0, 0, err
		}
		if !there {
			continue
		}
		if err := db.GetContext(ctx, last, "SELECT coalesce(max(number), 0) FROM "+table); err != nil {
			return 0, 0, fmt.Errorf("table %s: %w", table, err)
		}
	}
	return order, product, nil
}

// makeFile writes a header and so many rows.
func makeFile(ctx context.Context, path, header string, rows int, row func(w io.Writer, i int)) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(file, 1<<16) // remembers its first error for Flush
	_, _ = fmt.Fprintln(w, header)
	for i := range rows {
		if i%chunkRows == 0 && ctx.Err() != nil {
			break
		}
		row(w, i)
	}
	if err := errors.Join(ctx.Err(), w.Flush()); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
}
