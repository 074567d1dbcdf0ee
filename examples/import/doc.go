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
// A key that is known before the insert does more than save a round trip. The
// files name things by numbers and codes of their own; the reader gives every row
// its key as it reads it, and translates the references of later rows at once.
// So the files are read in a goroutine that runs ahead of the database, nothing
// is ever read back, and each table is a stream of sqlxhelper.InsertMany calls.
//
// All calls are in one sqlxhelper.InTx. When the database refuses a batch, the
// error is a sqlxhelper.InsertError that says which row of it is bad, and the
// program says which line that was.
//
// Read the files in this order:
//
//	main.go        flags, and the way through the program
//	model.go       the tables and the rows
//	read.go        from files to batches of rows with keys
//	load.go        the transaction, and whose fault an error is
//	database.go    a new file or none, and the settings that matter for speed
//	csv.go         rows of text, with errors that name file and line
//	bar.go report.go generate.go  what you see, and what is made up
//
// # What is guaranteed
//
// After exit code 0 every row of the folder is in the database, and survives a
// power cut. After exit code 1 none is: a table or an index that was not there
// before is not there, and neither is a database file. Bad flags are exit code 2.
//
// A row that cannot be loaded is named by file and line, also when it is the
// database that refuses it:
//
//	order-details.csv:812: quantity "x": want a whole number from 1 to 100000
//	customers.csv:2: the row is in the database already (UNIQUE constraint failed: customers.code)
//
// The second is what a second load of the same folder says, and it changes
// nothing. Made-up rows get numbers above those in the database. So a second run
// without -data adds more of them.
//
// Ctrl-C ends a load like a bad row does, with exit code 130. A process that is
// killed leaves a folder .import-* beside a database that would have been new, to
// be deleted, or a journal beside one that was there, with which SQLite undoes the
// load when the file is next opened.
//
// # Under which conditions
//
// Keys are distinct as long as every process that writes to the database has a
// -worker number of its own, and the clock is not set back between two runs.
//
// The file system of a new database has hard links, as nearly all have.
//
// Memory is a few batches, SQLite's cache, and an entry of about 50 bytes for
// each customer, product and order, by which later rows find its key. Order
// lines, of which there are the most, cost none: 3,000,000 of them with 750,000
// orders took 211 MB at the most. A row is at most 1 MiB of text.
//
// While a load runs nobody else can write to the database. In the write-ahead
// mode others can read it, and the log grows by as much as is loaded; in
// SQLite's default mode they cannot once the changes no longer fit in the cache.
package main
