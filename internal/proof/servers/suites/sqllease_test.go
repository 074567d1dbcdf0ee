package servers

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/lib/pq"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/leasetest"
	"github.com/snowkey/snowkey/core/lease/sqllease"
	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/proof/servers/faultproxy"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
)

// A leaseTarget is a server, a way to reach it, and a place there of the test's
// own.
type leaseTarget struct {
	dialect sqlstore.Dialect
	driver  string
	dsn     string
	schema  string // "": the connections find it
	admin   *sql.DB
	// application is the name by which the server knows its connections, or empty.
	application string
	connect     func(dsn string) (driver.Connector, error)
}

// open returns a pool of at most eight connections. All handles of a test share it.
func (g leaseTarget) open(t *testing.T) *sql.DB {
	t.Helper()
	c, err := g.connect(g.dsn)
	if err != nil {
		t.Fatalf("no connector for %s", g.driver)
	}
	return g.pool(t, c)
}

func (leaseTarget) pool(t *testing.T, c driver.Connector) *sql.DB {
	t.Helper()
	db := sql.OpenDB(c)
	db.SetMaxOpenConns(8)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return db
}

// config names a table in full, because the tests of other processes have tables of that name in other
// schemas.
func (g leaseTarget) config(table string) sqlstore.Config {
	if g.schema != "" {
		table = g.schema + "." + table
	}
	return sqlstore.Config{Dialect: g.dialect, Table: table, Logger: quiet}
}

func (g leaseTarget) store(t *testing.T, db *sql.DB) *sqllease.Store {
	t.Helper()
	s, err := sqllease.New(db, g.config(sqllease.DefaultTable))
	if err != nil {
		t.Fatalf("New() = %v", err)
	}
	if err := s.CreateTables(t.Context()); err != nil {
		t.Fatalf("CreateTables() = %v", err)
	}
	return s
}

func (g leaseTarget) exec(t *testing.T, text string) {
	t.Helper()
	if _, err := g.admin.Exec(text); err != nil {
		t.Fatalf("Exec(%q) = %v", text, err)
	}
}

func pgxConnector(dsn string) (driver.Connector, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	return stdlib.GetConnector(*config), nil
}

func pqConnector(dsn string) (driver.Connector, error) { return pq.NewConnector(dsn) }

func mysqlConnector(dsn string) (driver.Connector, error) {
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	return mysql.NewConnector(config)
}

// leasePostgres returns a schema of the test's own. parameters are added to the URL.
func leasePostgres(t *testing.T, connect func(string) (driver.Connector, error), parameters ...string) leaseTarget {
	t.Helper()
	u, err := url.Parse(servertest.PostgreSQL(t))
	if err != nil {
		t.Fatal("the URL of PostgreSQL cannot be parsed")
	}
	schema := "sqllease_" + strings.ToLower(rand.Text())
	query := u.Query()
	query.Set("search_path", schema)
	u.RawQuery = query.Encode()
	admin := leaseTarget{dialect: sqlstore.PostgreSQL, driver: "pgx", dsn: u.String(), schema: schema, connect: pgxConnector}
	admin.admin = admin.open(t)
	admin.exec(t, "CREATE SCHEMA "+schema)
	t.Cleanup(func() { admin.exec(t, "DROP SCHEMA "+schema+" CASCADE") })
	for i := 0; i < len(parameters); i += 2 {
		query.Set(parameters[i], parameters[i+1])
	}
	u.RawQuery = query.Encode()
	admin.dsn, admin.connect = u.String(), connect
	return admin
}

// leaseMariaDB is leasePostgres for MariaDB, with a database of the test's own.
func leaseMariaDB(t *testing.T, change func(*mysql.Config)) leaseTarget {
	t.Helper()
	return leaseMySQL(t, servertest.MariaDB(t), change)
}

// leaseMySQL is leaseMariaDB for the server of dsn, which may be MySQL.
func leaseMySQL(t *testing.T, dsn string, change func(*mysql.Config)) leaseTarget {
	t.Helper()
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal("the DSN of the server cannot be parsed")
	}
	root := leaseTarget{dialect: sqlstore.MySQL, driver: "mysql", dsn: config.FormatDSN(), connect: mysqlConnector}
	root.admin = root.open(t)
	name := "sqllease_" + strings.ToLower(rand.Text())
	root.exec(t, "CREATE DATABASE "+name)
	t.Cleanup(func() { root.exec(t, "DROP DATABASE "+name) })
	config.DBName = name
	own := root
	own.schema = name
	own.dsn = config.FormatDSN()
	own.admin = own.open(t)
	change(config)
	own.dsn = config.FormatDSN()
	return own
}

func (g leaseTarget) run(t *testing.T) {
	g.store(t, g.open(t))
	leasetest.Run(t, func(t *testing.T) leasetest.Harness {
		where := func(s leasestore.Space, worker int64) string {
			return fmt.Sprintf(" WHERE namespace = '%s' AND datacenter = %d AND worker = %d", s.Namespace, s.Datacenter, worker)
		}
		return leasetest.Harness{
			Seed:      1, // the same in every run: a release must not depend on luck
			Open:      func(t *testing.T) leasetest.Store { return g.store(t, g.open(t)) },
			Namespace: rand.Text(),
			SetUntil: func(t *testing.T, s leasestore.Space, worker int64, until leasestore.Millis) {
				g.exec(t, fmt.Sprintf("UPDATE snowkey_leases SET reserved_until = %d", until)+where(s, worker))
			},
			Delete: func(t *testing.T, s leasestore.Space, worker int64) {
				g.exec(t, "DELETE FROM snowkey_leases"+where(s, worker))
			},
			Stall:        g.stall,
			LosesReplies: func(t *testing.T) leasetest.Store { return g.store(t, g.losingCommits(t)) },
			Unreachable:  g.unreachable,
			Secret:       "open-sesame",
		}
	})
}

// stall locks the tables for everybody else.
func (g leaseTarget) stall(t *testing.T) (resume func()) {
	conn, err := g.admin.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	do := func(texts ...string) {
		for _, text := range texts {
			if _, err := conn.ExecContext(context.WithoutCancel(t.Context()), text); err != nil {
				t.Errorf("Exec(%q) = %v", text, err)
			}
		}
	}
	end := "ROLLBACK"
	switch {
	case g.dialect == sqlstore.PostgreSQL:
		do("BEGIN", "LOCK TABLE snowkey_leases, snowkey_leases_meta IN ACCESS EXCLUSIVE MODE")
	case isTiDB(t, g.admin): // where LOCK TABLES does nothing
		do("BEGIN", "SELECT * FROM snowkey_leases FOR UPDATE", "SELECT * FROM snowkey_leases_meta FOR UPDATE")
	default:
		do("LOCK TABLES snowkey_leases WRITE, snowkey_leases_meta WRITE")
		end = "UNLOCK TABLES"
	}
	return func() {
		do(end)
		if err := conn.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	}
}

// unreachable returns a handle with a password, on a port without a listener.
func (g leaseTarget) unreachable(t *testing.T) leasetest.Store {
	dsn := "root:open-sesame@tcp(127.0.0.1:1)/test"
	if g.dialect == sqlstore.PostgreSQL {
		dsn = "postgres://root:open-sesame@127.0.0.1:1/test?sslmode=disable"
	}
	g.dsn = dsn
	s, err := sqllease.New(g.open(t), g.config(sqllease.DefaultTable))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// losingCommits returns a pool whose commits are done and then fail.
func (g leaseTarget) losingCommits(t *testing.T) *sql.DB {
	c, err := g.connect(g.dsn)
	if err != nil {
		t.Fatalf("no connector for %s", g.driver)
	}
	return g.pool(t, losingConnector{c, func() bool { return true }})
}

// The answer to the COMMIT of a claim is lost, and the connection with it.
func TestClaimWhoseCommitIsUnknownIsLookedFor(t *testing.T) {
	leaseTargets(t, func(t *testing.T, g leaseTarget) {
		mustClaim(t, g.store(t, g.open(t)), newLease()) // makes the rows
		connector, err := g.connect(g.dsn)
		if err != nil {
			t.Fatalf("no connector for %s", g.driver)
		}
		var commits atomic.Int64
		s := g.store(t, g.pool(t, losingConnector{connector, func() bool { return commits.Add(1) == 1 }}))
		c := newLease()
		r := mustClaim(t, s, c)
		rows, _, err := s.Rows(t.Context(), c.Space)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			if (row.Owner == c.Owner) != (row == r.Row) {
				t.Errorf("Claim() = %+v, and there is %+v; want this row alone", r.Row, row)
			}
		}
		if _, err := s.Renew(t.Context(), leaseRenewal(c, r)); err != nil || commits.Load() < 3 {
			t.Errorf("Renew() = %v, after %d commits; want it renewed by the third or a later one", err, commits.Load())
		}
	})
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

// leaseTargets are all ways to a server.
func leaseTargets(t *testing.T, f func(t *testing.T, g leaseTarget)) {
	for _, target := range []struct {
		name string
		make func(t *testing.T) leaseTarget
	}{
		{"pgx", func(t *testing.T) leaseTarget { return leasePostgres(t, pgxConnector) }},
		{"pq", func(t *testing.T) leaseTarget { return leasePostgres(t, pqConnector) }},
		{"MariaDB", func(t *testing.T) leaseTarget { return leaseMariaDB(t, func(*mysql.Config) {}) }},
		{"MySQL", func(t *testing.T) leaseTarget { return leaseMySQL(t, servertest.MySQL(t), func(*mysql.Config) {}) }},
	} {
		t.Run(target.name, func(t *testing.T) { f(t, target.make(t)) })
	}
}

func TestSqlleasePassesTheSuite(t *testing.T) {
	leaseTargets(t, func(t *testing.T, g leaseTarget) { g.run(t) })
}

func TestSqlleasePassesTheSuiteOfRegisters(t *testing.T) {
	leaseTargets(t, func(t *testing.T, g leaseTarget) {
		leasetest.RunRegister(t, func(t *testing.T) leasetest.RegisterHarness {
			return leasetest.RegisterHarness{
				Open:      func(t *testing.T) leasestore.Register { return g.store(t, g.open(t)).Register() },
				Namespace: rand.Text(),
				Delete: func(t *testing.T, s leasestore.Space, worker int64) {
					g.exec(t, fmt.Sprintf("DELETE FROM snowkey_leases WHERE namespace = '%s' AND worker = %d", s.Namespace, worker))
				},
			}
		})
	})
}

func TestSqlleasePassesTheSuiteInOtherModesOfPgx(t *testing.T) {
	for _, mode := range []string{"simple_protocol", "exec"} {
		t.Run(mode, func(t *testing.T) {
			leasePostgres(t, pgxConnector, "default_query_exec_mode", mode).run(t)
		})
	}
}

// What a program may have made the default must not matter.
func TestSqlleasePassesTheSuiteUnderOtherDefaultsOfPostgres(t *testing.T) {
	leasePostgres(t, pgxConnector, "default_transaction_isolation", "serializable", "synchronous_commit", "off",
		"default_transaction_deferrable", "on", "timezone", "America/New_York").run(t)
}

func TestSqlleasePassesTheSuiteUnderOtherDefaultsOfMariaDB(t *testing.T) {
	underOtherDefaults(t, servertest.MariaDB(t), "tx_isolation")
}

func TestSqlleasePassesTheSuiteUnderOtherDefaultsOfMySQL(t *testing.T) {
	underOtherDefaults(t, servertest.MySQL(t), "transaction_isolation")
}

// underOtherDefaults runs the suite on a server whose isolation has that name.
func underOtherDefaults(t *testing.T, dsn, isolation string) {
	t.Helper()
	for name, change := range map[string]func(*mysql.Config){
		"ClientFoundRows":   func(c *mysql.Config) { c.ClientFoundRows = true },
		"InterpolateParams": func(c *mysql.Config) { c.InterpolateParams = true },
		"Serializable": func(c *mysql.Config) {
			c.Params = map[string]string{isolation: "'SERIALIZABLE'", "time_zone": "'+11:00'", "sql_mode": "''", "autocommit": "0", "innodb_lock_wait_timeout": "1"}
		},
		"StatementBinlog": func(c *mysql.Config) {
			c.Params = map[string]string{"binlog_format": "'STATEMENT'", isolation: "'READ-UNCOMMITTED'"}
		},
		"AnsiQuotes": func(c *mysql.Config) {
			c.Params = map[string]string{"sql_mode": "'ANSI,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES'"}
			c.MultiStatements = true
		},
	} {
		t.Run(name, func(t *testing.T) { leaseMySQL(t, dsn, change).run(t) })
	}
}

// A claim or a refusal on the ground of what is rolled back later would be wrong.
func TestUncommittedRowsAreNotReadWhateverTheDefaultIs(t *testing.T) {
	dsns := map[string]string{"MariaDB": servertest.MariaDB(t)}
	if os.Getenv("SNOWKEY_MYSQL_DSN") != "" {
		dsns["MySQL"] = servertest.MySQL(t)
	}
	for name, dsn := range dsns {
		for _, autocommit := range []string{"0", "1"} {
			g := leaseMySQL(t, dsn, func(c *mysql.Config) { c.Params = map[string]string{"autocommit": autocommit} })
			db := g.open(t)
			db.SetMaxOpenConns(1)
			s := g.store(t, db)
			c := newLease()
			mustClaim(t, s, c)
			isolation := "transaction_isolation"
			if name == "MariaDB" {
				isolation = "tx_isolation"
			}
			for range 2 { // the level of the connection outlasts a look
				if _, err := db.Exec("SET SESSION " + isolation + " = 'READ-UNCOMMITTED'"); err != nil {
					t.Fatal(err)
				}
				tx, err := g.admin.BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := tx.Exec("UPDATE snowkey_leases SET owner = 'other', reserved_until = 9000000000000"); err != nil {
					t.Fatal(err)
				}
				// On one connection, where a transaction that the list left open would be in the way.
				if spaces, err := s.Spaces(t.Context()); err != nil || len(spaces) != 1 {
					t.Errorf("%s, autocommit %s: Spaces() = %+v, %v; want one", name, autocommit, spaces, err)
				}
				rows, _, err := s.Rows(t.Context(), c.Space)
				if err != nil || slices.ContainsFunc(rows, func(r leasestore.Row) bool { return r.Owner == "other" }) {
					t.Errorf("%s, autocommit %s: Rows() = %+v, %v; want no uncommitted row", name, autocommit, rows, err)
				}
				if err := tx.Rollback(); err != nil {
					t.Fatal(err)
				}
				var level string
				if err := db.QueryRow("SELECT @@" + isolation).Scan(&level); err != nil || level != "READ-UNCOMMITTED" {
					t.Errorf("%s, autocommit %s: isolation after a look = %s, %v; want READ-UNCOMMITTED", name, autocommit, level, err)
				}
			}
		}
	}
}

// newLease returns a claim that an empty space grants.
func newLease() leasestore.Claim {
	return leasestore.Claim{
		Space: leasestore.Space{Namespace: "shop", Datacenter: 1, Workers: 128, Layout: "41/5/5/12"},
		Owner: rand.Text(), Nonce: rand.Text(), Window: 60_000, Now: leasestore.MillisOf(time.Now()), Skew: 60_000,
	}
}

func leaseRenewal(c leasestore.Claim, r leasestore.Reply) leasestore.Renewal {
	return leasestore.Renewal{
		Space: c.Space, Worker: r.Row.Worker, Epoch: r.Row.Epoch, Owner: c.Owner, Known: []string{r.Row.Nonce}, Nonce: rand.Text(),
		Next: c.Now, Until: r.Row.Until, Window: c.Window, Now: leasestore.MillisOf(time.Now()), Skew: c.Skew,
	}
}

func mustClaim(t *testing.T, s *sqllease.Store, c leasestore.Claim) leasestore.Reply {
	t.Helper()
	r, err := s.Claim(t.Context(), c)
	if err != nil {
		t.Fatalf("Claim(%+v) = %v; want a row", c, err)
	}
	return r
}

func TestHundredFirstStartsShareOneSchemaAndNoRow(t *testing.T) {
	leaseTargets(t, func(t *testing.T, g leaseTarget) {
		const processes, pools = 100, 4
		var dbs [pools]*sql.DB
		for i := range dbs {
			dbs[i] = g.open(t)
		}
		var (
			wg      sync.WaitGroup
			mu      sync.Mutex
			workers = map[int64]bool{}
			start   = make(chan struct{})
		)
		for i := range processes {
			wg.Go(func() {
				s, err := sqllease.New(dbs[i%pools], g.config(sqllease.DefaultTable))
				if err != nil {
					t.Errorf("New() = %v", err)
					return
				}
				<-start
				if err := s.CreateTables(t.Context()); err != nil {
					t.Errorf("CreateTables() by process %d = %v; want nil", i, err)
					return
				}
				c := newLease()
				c.Space.Workers = processes
				r, err := s.Claim(t.Context(), c)
				if err != nil {
					t.Errorf("Claim() by process %d = %v; want a row", i, err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				if workers[r.Row.Worker] {
					t.Errorf("Claim() by process %d = worker %d, which another has", i, r.Row.Worker)
				}
				workers[r.Row.Worker] = true
			})
		}
		close(start)
		wg.Wait()
		if len(workers) != processes {
			t.Errorf("%d workers claimed; want %d", len(workers), processes)
		}
	})
}

func TestLargestSpaceIsMadeAtOnce(t *testing.T) {
	leaseTargets(t, func(t *testing.T, g leaseTarget) {
		s := g.store(t, g.open(t))
		c := newLease()
		c.Space.Workers = 1 << 16
		mustClaim(t, s, c)
		rows, _, err := s.Rows(t.Context(), c.Space)
		if err != nil || len(rows) != 1<<16 || rows[len(rows)-1].Worker != 1<<16-1 {
			t.Errorf("Rows() = %d rows, %v; want %d", len(rows), err, 1<<16)
		}
	})
}

// The transaction that the program has open has nothing to do with the lease.
func TestRollbackOfTheProgramLeavesTheLease(t *testing.T) {
	leaseTargets(t, func(t *testing.T, g leaseTarget) {
		db := g.open(t)
		s := g.store(t, db)
		g.exec(t, "CREATE TABLE orders (id INT PRIMARY KEY)")
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec("INSERT INTO orders VALUES (1)"); err != nil {
			t.Fatal(err)
		}
		c := newLease()
		r := mustClaim(t, s, c)
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		rows, _, err := s.Rows(t.Context(), c.Space)
		if err != nil || rows[r.Row.Worker] != r.Row {
			t.Errorf("Rows()[%d] after the rollback = %+v, %v; want %+v", r.Row.Worker, rows[r.Row.Worker], err, r.Row)
		}
	})
}

func TestPoolOfOneWaitsUntilTheContextEnds(t *testing.T) {
	leaseTargets(t, func(t *testing.T, g leaseTarget) {
		db := g.open(t)
		db.SetMaxOpenConns(1)
		s := g.store(t, db)
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := s.Claim(ctx, newLease()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Claim() while a transaction has the only connection = %v; want DeadlineExceeded", err)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}

		// Waiting is no difference between clocks. But a process may be descheduled between
		// reading its clock and the call, and its clock is then behind by as much, so a refusal
		// is a fault of the store only if it comes with any permitted skew.
		for skew := leasestore.Millis(100); ; skew *= 4 {
			tx, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			c := newLease()
			c.Skew = skew
			time.AfterFunc((2 * skew).Duration(), func() { _ = tx.Rollback() })
			reply, err := s.Claim(t.Context(), c)
			if errors.Is(err, lease.ErrClockSkew) && skew < 10_000 {
				continue
			}
			if err != nil {
				t.Errorf("Claim() after the transaction = %v; want a row", err)
			} else if waited := reply.Now - c.Now; waited <= skew {
				t.Errorf("Claim() has waited %d ms; want more than %d, or the test shows nothing", waited, skew)
			}
			return
		}
	})
}

func testIsolation(t *testing.T, name string, f func(t *testing.T, byDefault string)) {
	for _, byDefault := range []string{"serializable", "read committed"} {
		t.Run(name+"/"+byDefault, func(t *testing.T) { f(t, byDefault) })
	}
}

// A trigger sees the settings under which the row is written. All levels that the server
// has are here.
func TestWriteIsDurableAndSettingsAreSetBackOnPostgres(t *testing.T) {
	for name, connect := range map[string]func(string) (driver.Connector, error){"pgx": pgxConnector, "pq": pqConnector} {
		levels := map[string]string{"off": "on", "local": "on", "remote_write": "on", "on": "on", "remote_apply": "remote_apply"}
		var known int
		if err := leasePostgres(t, connect).admin.QueryRow("SELECT count(*) FROM (SELECT unnest(enumvals) FROM pg_settings WHERE name = 'synchronous_commit') level").Scan(&known); err != nil {
			t.Fatal(err)
		}
		if known != len(levels) {
			t.Errorf("the server has %d levels of synchronous_commit; want the %d of this test", known, len(levels))
		}
		for setting, want := range levels {
			// The write under read committed has no transaction, which could be idle.
			testIsolation(t, name+"/"+setting, func(t *testing.T, byDefault string) {
				parameters := []string{"synchronous_commit", setting, "lock_timeout", "7s", "statement_timeout", "3h"}
				if byDefault == "serializable" {
					parameters = append(parameters, "default_transaction_isolation", byDefault)
				}
				g := leasePostgres(t, connect, parameters...)
				db := g.open(t)
				db.SetMaxOpenConns(1)
				s := g.store(t, db)
				g.exec(t, "CREATE TABLE seen (sync TEXT, isolation TEXT, lock_wait TEXT, idle TEXT)")
				g.exec(t, `CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
					INSERT INTO seen VALUES (current_setting('synchronous_commit'), current_setting('transaction_isolation'), current_setting('lock_timeout'), current_setting('idle_in_transaction_session_timeout'));
					RETURN NEW; END $$`)
				g.exec(t, "CREATE TRIGGER see BEFORE UPDATE ON snowkey_leases FOR EACH ROW EXECUTE FUNCTION see()")
				settings := func() (all [5]string) {
					for i, name := range []string{"synchronous_commit", "lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout", "transaction_isolation"} {
						if err := db.QueryRow("SHOW " + name).Scan(&all[i]); err != nil {
							t.Fatal(err)
						}
					}
					return all
				}
				before := settings()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if _, err := s.Claim(ctx, newLease()); err != nil {
					t.Fatalf("Claim() = %v", err)
				}
				if after := settings(); after != before {
					t.Errorf("settings after a claim = %q; want as before, %q", after, before)
				}
				var sync, isolation, lockWait, idle string
				if err := g.admin.QueryRow("SELECT * FROM seen").Scan(&sync, &isolation, &lockWait, &idle); err != nil {
					t.Fatal(err)
				}
				if sync != want || isolation != "read committed" || lockWait == "7s" || (idle == "0") != (byDefault == "read committed") {
					t.Errorf("in the claim: synchronous_commit %s, isolation %s, lock_timeout %s, idle limit %s; want %s, read committed, below 7s no more, not 0", sync, isolation, lockWait, idle, want)
				}
			})
		}
	}
}

func TestSettingsAreSetBackOnMariaDB(t *testing.T) {
	settingsAreSetBack(t, servertest.MariaDB(t), "tx_isolation")
}

func TestSettingsAreSetBackOnMySQL(t *testing.T) {
	settingsAreSetBack(t, servertest.MySQL(t), "transaction_isolation")
}

func settingsAreSetBack(t *testing.T, dsn, isolation string) {
	t.Helper()
	g := leaseMySQL(t, dsn, func(c *mysql.Config) {
		c.Params = map[string]string{"innodb_lock_wait_timeout": "77", isolation: "'SERIALIZABLE'"}
	})
	db := g.open(t)
	db.SetMaxOpenConns(1)
	s := g.store(t, db)
	g.exec(t, "CREATE TABLE seen (lock_wait INT)")
	g.exec(t, "CREATE TRIGGER see BEFORE UPDATE ON snowkey_leases FOR EACH ROW INSERT INTO seen VALUES (@@innodb_lock_wait_timeout)")
	settings := func() (all [3]string) {
		if err := db.QueryRow("SELECT CONNECTION_ID(), @@innodb_lock_wait_timeout, @@"+isolation).Scan(&all[0], &all[1], &all[2]); err != nil {
			t.Fatal(err)
		}
		return all
	}
	before := settings()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := s.Claim(ctx, newLease()); err != nil {
		t.Fatalf("Claim() = %v", err)
	}
	if after := settings(); after != before || after[1] != "77" {
		t.Errorf("connection, lock wait, isolation after a claim = %q; want as before, %q", after, before)
	}
	var wait int
	if err := g.admin.QueryRow("SELECT lock_wait FROM seen").Scan(&wait); err != nil || wait < 1 || wait > 60 {
		t.Errorf("innodb_lock_wait_timeout in the claim = %d, %v; want 1..60, what ctx leaves", wait, err)
	}
}

func TestReadOnlyServerIsRefused(t *testing.T) {
	for name, server := range map[string]func(*testing.T) leaseTarget{
		"pgx": func(t *testing.T) leaseTarget {
			return leasePostgres(t, pgxConnector, "default_transaction_read_only", "on")
		},
		// lib/pq asks for a transaction that can write, and gets it.
		// The server's own read_only would refuse the tests of others too.
		"MariaDB": func(t *testing.T) leaseTarget {
			return leaseMariaDB(t, func(c *mysql.Config) { c.Params = map[string]string{"tx_read_only": "1"} })
		},
		"MySQL": func(t *testing.T) leaseTarget {
			return leaseMySQL(t, servertest.MySQL(t), func(c *mysql.Config) { c.Params = map[string]string{"transaction_read_only": "1"} })
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := server(t)
			writable := g
			writable.dsn = strings.NewReplacer("read_only=on", "read_only=off", "read_only=1", "read_only=0").Replace(g.dsn)
			c := newLease()
			r := mustClaim(t, writable.store(t, writable.open(t)), c)
			s, err := sqllease.New(g.open(t), g.config(sqllease.DefaultTable))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Claim(t.Context(), newLease()); !errors.Is(err, sqlstore.ErrReadOnly) {
				t.Errorf("Claim() = %v; want ErrReadOnly", err)
			}
			if _, err := s.Renew(t.Context(), leaseRenewal(c, r)); !errors.Is(err, sqlstore.ErrReadOnly) || errors.Is(err, lease.ErrLost) {
				t.Errorf("Renew() = %v; want ErrReadOnly", err)
			}
		})
	}
}

func TestMissingOrForeignTablesAreNamed(t *testing.T) {
	leaseTargets(t, func(t *testing.T, g leaseTarget) {
		s, err := sqllease.New(g.open(t), g.config(sqllease.DefaultTable))
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Claim(t.Context(), newLease())
		if !errors.Is(err, sqlstore.ErrNoTable) || !strings.Contains(err.Error(), s.Statements()[0]) || !strings.Contains(err.Error(), s.Statements()[1]) {
			t.Errorf("Claim() without tables = %v; want ErrNoTable and the statements", err)
		}
		for _, text := range s.Statements() {
			g.exec(t, text)
		}
		mustClaim(t, s, newLease())
		g.exec(t, "UPDATE snowkey_leases_meta SET schema_version = 2")
		if _, err := s.Claim(t.Context(), newLease()); !errors.Is(err, sqlstore.ErrSchema) || !strings.Contains(err.Error(), "schema_version is 2, want 1") {
			t.Errorf("Claim() of another version = %v; want ErrSchema", err)
		}
		if err := s.CreateTables(t.Context()); !errors.Is(err, sqlstore.ErrSchema) {
			t.Errorf("CreateTables() of another version = %v; want ErrSchema", err)
		}
		g.exec(t, "DROP TABLE snowkey_leases")
		g.exec(t, "CREATE TABLE snowkey_leases (namespace INT, datacenter INT)")
		if err := s.CreateTables(t.Context()); !errors.Is(err, sqlstore.ErrSchema) {
			t.Errorf("CreateTables() with a foreign table = %v; want ErrSchema", err)
		}
	})
}

// lockRow holds the lock of a worker's row until release is called.
func (g leaseTarget) lockRow(t *testing.T, worker int64) (release func()) {
	t.Helper()
	tx, err := g.admin.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(fmt.Sprintf("UPDATE snowkey_leases SET renewals = renewals WHERE worker = %d", worker)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() }) // or the table cannot be dropped
	return func() {
		if err := tx.Rollback(); err != nil {
			t.Errorf("Rollback() = %v", err)
		}
	}
}

// waiting returns the server's number of the connection that waits for a lock.
func (g leaseTarget) waiting(t *testing.T) (id int64) {
	t.Helper()
	query := "SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND info LIKE 'SELECT%FOR UPDATE'"
	if g.dialect == sqlstore.PostgreSQL {
		query = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = '" + g.application + "'"
	}
	for giveUp := time.Now().Add(hangs); ; time.Sleep(5 * time.Millisecond) {
		err := g.admin.QueryRow(query).Scan(&id)
		if err == nil {
			return id
		}
		if time.Now().After(giveUp) {
			t.Fatalf("after %v, the server's answer to who waits for the lock = %v; want one", hangs, err)
		}
	}
}

// lockTargets are leaseTargets whose connections the server can tell apart.
func lockTargets(t *testing.T, f func(t *testing.T, g leaseTarget)) {
	leaseTargets(t, func(t *testing.T, g leaseTarget) {
		if g.dialect == sqlstore.PostgreSQL {
			g.application = rand.Text()
			g.dsn += "&application_name=" + g.application
		}
		f(t, g)
	})
}

// A transaction without a COMMIT is undone when its connection dies. The operation
// begins again on another.
func TestKilledConnectionIsReplaced(t *testing.T) {
	lockTargets(t, func(t *testing.T, g leaseTarget) {
		s := g.store(t, g.open(t))
		c := newLease()
		r := mustClaim(t, s, c)
		release := g.lockRow(t, r.Row.Worker)
		renewed := make(chan error, 1)
		renewal := leaseRenewal(c, r)
		go func() {
			_, err := s.Renew(t.Context(), renewal)
			renewed <- err
		}()
		kill := "SELECT pg_terminate_backend(%d)"
		if g.dialect == sqlstore.MySQL {
			kill = "KILL %d"
		}
		g.exec(t, fmt.Sprintf(kill, g.waiting(t)))
		release()
		if err := <-renewed; err != nil {
			t.Errorf("Renew() whose connection was killed = %v; want it renewed", err)
		}
		if rows, _, err := s.Rows(t.Context(), c.Space); err != nil || rows[r.Row.Worker].Nonce != renewal.Nonce || rows[r.Row.Worker].Renewals != 2 {
			t.Errorf("Rows()[%d] = %+v, %v; want it renewed once", r.Row.Worker, rows[r.Row.Worker], err)
		}
	})
}

// The server stops waiting when the client's time is over. The connection that the
// client left is not used again.
func TestLockedRowIsGivenUpWithTheContext(t *testing.T) {
	lockTargets(t, func(t *testing.T, g leaseTarget) {
		db := g.open(t)
		s := g.store(t, db)
		c := newLease()
		r := mustClaim(t, s, c)
		release := g.lockRow(t, r.Row.Worker)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		first := leaseRenewal(c, r)
		if _, err := s.Renew(ctx, first); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, lease.ErrLost) {
			t.Errorf("Renew() of a locked row = %v; want DeadlineExceeded", err)
		}
		release()
		second := leaseRenewal(c, r)
		second.Known = append(second.Known, first.Nonce) // which may yet be written
		if _, err := s.Renew(t.Context(), second); err != nil {
			t.Errorf("Renew() afterwards = %v; want it renewed", err)
		}
	})
}

// through returns g with the server behind a proxy.
func (g leaseTarget) through(t *testing.T) (leaseTarget, *faultproxy.Proxy) {
	t.Helper()
	if g.dialect == sqlstore.MySQL {
		config, err := mysql.ParseDSN(g.dsn)
		if err != nil || config.Net != "tcp" {
			t.Fatal("the DSN of MariaDB has no address of tcp")
		}
		p := faultproxy.Start(t, faultproxy.MySQL, config.Addr)
		config.Addr = p.Addr()
		g.dsn = config.FormatDSN()
		return g, p
	}
	u, err := url.Parse(g.dsn)
	if err != nil {
		t.Fatal("the URL of PostgreSQL cannot be parsed")
	}
	server := u.Host
	if u.Port() == "" {
		server = net.JoinHostPort(u.Hostname(), "5432")
	}
	p := faultproxy.Start(t, faultproxy.PostgreSQL, server)
	query := u.Query()
	query.Set("sslmode", "disable")
	u.Host, u.RawQuery = p.Addr(), query.Encode()
	g.dsn = u.String()
	return g, p
}

func TestSilentNetworkIsGivenUpWithTheContext(t *testing.T) {
	leaseTargets(t, func(t *testing.T, g leaseTarget) {
		g, p := g.through(t)
		s := g.store(t, g.open(t))
		c := newLease()
		r := mustClaim(t, s, c)
		p.Silence()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := s.Renew(ctx, leaseRenewal(c, r)); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, lease.ErrLost) {
			t.Errorf("Renew() over a silent network = %v; want DeadlineExceeded", err)
		}
	})
}

// lib/pq waits for ever for a server that does not answer, with some goroutines for
// each call. A lease asks several times in each window. What the other drivers leave ends in time.
func TestServerThatNeverAnswersLeavesFewGoroutines(t *testing.T) {
	const calls, most = 60, 36
	leaseTargets(t, func(t *testing.T, g leaseTarget) {
		g, p := g.through(t)
		db := g.open(t)
		db.SetMaxOpenConns(0) // a limit of the pool would be one of this
		s := g.store(t, db)
		c := newLease()
		r := mustClaim(t, s, c)
		p.Silence()
		label := rand.Text()
		pprof.Do(t.Context(), pprof.Labels("calls", label), func(context.Context) {
			for range calls {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
				if _, err := s.Renew(ctx, leaseRenewal(c, r)); err == nil || errors.Is(err, lease.ErrLost) {
					t.Errorf("Renew() = %v; want an error that says nothing about the outcome", err)
				}
				cancel()
			}
		})
		got := goroutines(t, label)
		for end := time.Now().Add(hangs); got > most && time.Now().Before(end); got = goroutines(t, label) {
			time.Sleep(10 * time.Millisecond)
		}
		t.Logf("goroutines after %d calls: %d", calls, got)
		if got > most {
			t.Errorf("goroutines after %d calls = %d; want at most %d", calls, got, most)
		}
	})
}

// goroutines returns how many there are whose label calls has the value. They inherit it from the one that has
// started them: other goroutines of the process come and go.
func goroutines(t *testing.T, value string) (n int) {
	t.Helper()
	var profile bytes.Buffer
	must(t, pprof.Lookup("goroutine").WriteTo(&profile, 1))
	same := 0 // as many as have the stack of the last line
	for line := range strings.Lines(profile.String()) {
		if count, _, ok := strings.Cut(line, " @ "); ok {
			same, _ = strconv.Atoi(count)
		}
		if strings.HasPrefix(line, "# labels: ") && strings.Contains(line, fmt.Sprintf("%q:%q", "calls", value)) {
			n += same
		}
	}
	return n
}

// The figures are in the log. They are bounds and no equations: a driver may learn to need
// fewer.
func TestOperationsTakeFewRoundTrips(t *testing.T) {
	leaseTargets(t, func(t *testing.T, g leaseTarget) {
		g, p := g.through(t)
		db := g.open(t)
		db.SetMaxOpenConns(1)
		s := g.store(t, db)
		mustClaim(t, s, newLease())
		segments := g.ordersRow(t, db, segment.Row{Next: 1, Stride: 1})
		for i := range 3 { // pgx prepares statements the first time
			// Above innodb_lock_wait_timeout, a call would need no trip to shorten that.
			ctx, cancel := context.WithTimeout(t.Context(), 45*time.Second)
			defer cancel()
			c := newLease()
			var r leasestore.Reply
			trips := func(name string, call func() error) int {
				t.Helper()
				p.Arm(faultproxy.Fault{})
				if err := call(); err != nil {
					t.Fatalf("%s() = %v", name, err)
				}
				return faultproxy.Trips(p.Messages())
			}
			got := [3]int{
				trips("Claim", func() (err error) { r, err = s.Claim(ctx, c); return err }),
				trips("Renew", func() error { _, err := s.Renew(ctx, leaseRenewal(c, r)); return err }),
				trips("Take", func() error { _, err := segments.Take(ctx, segment.Take{Tag: "orders"}); return err }),
			}
			t.Logf("round trips of a claim, a renewal and the fetch of a range: %d", got)
			most := map[string][3]int{"pgx": {2, 2, 5}, "pq": {2, 2, 7}, "MariaDB": {9, 8, 12}, "MySQL": {9, 8, 12}}[path.Base(t.Name())]
			for k := range got {
				if i > 0 && got[k] > most[k] {
					t.Errorf("round trips of a claim, a renewal and the fetch of a range = %d; want at most %d", got, most)
				}
			}
		}
	})
}

// In a space of 32,768 rows of which a third is held, as after the crash of ten thousand processes, the
// key leads to the sixteen rows that a claim chooses from.
func TestAClaimInALargeSpaceReadsFewRows(t *testing.T) {
	read := map[sqlstore.Dialect][2]string{ // before and after: what counts the rows that a connection has read
		sqlstore.PostgreSQL: {"SELECT pg_stat_force_next_flush()", "SELECT sum(seq_tup_read) + sum(idx_tup_fetch) FROM pg_stat_user_tables WHERE schemaname = current_schema()"},
		sqlstore.MySQL:      {"DO 0", "SELECT sum(variable_value) FROM %s.session_status WHERE variable_name IN ('Handler_read_first', 'Handler_read_key', 'Handler_read_last', 'Handler_read_next', 'Handler_read_prev', 'Handler_read_rnd', 'Handler_read_rnd_next')"},
	}
	leaseTargets(t, func(t *testing.T, g leaseTarget) {
		const claims, most = 50, 64 // 24 to find 16 free ones, and what the write looks up
		db := g.open(t)
		db.SetMaxOpenConns(1)
		s := g.store(t, db)
		c := newLease()
		c.Space.Workers = 32_768
		if g.dialect == sqlstore.PostgreSQL { // whose numbers are those of all connections, vacuum's too
			g.exec(t, "ALTER TABLE snowkey_leases SET (autovacuum_enabled = off)")
		}
		mustClaim(t, s, c)
		// By the connection whose reads are counted: those of another one arrive at any time.
		_, err := db.Exec(fmt.Sprintf("UPDATE snowkey_leases SET owner = 'x', reserved_until = %d WHERE worker %% 3 = 0", c.Now+100*c.Window))
		must(t, err)
		count := func() (rows int64) {
			t.Helper()
			query := read[g.dialect]
			if _, err := db.Exec(query[0]); err != nil {
				t.Skipf("SKIPPED: the rows that were read are counted later: %v", err)
			}
			schema := "performance_schema"
			if strings.Contains(t.Name(), "MariaDB") {
				schema = "information_schema"
			}
			must(t, db.QueryRow(strings.Replace(query[1], "%s", schema, 1)).Scan(&rows))
			return rows
		}
		before := count()
		var running sync.WaitGroup
		for range claims {
			c := c
			c.Owner, c.Nonce = rand.Text(), rand.Text()
			running.Go(func() {
				if _, err := s.Claim(t.Context(), c); err != nil {
					t.Errorf("Claim() = %v; want a row", err)
				}
			})
		}
		running.Wait()
		got := (count() - before) / claims
		t.Logf("rows read: %d for each claim", got)
		if got > most || got < 16 {
			t.Errorf("a claim has read %d rows of 32,768; want 16 to %d", got, most)
		}
	})
}

// Neither of two first claims in two datacenters sees the other's rows. What they
// have in common is the row of the namespace.
func TestSimultaneousFirstClaimsWithTwoLayoutsAreNotBothGranted(t *testing.T) {
	leaseTargets(t, func(t *testing.T, g leaseTarget) {
		s := g.store(t, g.open(t))
		for round := range 10 {
			var (
				wg   sync.WaitGroup
				errs [2]error
			)
			for i := range errs {
				wg.Go(func() {
					c := newLease()
					c.Space.Namespace = fmt.Sprintf("round%d", round)
					c.Space.Datacenter, c.Space.Layout = int64(i), fmt.Sprintf("layout%d", i)
					_, errs[i] = s.Claim(t.Context(), c)
				})
			}
			wg.Wait()
			if (errs[0] == nil) == (errs[1] == nil) || !errors.Is(errors.Join(errs[:]...), lease.ErrLayout) {
				t.Errorf("Claim() with two layouts at once = %v and %v; want one granted, one ErrLayout", errs[0], errs[1])
			}
		}
	})
}
