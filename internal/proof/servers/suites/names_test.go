package servers

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/snowkey/snowkey"
	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/keysql"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/sqllease"
	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/core/segment/sqlsegment"
	"github.com/snowkey/snowkey/core/serial"
	"github.com/snowkey/snowkey/core/serial/sqlserial"
	"github.com/snowkey/snowkey/core/sqlstore"
)

// A namesTarget is a server with two schemas, in which one finds a table by the search_path or the
// default database. No other test has a table there. Its pools begin in the first
// schema.
type namesTarget struct {
	leaseTarget
	first, second string
}

// use is the statement that leads the tables of a connection to a schema.
func (g namesTarget) use(schema string) string {
	if g.dialect() == sqlstore.MySQL {
		return "USE " + schema
	}
	return "SET search_path TO " + schema
}

func (g namesTarget) do(t *testing.T, db interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if _, err := db.ExecContext(t.Context(), text); err != nil {
			t.Fatalf("Exec(%q) = %v", text, err)
		}
	}
}

// count returns a number of a query of the administrator.
func (g namesTarget) count(t *testing.T, query string) (n int64) {
	t.Helper()
	must(t, g.admin.QueryRow(query).Scan(&n))
	return n
}

// namesPostgres has a database of its own, since every role knows all the tables of a database.
func namesPostgres(t *testing.T) namesTarget {
	t.Helper()
	w, name := wayTo("pgx"), spaceName()
	dsn := servers[w.server](t)
	space(t, w.driver, dsn, "CREATE DATABASE "+name, "DROP DATABASE "+name+" WITH (FORCE)")
	g := namesTarget{leaseTarget{place: place{way: w, dsn: inDatabase(t, dsn, name)}}, "tenant_a", "tenant_b"}
	g.admin = g.open(t)
	g.exec(t, "CREATE SCHEMA tenant_a", "CREATE SCHEMA tenant_b")
	g.place = g.with(t, "search_path", g.first)
	return g
}

// namesMySQL has a user who sees these two databases alone.
func namesMySQL(t *testing.T, w way) namesTarget {
	t.Helper()
	first, second := w.target(t), w.place(t)
	var grants []string
	for _, database := range []string{first.schema, second.schema} {
		grants = append(grants, "GRANT ALL ON "+database+".* TO $role")
	}
	g := namesTarget{first, first.schema, second.schema}
	g.place, _ = first.user(t, first.admin, grants...)
	g.schema = ""
	return g
}

func eachNamed(t *testing.T, f func(t *testing.T, g namesTarget)) {
	t.Helper()
	eachServer(t, func(t *testing.T, w way) {
		if w.server == "PostgreSQL" {
			f(t, namesPostgres(t))
			return
		}
		f(t, namesMySQL(t, w))
	})
}

// A namedStore is one of the three kinds.
type namedStore interface{ CreateTables(context.Context) error }

var stores = map[string]func(*sql.DB, sqlstore.Config) (namedStore, error){
	"snowkey_leases":   func(db *sql.DB, c sqlstore.Config) (namedStore, error) { return sqllease.New(db, c) },
	"snowkey_segments": func(db *sql.DB, c sqlstore.Config) (namedStore, error) { return sqlsegment.New(db, c) },
	"snowkey_counters": func(db *sql.DB, c sqlstore.Config) (namedStore, error) { return sqlserial.New(db, c) },
}

// eachStore runs f for each kind, by the name of its first table, on each server. open opens a Store over a pool of one connection,
// whose table is found, or in a schema if there is one, and created if create is set.
func eachStore(t *testing.T, f func(t *testing.T, g namesTarget, table string, db *sql.DB, open func(schema string, create bool) namedStore)) {
	t.Helper()
	eachNamed(t, func(t *testing.T, g namesTarget) {
		for table := range stores {
			db := g.openOne(t)
			f(t, g, table, db, g.opening(t, table, db))
		}
	})
}

// opening is open of eachStore.
func (g namesTarget) opening(t *testing.T, table string, db *sql.DB) func(schema string, create bool) namedStore {
	return func(schema string, create bool) namedStore {
		t.Helper()
		c := g.config("")
		if schema != "" {
			c.Table = schema + "." + table
		}
		s, err := stores[table](db, c)
		must(t, err)
		if create {
			must(t, s.CreateTables(t.Context()))
		}
		return s
	}
}

// wantError fails the test unless err matches want and has the parts in its text.
func wantError(t *testing.T, what string, err, want error, parts ...string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s = %v; want %v", what, err, want)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%s = %v; want %q in it", what, err, part)
		}
	}
}

// Two services write to public.orders as two roles, and one role has a schema of its own name.
func TestRolesWithSchemasOfTheirOwnHaveOneTableOfLeases(t *testing.T) {
	g := namesPostgres(t)
	billing := newRole(t, g.admin)
	web := newRole(t, g.admin)
	for _, role := range []string{billing, web} {
		g.exec(t, "ALTER ROLE "+role+" LOGIN PASSWORD '"+role+"'", "GRANT ALL ON SCHEMA public TO "+role)
	}
	g.exec(t, "CREATE SCHEMA AUTHORIZATION "+billing) // which web may not use
	as := func(role string) *sql.DB {
		u := parsed(t, g.dsn)
		u.User, u.RawQuery = url.UserPassword(role, role), "sslmode=disable"
		return openSqlx(t, g.driver, u.String()).DB
	}
	open := func(role, table string) (*core.Generator, error) {
		gen, err := snowkey.Open(t.Context(), as(role), snowkey.Config{Table: table, Logger: quiet})
		if err == nil {
			t.Cleanup(func() { must(t, gen.Close(context.Background())) })
		}
		return gen, err
	}
	_, err := open(billing, "")
	must(t, err)
	gen, err := open(web, "")
	if gen != nil || !errors.Is(err, sqlstore.ErrOtherSchema) || !errors.Is(err, leasestore.ErrPermanent) {
		t.Fatalf("Open as the role without a schema = %v, %v; want %v", gen, err, sqlstore.ErrOtherSchema)
	}
	wantError(t, "Open as the role without a schema", err, sqlstore.ErrOtherSchema, billing+".snowkey_leases", "public.snowkey_leases", "Config.Table")

	// What the error says works.
	g.exec(t, "GRANT USAGE ON SCHEMA "+billing+" TO "+web)
	g.exec(t, "GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA "+billing+" TO "+web)
	_, err = open(web, billing+".snowkey_leases")
	must(t, err)
	if n := g.count(t, "SELECT COUNT(DISTINCT worker) FROM "+billing+".snowkey_leases WHERE owner <> ''"); n != 2 {
		t.Errorf("%d numbers are held; want 2 in one table", n)
	}
}

func TestTableIsNotCreatedBesideThatOfAnotherSchema(t *testing.T) {
	eachStore(t, func(t *testing.T, g namesTarget, table string, db *sql.DB, open func(string, bool) namedStore) {
		must(t, open("", true).CreateTables(t.Context()))
		g.do(t, db, g.use(g.second))
		wantError(t, "CreateTables of a second "+table, open("", false).CreateTables(t.Context()), sqlstore.ErrOtherSchema,
			g.first+"."+table, "Config.Table", "or to "+g.second+"."+table)
		open(g.second, true)

		// Both are there now, and the Store has one of them, whose name it logs.
		var log strings.Builder
		c := g.config("")
		c.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		s, err := stores[table](db, c)
		must(t, err)
		must(t, s.CreateTables(t.Context()))
		for _, part := range []string{"level=DEBUG", "level=WARN", "table=" + g.second + "." + table, "others=[" + g.first + "." + table + "]"} {
			if !strings.Contains(log.String(), part) {
				t.Errorf("CreateTables with two %s logs %s; want %q in it", table, &log, part)
			}
		}
	})
}

// Neither of two that begin at once sees the table that the other one is about to create.
func TestOfStoresThatCreateTablesAtOnceInTwoSchemasOneIsRefused(t *testing.T) {
	eachNamed(t, func(t *testing.T, g namesTarget) {
		for table := range stores {
			var created, refused [2]int
			var mu sync.Mutex
			var wg sync.WaitGroup
			for i := range 8 {
				db := g.openOne(t)
				g.do(t, db, g.use([]string{g.first, g.second}[i%2]))
				s := g.opening(t, table, db)("", false)
				wg.Go(func() {
					err := s.CreateTables(t.Context())
					mu.Lock()
					defer mu.Unlock()
					switch {
					case err == nil:
						created[i%2]++
					case errors.Is(err, sqlstore.ErrOtherSchema):
						refused[i%2]++
					default:
						t.Errorf("CreateTables of %s = %v; want nil or %v", table, err, sqlstore.ErrOtherSchema)
					}
				})
			}
			wg.Wait()
			slices.Sort(created[:])
			slices.Sort(refused[:])
			if want := [2]int{0, 4}; created != want || refused != want {
				t.Errorf("%s: %v stores were created, and %v refused; want 4 of one schema, and 4 of the other", table, created, refused)
			}
		}
	})
}

// A request leaves SET search_path, or USE, on the pooled connection.
func TestTablesStayWhateverAConnectionWasToldMeanwhile(t *testing.T) {
	eachNamed(t, func(t *testing.T, g namesTarget) {
		db := g.openOne(t)
		at := time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)
		series := serial.Series{Name: "invoices", Prefix: "INV", Digits: 6}
		for _, schema := range []string{g.first, g.second} {
			segments, err := sqlsegment.New(db, g.config(schema+"."+sqlsegment.DefaultTable))
			must(t, err)
			must(t, segments.CreateTables(t.Context()))
			must(t, segments.Create(t.Context(), segment.Row{Tag: "orders", Next: 1, Step: 10, Stride: 1}))
			serials, err := sqlserial.New(db, g.config(schema+"."+sqlserial.DefaultTable))
			must(t, err)
			must(t, serials.CreateTables(t.Context()))
			must(t, serials.Define(t.Context(), series))
			g.do(t, db, "CREATE TABLE "+schema+".orders (id BIGINT NOT NULL PRIMARY KEY)")
		}
		g.do(t, db, "INSERT INTO "+g.first+".orders (id) VALUES (500)")

		leases := g.store(t, db)
		segments, err := sqlsegment.New(db, g.config(""))
		must(t, err)
		serials, err := sqlserial.New(db, g.config(""))
		must(t, err)
		must(t, serials.Define(t.Context(), series))
		floor := segments.Floor(sqlsegment.Column{Table: "orders", Name: "id"})

		c := newLease()
		r := mustClaim(t, leases, c)
		other := g
		other.schema = g.second
		mustClaim(t, other.store(t, db), c)
		for i := range 4 {
			schema := []string{g.first, g.second}[i%2]
			g.do(t, db, g.use(schema))
			renewal := leaseRenewal(c, r)
			reply, err := leases.Renew(t.Context(), renewal)
			if err != nil {
				t.Fatalf("Renew in %s = %v; want the row of %s", schema, err, g.first)
			}
			r = reply
			if taken, err := segments.Take(t.Context(), segment.Take{Tag: "orders", Count: 10}); err != nil || taken.First != int64(1+10*i) {
				t.Errorf("Take in %s = %+v, %v; want the range from %d", schema, taken, err, 1+10*i)
			}
			if n, err := floor(t.Context()); err != nil || n != 500 {
				t.Errorf("Floor in %s = %d, %v; want 500, the greatest of %s", schema, n, err, g.first)
			}
			tx, err := db.BeginTx(t.Context(), nil)
			must(t, err)
			n, err := serials.NextIn(t.Context(), tx, series, at)
			if err != nil || n.N != int64(2*i+1) {
				t.Errorf("NextIn in %s = %v, %v; want %d", schema, n, err, 2*i+1)
			}
			must(t, tx.Commit())
			if n, err := serials.Take(t.Context(), "invoices", n.Period, at, 1); err != nil || n != int64(2*i+2) {
				t.Errorf("Take of a serial in %s = %d, %v; want %d", schema, n, err, 2*i+2)
			}
		}
		if n := g.count(t, "SELECT COUNT(*) FROM "+g.second+".snowkey_leases WHERE owner <> ''"); n != 1 {
			t.Errorf("%d rows of %s are held; want the one of its own lease", n, g.second)
		}
		if n := g.count(t, "SELECT COUNT(*) FROM "+g.second+".snowkey_counters"); n != 0 {
			t.Errorf("%d counters are in %s; want none", n, g.second)
		}
	})
}

// Each transaction has a search_path, or a default database, of its own.
func TestNextInGivesNoNumberTwiceByThePathOfItsTransaction(t *testing.T) {
	eachNamed(t, func(t *testing.T, g namesTarget) {
		db := g.open(t)
		series := serial.Series{Name: "invoices", Prefix: "INV", Digits: 6}
		at := time.Now()
		next := func(s *sqlserial.Store, schema string) (serial.Number, error) {
			tx, err := db.BeginTx(t.Context(), nil)
			must(t, err)
			defer func() { must(t, tx.Commit()) }()
			g.do(t, tx, g.use(schema))
			return s.NextIn(t.Context(), tx, series, at)
		}
		create := func(table string) *sqlserial.Store {
			s, err := sqlserial.New(db, g.config(table))
			must(t, err)
			must(t, s.CreateTables(t.Context()))
			must(t, s.Define(t.Context(), series))
			return s
		}
		s := create("")
		given := map[string]bool{}
		for _, schema := range []string{g.first, g.second, g.first, g.second} {
			n, err := next(s, schema)
			if err != nil || given[n.Text] {
				t.Errorf("NextIn in %s = %v, %v; want a number that was not given before", schema, n, err)
			}
			given[n.Text] = true
		}

		// A Store that has not looked for its tables takes those of the transaction only if there are
		// no others.
		fresh, err := sqlserial.New(db, g.config(""))
		must(t, err)
		if n, err := next(fresh, g.second); !errors.Is(err, sqlstore.ErrNoTable) || n != (serial.Number{}) {
			t.Errorf("first NextIn in a schema without tables = %v, %v; want %v", n, err, sqlstore.ErrNoTable)
		}
		if n, err := next(fresh, g.first); err != nil || n.N != 5 {
			t.Errorf("NextIn after that = %v, %v; want 5", n, err)
		}
		if n, err := next(fresh, g.second); err != nil || n.N != 6 {
			t.Errorf("NextIn after that = %v, %v; want 6", n, err)
		}
		create(g.second + ".snowkey_counters")
		fresh, err = sqlserial.New(db, g.config(""))
		must(t, err)
		for _, schema := range []string{g.second, g.first} {
			if n, err := next(fresh, schema); !errors.Is(err, sqlstore.ErrOtherSchema) || n != (serial.Number{}) ||
				!strings.Contains(err.Error(), g.first+".snowkey_counters") || !strings.Contains(err.Error(), g.second+".snowkey_counters") {
				t.Errorf("first NextIn in %s, one of two schemas with tables = %v, %v; want %v, and both names", schema, n, err, sqlstore.ErrOtherSchema)
			}
		}
		must(t, fresh.Define(t.Context(), series))
		if n, err := next(fresh, g.second); err != nil || n.N != 7 {
			t.Errorf("NextIn after Define = %v, %v; want 7, of %s", n, err, g.first)
		}
	})
}

func TestDroppedTableIsMissingAndNeverThatOfAnotherSchema(t *testing.T) {
	eachStore(t, func(t *testing.T, g namesTarget, table string, db *sql.DB, open func(string, bool) namedStore) {
		s := open("", true)
		open(g.second, true)
		g.do(t, db, "DROP TABLE "+g.first+"."+table, g.use(g.second))
		err := readOrClaim(t, s)
		var missing *sqlstore.TableError
		if !errors.As(err, &missing) || !errors.Is(err, sqlstore.ErrNoTable) || missing.Tables[0] != g.first+"."+table {
			t.Errorf("%s after it was dropped = %v; want %v of that of %s", table, err, sqlstore.ErrNoTable, g.first)
		}
		wantError(t, "CreateTables of "+table+" after it was dropped", s.CreateTables(t.Context()), sqlstore.ErrOtherSchema)
	})
}

// readOrClaim runs an operation that needs the first table.
func readOrClaim(t *testing.T, s any) error {
	t.Helper()
	switch s := s.(type) {
	case lease.Store:
		_, err := s.Claim(t.Context(), newLease())
		return err
	case *sqlsegment.Store:
		_, err := s.Rows(t.Context())
		return err
	case *sqlserial.Store:
		_, err := s.Rows(t.Context())
		return err
	}
	return fmt.Errorf("a %T", s)
}

// PostgreSQL looks for every table among the temporary ones first.
func TestTemporaryTableIsNoTableOfAStore(t *testing.T) {
	g := namesPostgres(t)
	for table := range stores {
		db := g.openOne(t)
		open := g.opening(t, table, db)
		g.do(t, db, "CREATE TEMPORARY TABLE "+table+" (series TEXT)", "SET search_path TO pg_temp, "+g.first)
		must(t, readOrClaim(t, open("", true)))
		must(t, readOrClaim(t, open("", false)))
		if n := g.count(t, "SELECT COUNT(*) FROM pg_tables WHERE schemaname = '"+g.first+"' AND tablename = '"+table+"'"); n != 1 {
			t.Errorf("%d tables %s in %s; want 1", n, table, g.first)
		}
	}
}

// "$user" may be any name.
func TestSchemaOfAnyNameIsNamedInFull(t *testing.T) {
	g := namesPostgres(t)
	for _, schema := range []string{"Shop-2", `sh"op.x`, "läden", "who?"} {
		db, quoted := g.openOne(t), `"`+strings.ReplaceAll(schema, `"`, `""`)+`"`
		g.do(t, db, "CREATE SCHEMA "+quoted, "SET search_path TO "+quoted)
		for table := range stores {
			s := g.opening(t, table, db)("", false)
			if schema == "who?" { // a question mark is a parameter
				wantError(t, "CreateTables of "+table+" in a schema with a question mark", s.CreateTables(t.Context()), sqlstore.ErrNoTable, "Config.Table")
				continue
			}
			must(t, s.CreateTables(t.Context()))
			must(t, readOrClaim(t, s))
			g.count(t, "SELECT COUNT(*) FROM "+quoted+"."+table) // it is there
		}
		g.do(t, db, "DROP SCHEMA "+quoted+" CASCADE")
	}
}

func TestConnectionWithoutASchemaIsToldSo(t *testing.T) {
	eachNamed(t, func(t *testing.T, g namesTarget) {
		db := g.openOne(t)
		if g.dialect() == sqlstore.PostgreSQL {
			g.do(t, db, "SET search_path TO nowhere")
		} else {
			config, err := mysql.ParseDSN(g.dsn)
			must(t, err)
			config.DBName = ""
			g.dsn = config.FormatDSN()
			db = g.openOne(t)
		}
		for table := range stores {
			open := g.opening(t, table, db)
			for _, err := range []error{readOrClaim(t, open("", false)), open("", false).CreateTables(t.Context())} {
				wantError(t, table+" without a schema", err, sqlstore.ErrNoTable, "Config.Table")
			}
			must(t, readOrClaim(t, open(g.first, true)))
		}
	})
}

func TestIDNextCountsInItsOwnSequenceUnderEveryPath(t *testing.T) {
	g := namesPostgres(t)
	db := g.openOne(t)
	statements, err := keysql.Default(keysql.PostgreSQL, core.Default(), 0, 1, g.first)
	must(t, err)
	g.do(t, db, statements...)
	// What the names lead to by the path has a sequence that would begin anew.
	g.do(t, db, "CREATE SEQUENCE "+g.second+".snowkey_next", "CREATE TEMPORARY SEQUENCE snowkey_next",
		"CREATE TABLE "+g.first+".orders (id BIGINT PRIMARY KEY DEFAULT "+g.first+".id_next())")
	for i := range 40 {
		g.do(t, db, "SET search_path TO "+[]string{g.first, g.second, "pg_temp, public", "''"}[i%4], "INSERT INTO "+g.first+".orders DEFAULT VALUES")
	}
	if n := g.count(t, "SELECT COUNT(*) FROM "+g.first+".orders"); n != 40 {
		t.Errorf("%d rows; want 40", n)
	}
	for _, other := range []string{g.second + ".snowkey_next", "pg_temp.snowkey_next"} {
		var used bool
		must(t, db.QueryRow("SELECT is_called FROM "+other).Scan(&used))
		if used {
			t.Errorf("id_next has counted in %s", other)
		}
	}
}
