package servertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"
)

// patience is how long a server may take to accept a connection, and again to answer on
// it. A server on this machine needs a millisecond, or some seconds under load. Without
// a server, the connection is refused at once. Only a firewall that drops packets uses
// patience up.
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
		t.Skip("servertest: no " + mySQL.name + " is named: set " + mySQL.variable + ", or start one: " + mySQL.start)
	}
	return find(t, mySQL)
}

// Redis returns the host:port of a Redis server that answers PING without a password.
// It is SNOWKEY_REDIS_ADDR, or 127.0.0.1:6379. Without a server it ends the test.
func Redis(t testing.TB) string {
	t.Helper()
	return find(t, redis)
}

// ZooKeeper returns the host:port of one ZooKeeper server that serves requests. It is
// SNOWKEY_ZOOKEEPER_ADDR, or 127.0.0.1:2181. Without a server it ends the test.
func ZooKeeper(t testing.TB) string {
	t.Helper()
	return find(t, zooKeeper)
}

// Etcd returns the host:port of an etcd server that answers clients without TLS. It is
// SNOWKEY_ETCD_ADDR, or 127.0.0.1:2379. Without a server it ends the test.
func Etcd(t testing.TB) string {
	t.Helper()
	return find(t, etcd)
}

// A server describes one kind of server.
type server struct {
	name     string                               // as a reader knows it
	variable string                               // the environment variable that says where it is
	fallback string                               // what the variable defaults to; MySQL has no default
	form     string                               // an accepted value of the variable, for errors
	address  func(value string) (net.Addr, error) // where to dial; the error must not repeat value
	exchange func(net.Conn) error                 // proves that it is the server; nil: the connection will do
	start    string                               // a command that starts one at fallback
}

var postgreSQL = server{
	name:     "PostgreSQL",
	variable: "SNOWKEY_POSTGRES_DSN",
	fallback: "postgres://root@127.0.0.1:5432/test?sslmode=disable",
	form:     "postgres://user:password@host:5432/database",
	address:  postgresAddress,
	start: "docker run --rm -d -p 127.0.0.1:5432:5432 -e POSTGRES_USER=root -e POSTGRES_DB=test" +
		" -e POSTGRES_HOST_AUTH_METHOD=trust postgres:17",
}

var mariaDB = server{
	name:     "MariaDB",
	variable: "SNOWKEY_MARIADB_DSN",
	fallback: "root@tcp(127.0.0.1:3306)/test?parseTime=true",
	form:     "user:password@tcp(host:3306)/database?parseTime=true",
	address:  mariaAddress,
	start: "docker run --rm -d -p 127.0.0.1:3306:3306 -e MARIADB_ALLOW_EMPTY_ROOT_PASSWORD=1" +
		" -e MARIADB_DATABASE=test mariadb:11.4",
}

var mySQL = server{
	name:     "MySQL",
	variable: "SNOWKEY_MYSQL_DSN",
	form:     "user:password@tcp(host:3307)/database?parseTime=true",
	address:  mariaAddress,
	start:    "docker run --rm -d -p 127.0.0.1:3307:3306 -e MYSQL_ALLOW_EMPTY_PASSWORD=1 -e MYSQL_DATABASE=test mysql:9",
}

var redis = server{
	name:     "Redis",
	variable: "SNOWKEY_REDIS_ADDR",
	fallback: "127.0.0.1:6379",
	form:     "host:6379",
	address:  plainAddress,
	exchange: ping,
	start:    "docker run --rm -d -p 127.0.0.1:6379:6379 redis:7",
}

var zooKeeper = server{
	name:     "ZooKeeper",
	variable: "SNOWKEY_ZOOKEEPER_ADDR",
	fallback: "127.0.0.1:2181",
	form:     "host:2181",
	address:  plainAddress,
	exchange: srvr,
	start:    "docker run --rm -d -p 127.0.0.1:2181:2181 zookeeper:3.9",
}

var etcd = server{
	name:     "etcd",
	variable: "SNOWKEY_ETCD_ADDR",
	fallback: "127.0.0.1:2379",
	form:     "host:2379",
	address:  plainAddress,
	exchange: version,
	start: "docker run --rm -d -p 127.0.0.1:2379:2379 gcr.io/etcd-development/etcd:v3.6.8 etcd" +
		" --listen-client-urls http://0.0.0.0:2379 --advertise-client-urls http://127.0.0.1:2379",
}

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
// a server. The test is skipped, or in CI failed.
func Missing(t testing.TB, args ...any) {
	t.Helper()
	if inCI() {
		t.Fatal(args...)
	}
	t.Skip(args...)
}

// inCI reports whether the variable CI is on. Most services set "true", some their own
// name. "0" and "false" switch it off.
func inCI() bool {
	switch os.Getenv("CI") {
	case "", "0", "false":
		return false
	}
	return true
}

// find returns the value of the variable, or the default, once a server has answered
// there. An error that matches errMalformed is a mistake in the variable. Any other
// means that no such server answers.
func (s server) find(ctx context.Context) (string, error) {
	value := os.Getenv(s.variable)
	if value == "" {
		value = s.fallback
	}
	addr, err := s.address(value)
	if err != nil {
		return "", fmt.Errorf("%w: %s %w; want %s (its value is not shown, it may hold a password)",
			errMalformed, s.variable, err, s.form)
	}
	if err := s.answers(ctx, addr); err != nil {
		return "", fmt.Errorf("servertest: no %s answers at %s: %w; name one in %s, or start one: %s",
			s.name, addr, err, s.variable, s.start)
	}
	return value, nil
}

func (s server) answers(ctx context.Context, addr net.Addr) error {
	dialer := net.Dialer{Timeout: patience}
	conn, err := dialer.DialContext(ctx, addr.Network(), addr.String())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // nothing was written that closing could lose
	return s.speaks(conn)
}

// speaks reports whether the right kind of server is at the other end.
func (s server) speaks(conn net.Conn) error {
	if s.exchange == nil {
		return nil
	}
	// Without a deadline, a program that waits for our request hangs the test.
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	return s.exchange(conn)
}
