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
	"math/rand/v2"
	"slices"
	"strconv"
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
	json  []string // make JSON of a text
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
			"json_build_object('text', %s)", "jsonb_build_object('text', %s)",
			"(SELECT row_to_json(v) FROM (SELECT %s AS text) AS v)",
		}
		x.plan, x.span = "EXPLAIN ", "Index Cond: ((id > "
	case keysql.MySQL:
		x.zone, x.null, x.made = "SET time_zone = '-05:00'", "SIGNED", "DATETIME(6)"
		x.text, x.value = "CAST(%s AS CHAR)", "TIMESTAMP '%s'"
		x.later = "%s + INTERVAL %d MICROSECOND"
		x.json = []string{"JSON_OBJECT('text', %s)"}
		// MySQL 9 and MariaDB have different JSON.
		x.plan, x.span = "EXPLAIN FORMAT=TRADITIONAL ", " range PRIMARY PRIMARY "
	case keysql.DuckDB, keysql.BigQuery: // whose text package warehouses runs on DuckDB
		x.zone, x.count = "SET TimeZone = 'America/New_York'", 10_000
		x.text, x.value, x.none = "strftime(%s, '%%Y-%%m-%%d %%H:%%M:%%S.%%f')", "TIMESTAMP '%s'", "NULL::TIMESTAMP"
		x.later = "%s + to_microseconds(%d)"
		x.json = []string{
			"CAST(json_object('text', %s) AS VARCHAR)",
			"(SELECT CAST(to_json(v) AS VARCHAR) FROM (SELECT %s AS text) AS v)",
		}
	case keysql.ClickHouse:
		x.key, x.null, x.made = "BIGINT", "Nullable(BIGINT)", "DateTime64(6, 'UTC')"
		x.zone, x.count = "SET session_timezone = 'America/New_York'", 10_000
		x.text, x.value, x.later = "toString(%s)", "'%s'", "addMicroseconds(%s, %d)"
		x.json = []string{"formatRow('JSONEachRow', %s AS text)"}
		x.end = time.Date(2299, 12, 31, 0, 0, 0, 0, time.UTC)
	default:
		x.zone, x.key, x.made = "SELECT 1", "INTEGER PRIMARY KEY", "TEXT"
		x.text, x.value, x.unit = "%s", "'%s'", time.Millisecond
		x.json = []string{"json_object('text', %s)", "json_array(json_object('text', %s)) ->> 0"}
		x.plan, x.span = "EXPLAIN QUERY PLAN ", "(rowid>? AND rowid<?)"
	}
	return x
}

// Run runs the cases of the expressions.
func Run(t *testing.T, db *sql.DB, d keysql.Dialect) {
	x := newDatabase(db, d)
	x.table, x.name = "keys_of_layout", "keys.id"
	x.from = x.table + " AS " + d.Quote("keys") // a keyword of MySQL
	x.each(t, "CREATE TEMPORARY TABLE ", func(t *testing.T, c *check) {
		parts := []string{c.column.Time(), c.column.Datacenter(), c.column.Worker(), c.column.Sequence(), c.column.Shard()}
		c.compare(t, c.from, c.parts(parts), c.ends(c.column.Min("made"), fmt.Sprintf("(%s) + %d", c.column.Min("made"), c.layout.Max(c.layout.Epoch))), c.texts(), c.ticks())
		c.partsGroupAndOrder(t, parts)
		c.uuidsAreInTheOrderOfTheKeys(t)
		c.noKeyHasNoTextAndNoUUID(t)
		c.eachKeyIsInItsTickAlone(t)
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
			must(t, err)
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

// An expression has a value for each key, as the layout says.
type expression struct {
	sql  string
	want func(id types.Snowflake) string
	read func(text string) (string, error) // if the database has a form of its own
}

// parts are what is read of the time, the datacenter, the worker, the sequence and the shard.
func (c *check) parts(columns []string) []expression {
	of := func(column int, part func(core.Parts) int64) expression {
		return expression{sql: columns[column], want: func(id types.Snowflake) string { return fmt.Sprint(part(c.layout.Parts(id))) }}
	}
	return []expression{
		{
			sql:  fmt.Sprintf(c.text, columns[0]),
			want: func(id types.Snowflake) string { return c.layout.Parts(id).Time.Format(time.RFC3339Nano) },
			read: func(text string) (string, error) {
				at, err := time.Parse("2006-01-02 15:04:05.999999", text)
				return at.Format(time.RFC3339Nano), err
			},
		},
		of(1, func(p core.Parts) int64 { return p.Datacenter }),
		of(2, func(p core.Parts) int64 { return p.Worker }),
		of(3, func(p core.Parts) int64 { return p.Sequence }),
		of(4, func(p core.Parts) int64 { return p.Shard }),
	}
}

// ends are the first and the last key of the ticks of the times beside the keys.
func (c *check) ends(first, last string) []expression {
	return []expression{
		{sql: first, want: func(id types.Snowflake) string { return c.layout.Min(c.made[id]).String() }},
		{sql: last, want: func(id types.Snowflake) string {
			return (c.layout.Min(c.made[id]) + c.layout.Max(c.layout.Epoch)).String()
		}},
	}
}

// texts are the other forms of a key.
func (c *check) texts() []expression {
	uuid := c.column.UUID()
	if c.Dialect == keysql.DuckDB { // whose driver returns bytes
		uuid = "CAST(" + uuid + " AS VARCHAR)"
	}
	all := []expression{{sql: c.column.Text(), want: types.Snowflake.String}, {sql: uuid, want: func(id types.Snowflake) string {
		u := id.UUID()
		return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
	}}}
	for _, object := range c.json {
		all = append(all, expression{
			sql: fmt.Sprintf(object, c.column.Text()), want: types.Snowflake.String,
			read: func(object string) (string, error) {
				var got struct{ Text string }
				err := json.Unmarshal([]byte(object), &got)
				return got.Text, err
			},
		})
	}
	return all
}

// ticks is the first key of the tick of each key, found by its time.
func (c *check) ticks() []expression {
	if c.later == "" { // SQLite, which reads times to the millisecond
		return nil
	}
	return []expression{{sql: c.column.Min(c.column.Time()), want: func(id types.Snowflake) string {
		return c.layout.Min(c.layout.Parts(id).Time).String()
	}}}
}

// compare evaluates the expressions for all keys.
func (c *check) compare(t *testing.T, from string, of ...[]expression) {
	t.Helper()
	expressions := slices.Concat(of...)
	query := "SELECT id"
	for _, e := range expressions {
		query += ", " + e.sql
	}
	rows := c.values(t, query+" FROM "+from)
	if len(rows) != len(c.keys) {
		t.Errorf("rows = %d; want %d\n%s", len(rows), len(c.keys), query)
	}
	for _, row := range rows {
		id := types.MustParse(row[0])
		for i, e := range expressions {
			got, err := row[i+1], error(nil)
			if e.read != nil {
				got, err = e.read(got)
			}
			if want := e.want(id); got != want || err != nil {
				t.Errorf("of key %d: %s = %q, %v; want %q", id, e.sql, row[i+1], err, want)
			}
		}
	}
}

// A number alone would be the position of a column there.
func (c *check) partsGroupAndOrder(t *testing.T, parts []string) {
	for _, part := range parts {
		n := 0
		for _, row := range c.values(t, "SELECT count(*) FROM "+c.from+" GROUP BY "+part+" ORDER BY "+part) {
			keys, _ := strconv.Atoi(row[0])
			n += keys
		}
		if n != len(c.keys) {
			t.Errorf("keys in groups of %s = %d; want %d", part, n, len(c.keys))
		}
	}
}

// On PostgreSQL and DuckDB the database compares uuids, elsewhere their text.
func (c *check) uuidsAreInTheOrderOfTheKeys(t *testing.T) {
	last := types.Snowflake(-1)
	for _, row := range c.values(t, "SELECT id FROM "+c.from+" ORDER BY "+c.column.UUID()) {
		if id := types.MustParse(row[0]); id <= last {
			t.Errorf("the UUID of %d is after that of %d; want the order of the keys", last, id)
		} else {
			last = id
		}
	}
}

func (c *check) noKeyHasNoTextAndNoUUID(t *testing.T) {
	from := " FROM (SELECT CAST(NULL AS " + c.null + ") AS id) AS " + c.Dialect.Quote("keys")
	for _, e := range c.texts() {
		switch got := c.values(t, "SELECT "+e.sql+from)[0][0]; {
		case e.read == nil && got != null, e.read != nil && !strings.Contains(strings.ReplaceAll(got, " ", ""), `"text":null`):
			t.Errorf("%s of NULL = %s; want NULL", e.sql, got)
		}
	}
}

// eachKeyIsInItsTickAlone compares Between with the time of a key. The keys are at both ends of many
// ticks.
func (c *check) eachKeyIsInItsTickAlone(t *testing.T) {
	if c.later == "" {
		return
	}
	begin := c.column.Time()
	end := fmt.Sprintf(c.later, begin, c.layout.Unit/time.Microsecond)
	c.counts(t, c.column.Between(begin, end), len(c.keys))
	c.counts(t, c.column.Between(begin, begin), 0)
	c.counts(t, c.column.Between(end, end), 0)
}

// counts wants so many keys that meet a condition.
func (c *check) counts(t *testing.T, condition string, want int) {
	t.Helper()
	if got := c.values(t, "SELECT count(*) FROM "+c.from+" WHERE "+condition)[0][0]; got != strconv.Itoa(want) {
		t.Errorf("keys with %s = %s; want %d", condition, got, want)
	}
}

// least and greatest pass over a NULL on some databases.
func (c *check) minOfNoTime(t *testing.T) {
	want := null
	switch c.Dialect {
	case keysql.PostgreSQL, keysql.DuckDB, keysql.ClickHouse:
		want = "0"
	case keysql.BigQuery: // is not what answers
		return
	}
	if got := c.values(t, "SELECT "+c.column.Min(c.none))[0][0]; got != want {
		t.Errorf("Min of no time = %s; want %s", got, want)
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
		c.counts(t, c.column.Between(c.literal(from), c.literal(to)), want)
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
	plan := ""
	for _, row := range c.values(t, query) {
		plan += strings.Join(row, " ") + " "
	}
	// On TiDB the key is the table.
	if !strings.Contains(plan, c.span) && !strings.Contains(plan, "TableRangeScan") {
		t.Errorf("%s = %s; want %s", query, plan, c.span)
	}
}

// null is what values has for NULL.
const null = "NULL"

// values returns the values that a query returns, as text.
func (c *check) values(t *testing.T, text string) (table [][]string) {
	t.Helper()
	rows, err := c.conn.QueryContext(t.Context(), c.spoken(text))
	if err != nil {
		t.Fatalf("Query(%s) = %v", text, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	must(t, err)
	for rows.Next() {
		values, dest, row := make([]sql.NullString, len(columns)), make([]any, len(columns)), make([]string, len(columns))
		for i := range values {
			dest[i] = &values[i]
		}
		if err := rows.Scan(dest...); err != nil {
			t.Fatalf("Scan(%s) = %v", text, err)
		}
		for i, v := range values {
			if row[i] = null; v.Valid {
				row[i] = v.String
			}
		}
		table = append(table, row)
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("Query(%s) = %v", text, err)
	}
	return table
}

func (c *check) literal(at time.Time) string {
	return fmt.Sprintf(c.value, at.UTC().Format("2006-01-02 15:04:05.999999"))
}

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
