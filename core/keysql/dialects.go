package keysql

import (
	"fmt"
	"strconv"
	"time"

	"github.com/snowkey/snowkey/core"
)

type postgreSQL struct{ core.Layout }

func (d postgreSQL) time(ticks string) string {
	return fmt.Sprintf("timestamptz '%sZ' + %s * interval '%s'", moment(d.Epoch), ticks, d.interval())
}

// interval returns the unit as the text of an interval.
func (d postgreSQL) interval() string {
	n, name := d.Unit/time.Microsecond, "microsecond"
	switch {
	case d.Unit%time.Second == 0:
		n, name = d.Unit/time.Second, "second"
	case d.Unit%time.Millisecond == 0:
		n, name = d.Unit/time.Millisecond, "millisecond"
	}
	if n > 1 {
		name += "s"
	}
	return fmt.Sprintf("%d %s", n, name)
}

// tick relies on extract, which returns a numeric and is therefore exact.
func (d postgreSQL) tick(at string) string {
	epoch := strconv.FormatFloat(float64(d.Epoch.UnixMicro())/1e6, 'f', -1, 64)
	since := fmt.Sprintf("(extract(epoch FROM %s) - %s)", at, epoch)
	return fmt.Sprintf("floor(%s)", scale(since, time.Second, d.Unit, "/"))
}

func (postgreSQL) between(n string, most int64) string {
	return fmt.Sprintf("least(greatest(%s, 0), %d)::bigint", n, most)
}

type mySQL struct{ core.Layout }

// time writes a literal of type TIMESTAMP, which is a DATETIME and has no time zone, and counts
// in microseconds, because MySQL has no interval of milliseconds.
func (d mySQL) time(ticks string) string {
	return fmt.Sprintf("TIMESTAMP '%s' + INTERVAL %s MICROSECOND", moment(d.Epoch), scale(ticks, d.Unit, time.Microsecond, ""))
}

func (d mySQL) tick(at string) string {
	return scale(fmt.Sprintf("TIMESTAMPDIFF(MICROSECOND, TIMESTAMP '%s', %s)", moment(d.Epoch), at), time.Microsecond, d.Unit, "DIV")
}

func (mySQL) between(n string, most int64) string {
	return fmt.Sprintf("LEAST(GREATEST(%s, 0), %d)", n, most)
}

type sqlite struct{ core.Layout }

// unix returns the epoch in units since 1970, and the unit: a millisecond if the layout has
// whole milliseconds, and a microsecond otherwise.
func (d sqlite) unix() (unit time.Duration, epoch int64) {
	if d.Unit%time.Millisecond == 0 && d.Epoch.Nanosecond()%int(time.Millisecond) == 0 {
		return time.Millisecond, d.Epoch.UnixMilli()
	}
	return time.Microsecond, d.Epoch.UnixMicro()
}

// time uses SQLite's own times, which have milliseconds, where they suffice. Microseconds are
// counted from a whole second before all keys, so that none is negative.
func (d sqlite) time(ticks string) string {
	unit, epoch := d.unix()
	since := scale(ticks, d.Unit, unit, "")
	if unit == time.Millisecond {
		return fmt.Sprintf("strftime('%%Y-%%m-%%d %%H:%%M:%%f', (%s + %d) / 1000.0, 'unixepoch')", since, epoch)
	}
	since = fmt.Sprintf("(%s + %d)", since, d.Epoch.Nanosecond()/1000)
	return fmt.Sprintf("datetime('%s', (%s / 1000000) || ' seconds') || printf('.%%06d', %s %% 1000000)",
		d.Epoch.Format(time.DateTime), since, since)
}

// tick rounds a Julian day, a float that is exact to less than half a millisecond.
func (d sqlite) tick(at string) string {
	unit, epoch := d.unix()
	since := fmt.Sprintf("CAST(round((julianday(%s) - 2440587.5) * 86400000) AS INTEGER)", at)
	since = scale(since, time.Millisecond, unit, "")
	return scale(fmt.Sprintf("(%s - %d)", since, epoch), unit, d.Unit, "/")
}

func (sqlite) between(n string, most int64) string {
	return fmt.Sprintf("min(max(%s, 0), %d)", n, most)
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
