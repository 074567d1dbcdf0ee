package servers

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/keysql"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
)

// A partitioned database is one of the test's own.
type partitioned struct {
	*sql.DB
	way
	parts keysql.Partitions
}

func (w way) partitioned(t *testing.T) partitioned {
	t.Helper()
	return partitioned{DB: w.place(t).open(t).DB, way: w}
}

// partitionTargets runs a test on each server, on days in Berlin of keys of the default layout.
func partitionTargets(t *testing.T, test func(t *testing.T, g partitioned)) {
	eachServer(t, func(t *testing.T, w way) {
		g := w.partitioned(t)
		g.parts = g.partitions(t, "orders", keysql.Day)
		test(t, g)
	})
}

func (g partitioned) partitions(t *testing.T, table string, every keysql.Period) keysql.Partitions {
	t.Helper()
	column, err := keysql.New(g.dialect(), core.Default(), "id")
	must(t, err)
	berlin, err := time.LoadLocation("Europe/Berlin")
	must(t, err)
	p, err := column.Partitions(table, every, berlin)
	must(t, err)
	return p
}

func (g partitioned) exec(t *testing.T, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := g.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s\n= %v; want no error", s, err)
		}
	}
}

// make makes the table orders.
func (g partitioned) make(t *testing.T) {
	t.Helper()
	if g.dialect() == keysql.PostgreSQL {
		g.exec(t, "CREATE TABLE orders (id bigint PRIMARY KEY, number text DEFAULT 'A' CHECK (number <> '')) PARTITION BY RANGE (id)", "CREATE INDEX ON orders (number)")
	} else {
		g.exec(t, "CREATE TABLE orders (id BIGINT PRIMARY KEY, number VARCHAR(20) DEFAULT 'A')")
	}
}

func (g partitioned) existing(t *testing.T) (all []keysql.Existing) {
	t.Helper()
	rows, err := g.QueryContext(t.Context(), g.parts.Existing())
	must(t, err)
	defer rows.Close()
	for rows.Next() {
		var e keysql.Existing
		must(t, rows.Scan(&e.Name, &e.From, &e.Until))
		all = append(all, e)
	}
	must(t, rows.Err())
	return all
}

func (g partitioned) maintain(t *testing.T, now time.Time, ahead, keep int) keysql.Plan {
	t.Helper()
	plan, err := g.parts.Maintain(g.existing(t), now, ahead, keep)
	must(t, err)
	return plan
}

// keys inserts a row at the first and the last key of each partition.
func (g partitioned) keys(t *testing.T, list []keysql.Partition) {
	t.Helper()
	for _, p := range list {
		g.exec(t, fmt.Sprintf("INSERT INTO orders (id) VALUES (%d), (%d)", p.First, p.Last))
	}
}

func (g partitioned) count(t *testing.T, query string) (n int) {
	t.Helper()
	must(t, g.QueryRowContext(t.Context(), query).Scan(&n))
	return n
}

// october has the day of 25 hours.
var october = time.Date(2026, 10, 23, 12, 0, 0, 0, time.UTC)

func TestPartitionsOfKeySQLHoldTheirKeys(t *testing.T) {
	partitionTargets(t, func(t *testing.T, g partitioned) {
		g.make(t)
		plan := g.maintain(t, october, 3, 0)
		g.exec(t, plan.Create...)
		list, err := g.parts.List(october, october.AddDate(0, 0, 4))
		must(t, err)
		list = list[:4]
		g.keys(t, list)
		for _, p := range list {
			from := p.Name
			if g.dialect() == keysql.MySQL {
				from = "orders PARTITION (" + p.Name + ")"
			}
			if n := g.count(t, fmt.Sprintf("SELECT count(*) FROM %s WHERE id IN (%d, %d)", from, p.First, p.Last)); n != 2 {
				t.Errorf("%s has %d of its first and last key; want 2", p.Name, n)
			}
		}
		if again := g.maintain(t, october, 3, 2); len(again.Create)+len(again.Old) > 0 {
			t.Errorf("Maintain, again = %+v; want nothing to do", again)
		}
		if g.dialect() == keysql.PostgreSQL {
			g.exec(t, plan.Create...) // by another program that had read the catalog before
		} else if _, err := g.ExecContext(t.Context(), plan.Create[0]); err == nil && len(g.existing(t)) != 5 {
			t.Errorf("the statement again = %v, and there are %+v; want 4 partitions and the rest", err, g.existing(t))
		}

		// Ten days later the rows of four forgotten days, on MySQL, are in pmax.
		later := october.AddDate(0, 0, 10)
		if g.dialect() == keysql.MySQL {
			late, err := g.parts.List(october.AddDate(0, 0, 4), october.AddDate(0, 0, 9))
			must(t, err)
			g.keys(t, late)
		}
		rows := g.count(t, "SELECT count(*) FROM orders")
		plan = g.maintain(t, later, 2, 8)
		g.exec(t, plan.Create...)
		if n := g.count(t, "SELECT count(*) FROM orders"); n != rows {
			t.Errorf("rows after Maintain = %d; want %d", n, rows)
		}
		if !slices.Equal(plan.Old, []string{list[0].Name, list[1].Name}) {
			t.Errorf("old are %q; want %s and %s", plan.Old, list[0].Name, list[1].Name)
		}
		g.exec(t, plan.Drop...)
		if n := g.count(t, "SELECT count(*) FROM orders"); n != rows-4 {
			t.Errorf("rows after Drop = %d; want %d", n, rows-4)
		}
		if again := g.maintain(t, later, 2, 8); len(again.Create)+len(again.Old) > 0 {
			t.Errorf("Maintain, again = %+v; want nothing to do", again)
		}
	})
}

func TestPlansSkipPartitionsOfKeySQL(t *testing.T) {
	partitionTargets(t, func(t *testing.T, g partitioned) {
		g.make(t)
		may := time.Date(2026, 5, 3, 12, 0, 0, 0, time.UTC)
		g.exec(t, g.maintain(t, may, 5, 0).Create...)
		list, err := g.parts.List(may, may.AddDate(0, 0, 6))
		must(t, err)
		list = list[:6]
		g.keys(t, list)
		functions, err := keysql.Functions(g.dialect(), core.Default(), "")
		must(t, err)
		g.exec(t, functions...)
		first, last := core.Default().Between(list[2].From, list[2].Until)
		day := [2]string{"'" + list[2].From.UTC().Format(time.DateTime) + "'", "'" + list[2].Until.UTC().Format(time.DateTime) + "'"}
		if g.dialect() == keysql.PostgreSQL {
			day = [2]string{"'" + list[2].From.Format(time.RFC3339) + "'", "'" + list[2].Until.Format(time.RFC3339) + "'"}
		}
		conditions := map[string]bool{
			fmt.Sprintf("id BETWEEN %d AND %d", first, last):                                                true,
			fmt.Sprintf("id >= (SELECT max(id_min(%s))) AND id < (SELECT max(id_min(%s)))", day[0], day[1]): true,
			fmt.Sprintf("id >= id_min(%s) AND id < id_min(%s)", day[0], day[1]):                             g.dialect() == keysql.PostgreSQL || g.server == "MariaDB",
			fmt.Sprintf("id_time(id) >= %s AND id_time(id) < %s", day[0], day[1]):                           false,
		}
		if g.dialect() == keysql.PostgreSQL { // times that are known when the query starts
			conditions["id >= id_min(now()) AND id < id_min(now() + interval '1 second')"] = true
			conditions[fmt.Sprintf("id >= id_min((SELECT max(%s::timestamptz))) AND id < id_min((SELECT max(%s::timestamptz)))", day[0], day[1])] = true
		}
		for condition, skips := range conditions {
			explain := "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) "
			if g.dialect() == keysql.MySQL {
				explain = "EXPLAIN FORMAT=TRADITIONAL "
				if g.server == "MariaDB" {
					explain = "EXPLAIN PARTITIONS "
				}
			}
			plan := strings.Join(slices.DeleteFunc(linesOf(t, g.DB, explain+"SELECT count(*) FROM orders WHERE "+condition), func(line string) bool {
				return strings.Contains(line, "(never executed)")
			}), "\n")
			read := 0
			for _, p := range list {
				if strings.Contains(plan, p.Name) {
					read++
				}
			}
			if skips && read > 1 || !skips && read != len(list) {
				t.Errorf("%s reads %d of %d partitions; want one at most: %v\n%s", condition, read, len(list), skips, plan)
			}
		}
	})
}

// linesOf returns the rows of a query as text.
func linesOf(t *testing.T, db *sql.DB, query string) (lines []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	must(t, err)
	defer rows.Close()
	columns, err := rows.Columns()
	must(t, err)
	for rows.Next() {
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(sql.NullString)
		}
		must(t, rows.Scan(values...))
		line := ""
		for _, v := range values {
			line += v.(*sql.NullString).String + " "
		}
		lines = append(lines, line)
	}
	must(t, rows.Err())
	return lines
}

func TestTwoProgramsMaintainPartitionsOfKeySQL(t *testing.T) {
	partitionTargets(t, func(t *testing.T, g partitioned) {
		g.make(t)
		g.exec(t, g.maintain(t, october, 1, 0).Create...)
		plan := g.maintain(t, october.AddDate(0, 0, 1), 5, 0)
		var done sync.WaitGroup
		var failed [4]error
		for i := range failed {
			done.Go(func() {
				for _, s := range plan.Create {
					if _, err := g.ExecContext(t.Context(), s); err != nil && failed[i] == nil {
						failed[i] = err
					}
				}
			})
		}
		done.Wait()
		succeeded := 0
		for _, err := range failed {
			if err == nil {
				succeeded++
			} else if g.dialect() == keysql.PostgreSQL || !strings.Contains(err.Error(), "1517") && !strings.Contains(err.Error(), "1493") {
				t.Errorf("one of four = %v; want no error, and on MySQL one of a duplicate partition", err)
			}
		}
		if succeeded == 0 {
			t.Error("all of four failed")
		}
		if again := g.maintain(t, october.AddDate(0, 0, 1), 5, 0); len(again.Create) > 0 {
			t.Errorf("Maintain, after four at once = %q; want nothing to do", again.Create)
		}
	})
}

func TestMySQLPartitionsOfKeySQLAndForeignKeys(t *testing.T) {
	partitionTargets(t, func(t *testing.T, g partitioned) {
		if g.dialect() == keysql.PostgreSQL {
			return
		}
		g.make(t)
		g.exec(t, "CREATE TABLE order_lines (id BIGINT PRIMARY KEY, order_id BIGINT, CONSTRAINT of_order FOREIGN KEY (order_id) REFERENCES orders (id))")
		for _, table := range []string{"orders", "order_lines"} {
			g.parts = g.partitions(t, table, keysql.Month)
			_, err := g.parts.Maintain(g.existing(t), october, 1, 0)
			var value *core.ValueError
			if !errors.As(err, &value) || !strings.Contains(err.Error(), "order_lines.of_order") || !strings.Contains(err.Error(), "MySQL divides no table") {
				t.Errorf("Maintain of %s = %v; want an error that names the foreign key", table, err)
			}
		}
	})
}

// Writers and readers go on while the table gets partitions, and every row is there afterwards.
func TestConvertKeepsEveryRowOnPostgres(t *testing.T) {
	g := wayTo("pgx").partitioned(t)
	g.exec(t, "CREATE TABLE customers (id bigint PRIMARY KEY)", "INSERT INTO customers VALUES (1)",
		`CREATE TABLE "Order" (id bigint PRIMARY KEY, customer bigint DEFAULT 1 REFERENCES customers, number text NOT NULL DEFAULT 'A' CHECK (number <> ''))`,
		`CREATE INDEX by_number ON "Order" (number)`, `GRANT SELECT ON "Order" TO PUBLIC`)
	g.parts = g.partitions(t, "Order", keysql.Day)

	stop, cancel := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	var written, next atomic.Int64
	at := time.Now()
	now := core.Default().Min(at)
	for range 4 {
		writers.Go(func() {
			for stop.Err() == nil {
				id := int64(now) + next.Add(1)
				if _, err := g.ExecContext(t.Context(), `INSERT INTO "Order" (id) VALUES ($1)`, id); err != nil {
					t.Errorf("a writer = %v; want no error", err)
					return
				}
				var found int64
				if err := g.QueryRowContext(t.Context(), `SELECT id FROM "Order" WHERE id = $1`, id).Scan(&found); err != nil {
					t.Errorf("a reader of its row = %v; want it", err)
				}
				written.Add(1)
			}
		})
	}
	waitFor := func(n int64) {
		for deadline := time.Now().Add(time.Minute); written.Load() < n && time.Now().Before(deadline) && !t.Failed(); {
			time.Sleep(time.Millisecond)
		}
	}
	waitFor(200)
	statements, err := g.parts.Convert(at, 3)
	must(t, err)
	for i := range statements {
		before := written.Load()
		g.exec(t, statements[:i+1]...) // as after a run that has ended before this one
		waitFor(before + 50)
	}
	cancel()
	writers.Wait()
	if n := g.count(t, `SELECT count(*) FROM "Order"`); int64(n) != written.Load() || n == 0 {
		t.Errorf("rows = %d; want the %d written", n, written.Load())
	}
	if n := len(g.existing(t)); n != 4 {
		t.Errorf("partitions = %+v; want the old table and three days", g.existing(t))
	}
	list, err := g.parts.List(at.AddDate(0, 0, 1), at.AddDate(0, 0, 2))
	must(t, err)
	g.exec(t, fmt.Sprintf(`INSERT INTO "Order" (id) VALUES (%d)`, list[0].First))
	for _, wrong := range []string{"customer) VALUES (%d, 2", "number) VALUES (%d, ''"} {
		if _, err := g.ExecContext(t.Context(), fmt.Sprintf(`INSERT INTO "Order" (id, `+wrong+`)`, list[0].First+1)); err == nil {
			t.Errorf("a row of %s was stored; want the table's constraints", wrong)
		}
	}
	if n := g.count(t, `SELECT count(*) FROM pg_class WHERE oid = '"Order"'::regclass AND relacl::text LIKE '%=r/%'`); n != 1 {
		t.Error("the privilege of PUBLIC is gone")
	}
	if plan, err := g.parts.Maintain(g.existing(t), at, 3, 2); err != nil || len(plan.Create)+len(plan.Old) > 0 {
		t.Errorf("Maintain after Convert = %+v, %v; want nothing to do", plan, err)
	}

	back, err := g.parts.Unconvert(at)
	must(t, err)
	if _, err := g.ExecContext(t.Context(), back); err == nil || !strings.Contains(err.Error(), "have rows") {
		t.Errorf("Unconvert of a table with rows after the first partition = %v; want it refused", err)
	}
	g.exec(t, fmt.Sprintf(`DELETE FROM "Order" WHERE id = %d`, list[0].First), back, back)
	if n := g.count(t, `SELECT count(*) FROM "Order"`); int64(n) != written.Load() {
		t.Errorf("rows after Unconvert = %d; want the %d written", n, written.Load())
	}
	if n := g.count(t, `SELECT count(*) FROM pg_class, pg_constraint f, pg_constraint c WHERE pg_class.oid = '"Order"'::regclass AND relkind = 'r' AND relacl::text LIKE '%=r/%'
AND f.conrelid = pg_class.oid AND f.contype = 'f' AND f.conparentid = 0 AND c.conrelid = pg_class.oid AND c.contype = 'c'`); n != 1 {
		t.Errorf("the table after Unconvert is another than before Convert: %d", n)
	}
}

func TestConvertNamesWhatWouldStayBehindOnPostgres(t *testing.T) {
	for what, make := range map[string]string{
		"trigger fires":           "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; CREATE TRIGGER fires BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION f()",
		"view or rule of seen":    "CREATE VIEW seen AS SELECT * FROM orders",
		"foreign key of_order":    "CREATE TABLE lines (order_id bigint, CONSTRAINT of_order FOREIGN KEY (order_id) REFERENCES orders)",
		"policy mine":             "CREATE POLICY mine ON orders",
		"identity column n":       "ALTER TABLE orders ADD n int GENERATED ALWAYS AS IDENTITY",
		"privileges on column id": "GRANT SELECT (id) ON orders TO PUBLIC",
	} {
		g := wayTo("pgx").partitioned(t)
		g.exec(t, "CREATE TABLE orders (id bigint PRIMARY KEY)")
		g.exec(t, strings.Split(make, "; CREATE TR")[0])
		if _, trigger, ok := strings.Cut(make, "; CREATE TR"); ok {
			g.exec(t, "CREATE TR"+trigger)
		}
		g.parts = g.partitions(t, "orders", keysql.Month)
		at := time.Now()
		statements, err := g.parts.Convert(at, 1)
		must(t, err)
		if _, err := g.ExecContext(t.Context(), statements[0]); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("the first statement of Convert with %s = %v; want an error that names it", make, err)
		}
		g.exec(t, "ALTER TABLE orders ADD CONSTRAINT orders_p0 CHECK (id < 9223372036854775807)") // as if it had been made since
		later, err := g.parts.Convert(at.AddDate(0, 2, 0), 1)
		must(t, err)
		if _, err := g.ExecContext(t.Context(), later[0]); err == nil || !strings.Contains(err.Error(), "begun for another time") {
			t.Errorf("Convert for another time after one that was begun = %v; want an error that says so", err)
		}
		if _, err := g.ExecContext(t.Context(), statements[2]); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("Convert with %s = %v; want an error that names it", make, err)
		}
		if n := g.count(t, "SELECT count(*) FROM pg_class WHERE oid = 'orders'::regclass AND relkind = 'r'"); n != 1 {
			t.Errorf("%s: the table has changed", what)
		}
	}
}

// Debian has pg_partman for its PostgreSQL, in a database of its own since it wants a schema of a
// fixed name.
func TestPartmanMakesPartitionsOfKeysOnPostgres(t *testing.T) {
	t.Parallel()
	dsn := servertest.PostgreSQL(t)
	admin := openSqlx(t, "pgx", dsn)
	if n := (partitioned{DB: admin.DB}).count(t, "SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_partman'"); n == 0 {
		if v := postgresVersion(t, admin.DB); v == 15 { // Debian's; CI installs it
			servertest.Missing(t, "pg_partman is not installed: apt-get install postgresql-15-partman")
		}
		t.Skip("no pg_partman for this PostgreSQL")
	}
	name := spaceName()
	space(t, "pgx", dsn, "CREATE DATABASE "+name, "DROP DATABASE "+name)
	g := partitioned{DB: openSqlx(t, "pgx", inDatabase(t, dsn, name)).DB, way: wayTo("pgx")}
	g.exec(t, "CREATE SCHEMA partman", "CREATE EXTENSION pg_partman SCHEMA partman",
		"CREATE TABLE public.orders (id bigint PRIMARY KEY) PARTITION BY RANGE (id)")
	column, err := keysql.New(g.dialect(), core.Default(), "id")
	must(t, err)
	g.parts, err = column.Partitions("public.orders", keysql.Day, time.UTC)
	must(t, err)
	text, err := g.parts.Partman(october, 4)
	must(t, err)
	g.exec(t, text)
	list, err := g.parts.List(october, october.AddDate(0, 0, 8))
	must(t, err)
	made := func() (n int) {
		for _, p := range list {
			if slices.ContainsFunc(g.existing(t), func(e keysql.Existing) bool {
				return e.From == fmt.Sprint(int64(p.First)) && e.Until == fmt.Sprint(int64(p.Last)+1)
			}) {
				n++
			}
		}
		return n
	}
	if n := made(); n < 4 {
		t.Fatalf("pg_partman has made %+v; want the days from %+v", g.existing(t), list[0])
	}
	before := made()
	g.exec(t, fmt.Sprintf("INSERT INTO orders VALUES (%d), (%d)", list[0].First, list[3].Last), "SELECT partman.run_maintenance('public.orders')")
	if n := made(); n <= before {
		t.Errorf("days after rows and maintenance = %d; want more than %d", n, before)
	}
	if n := g.count(t, "SELECT count(*) FROM ONLY orders_default"); n != 0 {
		t.Errorf("rows in the default partition = %d; want none", n)
	}
}

// inDatabase returns a DSN with another database.
func inDatabase(t *testing.T, dsn, name string) string {
	t.Helper()
	u := parsed(t, dsn)
	u.Path = "/" + name
	return u.String()
}
