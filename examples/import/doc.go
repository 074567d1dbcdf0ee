// Command import loads a folder of CSV files into a SQLite file: all of it or
// nothing, at full speed, with a progress bar.
//
//	go run ./examples/import                   # 500,000 made-up order lines, into import.db
//	go run ./examples/import -rows 5000000     # more of them
//	go run ./examples/import -data DIR -db other.db
//
// The folder holds customers.csv, products.csv, orders.csv and
// order-details.csv in the columns of the Northwind sample, as examples/orders
// reads them.
//
// # What it shows
//
// The reader gives every row its key as it reads it. The files name rows by numbers
// and codes of their own, so the reader also translates references to keys. It runs
// in a goroutine ahead of the database, and nothing is read back. Each file is a
// sequence for sqlxhelper.InsertSeq, so it may be larger than memory.
//
// All calls are in one sqlxhelper.InTx. When the database refuses a row, a
// sqlxhelper.InsertError says which one. The program then names its line in the file.
//
// Read the files in this order:
//
//	main.go        flags, and the way through the program
//	model.go       the tables and the rows
//	read.go        from files to rows with keys
//	load.go        the transaction, and which errors are a row's fault
//	database.go    a new file or none, and the settings that matter for speed
//	bar.go report.go generate.go  what you see, and what is made up
//
// # What is guaranteed
//
// After exit code 0 every row of the folder is in the database, and survives a
// power cut. After exit code 1 none is. Then no table or index was added, and no
// new database file exists. Bad flags are exit code 2.
//
// An error names file and line of a bad row, also when the database refuses it:
//
//	order-details.csv:812: quantity "x": want a whole number from 1 to 100000
//	customers.csv:2: the row is in the database already (UNIQUE constraint failed: customers.code)
//
// A second load of the same folder ends with the second error and changes nothing.
// Made-up rows get numbers above those in the database, so a second run without
// -data adds more of them.
//
// Ctrl-C ends a load like a bad row does, with exit code 130. A process that is
// killed leaves its work behind. Beside a new database that is a folder .import-*,
// which you can delete. For a database that was there it is a journal, with which
// SQLite undoes the load when it next opens the file.
//
// # Under which conditions
//
// Keys are distinct if every process that writes to the database has a -worker
// number of its own, and the clock is not set back between two runs.
//
// The file system of a new database must have hard links, as nearly all have.
//
// The program needs memory for a few thousand rows and for SQLite's cache. Each customer,
// product and order takes about 50 bytes more, by which later rows find its key.
// Order lines take none: 3,000,000 of them with 750,000 orders took 205 MB. A row
// is at most 1 MiB of text.
//
// While a load runs no other program can write to the database. In the write-ahead
// mode others can read it, and the log grows by as much as is loaded. In SQLite's
// default mode they cannot read once the changes no longer fit in the cache.
package main
