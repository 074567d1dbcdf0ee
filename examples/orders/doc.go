// Command orders reads customers, products, orders and order lines from CSV files
// and writes them to a SQLite file, once through GORM and once through sqlx. Then
// it reads everything back through both, and checks that nothing was lost or
// changed.
//
//	go run ./examples/orders                   # built-in sample, orders.db
//	go run ./examples/orders -data DIR         # a folder of your own
//	go run ./examples/orders -db other.db
//
// No row waits for a key from the database. sqlxhelper sets all keys and foreign
// keys of an order before any SQL. GORM saves an order and then its items, and the
// plugin sets the keys of each just before its INSERT.
//
// Read the files in this order:
//
//	main.go         flags, and the way through the program
//	model.go        the rows, with the tags of both libraries
//	gormstore.go    transactions with GORM
//	sqlxstore.go    the same with sqlx; its tables are in sqlxschema.sql
//	store.go        what both have in common, and how rows get foreign keys
//	database.go     one SQLite file for both, and the settings that matter
//	verify.go       what is checked, and how
//	data.go         from files to rows
//	money.go        amounts without floating point
//	report.go       what you see
//
// # What is guaranteed
//
// An order is in the file with all its lines or not at all, per library. Exit code
// 0 means that everything was written and verified. The program never changes rows
// of an earlier run. Each run is an import of its own with new keys, and also
// checks the finished imports before it.
//
// All files are read and checked first. A wrong row ends the run with exit code 1
// and an error that names file and line. Then nothing is written, and no new
// database is created.
//
// Ctrl-C ends the run with exit code 130. Orders before it stay, the current one is
// rolled back, and the import stays marked as unfinished. An error of the database
// does the same, with exit code 1. Bad flags are exit code 2.
//
// # Under which conditions
//
// Keys are distinct if every process that writes at the same time has a -worker
// number of its own, and the clock is not set back between two runs. Programs with
// several processes take their numbers from a lease, as examples/replicas does.
//
// # Input
//
// The folder holds customers.csv, products.csv, orders.csv and order-details.csv in
// the columns of the Northwind sample. The first line names the columns, in any
// order. Other columns are ignored. An empty field or the word NULL is NULL. Dates
// look like 1996-07-04 00:00:00.000 and are UTC. The files are UTF-8, and a row is
// at most 1 MiB.
//
// A comma before a space is text, because Northwind has addresses such as
// "Rua do Paço, 67" without quotes. So no field begins with a space.
package main
