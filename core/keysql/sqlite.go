package keysql

import (
	"fmt"
	"time"

	"github.com/snowkey/snowkey/core"
)

type sqlite struct {
	operators
	core.Layout
}

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

// uuid asks for NULL, which printf takes for zero.
func (sqlite) uuid(n [4]string) string {
	return fmt.Sprintf("CASE WHEN (%[1]s) IS NOT NULL THEN printf('%%08x-%%04x-8%%03x-9%%x73-6e6f776b6579', %[1]s, %[2]s, %[3]s, %[4]s) END",
		n[0], n[1], n[2], n[3])
}
