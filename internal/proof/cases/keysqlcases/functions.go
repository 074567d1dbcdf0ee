package keysqlcases

import (
	"database/sql"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/keysql"
)

// RunFunctions runs the cases of the functions and of the view that keysql installs. The database
// of db is the cases' own.
func RunFunctions(t *testing.T, db *sql.DB, d keysql.Dialect) {
	x := newDatabase(db, d)
	x.table, x.name, x.count, x.wide = keysql.MySQL.Quote("Order"), "id", 2000, d != keysql.SQLite
	if d == keysql.PostgreSQL {
		x.table = d.Quote("Order")
	}
	x.each(t, "CREATE TABLE ", func(t *testing.T, c *check) {
		view := strings.Replace(x.table, "Order", "select", 1)
		statements, err := c.column.View("select", "Order")
		c.install(t, statements, err)
		defer c.exec(t, "DROP VIEW "+view)
		parts := []string{"id_time", "0", "id_worker", "id_sequence", "0"} // those for which the layout has bits
		if c.layout.DatacenterBits > 0 {
			parts[1] = "id_datacenter"
		}
		if c.layout.ShardBits > 0 {
			parts[4] = "id_shard"
		}
		c.compare(t, view+" WHERE made IS NOT NULL", c.parts(parts))
		if d == keysql.SQLite {
			return
		}
		statements, err = keysql.Functions(d, c.layout, "")
		c.install(t, statements, err)
		for i := range parts {
			if parts[i] != "0" {
				parts[i] += "(id)"
			}
		}
		c.compare(t, x.table, c.parts(parts), c.ends("id_min(made)", "id_max(made)"))
		want := [][]string{{null, null, null, null, null}}
		if got := c.values(t, "SELECT id_time(NULL), id_worker(NULL), id_sequence(NULL), id_min(NULL), id_max(NULL)"); !reflect.DeepEqual(got, want) {
			t.Errorf("functions of NULL = %v; want NULLs", got)
		}
		if d != keysql.PostgreSQL {
			return
		}
		want = [][]string{{"0", c.layout.Max(c.layout.Exhausted()).String()}}
		if got := c.values(t, "SELECT id_min('-infinity'), id_max('infinity')"); !reflect.DeepEqual(got, want) {
			t.Errorf("id_min(-infinity), id_max(infinity) = %v; want the ends of the layout, %v", got, want)
		}
	})
}

// install runs statements twice, of which the second time is the same.
func (c *check) install(t *testing.T, statements []string, err error) {
	t.Helper()
	must(t, err)
	for _, statement := range slices.Concat(statements, statements) {
		c.exec(t, statement)
	}
}

// CallingFunctions returns the SQL that docs/reading.md shows for a dialect.
func CallingFunctions(d keysql.Dialect) string {
	monday, tuesday := "id_min('2026-05-04 00:00Z')", "id_min('2026-05-05 00:00Z')"
	if d == keysql.MySQL {
		monday, tuesday = "(SELECT max(id_min('2026-05-04')))", "(SELECT max(id_min('2026-05-05')))"
	}
	return fmt.Sprintf(`SELECT id_time(id) AS made_at, id_worker(id) AS worker, number FROM orders
WHERE id >= %s AND id < %s;
`, monday, tuesday)
}

// RunPlans runs the cases that look at plans, on a table with the given number of rows, of
// 100,000 or more, with a minute between two.
func RunPlans(t *testing.T, db *sql.DB, d keysql.Dialect, rows int) {
	x := newDatabase(db, d)
	conn, err := db.Conn(t.Context())
	must(t, err)
	defer conn.Close()
	c := &check{Database: x, conn: conn, layout: core.Default()}
	c.exec(t, x.zone)
	c.exec(t, "CREATE TABLE orders (id BIGINT PRIMARY KEY, number VARCHAR(20))")
	defer c.exec(t, "DROP TABLE orders")
	var version string
	must(t, conn.QueryRowContext(t.Context(), "SELECT version()").Scan(&version))
	maria := strings.Contains(version, "MariaDB")
	numbers, analyze := fmt.Sprintf("generate_series(1, %d) AS n", rows), "ANALYZE orders"
	if d == keysql.MySQL {
		digits := "(SELECT 0 AS n UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6 UNION SELECT 7 UNION SELECT 8 UNION SELECT 9)"
		numbers, analyze = "(SELECT 1 + a.n + 10 * b.n + 100 * c.n + 1000 * d.n + 10000 * e.n + 100000 * f.n AS n FROM "+
			digits+" a, "+digits+" b, "+digits+" c, "+digits+" d, "+digits+" e, "+digits+fmt.Sprintf(" f) AS numbers WHERE n <= %d", rows), "ANALYZE TABLE orders"
	}
	c.exec(t, "INSERT INTO orders (id) SELECT (n * CAST(60000 AS "+x.null+")) << 22 FROM "+numbers+" ORDER BY 1")
	c.exec(t, analyze)
	statements, err := keysql.Functions(d, c.layout, "")
	must(t, err)
	column, err := keysql.New(d, c.layout, "id")
	must(t, err)
	view, err := column.View("orders_read", "orders")
	must(t, err)
	for _, statement := range append(statements, view...) {
		c.exec(t, statement)
	}
	defer c.exec(t, "DROP VIEW orders_read")
	statement := CallingFunctions(d)
	if n := len(c.values(t, strings.TrimSuffix(statement, ";\n"))); rows == 1_000_000 && n != 24*60 {
		t.Errorf("%s = %d rows; want %d", statement, n, 24*60)
	}
	now, day, indexed := "now()", "now() + interval '1 day'", "Index Cond: ("
	if d == keysql.MySQL {
		indexed = x.span
		now, day = "utc_timestamp(6)", "utc_timestamp(6) + INTERVAL 1 DAY"
	}
	// Of the last days, since a condition that most rows meet reads the table.
	recent := c.layout.Epoch.Add(time.Duration(rows)*time.Minute).AddDate(0, 0, -5)
	from, until := "'"+recent.Format(time.DateOnly)+"'", "'"+recent.AddDate(0, 0, 1).Format(time.DateOnly)+"'"
	for condition, index := range map[string]bool{
		"id >= id_min(" + from + ")":                                                         d == keysql.PostgreSQL || maria,
		"id >= id_min(" + from + ") AND id <= id_max(" + until + ")":                         d == keysql.PostgreSQL || maria,
		"id >= id_min(" + now + ") AND id < id_min(" + day + ")":                             d == keysql.PostgreSQL || maria,
		"id >= id_min((SELECT max(" + now + ")))":                                            d == keysql.PostgreSQL || maria,
		"id >= (SELECT max(id_min(" + from + ")))":                                           true,
		"id >= (SELECT max(id_min(" + now + "))) AND id < (SELECT max(id_min(" + day + ")))": true,
		"id_time(id) >= " + from:                                                             false,
		"id_worker(id) = 3":                                                                  false,
	} {
		for _, table := range []string{"orders", "orders_read"} {
			query := x.plan + "SELECT id FROM " + table + " WHERE " + condition
			plan := c.planOf(t, query)
			if got := strings.Contains(plan, indexed); got != index {
				t.Errorf("%s uses the index: %v; want %v\n%s", query, got, index, plan)
			}
		}
	}
}
