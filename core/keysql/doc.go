// Package keysql writes SQL that takes keys apart, by their [core.Layout] and without a generator,
// for people who read tables without Go: in psql, in a report, in a view.
//
//	orders, err := keysql.New(keysql.PostgreSQL, core.Default(), "id")
//	…
//	fmt.Println("SELECT", orders.Time(), "FROM orders")
//
// A Go program does not need it, because [core.Layout] does the same: Parts takes a key apart,
// and Between turns a span of time into keys. Tests on each database compare the two.
//
// Every method of [Column] returns an expression that may stand in a list of columns, in GROUP
// BY and ORDER BY, in a view, and on either side of a comparison; put parentheses around it
// where another operator follows. The session's time zone does not affect it.
//
// [Functions] and [Column.View] install the same in the database, to be called by name, and
// [Column.Partitions] divides a table by the time of its keys. [Default] gives keys to rows that
// bring none.
//
// # Limits
//
//   - PostgreSQL 14 (13 for functions, views, partitions and Default), MySQL 5.7, MariaDB 10.3,
//     SQLite 3.16, or newer. Of the warehouses, tests run DuckDB 1.5 and ClickHouse 26.5;
//     BigQuery's text is tested with its functions defined in DuckDB.
//   - Databases keep microseconds, so a layout whose Unit or Epoch has a fraction of one is
//     refused.
//   - Times are exact until 285 years after the Epoch, and on ClickHouse until 2299, which it
//     returns for all later ones. A generator ends after 250.
//   - The column must hold keys of the layout. Other numbers, such as those of an old counter,
//     give parts without meaning, and NULL or an error where their time is beyond what the
//     database can represent.
//
// This package is stable.
package keysql
