package servertest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"regexp"
	"testing"
	"time"
)

// patience is how long a server may take to accept a connection. A server on this machine
// needs a millisecond, or some seconds under load. Without a server, the connection is
// refused at once. Only a firewall that drops packets uses patience up.
const patience = 30 * time.Second

// PostgreSQL returns the URL, for lib/pq or pgx, of a server that accepts connections.
// It is SNOWKEY_POSTGRES_DSN, or postgres://root@127.0.0.1:5432/test?sslmode=disable.
// Keyword/value DSNs are refused. Without a server it ends the test.
func PostgreSQL(t testing.TB) string {
	t.Helper()
	return find(t, postgreSQL)
}

// MariaDB returns the DSN, for go-sql-driver/mysql, of a MariaDB server that
// accepts connections. It is SNOWKEY_MARIADB_DSN, or
// root@tcp(127.0.0.1:3306)/test?parseTime=true. Without a server it ends the test.
func MariaDB(t testing.TB) string {
	t.Helper()
	return find(t, mariaDB)
}

// MySQL returns the DSN, for go-sql-driver/mysql, of a MySQL server that accepts
// connections. It is SNOWKEY_MYSQL_DSN, which has no default. Without it the test is
// skipped, in CI too. With it, a missing server is treated as in [MariaDB].
func MySQL(t testing.TB) string {
	t.Helper()
	if os.Getenv(mySQL.variable) == "" {
		t.Skip("servertest: no MySQL is named: set " + mySQL.variable + ", or start one: " + howToStart)
	}
	return find(t, mySQL)
}

// Redis returns the host:port of a Redis server.
// It is SNOWKEY_REDIS_ADDR, or 127.0.0.1:6379. Without a server it ends the test.
func Redis(t testing.TB) string {
	t.Helper()
	return find(t, redis)
}

// ZooKeeper returns the host:port of one ZooKeeper server. It is
// SNOWKEY_ZOOKEEPER_ADDR, or 127.0.0.1:2181. Without a server it ends the test.
func ZooKeeper(t testing.TB) string {
	t.Helper()
	return find(t, zooKeeper)
}

// Etcd returns the host:port of an etcd server. It is
// SNOWKEY_ETCD_ADDR, or 127.0.0.1:2379. Without a server it ends the test.
func Etcd(t testing.TB) string {
	t.Helper()
	return find(t, etcd)
}

// A server describes one kind of server.
type server struct {
	name     string                                      // as a reader knows it
	variable string                                      // the environment variable that says where it is
	example  string                                      // a value of the variable, its default for all but MySQL
	dial     func(value string) (network, target string) // nothing if the value is malformed
}

var (
	postgreSQL = server{"PostgreSQL", "SNOWKEY_POSTGRES_DSN", "postgres://root@127.0.0.1:5432/test?sslmode=disable", dialPostgres}
	mariaDB    = server{"MariaDB", "SNOWKEY_MARIADB_DSN", "root@tcp(127.0.0.1:3306)/test?parseTime=true", dialMySQL}
	mySQL      = server{"MySQL", "SNOWKEY_MYSQL_DSN", "root@tcp(127.0.0.1:3307)/test?parseTime=true", dialMySQL}
	redis      = server{"Redis", "SNOWKEY_REDIS_ADDR", "127.0.0.1:6379", dialPlain}
	zooKeeper  = server{"ZooKeeper", "SNOWKEY_ZOOKEEPER_ADDR", "127.0.0.1:2181", dialPlain}
	etcd       = server{"etcd", "SNOWKEY_ETCD_ADDR", "127.0.0.1:2379", dialPlain}
)

// howToStart ends the messages about a server that is not there.
const howToStart = "CONTRIBUTING.md has a command"

// errMalformed is a value of the variable that no server can be found with.
var errMalformed = errors.New("servertest: malformed address")

// find returns the value by which tests reach s. Without one it ends the test.
func find(t testing.TB, s server) string {
	t.Helper()
	value, err := s.find(t.Context())
	switch {
	case err == nil:
		return value
	case errors.Is(err, errMalformed):
		t.Fatal(err)
	default:
		Missing(t, err)
	}
	return "" // not reached: Fatal and Missing end the goroutine
}

// Missing ends a test because something is not on this machine, such as the program of
// a server. The test is skipped, or in CI failed. Most services set CI to "true", some to their own
// name. "0" and "false" switch it off.
func Missing(t testing.TB, args ...any) {
	t.Helper()
	if ci := os.Getenv("CI"); ci != "" && ci != "0" && ci != "false" {
		t.Fatal(args...)
	}
	t.Skip(args...)
}

// find returns the value of the variable, or the default, once a program has accepted a
// connection there. An error that matches errMalformed is a mistake in the variable. Any other
// means that there is none. Neither has the value in it, which may hold a password.
func (s server) find(ctx context.Context) (string, error) {
	value := cmp.Or(os.Getenv(s.variable), s.example)
	network, target := s.dial(value)
	if target == "" {
		return "", fmt.Errorf("%w: %s; want one like %s (its value is not shown, it may hold a password)", errMalformed, s.variable, s.example)
	}
	dialer := net.Dialer{Timeout: patience}
	conn, err := dialer.DialContext(ctx, network, target)
	if err != nil {
		return "", fmt.Errorf("servertest: no %s answers at %s: %w; name one in %s, or start one: %s", s.name, target, err, s.variable, howToStart)
	}
	_ = conn.Close()
	return value, nil
}

// dialPostgres reads only the URL form. The other form, host=… port=…, has its own quoting rules,
// and one form is enough. No error of net/url is kept: they quote the whole URL, password included.
func dialPostgres(dsn string) (network, target string) {
	u, err := url.Parse(dsn)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" || u.Hostname() == "" {
		return "", ""
	}
	return "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "5432"))
}

// A password may hold a '/' or an '@'; the last '@' before the address ends it.
var mysqlForm = regexp.MustCompile(`^(?:.*@)?(?:(tcp)\(([^()]+:\d+)\)|(unix)\((/[^()]+)\))/[^/]*$`)

func dialMySQL(dsn string) (network, target string) {
	found := mysqlForm.FindStringSubmatch(dsn)
	if found == nil {
		return "", ""
	}
	return found[1] + found[3], found[2] + found[4]
}

// One address only: a list would need a rule for which of them has to answer. And a number
// for the port, because an error that repeats "user:password" would show a password.
var plainForm = regexp.MustCompile(`^([^][,/@:]+|\[[^][,/@]+\]):\d+$`)

func dialPlain(value string) (network, target string) {
	return "tcp", plainForm.FindString(value)
}
