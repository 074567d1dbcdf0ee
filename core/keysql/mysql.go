package keysql

import (
	"fmt"
	"time"

	"github.com/snowkey/snowkey/core"
)

var mySQL = syntax{
	bits:    operators,
	between: "LEAST(GREATEST(%s, 0), %d)",
	text:    "CAST(%s AS CHAR)",
	uuid:    "LOWER(CONCAT(LPAD(HEX(%s), 8, '0'), '-', LPAD(HEX(%s), 4, '0'), '-8', LPAD(HEX(%s), 3, '0'), '-9', HEX(%s), '73-6e6f776b6579'))",
	// A literal of type TIMESTAMP is a DATETIME and has no time zone. Microseconds, because MySQL has
	// no interval of milliseconds. DATE_ADD is what TiDB reads too: in
	// TIMESTAMP '…' + INTERVAL (…) * 1000 MICROSECOND it takes INTERVAL for the function of that name.
	time: func(l core.Layout, ticks string) string {
		return fmt.Sprintf("DATE_ADD(TIMESTAMP '%s', INTERVAL %s MICROSECOND)", moment(l.Epoch), scale(ticks, l.Unit, time.Microsecond, ""))
	},
	tick: func(l core.Layout, at string) string {
		return scale(fmt.Sprintf("TIMESTAMPDIFF(MICROSECOND, TIMESTAMP '%s', %s)", moment(l.Epoch), at), time.Microsecond, l.Unit, "DIV")
	},
}
