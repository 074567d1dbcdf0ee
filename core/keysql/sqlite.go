package keysql

import (
	"fmt"
	"time"

	"github.com/snowkey/snowkey/core"
)

var sqlite = syntax{
	bits:    operators,
	between: "min(max(%s, 0), %d)",
	text:    "CAST(%s AS TEXT)",
	// It asks for NULL, which printf takes for zero.
	uuid: "CASE WHEN (%[1]s) IS NOT NULL THEN printf('%%08x-%%04x-8%%03x-9%%x73-6e6f776b6579', %[1]s, %[2]s, %[3]s, %[4]s) END",
	// SQLite's own times, which have milliseconds, where they suffice. Microseconds are
	// counted from a whole second before all keys, so that none is negative.
	time: func(l core.Layout, ticks string) string {
		unit, epoch := unix(l)
		since := scale(ticks, l.Unit, unit, "")
		if unit == time.Millisecond {
			return fmt.Sprintf("strftime('%%Y-%%m-%%d %%H:%%M:%%f', (%s + %d) / 1000.0, 'unixepoch')", since, epoch)
		}
		since = fmt.Sprintf("(%s + %d)", since, l.Epoch.Nanosecond()/1000)
		return fmt.Sprintf("datetime('%s', (%s / 1000000) || ' seconds') || printf('.%%06d', %s %% 1000000)",
			l.Epoch.Format(time.DateTime), since, since)
	},
	// A Julian day is a float that is exact to less than half a millisecond.
	tick: func(l core.Layout, at string) string {
		unit, epoch := unix(l)
		since := fmt.Sprintf("CAST(round((julianday(%s) - 2440587.5) * 86400000) AS INTEGER)", at)
		since = scale(since, time.Millisecond, unit, "")
		return scale(fmt.Sprintf("(%s - %d)", since, epoch), unit, l.Unit, "/")
	},
}

// unix returns the epoch in units since 1970, and the unit: a millisecond if the layout has
// whole milliseconds, and a microsecond otherwise.
func unix(l core.Layout) (unit time.Duration, epoch int64) {
	if l.Unit%time.Millisecond == 0 && l.Epoch.Nanosecond()%int(time.Millisecond) == 0 {
		return time.Millisecond, l.Epoch.UnixMilli()
	}
	return time.Microsecond, l.Epoch.UnixMicro()
}
