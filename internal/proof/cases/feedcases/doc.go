// Package feedcases tests package feed on a real database. feed runs the tests on SQLite, package
// servers on PostgreSQL, MariaDB and MySQL.
package feedcases
