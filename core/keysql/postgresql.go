package keysql

import (
	"fmt"
	"strconv"
	"time"

	"github.com/snowkey/snowkey/core"
)

var postgreSQL = syntax{
	bits:    operators,
	between: "least(greatest(%s, 0), %d)::bigint",
	text:    "%s::text",
	uuid:    "(lpad(to_hex(%s), 8, '0') || lpad(to_hex(%s), 4, '0') || '8' || lpad(to_hex(%s), 3, '0') || '9' || to_hex(%s) || '736e6f776b6579')::uuid",
	time: func(l core.Layout, ticks string) string {
		return fmt.Sprintf("timestamptz '%sZ' + %s * interval '%s'", moment(l.Epoch), ticks, interval(l.Unit))
	},
	// extract returns a numeric and is therefore exact.
	tick: func(l core.Layout, at string) string {
		epoch := strconv.FormatFloat(float64(l.Epoch.UnixMicro())/1e6, 'f', -1, 64)
		since := fmt.Sprintf("(extract(epoch FROM %s) - %s)", at, epoch)
		return fmt.Sprintf("floor(%s)", scale(since, time.Second, l.Unit, "/"))
	},
}

// interval returns a duration of whole microseconds as the text of an interval.
func interval(d time.Duration) string {
	n, name := d/time.Microsecond, "microsecond"
	switch {
	case d%time.Second == 0:
		n, name = d/time.Second, "second"
	case d%time.Millisecond == 0:
		n, name = d/time.Millisecond, "millisecond"
	}
	if n > 1 {
		name += "s"
	}
	return fmt.Sprintf("%d %s", n, name)
}
