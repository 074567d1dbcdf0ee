// Command orders shows snowkey at work: it reads customers, products, orders
// and order lines from CSV files, writes them to a SQLite file once through
// GORM and once through sqlx, reads everything back through both, and checks
// that nothing was lost or changed on the way.
//
//	go run ./examples/orders                   # built-in sample, orders.db
//	go run ./examples/orders -data DIR         # a folder of your own
//	go run ./examples/orders -db other.db
//
// No row waits for a key from the database: sqlxhelper sets all keys and foreign
// keys of an order before any SQL; GORM saves an order and then its items, and
// the plugin sets the keys of each just before its INSERT.
//
// Read the files in this order:
//
//	main.go         flags, and the way through the program
//	gormstore.go    models and transactions with GORM
//	sqlxstore.go    the same with sqlx
//	database.go     one SQLite file for both, and the settings that matter
//	verify.go       what is checked, and how
//	csv.go data.go  from files to values, with errors that name file and line
//	money.go        amounts without floating point
//	report.go progress.go  what you see
//
// # What is guaranteed
//
// An order is in the file with all its lines or not at all, per library. The
// program ends with exit code 0 only after the verification of everything that
// it wrote. It never changes rows of an earlier run: each run is an import of its
// own, with new keys, and checks the finished imports before it as well.
//
// All files are read and checked first. A row that cannot be read ends the run with
// exit code 1 and an error that names file and line. Then nothing is written, and a
// database that was not there before is not there.
//
// Ctrl-C ends the run with exit code 130. Orders before it stay, the current one is
// rolled back, and the import stays marked as unfinished. An error of the database
// does the same, with exit code 1. Bad flags are exit code 2.
//
// # Under which conditions
//
// Keys are distinct as long as every process that writes to the file at the
// same time has a -worker number of its own, and the clock is not set back
// between two runs. A program with several processes takes its numbers from a
// lease, as examples/replicas does.
//
// # Input
//
// The folder holds customers.csv, products.csv, orders.csv and
// order-details.csv in the columns of the well-known Northwind sample. Columns
// are found by their names in the first line, in any order; more columns than
// the program reads do no harm. A field that is empty or says NULL is NULL.
// Dates look like 1996-07-04 00:00:00.000 and are UTC. No field begins with a
// space: Northwind leaves addresses such as "Rua do Paço, 67" without quotes, so
// a comma before a space is text. The files are UTF-8.
package main
