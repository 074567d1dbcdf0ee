package keysqlcases

import (
	"database/sql"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/keysql"
	"github.com/snowkey/snowkey/types"
)

// RunFunctions runs the cases of the functions and of the view that keysql installs. The database
// of db is the cases' own.
func RunFunctions(t *testing.T, db *sql.DB, d keysql.Dialect) {
	x := newDatabase(db, d)
	rng := rand.New(rand.NewPCG(3, 4))
	all := maps.Clone(layouts)
	for n := range 6 {
		all[fmt.Sprintf("random %d", n)] = randomLayout(rng)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			conn, err := db.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			f := &functions{check: check{Database: x, conn: conn, layout: all[name], rng: rng}, at: map[types.Snowflake]time.Time{}}
			if f.column, err = keysql.New(d, f.layout, "id"); err != nil {
				t.Fatal(err)
			}
			f.exec(t, x.zone)
			moment := map[keysql.Dialect]string{keysql.PostgreSQL: "timestamptz", keysql.MySQL: "DATETIME(6)", keysql.SQLite: "TEXT"}[d]
			f.exec(t, "CREATE TABLE "+f.quote("Order")+" (id "+x.key+", made "+moment+", number VARCHAR(20))")
			defer f.exec(t, "DROP TABLE "+f.quote("Order"))
			keys := 10_000
			if !named[name] {
				keys = 2_000
			}
			f.fill(t, keys)
			f.viewReadsTheParts(t)
			if d != keysql.SQLite {
				f.functionsReturnWhatTheLayoutDoes(t)
				f.timesOutsideTheLayoutAreItsEnds(t)
			}
		})
	}
}

var named = map[string]bool{"Default": true, "Twitter": true, "Discord": true, "Mastodon": true, "Instagram": true, "JavaScript": true}

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

// functions are the cases for one layout.
type functions struct {
	check
	at map[types.Snowflake]time.Time // stored beside each key
}

func (f *functions) quote(name string) string {
	if f.Dialect == keysql.PostgreSQL {
		return `"` + name + `"`
	}
	return "`" + name + "`"
}

// end is the first moment without keys, or which MySQL and SQLite cannot represent.
func (f *functions) end() time.Time {
	limit := time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
	if f.Dialect == keysql.SQLite {
		limit = f.layout.Epoch.Add(exact)
	}
	if e := f.layout.Exhausted(); e.Before(limit) {
		return e
	}
	return limit
}

// fill stores keys, the first and the last among them, each with a time of the layout.
func (f *functions) fill(t *testing.T, keys int) {
	t.Helper()
	micros := f.end().UnixMicro() - f.layout.Epoch.UnixMicro()
	moment := func() time.Time { return time.UnixMicro(f.layout.Epoch.UnixMicro() + f.rng.Int64N(micros)).UTC() }
	low := int64(f.layout.Max(f.layout.Epoch)) + 1
	f.at[0] = f.layout.Epoch.UTC()
	f.at[f.layout.Max(f.end().Add(-1))] = f.end().Add(-time.Microsecond).UTC()
	for len(f.at) < keys {
		f.at[f.layout.Min(moment())+types.Snowflake(f.rng.Int64N(low))] = moment()
	}
	var rows []string
	for id, at := range f.at {
		rows = append(rows, fmt.Sprintf("(%d, %s, 'A')", id, f.literal(at)))
		if len(rows) == 1000 {
			f.exec(t, "INSERT INTO "+f.quote("Order")+" VALUES "+strings.Join(rows, ", "))
			rows = nil
		}
	}
}

func (f *functions) viewReadsTheParts(t *testing.T) {
	view, err := f.column.View("select", "Order")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // again is the same
		for _, statement := range view {
			f.exec(t, statement)
		}
	}
	defer f.exec(t, "DROP VIEW "+f.quote("select"))
	f.parts(t, "SELECT id, "+fmt.Sprintf(f.text, "id_time")+", id_worker, id_sequence, "+ifAny(f.layout.DatacenterBits, "id_datacenter")+", "+ifAny(f.layout.ShardBits, "id_shard")+", 0, 0 FROM "+f.quote("select")+" WHERE number = 'A'", false)
}

func (f *functions) functionsReturnWhatTheLayoutDoes(t *testing.T) {
	statements, err := keysql.Functions(f.Dialect, f.layout, "")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for _, statement := range statements {
			f.exec(t, statement)
		}
	}
	f.parts(t, "SELECT id, "+fmt.Sprintf(f.text, "id_time(id)")+", id_worker(id), id_sequence(id), "+ifAny(f.layout.DatacenterBits, "id_datacenter(id)")+
		", "+ifAny(f.layout.ShardBits, "id_shard(id)")+", id_min(made), id_max(made) FROM "+f.quote("Order"), true)
	null := "SELECT id_time(NULL), id_worker(NULL), id_sequence(NULL), id_min(NULL), id_max(NULL)"
	var got [5]sql.NullString
	if err := f.conn.QueryRowContext(t.Context(), null).Scan(&got[0], &got[1], &got[2], &got[3], &got[4]); err != nil || got != [5]sql.NullString{} {
		t.Errorf("%s = %v, %v; want NULLs", null, got, err)
	}
}

// ifAny returns the expression of a part that exists only in layouts with bits for it.
func ifAny(bits int, part string) string {
	if bits == 0 {
		return "0"
	}
	return part
}

// parts compares the rows of a query with the layout.
func (f *functions) parts(t *testing.T, query string, ends bool) {
	t.Helper()
	n := 0
	f.query(t, query, func(row *sql.Rows) error {
		n++
		var id, first, last types.Snowflake
		var text string
		var got core.Parts
		err := row.Scan(&id, &text, &got.Worker, &got.Sequence, &got.Datacenter, &got.Shard, &first, &last)
		if err != nil {
			return err
		}
		got.Time, err = time.Parse("2006-01-02 15:04:05.999999", text)
		if want := f.layout.Parts(id); got != want {
			t.Errorf("parts of %d = %+v; want %+v", id, got, want)
		}
		if at := f.at[id]; ends && (first != f.layout.Min(at) || last != f.layout.Max(at)) {
			t.Errorf("id_min(%v), id_max = %d, %d; want %d, %d", at, first, last, f.layout.Min(at), f.layout.Max(at))
		}
		return err
	})
	if n != len(f.at) {
		t.Errorf("rows = %d; want %d", n, len(f.at))
	}
}

func (f *functions) timesOutsideTheLayoutAreItsEnds(t *testing.T) {
	times := []string{}
	want := []types.Snowflake{}
	for _, at := range []time.Time{
		f.layout.Epoch.Add(-time.Microsecond), time.Date(1000, 1, 2, 0, 0, 0, 0, time.UTC),
		f.end(), time.Date(9999, 12, 31, 23, 59, 59, 999999000, time.UTC),
	} {
		times, want = append(times, f.literal(at)), append(want, f.layout.Min(at))
	}
	if f.Dialect == keysql.PostgreSQL {
		times = append(times, "timestamptz 'infinity'", "timestamptz '-infinity'")
		want = append(want, f.layout.Min(f.layout.Exhausted()), 0)
	}
	for i, at := range times {
		query := fmt.Sprintf("SELECT id_min(%s), id_max(%s)", at, at)
		var first, last types.Snowflake
		err := f.conn.QueryRowContext(t.Context(), query).Scan(&first, &last)
		if low := f.layout.Max(f.layout.Epoch); err != nil || first != want[i] || last != want[i]+low {
			t.Errorf("%s = %d, %d, %v; want %d, %d", query, first, last, err, want[i], want[i]+low)
		}
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
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	c := &check{Database: x, conn: conn, layout: core.Default()}
	c.exec(t, x.zone)
	c.exec(t, "CREATE TABLE orders (id BIGINT PRIMARY KEY, number VARCHAR(20))")
	defer c.exec(t, "DROP TABLE orders")
	var version string
	if err := conn.QueryRowContext(t.Context(), "SELECT version()").Scan(&version); err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	column, err := keysql.New(d, c.layout, "id")
	if err != nil {
		t.Fatal(err)
	}
	view, err := column.View("orders_read", "orders")
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range append(statements, view...) {
		c.exec(t, statement)
	}
	defer c.exec(t, "DROP VIEW orders_read")
	statement, n := CallingFunctions(d), 0
	c.query(t, strings.TrimSuffix(statement, ";\n"), func(row *sql.Rows) error {
		n++
		var at, number sql.NullString
		var worker int
		return row.Scan(&at, &worker, &number)
	})
	if want := 24 * 60; rows == 1_000_000 && n != want {
		t.Errorf("%s = %d rows; want %d", statement, n, want)
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
