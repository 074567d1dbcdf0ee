// Package keysqlcases tests on a real database that the expressions of keysql return what
// core.Layout does. keysql runs the tests on SQLite, package servers on PostgreSQL, MariaDB
// and MySQL, package warehouses on DuckDB and ClickHouse.
package keysqlcases

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math/big"
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
	"shards":     {Epoch: time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC), Unit: time.Millisecond, TimeBits: 41, WorkerBits: 10, SequenceBits: 12, ShardBits: 8},
	"before1970": {Epoch: time.Date(1960, 1, 1, 0, 0, 0, 123456000, time.UTC), Unit: time.Millisecond, TimeBits: 42, SequenceBits: 10},
}

// exact is how long after the epoch the times of keysql are exact.
const exact = 285 * 365 * 24 * time.Hour

// A Database is where the cases run, and how it speaks.
type Database struct {
	DB      *sql.DB
	Dialect keysql.Dialect

	key   string   // the type of the column and its constraint
	null  string   // a type that takes NULL, in CAST
	zone  string   // sets a time zone that is not UTC
	text  string   // what returns a time as text
	value string   // a literal of a time
	later string   // adds microseconds to a time
	none  string   // a time that is NULL
	json  []string // make JSON of a text and of a number
	plan  string   // explains a query; none: the database has no index for it
	span  string   // what its plan says if it reads a range of the key
	unit  time.Duration
	count int       // of the keys
	end   time.Time // of the times that the database represents
}

// newDatabase returns a database with its words.
func newDatabase(db *sql.DB, d keysql.Dialect) Database {
	x := Database{DB: db, Dialect: d, key: "BIGINT PRIMARY KEY", null: "BIGINT", none: "NULL", unit: time.Microsecond, count: 300,
		end: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)}
	switch d {
	case keysql.PostgreSQL:
		x.zone = "SET TIME ZONE 'America/New_York'"
		x.text, x.value, x.none = "to_char((%s) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')", "timestamptz '%sZ'", "NULL::timestamptz"
		x.later = "(%s + interval '%d microseconds')"
		x.json = []string{
			"json_build_object('text', %[1]s, 'number', %[2]s)", "jsonb_build_object('text', %[1]s, 'number', %[2]s)",
			"(SELECT row_to_json(v) FROM (SELECT %[1]s AS text, %[2]s AS number) AS v)",
		}
		x.plan, x.span = "EXPLAIN ", "Index Cond: ((id > "
	case keysql.MySQL:
		x.zone, x.null = "SET time_zone = '-05:00'", "SIGNED"
		x.text, x.value = "CAST(%s AS CHAR)", "TIMESTAMP '%s'"
		x.later = "%s + INTERVAL %d MICROSECOND"
		x.json = []string{"JSON_OBJECT('text', %[1]s, 'number', %[2]s)"}
		// MySQL 9 and MariaDB have different JSON.
		x.plan, x.span = "EXPLAIN FORMAT=TRADITIONAL ", " range PRIMARY PRIMARY "
	case keysql.DuckDB, keysql.BigQuery: // whose text package warehouses runs on DuckDB
		x.zone, x.count = "SET TimeZone = 'America/New_York'", 10_000
		x.text, x.value, x.none = "strftime(%s, '%%Y-%%m-%%d %%H:%%M:%%S.%%f')", "TIMESTAMP '%s'", "NULL::TIMESTAMP"
		x.later = "%s + to_microseconds(%d)"
		x.json = []string{
			"CAST(json_object('text', %[1]s, 'number', %[2]s) AS VARCHAR)",
			"(SELECT CAST(to_json(v) AS VARCHAR) FROM (SELECT %[1]s AS text, %[2]s AS number) AS v)",
		}
	case keysql.ClickHouse:
		x.key, x.null = "BIGINT", "Nullable(BIGINT)"
		x.zone, x.count = "SET session_timezone = 'America/New_York'", 10_000
		x.text, x.value, x.later = "toString(%s)", "'%s'", "addMicroseconds(%s, %d)"
		x.json = []string{"formatRow('JSONEachRow', %[1]s AS text, %[2]s AS number)"}
		x.end = time.Date(2299, 12, 31, 0, 0, 0, 0, time.UTC)
	default:
		x.zone, x.key = "SELECT 1", "INTEGER PRIMARY KEY"
		x.text, x.value, x.unit = "%s", "'%s'", time.Millisecond
		x.json = []string{"json_object('text', %[1]s, 'number', %[2]s)", "json_array(json_object('text', %[1]s, 'number', %[2]s)) ->> 0"}
		x.plan, x.span = "EXPLAIN QUERY PLAN ", "(rowid>? AND rowid<?)"
	}
	return x
}

// Run runs the cases.
func Run(t *testing.T, db *sql.DB, d keysql.Dialect) {
	x := newDatabase(db, d)
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
			c.exec(t, "CREATE TEMPORARY TABLE keys_of_layout (id "+x.key+")")
			defer c.exec(t, "DROP TABLE keys_of_layout")
			c.fill(t)
			c.partsAreThoseOfTheLayout(t)
			c.partsGroupAndOrder(t)
			c.uuidsAreThoseOfTheKeys(t)
			c.textsAreThoseOfTheKeys(t)
			c.noKeyHasNoTextAndNoUUID(t)
			c.ticksBeginAndEndAsThoseOfTheLayout(t)
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
	if _, err := c.conn.ExecContext(context.WithoutCancel(t.Context()), c.spoken(text)); err != nil {
		t.Fatalf("Exec(%q) = %v", text, err)
	}
}

// spoken returns the text for the database, which is DuckDB for the dialect BigQuery.
func (c *check) spoken(text string) string {
	if c.Dialect == keysql.BigQuery {
		return strings.ReplaceAll(text, "`", `"`)
	}
	return text
}

// end is the first moment without keys, or without exact times.
func (c *check) end() time.Time {
	end := c.layout.Exhausted()
	for _, limit := range []time.Time{c.layout.Epoch.Add(exact), c.Database.end} {
		if end.After(limit) {
			end = limit
		}
	}
	return end
}

// moment returns a random time of the layout.
func (c *check) moment() time.Time {
	seconds := c.end().Unix() - c.layout.Epoch.Unix() - 1
	return c.layout.Epoch.Add(time.Duration(c.rng.Int64N(seconds)) * time.Second).Add(time.Duration(c.rng.Int64N(1e9)))
}

// fill stores random keys, the first and the last keys of ticks, and the first and the last.
func (c *check) fill(t *testing.T) {
	t.Helper()
	last := c.layout.Max(c.end().Add(-1))
	seen := map[types.Snowflake]bool{0: true, last: true}
	for len(seen) < c.count {
		at := c.moment()
		first, last := c.layout.Min(at), c.layout.Max(at)
		switch c.rng.IntN(4) {
		case 0:
			seen[first] = true
		case 1:
			seen[last] = true
		default:
			seen[first+types.Snowflake(c.rng.Int64N(int64(last-first)+1))] = true
		}
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
		c.column.Worker() + ", " + c.column.Sequence() + ", " + c.column.Shard() + " FROM keys_of_layout AS " + c.alias()
	n := 0
	c.query(t, query, func(row *sql.Rows) error {
		n++
		var id types.Snowflake
		var text string
		var got core.Parts
		err := row.Scan(&id, &text, &got.Datacenter, &got.Worker, &got.Sequence, &got.Shard)
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
	for _, part := range []string{c.column.Time(), c.column.Datacenter(), c.column.Worker(), c.column.Sequence(), c.column.Shard()} {
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

// On PostgreSQL and DuckDB the database compares uuids, elsewhere their text.
func (c *check) uuidsAreThoseOfTheKeys(t *testing.T) {
	uuid := c.column.UUID()
	n, last := 0, types.Snowflake(-1)
	text := uuid
	if c.Dialect == keysql.DuckDB { // whose driver returns bytes
		text = "CAST(" + uuid + " AS VARCHAR)"
	}
	c.query(t, "SELECT id, "+text+" FROM keys_of_layout AS "+c.alias()+" ORDER BY "+uuid, func(row *sql.Rows) error {
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
}

func (c *check) textsAreThoseOfTheKeys(t *testing.T) {
	columns := "id, " + c.column.Text()
	for _, object := range c.json {
		columns += ", " + fmt.Sprintf(object, c.column.Text(), "id")
	}
	query := "SELECT " + columns + " FROM keys_of_layout AS " + c.alias()
	n, rounded := 0, 0
	c.query(t, query, func(row *sql.Rows) error {
		n++
		var id types.Snowflake
		var text string
		objects := make([]string, len(c.json))
		dest := []any{&id, &text}
		for i := range objects {
			dest = append(dest, &objects[i])
		}
		if err := row.Scan(dest...); err != nil {
			return err
		}
		if text != id.String() {
			t.Errorf("Text of %d in SQL = %q\n%s", id, text, query)
		}
		for _, object := range objects {
			var got struct {
				Text   types.Snowflake
				Number float64 // as JavaScript has it
			}
			if err := json.Unmarshal([]byte(object), &got); err != nil || got.Text != id || !strings.Contains(object, `"`+text+`"`) {
				t.Errorf("JSON of %d in SQL = %s, read as %d, %v", id, object, got.Text, err)
			}
			if big.NewFloat(got.Number).Cmp(new(big.Float).SetInt64(int64(id))) != 0 {
				rounded++
			}
		}
		return nil
	})
	if n != len(c.keys) {
		t.Errorf("rows = %d; want %d", n, len(c.keys))
	}
	// The number is written in full, and read as another.
	if narrow := c.layout.Max(c.layout.Exhausted()) < 1<<53; (rounded == 0) != narrow {
		t.Errorf("%d of %d numbers were rounded; want none only below 2^53", rounded, n)
	}
}

func (c *check) noKeyHasNoTextAndNoUUID(t *testing.T) {
	from := " FROM (SELECT CAST(NULL AS " + c.null + ") AS id) AS " + c.alias()
	for _, expression := range []string{c.column.UUID(), c.column.Text()} {
		var none sql.NullString
		if c.row(t, "SELECT "+expression+from, &none); none.Valid {
			t.Errorf("%s of NULL = %+v; want NULL", expression, none)
		}
	}
	for _, object := range c.json {
		query := "SELECT " + fmt.Sprintf(object, c.column.Text(), "id") + from
		var text string
		got := struct{ Text types.NullSnowflake }{types.NullSnowflake{Snowflake: 1, Valid: true}}
		c.row(t, query, &text)
		if err := json.Unmarshal([]byte(text), &got); err != nil || got.Text.Valid {
			t.Errorf("%s = %s, read as %+v, %v; want null", query, text, got.Text, err)
		}
	}
}

// ticksBeginAndEndAsThoseOfTheLayout compares the expressions with each other: Min of the time of a
// key is the first of its tick, and Between finds each key in its own tick and in no other. The
// keys are at both ends of many ticks.
func (c *check) ticksBeginAndEndAsThoseOfTheLayout(t *testing.T) {
	if c.later == "" { // SQLite, which reads times to the millisecond
		return
	}
	begin := c.column.Time()
	end := fmt.Sprintf(c.later, begin, c.layout.Unit/time.Microsecond)
	query := "SELECT id, " + c.column.Min(begin) + " FROM keys_of_layout AS " + c.alias()
	n := 0
	c.query(t, query, func(row *sql.Rows) error {
		n++
		var id, got types.Snowflake
		err := row.Scan(&id, &got)
		if want := c.layout.Min(c.layout.Parts(id).Time); got != want {
			t.Errorf("Min of the time of %d in SQL = %d; want %d\n%s", id, got, want, query)
		}
		return err
	})
	if n != len(c.keys) {
		t.Errorf("rows = %d; want %d", n, len(c.keys))
	}
	for span, want := range map[string]int{c.column.Between(begin, end): n, c.column.Between(begin, begin): 0, c.column.Between(end, end): 0} {
		var got int
		query := "SELECT count(*) FROM keys_of_layout AS " + c.alias() + " WHERE " + span
		if c.row(t, query, &got); got != want {
			t.Errorf("%s = %d; want %d", query, got, want)
		}
	}
}

func (c *check) minIsThatOfTheLayout(t *testing.T) {
	moments := []time.Time{
		c.layout.Epoch, c.layout.Epoch.Add(-time.Second), c.end().Add(-time.Millisecond).Truncate(time.Millisecond),
		time.Date(1950, 1, 1, 0, 0, 0, 0, time.UTC), c.Database.end,
	}
	for range 40 {
		moments = append(moments, c.moment())
	}
	for _, at := range moments {
		at = at.Truncate(c.unit)
		query := "SELECT " + c.column.Min(c.literal(at))
		var got types.Snowflake
		c.row(t, query, &got)
		if want := c.layout.Min(at); got != want {
			t.Errorf("%s = %d; want %d", query, got, want)
		}
	}
}

// least and greatest pass over a NULL on some databases.
func (c *check) minOfNoTime(t *testing.T) {
	var want, got sql.NullInt64
	switch c.Dialect {
	case keysql.PostgreSQL, keysql.DuckDB, keysql.ClickHouse:
		want.Valid = true
	case keysql.BigQuery: // is not what answers
		return
	}
	query := "SELECT " + c.column.Min(c.none)
	if c.row(t, query, &got); got != want {
		t.Errorf("%s = %+v; want %+v", query, got, want)
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
		if c.row(t, query, &got); got != want {
			t.Errorf("%s = %d; want %d", query, got, want)
		}
	}
}

func (c *check) betweenUsesTheIndexOfTheKey(t *testing.T) {
	if c.plan == "" {
		return
	}
	if c.Dialect == keysql.PostgreSQL { // which reads a small table whole
		c.exec(t, "SET enable_seqscan = off")
		c.exec(t, "SET enable_bitmapscan = off")
	}
	query := c.plan + "SELECT id FROM keys_of_layout AS " + c.alias() + " WHERE " + c.column.Between(c.literal(c.layout.Epoch), c.literal(c.layout.Epoch.Add(time.Hour)))
	plan := c.planOf(t, query)
	// On TiDB the key is the table.
	if !strings.Contains(plan, c.span) && !strings.Contains(plan, "TableRangeScan") {
		t.Errorf("%s = %s; want %s", query, plan, c.span)
	}
}

// planOf returns what a query that explains another one returns.
func (c *check) planOf(t *testing.T, query string) string {
	t.Helper()
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
	return plan
}

// alias returns the name of the table in the name of the column. It is a keyword of MySQL.
func (c *check) alias() string { return c.Dialect.Quote("keys") }

func (c *check) literal(at time.Time) string {
	return fmt.Sprintf(c.value, at.UTC().Format("2006-01-02 15:04:05.999999"))
}
