package keysql

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/internal/base/dialect"
)

// A Dialect is the SQL of a database. The zero value is not a valid one.
type Dialect = dialect.Dialect

// The dialects.
const (
	SQLite     = dialect.SQLite
	PostgreSQL = dialect.PostgreSQL
	MySQL      = dialect.MySQL // and MariaDB
)

// The dialects of warehouses, to which tables are copied. Only [New] accepts them. They are
// experimental.
const (
	DuckDB     = dialect.DuckDB
	ClickHouse = dialect.ClickHouse
	BigQuery   = dialect.BigQuery // by its documentation: no test has run it there
)

// A Column writes expressions for one column of keys. [New] creates it; the zero value is not
// usable. It is immutable and safe for concurrent use.
type Column struct {
	dialect Dialect
	syntax  *syntax
	layout  core.Layout
	name    string // quoted
}

// New returns a Column for the column with the given name, such as id or orders.id, which New
// quotes.
//
// It returns a [*core.ValueError] for an unknown dialect, an invalid layout, one with a fraction
// of a microsecond, and a name that is empty or contains a quotation mark or a backslash.
func New(d Dialect, l core.Layout, name string) (Column, error) {
	if err := l.Validate(); err != nil {
		return Column{}, fmt.Errorf("keysql: %w", err)
	}
	if l.Unit%time.Microsecond != 0 || l.Epoch.Nanosecond()%int(time.Microsecond) != 0 {
		return Column{}, invalid("Layout.Unit and Layout.Epoch", l.Unit.String()+" and "+l.Epoch.UTC().Format(time.RFC3339Nano),
			"whole microseconds, which databases keep")
	}
	for part := range strings.SplitSeq(name, ".") {
		// ClickHouse and BigQuery have escape sequences in quoted names.
		if part == "" || strings.ContainsAny(part, "\"`\\\x00") {
			return Column{}, invalid("column name", strconv.Quote(name), "a name without quotation marks and backslashes, such as id or orders.id")
		}
	}
	syntax, ok := syntaxes[d]
	if !ok {
		return Column{}, invalid("dialect", d.String(), "SQLite, PostgreSQL, MySQL, DuckDB, ClickHouse or BigQuery")
	}
	l.Epoch = l.Epoch.UTC()
	quotes := d
	if d == SQLite {
		// Backticks, because SQLite takes a name in double quotes for a string if there is no
		// such column.
		quotes = MySQL
	}
	return Column{d, syntax, l, quotes.Quote(name)}, nil
}

// String returns the column as it stands in SQL, in quotes.
func (c Column) String() string { return c.name }

func invalid(name, value, want string) error {
	return &core.ValueError{Package: "keysql", Name: name, Value: value, Want: want}
}

// A syntax is what the databases write differently, mostly as formats of package fmt.
type syntax struct {
	bits
	between string // limits a number to 0 and another one
	text    string // the decimal digits of a key

	// uuid writes numbers in hexadecimal, lower case, between the parts of a UUID: with 8,
	// 4, 3 and 1 digits.
	uuid string

	time func(l core.Layout, ticks string) string // of a count of ticks
	tick func(l core.Layout, at string) string    // the count of ticks of a time, which may be outside the layout
}

// bits takes the bits of a number: those from one on, the lowest ones by a mask, and others by both.
type bits struct{ right, low, middle string }

// operators is what most databases write.
var operators = bits{"%s >> %d", "%s & %d", "(%s >> %d) & %d"}

// syntaxes has the databases, each with a file of its own.
var syntaxes = map[Dialect]*syntax{
	SQLite: &sqlite, PostgreSQL: &postgreSQL, MySQL: &mySQL,
	DuckDB: &duckDB, ClickHouse: &clickHouse, BigQuery: &bigQuery,
}

// Time returns the start of the key's tick, as core.Parts.Time: a timestamptz on PostgreSQL, a
// DATETIME(6) in UTC on MySQL, a text in UTC such as "2026-05-04 09:30:00.000" on SQLite, a
// TIMESTAMP in UTC on DuckDB, a DateTime64(6, 'UTC') on ClickHouse, and a TIMESTAMP on BigQuery.
func (c Column) Time() string {
	return c.syntax.time(c.layout, "("+c.right(c.timeShift())+")")
}

// Datacenter returns the datacenter of the key, an integer.
func (c Column) Datacenter() string {
	return c.part(c.layout.WorkerBits+c.layout.SequenceBits, c.layout.DatacenterBits)
}

// Worker returns the worker number of the key, an integer.
func (c Column) Worker() string { return c.part(c.layout.SequenceBits, c.layout.WorkerBits) }

// Sequence returns the sequence number of the key, an integer, without the shard.
func (c Column) Sequence() string {
	return c.part(c.layout.ShardBits, c.layout.SequenceBits-c.layout.ShardBits)
}

// Shard returns the shard of the key, as core.Layout.Shard, an integer.
func (c Column) Shard() string { return c.part(0, c.layout.ShardBits) }

// UUID returns the UUID of the key, as types.Snowflake.UUID: a uuid on PostgreSQL and DuckDB, and
// elsewhere its text in lower case, which MariaDB's type UUID takes too. NULL gives NULL.
func (c Column) UUID() string {
	return fmt.Sprintf(c.syntax.uuid, c.right(32), c.part(16, 16), c.part(4, 12), c.part(0, 4))
}

// Text returns the decimal digits of the key as a text, for JSON that the database makes: a
// program that reads a number of JSON as a double changes the last digits of a key. types.Parse
// and the JSON of types.Snowflake read it. NULL gives NULL.
//
// It is for output. Compare and sort by the key itself, which has an index and the order of
// numbers: write its table too, as in ORDER BY orders.id, where the text is named id.
func (c Column) Text() string { return fmt.Sprintf(c.syntax.text, c.name) }

// right shifts the key to the right.
func (c Column) right(by int) string { return fmt.Sprintf(c.syntax.right, c.name, by) }

// part returns the number in some bits of the key. Of zero bits it returns an expression, because
// a plain 0 would be the position of a column in GROUP BY and ORDER BY.
func (c Column) part(shift, width int) string {
	mask := int64(1)<<width - 1
	if shift == 0 {
		return fmt.Sprintf(c.syntax.low, c.name, mask)
	}
	return fmt.Sprintf(c.syntax.middle, c.name, shift, mask)
}

// tick converts a time into a count of ticks, limited to 0 and most.
func (c Column) tick(at string, most int64) string {
	return fmt.Sprintf(c.syntax.between, c.syntax.tick(c.layout, at), most)
}

// Min returns the smallest key of the tick that contains a time, as core.Layout.Min does. A time
// outside the layout counts as the first or the last tick. NULL gives NULL, except on PostgreSQL,
// DuckDB, and ClickHouse since 24.12, where it counts as the first tick and a condition with it may
// select every row.
//
// at is an SQL expression of a time, such as a literal or a parameter, and is not quoted:
//
//   - PostgreSQL: a timestamptz, or a timestamp in UTC. A literal or a parameter needs its
//     type, as in $1::timestamptz.
//   - MySQL: a DATETIME in UTC.
//   - SQLite: a text in UTC, such as '2026-05-04' or '2026-05-04 09:30:00.000', to the
//     millisecond.
//   - DuckDB: a TIMESTAMP in UTC, or a TIMESTAMPTZ. A literal needs its type.
//   - ClickHouse: a DateTime or a DateTime64, or a text in UTC.
//   - BigQuery: a TIMESTAMP.
func (c Column) Min(at string) string {
	last, size := int64(1)<<c.layout.TimeBits-1, int64(1)<<c.timeShift()
	return fmt.Sprintf("%s * %d", c.tick(at, last), size)
}

// Between returns a condition that selects the keys of core.Layout.Between: those of the ticks
// from the one that contains from until before the one that contains until. Both are times, as
// at of [Column.Min]. The condition compares the bare column, so the database uses its index.
func (c Column) Between(from, until string) string {
	return fmt.Sprintf("%s > %s\nAND %s <= %s", c.name, c.lastBefore(from), c.name, c.lastBefore(until))
}

// lastBefore returns the largest key before the tick that contains a time: -1 before the second
// tick, and the last key of the layout after the last tick. It multiplies, and never beyond 63
// bits, because the databases differ in how they shift negative numbers and into the sign.
func (c Column) lastBefore(at string) string {
	ticks, size := int64(1)<<c.layout.TimeBits, int64(1)<<c.timeShift()
	return fmt.Sprintf("(%s - 1) * %d + %d", c.tick(at, ticks), size, size-1)
}

func (c Column) timeShift() int {
	return c.layout.DatacenterBits + c.layout.WorkerBits + c.layout.SequenceBits
}

// moment returns a time in the form that all databases read.
func moment(t time.Time) string { return t.Format("2006-01-02 15:04:05.999999") }

// scale converts an expression that counts units of from into one that counts units of to.
// divide is the database's operator for integer division.
func scale(n string, from, to time.Duration, divide string) string {
	a, b := from, to
	for b != 0 {
		a, b = b, a%b
	}
	if times := from / a; times > 1 {
		n = fmt.Sprintf("%s * %d", n, times)
	}
	if by := to / a; by > 1 {
		n = fmt.Sprintf("%s %s %d", n, divide, by)
	}
	return n
}
