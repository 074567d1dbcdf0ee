package keysqlcases

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/keysql"
	"github.com/snowkey/snowkey/types"
)

// Statements returns SQL that reads orders by their keys. docs/reading.md shows that of databases.
func Statements(d keysql.Dialect) string {
	c, err := keysql.New(d, core.Default(), "id")
	if err != nil {
		panic(err) // the page has the dialects that there are
	}
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
	c, err := keysql.New(d, core.Default(), "id")
	if err != nil {
		panic(err) // the page has the dialects that there are
	}
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
	c, err := keysql.New(d, core.Default(), "id")
	if err != nil {
		panic(err) // the page has the dialects that there are
	}
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
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	c := &check{Database: x, conn: conn, layout: core.Default()}
	c.exec(t, x.zone)
	c.exec(t, "CREATE TEMPORARY TABLE orders (id "+x.key+", number VARCHAR(20))")
	defer c.exec(t, "DROP TABLE orders")
	monday := time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC)
	last := monday.AddDate(0, 0, 1).Add(-time.Millisecond)
	for number, at := range map[string]time.Time{"Sunday": monday.Add(-1), "Monday": last, "Tuesday": monday.AddDate(0, 0, 1)} {
		id, err := c.layout.Compose(core.Parts{Time: at, Worker: 700, Sequence: 4000})
		if err != nil {
			t.Fatal(err)
		}
		c.exec(t, fmt.Sprintf("INSERT INTO orders VALUES (%d, '%s')", id, number))
	}
	statements := strings.Split(Statements(x.Dialect), ";\n")

	var rows []string
	c.query(t, statements[0], func(row *sql.Rows) error {
		var id, worker, sequence int64
		var number, made string
		err := row.Scan(&id, &number, &made, &worker, &sequence)
		rows = append(rows, fmt.Sprint(number, " ", worker, " ", sequence))
		return err
	})
	if got := strings.Join(rows, ", "); got != "Sunday 700 4000, Monday 700 4000, Tuesday 700 4000" {
		t.Errorf("%s\n= %s; want the three orders of worker 700", statements[0], got)
	}
	rows = nil
	c.query(t, statements[1], func(row *sql.Rows) error {
		var id types.Snowflake
		var number string
		err := row.Scan(&id, &number)
		rows = append(rows, fmt.Sprint(number, " ", c.layout.Parts(id).Time.Equal(last)))
		return err
	})
	if got := strings.Join(rows, ", "); got != "Monday true" {
		t.Errorf("%s\n= %s; want the order of Monday", statements[1], got)
	}
	if !x.Dialect.Valid() {
		return // the page has no more for warehouses
	}
	for statement := range strings.SplitSeq(JSON(x.Dialect), ";\n") {
		if strings.Contains(statement, "CREATE VIEW") {
			c.exec(t, statement)
			defer c.exec(t, "DROP VIEW orders_json")
		} else if statement != "" {
			c.objects(t, statement)
		}
	}
}

// objects reads the three orders from their JSON.
func (c *check) objects(t *testing.T, statement string) {
	t.Helper()
	var got []string
	c.query(t, statement, func(row *sql.Rows) error {
		var text string
		var order struct {
			ID     types.Snowflake
			Number string
		}
		if err := row.Scan(&text); err != nil {
			return err
		}
		err := json.Unmarshal([]byte(text), &order)
		got = append(got, fmt.Sprint(order.Number, " ", c.layout.Parts(order.ID).Sequence))
		return err
	})
	slices.Sort(got)
	if want := []string{"Monday 4000", "Sunday 4000", "Tuesday 4000"}; !slices.Equal(got, want) {
		t.Errorf("%s = %q; want %q", statement, got, want)
	}
}

// row runs a query that returns one row.
func (c *check) row(t *testing.T, text string, dest ...any) {
	t.Helper()
	n := 0
	c.query(t, text, func(row *sql.Rows) error {
		n++
		return row.Scan(dest...)
	})
	if n != 1 {
		t.Fatalf("Query(%s) = %d rows; want 1", text, n)
	}
}

// query runs a query and hands its rows to scan.
func (c *check) query(t *testing.T, text string, scan func(*sql.Rows) error) {
	t.Helper()
	rows, err := c.conn.QueryContext(t.Context(), c.spoken(text))
	if err != nil {
		t.Fatalf("Query(%s) = %v", text, err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			t.Fatalf("Scan(%s) = %v", text, err)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("Query(%s) = %v", text, err)
	}
}
