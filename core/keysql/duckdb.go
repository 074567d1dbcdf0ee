package keysql

import (
	"fmt"
	"time"

	"github.com/snowkey/snowkey/core"
)

// duckDB counts in BIGINT throughout: an overflow is an error, and no literal is a HUGEINT.
var duckDB = syntax{
	bits:    operators,
	between: "LEAST(GREATEST(%s, 0), %d)",
	text:    "CAST(%s AS VARCHAR)",
	uuid:    "printf('%%08x-%%04x-8%%03x-9%%x73-6e6f776b6579', %s, %s, %s, %s)::UUID",
	// A TIMESTAMP, because a TIMESTAMPTZ is read and shown by an extension of DuckDB.
	time: func(l core.Layout, ticks string) string {
		return fmt.Sprintf("make_timestamp(%s)", micros(ticks, l))
	},
	// It divides towards zero, not downwards. That makes no difference, because between takes
	// every time before the epoch for the first tick.
	tick: func(l core.Layout, at string) string {
		return scale(fmt.Sprintf("(epoch_us(%s) - %d)", at, l.Epoch.UnixMicro()), time.Microsecond, l.Unit, "//")
	},
}

// micros counts the microseconds from 1970 to a tick, which fit 63 bits for 292,000 years.
func micros(ticks string, l core.Layout) string {
	return fmt.Sprintf("%s + %d", scale(ticks, l.Unit, time.Microsecond, ""), l.Epoch.UnixMicro())
}
