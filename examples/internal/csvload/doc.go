// Package csvload is what the examples orders and import share. It reads CSV
// files in the columns of the Northwind sample, opens a SQLite file, and handles
// flags, exit codes and Ctrl-C. It has nothing to do with keys.
package csvload
