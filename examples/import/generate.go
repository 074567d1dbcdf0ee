package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// How many order lines there are for each row of the other made-up files.
const (
	linesPerOrder    = 4
	linesPerCustomer = 500
	madeProducts     = 100
)

// makeFolder writes the four files with so many order lines to a new temporary
// folder and returns its name. The same number makes the same files.
func makeFolder(lines int) (folder string, err error) {
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
	first := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, file := range []struct {
		name, header string
		rows         int
		row          func(w io.Writer, i int)
	}{
		{customersFile, "customerID,companyName,city,country", customers, func(w io.Writer, i int) {
			_, _ = fmt.Fprintf(w, "C%06d,\"Company %d, Ltd.\",City %d,NULL\n", i, i, i%97)
		}},
		{productsFile, "productID,productName,unitPrice", madeProducts, func(w io.Writer, i int) {
			_, _ = fmt.Fprintf(w, "%d,Product %d,%d.%02d\n", i+1, i+1, 1+i%40, i)
		}},
		{ordersFile, "orderID,customerID,orderDate,shippedDate,freight,shipCity,shipCountry", orders, func(w io.Writer, i int) {
			at := first.Add(time.Duration(i) * time.Minute).Format(time.DateTime)
			// 7919 is a prime: the customers come in no order.
			_, _ = fmt.Fprintf(w, "%d,C%06d,%s,NULL,%d.50,City %d,NULL\n", i+1, i*7919%customers, at, i%60, i%97)
		}},
		{linesFile, "orderID,productID,unitPrice,quantity,discount", lines, func(w io.Writer, i int) {
			product := i * 37 % madeProducts
			_, _ = fmt.Fprintf(w, "%d,%d,%d.%02d,%d,0.%02d\n", i/linesPerOrder+1, product+1, 1+product%40, product, 1+i%20, i%4*5)
		}},
	} {
		if err := makeFile(filepath.Join(folder, file.name), file.header, file.rows, file.row); err != nil {
			return "", err
		}
	}
	return folder, nil
}

// makeFile writes a header and so many rows.
func makeFile(path, header string, rows int, row func(w io.Writer, i int)) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(file, 1<<16) // remembers its first error for Flush
	_, _ = fmt.Fprintln(w, header)
	for i := range rows {
		row(w, i)
	}
	if err := w.Flush(); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
}
