package servers

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/snowkey/snowkey/core/lease/sqllease"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/proof/servers/faultproxy"
)

// A leaseTarget is a place for the tables of stores.
type leaseTarget struct {
	place
	admin *sql.DB
	// wrap, unless it is nil, is put around the driver's connector.
	wrap func(driver.Connector) driver.Connector
}

// target is place for stores. The administrator's connections have the server's defaults.
func (w way) target(t *testing.T, parameters ...string) leaseTarget {
	t.Helper()
	parameters = slices.Concat(w.parameters, parameters)
	w.parameters = nil
	g := leaseTarget{place: w.place(t)}
	g.admin = g.place.open(t).DB
	g.place = g.with(t, parameters...)
	return g
}

// open returns a pool of at most eight connections. All handles of a test share it.
func (g leaseTarget) open(t *testing.T) *sql.DB {
	t.Helper()
	return g.pool(t, g.connector(t))
}

func (g leaseTarget) connector(t *testing.T) driver.Connector {
	t.Helper()
	c, err := g.place.connector()
	if err != nil {
		t.Fatalf("no connector for %s", g.driver)
	}
	if g.wrap != nil {
		c = g.wrap(c)
	}
	return c
}

func (leaseTarget) pool(t *testing.T, c driver.Connector) *sql.DB {
	t.Helper()
	db := sql.OpenDB(c)
	db.SetMaxOpenConns(8)
	t.Cleanup(func() { must(t, db.Close()) })
	return db
}

// openOne returns a pool of one connection.
func (g leaseTarget) openOne(t *testing.T) *sql.DB {
	t.Helper()
	db := g.open(t)
	db.SetMaxOpenConns(1)
	return db
}

// config names a table in full, because the tests of other processes have tables of that name in other
// schemas.
func (g leaseTarget) config(table string) sqlstore.Config {
	if g.schema != "" {
		table = g.schema + "." + table
	}
	return sqlstore.Config{Dialect: g.dialect(), Table: table, Logger: quiet}
}

// bare returns a store without making its tables.
func (g leaseTarget) bare(t *testing.T, db *sql.DB) *sqllease.Store {
	t.Helper()
	s, err := sqllease.New(db, g.config(sqllease.DefaultTable))
	must(t, err)
	return s
}

func (g leaseTarget) store(t *testing.T, db *sql.DB) *sqllease.Store {
	t.Helper()
	s := g.bare(t, db)
	must(t, s.CreateTables(t.Context()))
	return s
}

func (g leaseTarget) exec(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if _, err := g.admin.Exec(text); err != nil {
			t.Fatalf("Exec(%q) = %v", text, err)
		}
	}
}

var leaseWays = []string{"pgx", "pq", "MariaDB", "MySQL"}

// leaseTargets runs a test by each driver to each server, at the same time.
func leaseTargets(t *testing.T, f func(t *testing.T, g leaseTarget)) {
	byWays(t, leaseWays, func(t *testing.T, w way) { f(t, w.target(t)) })
}

// byWays runs a test by each of the ways, at the same time.
func byWays(t *testing.T, names []string, f func(t *testing.T, w way)) {
	targets := newCrowd(t, len(names))
	defer targets.wait()
	for _, name := range names {
		targets.run(name, func(t *testing.T) { f(t, wayTo(name)) })
	}
}

// eachServer runs a test on each server, by one driver, at the same time.
func eachServer(t *testing.T, f func(t *testing.T, w way)) {
	targets := newCrowd(t, len(servers))
	defer targets.wait()
	for server := range servers {
		targets.run(server, func(t *testing.T) { f(t, waysTo(server)[0]) })
	}
}

// through is g behind a proxy.
func (g leaseTarget) through(t *testing.T) (leaseTarget, *faultproxy.Proxy) {
	t.Helper()
	p, proxy := g.place.through(t)
	g.place = p
	return g, proxy
}

// lockTables locks tables for everybody else, until release is called.
func (g leaseTarget) lockTables(t *testing.T, tables ...string) (release func()) {
	t.Helper()
	conn, err := g.admin.Conn(t.Context())
	must(t, err)
	do := func(texts ...string) {
		for _, text := range texts {
			if _, err := conn.ExecContext(context.WithoutCancel(t.Context()), text); err != nil {
				t.Errorf("Exec(%q) = %v", text, err)
			}
		}
	}
	end := "ROLLBACK"
	switch {
	case g.dialect() == sqlstore.PostgreSQL:
		do("BEGIN", "LOCK TABLE "+strings.Join(tables, ", ")+" IN ACCESS EXCLUSIVE MODE")
	case isTiDB(t, g.admin): // where LOCK TABLES does nothing
		do("BEGIN")
		for _, table := range tables {
			do("SELECT * FROM " + table + " FOR UPDATE")
		}
	default:
		do("LOCK TABLES " + strings.Join(tables, " WRITE, ") + " WRITE")
		end = "UNLOCK TABLES"
	}
	return func() {
		do(end)
		must(t, conn.Close())
	}
}

// losingCommits returns a pool whose commits are done and then fail.
func (g leaseTarget) losingCommits(t *testing.T) *sql.DB {
	t.Helper()
	return g.pool(t, losingConnector{g.connector(t), func() bool { return true }})
}

var errLost = errors.New("the answer is lost")

// A losingConnector makes connections that lose the answer to a COMMIT, or to a write that
// needs none, if lose says so.
type losingConnector struct {
	driver.Connector
	lose func() bool
}

func (c losingConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return losingConn{conn, c.lose}, nil
}

// losingConn has the methods that all three drivers have.
type losingConn struct {
	driver.Conn
	lose func() bool
}

func (c losingConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
	return losingTx{tx, c.lose}, err
}

func (c losingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	result, err := c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
	if err == nil && strings.HasPrefix(query, "WITH ") && c.lose() { // a write that commits by itself
		return nil, errLost
	}
	return result, err
}

func (c losingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

func (c losingConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	return c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, query)
}

func (c losingConn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.Conn.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

// IsValid lets database/sql drop a connection that lib/pq has closed, because its context ended
// beside the end of a transaction.
func (c losingConn) IsValid() bool {
	v, ok := c.Conn.(driver.Validator)
	return !ok || v.IsValid()
}

type losingTx struct {
	driver.Tx
	lose func() bool
}

func (tx losingTx) Commit() error {
	if err := tx.Tx.Commit(); err != nil || !tx.lose() {
		return err
	}
	return errLost
}
