package servers

import (
	"database/sql"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/lib/pq"
)

// One in the other's place would pass most tests, and prove nothing.
func TestMySQLAnswersAndIsNotMariaDB(t *testing.T) {
	onMariaDBAndMySQL(t, func(t *testing.T, w way) {
		var version string
		must(t, openSqlx(t, "mysql", servers[w.server](t)).Get(&version, "SELECT version()"))
		if strings.Contains(version, "MariaDB") != (w.server == "MariaDB") {
			t.Errorf("version() where %s should be = %s", w.server, version)
		}
	})
}

// postgresVersion returns the major version of the server.
func postgresVersion(t *testing.T, db *sql.DB) (major int) {
	t.Helper()
	must(t, db.QueryRowContext(t.Context(), "SELECT current_setting('server_version_num')::int / 10000").Scan(&major))
	return major
}

// isTiDB reports whether the server is TiDB, on which .ci/nightly runs tests of MySQL.
func isTiDB(t *testing.T, db *sql.DB) bool {
	t.Helper()
	var version string
	must(t, db.QueryRowContext(t.Context(), "SELECT version()").Scan(&version))
	return strings.Contains(version, "TiDB")
}
