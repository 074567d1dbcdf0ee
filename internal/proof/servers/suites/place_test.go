package servers

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"errors"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/proof/cases/sqlxcases"
	"github.com/snowkey/snowkey/internal/proof/servers/faultproxy"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
)

// A way is a driver in one of its modes, to a server.
type way struct {
	name       string
	server     string // its name
	driver     string
	parameters []string // of its connections: names, each with its value
}

var ways = []way{
	{"pgx", "PostgreSQL", "pgx", nil},
	{"pgx exec", "PostgreSQL", "pgx", []string{"default_query_exec_mode", "exec"}},
	{"pgx simple protocol", "PostgreSQL", "pgx", []string{"default_query_exec_mode", "simple_protocol"}},
	{"pgx describe exec", "PostgreSQL", "pgx", []string{"default_query_exec_mode", "describe_exec"}},
	{"pgx cache describe", "PostgreSQL", "pgx", []string{"default_query_exec_mode", "cache_describe"}},
	{"pq", "PostgreSQL", "postgres", nil},
	{"pq binary", "PostgreSQL", "postgres", []string{"binary_parameters", "yes"}},
	{"MariaDB", "MariaDB", "mysql", nil},
	{"MariaDBInterpolated", "MariaDB", "mysql", []string{"interpolateParams", "true"}},
	{"MySQL", "MySQL", "mysql", nil},
	{"MySQLInterpolated", "MySQL", "mysql", []string{"interpolateParams", "true"}},
}

// wayTo returns the way of a name.
func wayTo(name string) way {
	return ways[slices.IndexFunc(ways, func(w way) bool { return w.name == name })]
}

// waysTo returns the ways to a server.
func waysTo(server string) []way {
	return slices.DeleteFunc(slices.Clone(ways), func(w way) bool { return w.server != server })
}

// servers find a server by its name, or end the test.
var servers = map[string]func(testing.TB) string{"PostgreSQL": servertest.PostgreSQL, "MariaDB": servertest.MariaDB, "MySQL": servertest.MySQL}

func (w way) dialect() dialect.Dialect {
	if w.server == "PostgreSQL" {
		return dialect.PostgreSQL
	}
	return dialect.MySQL
}

// A place is a schema, or on MySQL a database, of the test's own, and a way to reach it.
type place struct {
	way
	schema string
	dsn    string // its connections find tables in the schema
}

// place makes one, which ends with the test. Its connections have parameters beside those of the way.
func (w way) place(t testing.TB, parameters ...string) place {
	t.Helper()
	dsn := servers[w.server](t)
	p := place{way: w, schema: "snowkey_" + strings.ToLower(rand.Text())}
	if w.dialect() == dialect.MySQL {
		space(t, w.driver, dsn, "CREATE DATABASE "+p.schema, "DROP DATABASE "+p.schema)
		config, err := mysql.ParseDSN(dsn)
		must(t, err)
		config.DBName, config.ParseTime = p.schema, true
		p.dsn = config.FormatDSN()
	} else {
		space(t, w.driver, dsn, "CREATE SCHEMA "+p.schema, "DROP SCHEMA "+p.schema+" CASCADE")
		p.dsn = withParameters(t, dsn, "search_path", p.schema)
	}
	return p.with(t, slices.Concat(w.parameters, parameters)...)
}

// with is p with more parameters of its connections.
func (p place) with(t testing.TB, parameters ...string) place {
	t.Helper()
	p.dsn = withParameters(t, p.dsn, parameters...)
	return p
}

// withParameters returns a DSN with parameters, each after its name, beside those that it has.
func withParameters(t testing.TB, dsn string, parameters ...string) string {
	t.Helper()
	address, have, _ := strings.Cut(dsn, "?")
	query, err := url.ParseQuery(have)
	if err != nil {
		t.Fatal("the parameters of a server's DSN cannot be parsed") // err may hold a password
	}
	for pair := range slices.Chunk(parameters, 2) {
		query.Set(pair[0], pair[1])
	}
	return address + "?" + strings.ReplaceAll(query.Encode(), "+", "%20") // as pgx wants spaces
}

// through is p with a proxy before its server.
func (p place) through(t testing.TB) (place, *faultproxy.Proxy) {
	t.Helper()
	if p.dialect() == dialect.MySQL {
		config, err := mysql.ParseDSN(p.dsn)
		if err != nil || config.Net != "tcp" {
			t.Fatal("the DSN of the server has no address of tcp")
		}
		proxy := faultproxy.Start(t, faultproxy.MySQL, config.Addr)
		config.Addr = proxy.Addr()
		p.dsn = config.FormatDSN()
		return p, proxy
	}
	u := parsed(t, p.dsn)
	proxy := faultproxy.Start(t, faultproxy.PostgreSQL, net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "5432")))
	u.Host = proxy.Addr()
	p.dsn = u.String()
	return p.with(t, "sslmode", "disable"), proxy
}

// parsed returns the URL of a PostgreSQL.
func parsed(t testing.TB, dsn string) *url.URL {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal("the URL of PostgreSQL cannot be parsed") // err may hold a password
	}
	return u
}

// open returns a pool that is closed at the end of the test.
func (p place) open(t *testing.T) *sqlx.DB {
	t.Helper()
	return openSqlx(t, p.driver, p.dsn)
}

// sqlx is open for the cases of sqlxhelper.
func (p place) sqlx(t *testing.T) sqlxcases.Database {
	t.Helper()
	return sqlxcases.Database{DB: p.open(t), Dialect: p.dialect()}
}

// connector returns what makes connections, for tests that wrap them. It does not cover connections
// that break.
func (p place) connector() (driver.Connector, error) {
	switch p.driver {
	case "postgres":
		return pq.NewConnector(p.dsn)
	case "mysql":
		config, err := mysql.ParseDSN(p.dsn)
		if err != nil {
			return nil, err
		}
		config.Logger = &mysql.NopLogger{}
		return mysql.NewConnector(config)
	}
	config, err := pgx.ParseConfig(p.dsn)
	if err != nil {
		return nil, err
	}
	// It would ping after a second without a statement, which a busy machine takes, and a call have more messages.
	return stdlib.GetConnector(*config, stdlib.OptionShouldPing(func(context.Context, stdlib.ShouldPingParams) bool { return false })), nil
}

// space runs create now and drop when t ends.
func space(t testing.TB, driver, dsn, create, drop string) {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	must(t, err)
	db.SetMaxIdleConns(0) // until the end
	_, err = db.ExecContext(t.Context(), create)
	must(t, err)
	t.Cleanup(func() {
		_, err := db.ExecContext(context.WithoutCancel(t.Context()), drop)
		must(t, errors.Join(err, db.Close()))
	})
}

// newRole makes a role of PostgreSQL that may use the schema of db. In the statements that grant it more it is $role.
func newRole(t testing.TB, db *sql.DB, grants ...string) (role string) {
	t.Helper()
	role = "role_" + strings.ToLower(rand.Text())
	grants = append([]string{"CREATE ROLE $role", "DO $$BEGIN EXECUTE format('GRANT USAGE ON SCHEMA %I TO $role', current_schema()); END$$"}, grants...)
	grant(t, db, role, grants, "DROP OWNED BY "+role, "DROP ROLE "+role)
	return role
}

// user is p for a user of its own, who may do what is granted.
func (p place) user(t testing.TB, admin *sql.DB, grants ...string) (as place, name string) {
	t.Helper()
	if p.dialect() == dialect.PostgreSQL {
		name = newRole(t, admin, grants...)
		return p.with(t, "role", name), name
	}
	name = "user_" + strings.ToLower(rand.Text())
	grant(t, admin, name, append([]string{"CREATE USER $role"}, grants...), "DROP USER "+name)
	config, err := mysql.ParseDSN(p.dsn)
	must(t, err)
	config.User, config.Passwd = name, ""
	p.dsn = config.FormatDSN()
	return p, name
}

// grant runs statements about a role now, and those that end it at the end of the test.
func grant(t testing.TB, db *sql.DB, role string, grants []string, end ...string) {
	t.Helper()
	for _, text := range grants {
		_, err := db.ExecContext(t.Context(), strings.ReplaceAll(text, "$role", role))
		must(t, err)
	}
	t.Cleanup(func() {
		for _, text := range end {
			_, err := db.ExecContext(context.WithoutCancel(t.Context()), text)
			must(t, err)
		}
	})
}
