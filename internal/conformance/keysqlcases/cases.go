// Package keysqlcases tests on a real database that the expressions of keysql return what
// core.Layout does. keysql runs the tests on SQLite, package servers on PostgreSQL, MariaDB
// and MySQL.
package keysqlcases

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/keysql"
	"github.com/snowkey/snowkey/types"
)

// layouts are the presets, and some with special ticks, epochs or widths.
var layouts = map[string]core.Layout{
	"Default":    core.Default(),
	"Twitter":    core.Twitter(),
	"Discord":    core.Discord(),
	"Mastodon":   core.Mastodon(),
	"Instagram":  core.Instagram(),
	"JavaScript": core.JavaScript(),
	"seconds":    {Epoch: time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC), Unit: time.Second, TimeBits: 32, WorkerBits: 11, SequenceBits: 20},
	"3ms":        {Epoch: time.Date(2025, 1, 1, 0, 0, 0, 7e6, time.UTC), Unit: 3 * time.Millisecond, TimeBits: 39, WorkerBits: 12, SequenceBits: 12},
	"1µs":        {Epoch: time.Date(2025, 1, 1, 0, 0, 0, 1000, time.UTC), Unit: time.Microsecond, TimeBits: 52, WorkerBits: 8, SequenceBits: 3},
	"250µs":      {Epoch: time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC), Unit: 250 * time.Microsecond, TimeBits: 42, WorkerBits: 10, SequenceBits: 8},
	"before1970": {Epoch: time.Date(1960, 1, 1, 0, 0, 0, 123456000, time.UTC), Unit: time.Millisecond, TimeBits: 42, SequenceBits: 10},
}

// exact is how long after the epoch the times of keysql are exact.
const exact = 285 * 365 * 24 * time.Hour

// A Database is where the cases run, and how it speaks.
type Database struct {
	DB      *sql.DB
	Dialect keysql.Dialect

	key   string // the type of the column
	null  string // the same in CAST
	zone  string // sets a time zone that is not UTC
	text  string // what returns a time as text
	value string // a literal of a time
	plan  string // explains a query
	span  string // what its plan says if it reads a range of the key
	unit  time.Duration
}

// Run runs the cases.
func Run(t *testing.T, db *sql.DB, d keysql.Dialect) {
	x := Database{DB: db, Dialect: d, key: "BIGINT", null: "BIGINT", unit: time.Microsecond}
	switch d {
	case keysql.PostgreSQL:
		x.zone = "SET TIME ZONE 'America/New_York'"
		x.text, x.value = "to_char((%s) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')", "timestamptz '%sZ'"
		x.plan, x.span = "EXPLAIN ", "Index Cond: ((id > "
	case keysql.MySQL:
		x.zone, x.null = "SET time_zone = '-05:00'", "SIGNED"
		x.text, x.value = "CAST(%s AS CHAR)", "TIMESTAMP '%s'"
		// MySQL 9 and MariaDB have different JSON.
		x.plan, x.span = "EXPLAIN FORMAT=TRADITIONAL ", " range PRIMARY PRIMARY "
	default:
		x.zone, x.key = "SELECT 1", "INTEGER"
		x.text, x.value, x.unit = "%s", "'%s'", time.Millisecond
		x.plan, x.span = "EXPLAIN QUERY PLAN ", "(rowid>? AND rowid<?)"
	}
	t.Run("page", func(t *testing.T) { pageAnswers(t, x) })
	for name, layout := range layouts {
		t.Run(name, func(t *testing.T) {
			conn, err := db.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			c := &check{Database: x, conn: conn, layout: layout, rng: rand.New(rand.NewPCG(1, 2))}
			if c.column, err = keysql.New(d, layout, "keys.id"); err != nil {
				t.Fatal(err)
			}
			c.exec(t, x.zone)
			c.exec(t, "CREATE TEMPORARY TABLE keys_of_layout (id "+x.key+" PRIMARY KEY)")
			defer c.exec(t, "DROP TABLE keys_of_layout")
			c.fill(t)
			c.partsAreThoseOfTheLayout(t)
			c.partsGroupAndOrder(t)
			c.uuidsAreThoseOfTheKeys(t)
			c.minIsThatOfTheLayout(t)
			c.minOfNoTime(t)
			c.betweenSelectsTheKeysMadeThen(t)
			c.betweenUsesTheIndexOfTheKey(t)
		})
	}
}

// A check is one layout on one connection.
type check struct {
	Database
	conn   *sql.Conn
	layout core.Layout
	column keysql.Column
	rng    *rand.Rand
	keys   []types.Snowflake
}

func (c *check) exec(t *testing.T, text string) {
	t.Helper()
	if _, err := c.conn.ExecContext(context.WithoutCancel(t.Context()), text); err != nil {
		t.Fatalf("Exec(%q) = %v", text, err)
	}
}

// end is the first moment without keys, or without exact times.
func (c *check) end() time.Time {
	if limit := c.layout.Epoch.Add(exact); c.layout.Exhausted().After(limit) {
		return limit
	}
	return c.layout.Exhausted()
}

// moment returns a random time of the layout.
func (c *check) moment() time.Time {
	seconds := c.end().Unix() - c.layout.Epoch.Unix() - 1
	return c.layout.Epoch.Add(time.Duration(c.rng.Int64N(seconds)) * time.Second).Add(time.Duration(c.rng.Int64N(1e9)))
}

// fill stores random keys, and the first and the last.
func (c *check) fill(t *testing.T) {
	t.Helper()
	last := c.layout.Max(c.end().Add(-1))
	seen := map[types.Snowflake]bool{0: true, last: true}
	for len(seen) < 300 {
		low := types.Snowflake(c.rng.Int64N(int64(1) << (c.layout.DatacenterBits + c.layout.WorkerBits + c.layout.SequenceBits)))
		seen[c.layout.Min(c.moment())+low] = true
	}
	var rows []string
	for id := range seen {
		c.keys = append(c.keys, id)
		rows = append(rows, fmt.Sprintf("(%d)", id))
	}
	c.exec(t, "INSERT INTO keys_of_layout VALUES "+strings.Join(rows, ", "))
}

func (c *check) partsAreThoseOfTheLayout(t *testing.T) {
	query := "SELECT id, " + fmt.Sprintf(c.text, c.column.Time()) + ", " + c.column.Datacenter() + ", " +
		c.column.Worker() + ", " + c.column.Sequence() + " FROM keys_of_layout AS " + c.alias()
	n := 0
	c.query(t, query, func(row *sql.Rows) error {
		n++
		var id types.Snowflake
		var text string
		var got core.Parts
		err := row.Scan(&id, &text, &got.Datacenter, &got.Worker, &got.Sequence)
		if err != nil {
			return err
		}
		got.Time, err = time.Parse("2006-01-02 15:04:05.999999", text)
		if want := c.layout.Parts(id); got != want {
			t.Errorf("parts of %d in SQL = %+v; want %+v\n%s", id, got, want, query)
		}
		return err
	})
	if n != len(c.keys) {
		t.Errorf("rows = %d; want %d", n, len(c.keys))
	}
}

// A number alone would be the position of a column there.
func (c *check) partsGroupAndOrder(t *testing.T) {
	for _, part := range []string{c.column.Time(), c.column.Datacenter(), c.column.Worker(), c.column.Sequence()} {
		n := 0
		c.query(t, "SELECT count(*) FROM keys_of_layout AS "+c.alias()+" GROUP BY "+part+" ORDER BY "+part, func(row *sql.Rows) error {
			var keys int
			err := row.Scan(&keys)
			n += keys
			return err
		})
		if n != len(c.keys) {
			t.Errorf("keys in groups of %s = %d; want %d", part, n, len(c.keys))
		}
	}
}

// On PostgreSQL the database compares uuids, elsewhere their text.
func (c *check) uuidsAreThoseOfTheKeys(t *testing.T) {
	uuid := c.column.UUID()
	n, last := 0, types.Snowflake(-1)
	c.query(t, "SELECT id, "+uuid+" FROM keys_of_layout AS "+c.alias()+" ORDER BY 2", func(row *sql.Rows) error {
		n++
		var id types.Snowflake
		var got string
		err := row.Scan(&id, &got)
		u := id.UUID()
		if want := fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:]); got != want || id <= last {
			t.Errorf("UUID of %d in SQL, after that of %d = %s; want %s, in the order of the keys\n%s", id, last, got, want, uuid)
		}
		last = id
		return err
	})
	if n != len(c.keys) {
		t.Errorf("rows = %d; want %d", n, len(c.keys))
	}
	var none sql.NullString
	query := "SELECT " + uuid + " FROM (SELECT CAST(NULL AS " + c.null + ") AS id) AS " + c.alias()
	if err := c.conn.QueryRowContext(t.Context(), query).Scan(&none); err != nil || none.Valid {
		t.Errorf("%s = %+v, %v; want NULL", query, none, err)
	}
}

func (c *check) minIsThatOfTheLayout(t *testing.T) {
	moments := []time.Time{
		c.layout.Epoch, c.layout.Epoch.Add(-time.Second), c.end().Add(-time.Millisecond).Truncate(time.Millisecond),
		time.Date(1950, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC),
	}
	for range 40 {
		moments = append(moments, c.moment())
	}
	for _, at := range moments {
		at = at.Truncate(c.unit)
		query := "SELECT " + c.column.Min(c.literal(at))
		var got types.Snowflake
		if err := c.conn.QueryRowContext(t.Context(), query).Scan(&got); err != nil {
			t.Fatalf("%s = %v", query, err)
		}
		if want := c.layout.Min(at); got != want {
			t.Errorf("%s = %d; want %d", query, got, want)
		}
	}
}

// PostgreSQL's least and greatest pass over a NULL.
func (c *check) minOfNoTime(t *testing.T) {
	want, at := sql.NullInt64{}, "NULL"
	if c.Dialect == keysql.PostgreSQL {
		want, at = sql.NullInt64{Valid: true}, "NULL::timestamptz"
	}
	query := "SELECT " + c.column.Min(at)
	var got sql.NullInt64
	if err := c.conn.QueryRowContext(t.Context(), query).Scan(&got); err != nil || got != want {
		t.Errorf("%s = %+v, %v; want %+v", query, got, err, want)
	}
}

func (c *check) betweenSelectsTheKeysMadeThen(t *testing.T) {
	for n := range 20 {
		from, to := c.moment().Truncate(c.unit), c.moment().Truncate(c.unit)
		if n == 0 { // and the last tick
			to = c.end().Truncate(c.unit).Add(c.unit)
		}
		want := 0
		for _, id := range c.keys {
			if first, last := c.layout.Between(from, to); first <= id && id <= last {
				want++
			}
		}
		query := "SELECT count(*) FROM keys_of_layout AS " + c.alias() + " WHERE " + c.column.Between(c.literal(from), c.literal(to))
		var got int
		if err := c.conn.QueryRowContext(t.Context(), query).Scan(&got); err != nil || got != want {
			t.Errorf("%s = %d, %v; want %d", query, got, err, want)
		}
	}
}

func (c *check) betweenUsesTheIndexOfTheKey(t *testing.T) {
	if c.Dialect == keysql.PostgreSQL { // which reads a small table whole
		c.exec(t, "SET enable_seqscan = off")
		c.exec(t, "SET enable_bitmapscan = off")
	}
	query := c.plan + "SELECT id FROM keys_of_layout AS " + c.alias() + " WHERE " + c.column.Between(c.literal(c.layout.Epoch), c.literal(c.layout.Epoch.Add(time.Hour)))
	plan := ""
	c.query(t, query, func(row *sql.Rows) error {
		columns, err := row.Columns()
		if err != nil {
			return err
		}
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(sql.NullString)
		}
		err = row.Scan(values...)
		for _, value := range values {
			plan += value.(*sql.NullString).String + " "
		}
		return err
	})
	if !strings.Contains(plan, c.span) {
		t.Errorf("%s = %s; want %s", query, plan, c.span)
	}
}

// alias returns the name of the table in the name of the column. It is a keyword of MySQL.
func (c *check) alias() string { return c.Dialect.Quote("keys") }

func (c *check) literal(at time.Time) string {
	return fmt.Sprintf(c.value, at.UTC().Format("2006-01-02 15:04:05.999999"))
}
