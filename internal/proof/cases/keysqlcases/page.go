package keysqlcases

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/keysql"
)

// ofThePage returns the column of the page's statements.
func ofThePage(d keysql.Dialect) keysql.Column {
	c, err := keysql.New(d, core.Default(), "id")
	if err != nil {
		panic(err) // the page has the dialects that there are
	}
	return c
}

// Statements returns SQL that reads orders by their keys. docs/reading.md shows that of databases.
func Statements(d keysql.Dialect) string {
	c := ofThePage(d)
	monday, tuesday := "'2026-05-04'", "'2026-05-05'"
	switch d {
	case keysql.PostgreSQL:
		monday, tuesday = "timestamptz '2026-05-04 00:00Z'", "timestamptz '2026-05-05 00:00Z'"
	case keysql.DuckDB, keysql.BigQuery:
		monday, tuesday = "TIMESTAMP '2026-05-04 00:00:00Z'", "TIMESTAMP '2026-05-05 00:00:00Z'"
	}
	return fmt.Sprintf(`-- When was each order made, and by which worker?
SELECT id, number,
  %s AS made_at,
  %s AS worker,
  %s AS sequence
FROM orders ORDER BY id;

-- The orders of Monday, 4 May 2026, in UTC.
SELECT id, number FROM orders
WHERE %s;
`, c.Time(), c.Worker(), c.Sequence(), c.Between(monday, tuesday))
}

// JSON returns the SQL with which docs/reading.md makes JSON.
func JSON(d keysql.Dialect) string {
	c := ofThePage(d)
	switch d {
	case keysql.PostgreSQL:
		return fmt.Sprintf(`SELECT json_build_object('id', %[1]s, 'number', number) FROM orders;

-- row_to_json and json_agg take the key from a view.
CREATE VIEW orders_json AS SELECT %[1]s AS id, number FROM orders;
SELECT row_to_json(o) FROM orders_json AS o;
`, c.Text())
	case keysql.MySQL:
		return fmt.Sprintf("SELECT JSON_OBJECT('id', %s, 'number', number) FROM orders;\n", c.Text())
	}
	return fmt.Sprintf("SELECT json_object('id', %s, 'number', number) FROM orders;\n", c.Text())
}

// CSV returns the SQL with which docs/reading.md writes a file for a spreadsheet.
func CSV(d keysql.Dialect) string {
	c := ofThePage(d)
	if d == keysql.PostgreSQL {
		return fmt.Sprintf("COPY (SELECT '=\"' || %s || '\"' AS id, number FROM orders) TO STDOUT (FORMAT csv, HEADER);\n", c.Text())
	}
	return fmt.Sprintf(`SELECT CONCAT('="', %s, '"'), number FROM orders
INTO OUTFILE '/tmp/orders.csv' FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '"' ESCAPED BY '"';
`, c.Text())
}

// pageAnswers runs the statements of the page on three orders.
func pageAnswers(t *testing.T, x Database) {
	conn, err := x.DB.Conn(t.Context())
	must(t, err)
	defer conn.Close()
	c := &check{Database: x, conn: conn, layout: core.Default()}
	c.exec(t, x.zone)
	c.exec(t, "CREATE TEMPORARY TABLE orders (id "+x.key+", number VARCHAR(20))")
	defer c.exec(t, "DROP TABLE orders")
	monday := time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC)
	keys := map[string]string{} // by number
	for number, at := range map[string]time.Time{"Sunday": monday.Add(-1), "Monday": monday.AddDate(0, 0, 1).Add(-time.Millisecond), "Tuesday": monday.AddDate(0, 0, 1)} {
		id, err := c.layout.Compose(core.Parts{Time: at, Worker: 700, Sequence: 4000})
		must(t, err)
		keys[number] = id.String()
		c.exec(t, fmt.Sprintf("INSERT INTO orders VALUES (%d, '%s')", id, number))
	}
	statements := strings.Split(Statements(x.Dialect), ";\n")
	var got []string
	for _, row := range c.values(t, statements[0]) {
		got = append(got, fmt.Sprint(row[1], " ", row[3], " ", row[4]))
	}
	if want := []string{"Sunday 700 4000", "Monday 700 4000", "Tuesday 700 4000"}; !slices.Equal(got, want) {
		t.Errorf("%s\n= %q; want %q", statements[0], got, want)
	}
	if got, want := c.values(t, statements[1]), [][]string{{keys["Monday"], "Monday"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%s\n= %q; want %q", statements[1], got, want)
	}
	if !x.Dialect.Valid() {
		return // the page has no more for warehouses
	}
	for statement := range strings.SplitSeq(JSON(x.Dialect), ";\n") {
		if strings.Contains(statement, "CREATE VIEW") {
			c.exec(t, statement)
			defer c.exec(t, "DROP VIEW orders_json")
			continue
		}
		if statement == "" {
			continue
		}
		found := map[string]string{}
		for _, row := range c.values(t, statement) {
			var order struct{ ID, Number string }
			if err := json.Unmarshal([]byte(row[0]), &order); err != nil {
				t.Errorf("%s = %s, which is %v", statement, row[0], err)
			}
			found[order.Number] = order.ID
		}
		if !maps.Equal(found, keys) {
			t.Errorf("%s = %v; want %v", statement, found, keys)
		}
	}
}
