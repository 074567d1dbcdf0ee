// Package sqlxcases tests what sqlxhelper does on a real database. The tests are
// the same for each. sqlxhelper runs them on SQLite. The integration module runs
// them on PostgreSQL, MariaDB and MySQL by their drivers.
package sqlxcases
