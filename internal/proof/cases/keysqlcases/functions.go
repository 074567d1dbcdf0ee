package keysqlcases

import (
	"database/sql"
	"reflect"
	"slices"
	"strings"
	"testing"

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
