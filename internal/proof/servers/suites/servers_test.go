package servers

import (
	"database/sql"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/lib/pq"

	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
)

func TestPostgreSQLAnswersThroughBothDrivers(t *testing.T) {
	dsn := servertest.PostgreSQL(t)
	for _, driver := range []string{"pgx", "postgres"} {
		t.Run(driver, func(t *testing.T) { answers(t, driver, dsn) })
	}
}

func TestMariaDBAnswers(t *testing.T) {
	if version := answers(t, "mysql", servertest.MariaDB(t)); !strings.Contains(version, "MariaDB") {
		t.Errorf("version() where MariaDB should be = %s; want MariaDB in it", version)
	}
}

// One in the other's place would pass most tests, and prove nothing.
func TestMySQLAnswersAndIsNotMariaDB(t *testing.T) {
	if version := answers(t, "mysql", servertest.MySQL(t)); strings.Contains(version, "MariaDB") {
		t.Errorf("version() where MySQL should be = %s; want no MariaDB", version)
	}
}

func TestRedisAnswers(t *testing.T) {
	t.Logf("Redis at %s", servertest.Redis(t))
}

func TestZooKeeperAnswers(t *testing.T) {
	t.Logf("ZooKeeper at %s", servertest.ZooKeeper(t))
}

func TestEtcdAnswers(t *testing.T) {
	t.Logf("etcd at %s", servertest.Etcd(t))
}

// answers sends a statement through a driver. Unlike servertest, this finds out whether the
// server admits the user. It returns the version, so that the log shows what the other tests of
// this module ran against.
func answers(t *testing.T, driver, dsn string) (version string) {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatalf("sql.Open(%q, …) = %v; want no error", driver, err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Errorf("Close() = %v; want no error", err)
		}
	}()
	var one int
	if err := db.QueryRowContext(t.Context(), "SELECT 1").Scan(&one); err != nil || one != 1 {
		t.Fatalf("SELECT 1 = %d, %v; want 1", one, err)
	}
	if err := db.QueryRowContext(t.Context(), "SELECT version()").Scan(&version); err != nil {
		t.Fatalf("SELECT version() = %v; want no error", err)
	}
	t.Logf("%s: %s", driver, version)
	return version
}

// postgresVersion returns the major version of the server.
func postgresVersion(t *testing.T, db *sql.DB) (major int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), "SELECT current_setting('server_version_num')::int / 10000").Scan(&major); err != nil {
		t.Fatalf("version of PostgreSQL = %v; want a number", err)
	}
	return major
}

// isTiDB reports whether the server is TiDB, on which .ci/nightly runs tests of MySQL.
func isTiDB(t *testing.T, db *sql.DB) bool {
	t.Helper()
	var version string
	if err := db.QueryRowContext(t.Context(), "SELECT version()").Scan(&version); err != nil {
		t.Fatalf("SELECT version() = %v; want no error", err)
	}
	return strings.Contains(version, "TiDB")
}
