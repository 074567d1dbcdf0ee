package keysql

import (
	"fmt"
	"strings"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/internal/base/dialect"
)

// A Dialect is the SQL that a database speaks. The zero value is none of them.
type Dialect = dialect.Dialect

// The dialects.
const (
	SQLite     = dialect.SQLite
	PostgreSQL = dialect.PostgreSQL
	MySQL      = dialect.MySQL // and MariaDB
)

// A Column writes expressions for one column of keys. New makes it; the zero value is not
// usable. It is immutable and safe for concurrent use.
type Column struct {
	syntax syntax
	layout core.Layout
	name   string // quoted
}

// New returns a Column. name is that of the column as the database has it, such as id. It
// may have its table before it, as in orders.id. It is quoted.
//
// An unknown dialect, an invalid layout, one with fractions of a microsecond, and a name
// that is empty or holds a quotation mark are errors.
func New(d Dialect, l core.Layout, name string) (Column, error) {
	if err := l.Validate(); err != nil {
		return Column{}, fmt.Errorf("keysql: %w", err)
	}
	if l.Unit%time.Microsecond != 0 || l.Epoch.Nanosecond()%int(time.Microsecond) != 0 {
		return Column{}, fmt.Errorf("keysql: Layout.Unit is %s and Layout.Epoch %s: want whole microseconds, which databases keep",
			l.Unit, l.Epoch.UTC().Format(time.RFC3339Nano))
	}
	for part := range strings.SplitSeq(name, ".") {
		if part == "" || strings.ContainsAny(part, "\"`\x00") {
			return Column{}, fmt.Errorf("keysql: column name is %q: want a name without quotation marks, such as id or orders.id", name)
		}
	}
	l.Epoch = l.Epoch.UTC()
	switch d {
	case PostgreSQL:
		return Column{postgreSQL{l}, l, d.Quote(name)}, nil
	case MySQL:
		return Column{mySQL{l}, l, d.Quote(name)}, nil
	case SQLite:
		// SQLite takes a column in double quotes that does not exist for a string. It
		// takes backticks for a name, as MySQL does.
		return Column{sqlite{l}, l, MySQL.Quote(name)}, nil
	}
	return Column{}, fmt.Errorf("keysql: dialect is %s: want SQLite, PostgreSQL or MySQL", d)
}

// A syntax is what differs between the databases.
type syntax interface {
	// time returns the time of an expression that counts ticks.
	time(ticks string) string
	// tick returns the tick of an expression of a time, which may be outside of the layout.
	tick(at string) string
	// between returns n, but at least 0 and at most most.
	between(n string, most int64) string
}

// Time returns the start of the key's tick, as core.Parts.Time. It is a timestamptz on
// PostgreSQL, a DATETIME(6) in UTC on MySQL, and on SQLite a text in UTC such as
// "2026-05-04 09:30:00.000".
func (c Column) Time() string {
	return c.syntax.time(fmt.Sprintf("(%s >> %d)", c.name, c.timeShift()))
}

// Datacenter returns the datacenter of the key, an integer.
func (c Column) Datacenter() string {
	return c.part(c.layout.WorkerBits+c.layout.SequenceBits, c.layout.DatacenterBits)
}

// Worker returns the worker number of the key, an integer.
func (c Column) Worker() string { return c.part(c.layout.SequenceBits, c.layout.WorkerBits) }

// Sequence returns the sequence number of the key, an integer.
func (c Column) Sequence() string { return c.part(0, c.layout.SequenceBits) }

// part returns the number in some bits of the key. If there are none it masks with 0, since
// a 0 alone would be the position of a column in GROUP BY and ORDER BY.
func (c Column) part(shift, width int) string {
	if shift == 0 {
		return fmt.Sprintf("%s & %d", c.name, int64(1)<<width-1)
	}
	return fmt.Sprintf("(%s >> %d) & %d", c.name, shift, int64(1)<<width-1)
}

// Min returns the smallest key of the tick that contains a time, as core.Layout.Min does.
// A time outside of the layout counts as the first or the last tick. NULL gives NULL, but on
// PostgreSQL it counts as the first tick. So a condition with it may select every old row.
//
// at is an SQL expression of a time, such as a literal or a parameter, and is not quoted:
//
//   - PostgreSQL: a timestamptz, or a timestamp in UTC. A literal or a parameter needs its
//     type, as in $1::timestamptz.
//   - MySQL: a DATETIME in UTC.
//   - SQLite: a text in UTC, such as '2026-05-04' or '2026-05-04 09:30:00.000', to the
//     millisecond.
func (c Column) Min(at string) string {
	last := int64(1)<<c.layout.TimeBits - 1
	return fmt.Sprintf("%s << %d", c.syntax.between(c.syntax.tick(at), last), c.timeShift())
}

// Between returns a condition that selects the keys of core.Layout.Between: from the tick
// that contains from until before the one that contains until. Both are times as at in Min.
// It compares the column itself, so the index of the key is used.
func (c Column) Between(from, until string) string {
	return fmt.Sprintf("%s > %s\nAND %s <= %s", c.name, c.lastBefore(from), c.name, c.lastBefore(until))
}

// lastBefore returns the largest key before the tick that contains a time. It is -1 before
// the second tick, and the last key of the layout after the last tick. The databases differ
// in what they make of shifts of negative numbers and into the sign. So it multiplies, and
// never beyond 63 bits.
func (c Column) lastBefore(at string) string {
	ticks, size := int64(1)<<c.layout.TimeBits, int64(1)<<c.timeShift()
	return fmt.Sprintf("(%s - 1) * %d + %d", c.syntax.between(c.syntax.tick(at), ticks), size, size-1)
}

func (c Column) timeShift() int {
	return c.layout.DatacenterBits + c.layout.WorkerBits + c.layout.SequenceBits
}
