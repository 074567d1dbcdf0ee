// Package keysqlcases tests on a real database that the expressions of keysql return what
// core.Layout does. keysql runs the tests on SQLite, package servers on PostgreSQL, MariaDB
// and MySQL, package warehouses on DuckDB and ClickHouse.
package keysqlcases

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
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
	made  string   // the type of a time
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
	wide  bool      // its times are exact for longer than those of the expressions

	table, from, name string // of the keys, the table under a name, and the column
}

// newDatabase returns a database with its words.
func newDatabase(db *sql.DB, d keysql.Dialect) Database {
	x := Database{DB: db, Dialect: d, key: "BIGINT PRIMARY KEY", null: "BIGINT", none: "NULL", made: "TIMESTAMP", unit: time.Microsecond, count: 300,
		end: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)}
	switch d {
	case keysql.PostgreSQL:
		x.zone, x.made = "SET TIME ZONE 'America/New_York'", "timestamptz"
		x.text, x.value, x.none = "to_char((%s) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')", "timestamptz '%sZ'", "NULL::timestamptz"
		x.later = "(%s + interval '%d microseconds')"
		x.json = []string{
			"json_build_object('text', %[1]s, 'number', %[2]s)", "jsonb_build_object('text', %[1]s, 'number', %[2]s)",
			"(SELECT row_to_json(v) FROM (SELECT %[1]s AS text, %[2]s AS number) AS v)",
		}
		x.plan, x.span = "EXPLAIN ", "Index Cond: ((id > "
	case keysql.MySQL:
		x.zone, x.null, x.made = "SET time_zone = '-05:00'", "SIGNED", "DATETIME(6)"
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
		x.key, x.null, x.made = "BIGINT", "Nullable(BIGINT)", "DateTime64(6, 'UTC')"
		x.zone, x.count = "SET session_timezone = 'America/New_York'", 10_000
		x.text, x.value, x.later = "toString(%s)", "'%s'", "addMicroseconds(%s, %d)"
		x.json = []string{"formatRow('JSONEachRow', %[1]s AS text, %[2]s AS number)"}
		x.end = time.Date(2299, 12, 31, 0, 0, 0, 0, time.UTC)
	default:
		x.zone, x.key, x.made = "SELECT 1", "INTEGER PRIMARY KEY", "TEXT"
		x.text, x.value, x.unit = "%s", "'%s'", time.Millisecond
		x.json = []string{"json_object('text', %[1]s, 'number', %[2]s)", "json_array(json_object('text', %[1]s, 'number', %[2]s)) ->> 0"}
		x.plan, x.span = "EXPLAIN QUERY PLAN ", "(rowid>? AND rowid<?)"
	}
	return x
}

// Run runs the cases of the expressions.
func Run(t *testing.T, db *sql.DB, d keysql.Dialect) {
	x := newDatabase(db, d)
	t.Run("page", func(t *testing.T) { pageAnswers(t, x) })
	x.table, x.name = "keys_of_layout", "keys.id"
	x.from = x.table + " AS " + d.Quote("keys") // a keyword of MySQL
	x.each(t, "CREATE TEMPORARY TABLE ", func(t *testing.T, c *check) {
		c.parts(t, c.from, c.column.Time(), c.column.Datacenter(), c.column.Worker(), c.column.Sequence(), c.column.Shard())
		c.ends(t, c.from, c.column.Min("made"), fmt.Sprintf("(%s) + %d", c.column.Min("made"), c.layout.Max(c.layout.Epoch)))
		c.partsGroupAndOrder(t)
		c.uuidsAreThoseOfTheKeys(t)
		c.textsAreThoseOfTheKeys(t)
		c.noKeyHasNoTextAndNoUUID(t)
		c.ticksBeginAndEndAsThoseOfTheLayout(t)
		c.minOfNoTime(t)
		c.betweenSelectsTheKeysMadeThen(t)
		c.betweenUsesTheIndexOfTheKey(t)
	})
}

// each runs a case for each of layouts and for random ones. Its table has keys, and times to make
// keys of.
func (x Database) each(t *testing.T, create string, run func(*testing.T, *check)) {
	rng, all := rand.New(rand.NewPCG(1, 2)), maps.Clone(layouts)
	for n := range 6 {
		all[fmt.Sprintf("random %d", n)] = randomLayout(rng)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			conn, err := x.DB.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			c := &check{Database: x, conn: conn, layout: all[name], rng: rng, made: map[types.Snowflake]time.Time{}}
			if c.column, err = keysql.New(x.Dialect, c.layout, x.name); err != nil {
				t.Fatal(err)
			}
			c.exec(t, x.zone)
			c.exec(t, create+x.table+" (id "+x.key+", made "+x.made+")")
			defer c.exec(t, "DROP TABLE "+x.table)
			c.fill(t)
			run(t, c)
		})
	}
}

// randomLayout returns a layout of whole microseconds.
func randomLayout(rng *rand.Rand) core.Layout {
	l := core.Layout{
		Epoch: time.UnixMicro(rng.Int64N(2e15)), Unit: time.Duration(1+rng.Int64N(1e6)) * time.Microsecond,
		TimeBits: 25 + rng.IntN(20), DatacenterBits: rng.IntN(6), WorkerBits: rng.IntN(6),
	}
	l.SequenceBits = 1 + rng.IntN(63-l.TimeBits-l.DatacenterBits-l.WorkerBits)
	l.ShardBits = rng.IntN(min(l.SequenceBits, 9))
	return l
}

// A check is one layout on one connection.
type check struct {
	Database
	conn   *sql.Conn
	layout core.Layout
	column keysql.Column
	rng    *rand.Rand
	keys   []types.Snowflake
	made   map[types.Snowflake]time.Time // stored beside each key
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
	if limit := c.layout.Epoch.Add(exact); end.After(limit) && !c.wide {
		end = limit
	}
	if end.After(c.Database.end) {
		end = c.Database.end
	}
	return end
}

// moment returns a random time of the layout.
func (c *check) moment() time.Time {
	epoch := c.layout.Epoch.UnixMicro()
	return time.UnixMicro(epoch + c.rng.Int64N(c.end().UnixMicro()-epoch)).UTC().Truncate(c.unit)
}

// fill stores random keys, the first and the last keys of ticks, and the first and the last. The
// times beside them are random too, and some are outside the layout.
func (c *check) fill(t *testing.T) {
	t.Helper()
	made := []time.Time{
		c.layout.Epoch, c.layout.Epoch.Add(-c.unit), c.layout.Epoch.Add(-time.Second), time.Date(1950, 1, 1, 0, 0, 0, 0, time.UTC),
		c.end().Add(-c.unit), c.end(), c.Database.end,
	}
	if c.Dialect.Valid() {
		made = append(made, time.Date(1000, 1, 2, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC))
	}
	seen := []types.Snowflake{0, c.layout.Max(c.end().Add(-1))}
	for len(c.made) < c.count {
		at := c.moment()
		first, last := c.layout.Min(at), c.layout.Max(at)
		seen = append(seen, first, last, first+types.Snowflake(c.rng.Int64N(int64(last-first)+1)))
		id, at := seen[0], c.moment()
		if seen = seen[1:]; len(made) > 0 {
			at, made = made[0].UTC().Truncate(c.unit), made[1:]
		}
		if _, twice := c.made[id]; !twice {
			c.keys = append(c.keys, id)
			c.made[id] = at
		}
	}
	for keys := range slices.Chunk(c.keys, 1000) {
		var rows []string
		for _, id := range keys {
			rows = append(rows, fmt.Sprintf("(%d, %s)", id, c.literal(c.made[id])))
		}
		c.exec(t, "INSERT INTO "+c.table+" VALUES "+strings.Join(rows, ", "))
	}
}

// parts compares what is read of the time, the datacenter, the worker, the sequence and the shard
// with the layout.
func (c *check) parts(t *testing.T, from string, columns ...string) {
	t.Helper()
	query := "SELECT id, " + fmt.Sprintf(c.text, columns[0]) + ", " + strings.Join(columns[1:], ", ") + " FROM " + from
	c.rows(t, query, func(row *sql.Rows) error {
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
}

// ends compares the first and the last key of ticks with the layout.
func (c *check) ends(t *testing.T, from, first, last string) {
	t.Helper()
	query := "SELECT id, " + first + ", " + last + " FROM " + from
	c.rows(t, query, func(row *sql.Rows) error {
		var id, first, last types.Snowflake
		err := row.Scan(&id, &first, &last)
		at := c.made[id]
		if want := c.layout.Min(at); first != want || last != want+c.layout.Max(c.layout.Epoch) {
			t.Errorf("keys of the tick of %v in SQL = %d to %d; want %d to %d\n%s", at, first, last, want, want+c.layout.Max(c.layout.Epoch), query)
		}
		return err
	})
}

// rows is query for a query that returns a row for each key.
func (c *check) rows(t *testing.T, text string, scan func(*sql.Rows) error) {
	t.Helper()
	n := 0
	c.query(t, text, func(row *sql.Rows) error {
		n++
		return scan(row)
	})
	if n != len(c.keys) {
		t.Errorf("rows = %d; want %d\n%s", n, len(c.keys), text)
	}
}

// A number alone would be the position of a column there.
func (c *check) partsGroupAndOrder(t *testing.T) {
	for _, part := range []string{c.column.Time(), c.column.Datacenter(), c.column.Worker(), c.column.Sequence(), c.column.Shard()} {
		n := 0
		c.query(t, "SELECT count(*) FROM "+c.from+" GROUP BY "+part+" ORDER BY "+part, func(row *sql.Rows) error {
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
	last := types.Snowflake(-1)
	text := uuid
	if c.Dialect == keysql.DuckDB { // whose driver returns bytes
		text = "CAST(" + uuid + " AS VARCHAR)"
	}
	c.rows(t, "SELECT id, "+text+" FROM "+c.from+" ORDER BY "+uuid, func(row *sql.Rows) error {
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
}

func (c *check) textsAreThoseOfTheKeys(t *testing.T) {
	columns := "id, " + c.column.Text()
	for _, object := range c.json {
		columns += ", " + fmt.Sprintf(object, c.column.Text(), "id")
	}
	query := "SELECT " + columns + " FROM " + c.from
	rounded := 0
	c.rows(t, query, func(row *sql.Rows) error {
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
	// The number is written in full, and read as another.
	if narrow := slices.Max(c.keys) < 1<<53; (rounded == 0) != narrow {
		t.Errorf("%d of %d numbers were rounded; want none only below 2^53", rounded, len(c.keys))
	}
}

func (c *check) noKeyHasNoTextAndNoUUID(t *testing.T) {
	from := " FROM (SELECT CAST(NULL AS " + c.null + ") AS id) AS " + c.Dialect.Quote("keys")
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
	query := "SELECT id, " + c.column.Min(begin) + " FROM " + c.from
	c.rows(t, query, func(row *sql.Rows) error {
		var id, got types.Snowflake
		err := row.Scan(&id, &got)
		if want := c.layout.Min(c.layout.Parts(id).Time); got != want {
			t.Errorf("Min of the time of %d in SQL = %d; want %d\n%s", id, got, want, query)
		}
		return err
	})
	for span, want := range map[string]int{c.column.Between(begin, end): len(c.keys), c.column.Between(begin, begin): 0, c.column.Between(end, end): 0} {
		var got int
		query := "SELECT count(*) FROM " + c.from + " WHERE " + span
		if c.row(t, query, &got); got != want {
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
		query := "SELECT count(*) FROM " + c.from + " WHERE " + c.column.Between(c.literal(from), c.literal(to))
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
	query := c.plan + "SELECT id FROM " + c.from + " WHERE " + c.column.Between(c.literal(c.layout.Epoch), c.literal(c.layout.Epoch.Add(time.Hour)))
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

func (c *check) literal(at time.Time) string {
	return fmt.Sprintf(c.value, at.UTC().Format("2006-01-02 15:04:05.999999"))
}
