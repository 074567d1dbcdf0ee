package keysqlcases

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/keysql"
	"github.com/snowkey/snowkey/types"
)

// Statements returns the SQL that docs/reading.md shows for a dialect.
func Statements(d keysql.Dialect) string {
	c, err := keysql.New(d, core.Default(), "id")
	if err != nil {
		panic(err) // the page has the dialects that there are
	}
	monday, tuesday := "'2026-05-04'", "'2026-05-05'"
	if d == keysql.PostgreSQL {
		monday, tuesday = "timestamptz '2026-05-04 00:00Z'", "timestamptz '2026-05-05 00:00Z'"
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

-- The smallest key of that day.
SELECT %s;
`, c.Time(), c.Worker(), c.Sequence(), c.Between(monday, tuesday), c.Min(monday))
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
	c.exec(t, "CREATE TEMPORARY TABLE orders (id "+x.key+" PRIMARY KEY, number VARCHAR(20))")
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
	c.query(t, statements[2], func(row *sql.Rows) error {
		var id types.Snowflake
		err := row.Scan(&id)
		if want := c.layout.Min(monday); id != want {
			t.Errorf("%s\n= %d; want %d", statements[2], id, want)
		}
		return err
	})
}

// query runs a query and hands its rows to scan.
func (c *check) query(t *testing.T, text string, scan func(*sql.Rows) error) {
	t.Helper()
	rows, err := c.conn.QueryContext(t.Context(), text)
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
