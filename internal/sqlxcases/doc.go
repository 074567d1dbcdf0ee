// Package sqlxcases says what sqlxhelper does on a real database, as tests that
// are the same for each: sqlxhelper runs them on SQLite, the integration module
// on PostgreSQL and MariaDB by their drivers.
package sqlxcases
