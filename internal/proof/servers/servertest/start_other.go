//go:build !linux

package servertest

import "testing"

// StartPostgreSQL ends the test as [Missing] does: the server is ended with the test by means
// that only Linux has.
func StartPostgreSQL(t testing.TB, _ ...string) (dsn, programs string) {
	t.Helper()
	return missing(t)
}

// StartPostgreSQLStandby does so too.
func StartPostgreSQLStandby(t testing.TB, _, _ string, _ ...string) (dsn string) {
	t.Helper()
	dsn, _ = missing(t)
	return dsn
}

// StartMariaDB does so too.
func StartMariaDB(t testing.TB, _ ...string) (dsn, data string) {
	t.Helper()
	return missing(t)
}

func missing(t testing.TB) (string, string) {
	t.Helper()
	Missing(t, "servertest: servers of a test's own run on Linux only")
	return "", ""
}
