package keysql

import (
	"fmt"
	"time"

	"github.com/snowkey/snowkey/core"
)

// clickHouse calls functions for the bits of a key, because ClickHouse has no operators for
// them: https://clickhouse.com/docs/sql-reference/functions/bit-functions. The key is an Int64 or
// a UInt64.
var clickHouse = syntax{
	bits:    bits{"bitShiftRight(%s, %d)", "bitAnd(%s, %d)", "bitAnd(bitShiftRight(%s, %d), %d)"},
	between: "least(greatest(%s, 0), %d)",
	text:    "toString(%s)",
	// A text, because ClickHouse sorts a UUID by its second half. hex writes two digits for a byte.
	uuid: "lower(concat(leftPad(hex(%s), 8, '0'), '-', leftPad(hex(%s), 4, '0'), '-8', right(leftPad(hex(%s), 4, '0'), 3), '-9', right(hex(%s), 1), '73-6e6f776b6579'))",
	// The result names its zone, which is the session's otherwise.
	time: func(l core.Layout, ticks string) string {
		return fmt.Sprintf("fromUnixTimestamp64Micro(%s, 'UTC')", micros(ticks, l))
	},
	// A text is read as a time in UTC, and a DateTime keeps its moment in any zone.
	tick: func(l core.Layout, at string) string {
		since := fmt.Sprintf("toUnixTimestamp64Micro(toDateTime64(%s, 6, 'UTC')) - %d", at, l.Epoch.UnixMicro())
		return fmt.Sprintf("intDiv(%s, %d)", since, l.Unit/time.Microsecond)
	},
}
