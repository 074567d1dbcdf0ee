// Package sqlxcases tests what sqlxhelper does on a real database. sqlxhelper runs
// the tests on SQLite, package servers on PostgreSQL, MariaDB and MySQL by their drivers.
package sqlxcases
