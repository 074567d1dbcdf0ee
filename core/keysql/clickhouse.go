package keysql

import (
	"fmt"
	"time"

	"github.com/snowkey/snowkey/core"
)

// clickHouse calls functions for the bits of a key, because ClickHouse has no operators for
// them: https://clickhouse.com/docs/sql-reference/functions/bit-functions. The key is an Int64 or
// a UInt64.
type clickHouse struct{ core.Layout }

func (clickHouse) right(n string, by int) string { return fmt.Sprintf("bitShiftRight(%s, %d)", n, by) }

func (d clickHouse) part(n string, shift, width int) string {
	if shift > 0 {
		n = d.right(n, shift)
	}
	return fmt.Sprintf("bitAnd(%s, %d)", n, int64(1)<<width-1)
}

// time names the zone of its result, which is the session's otherwise.
func (d clickHouse) time(ticks string) string {
	return fmt.Sprintf("fromUnixTimestamp64Micro(%s, 'UTC')", micros(ticks, d.Layout))
}

// tick reads a text as a time in UTC, and keeps the moment of a DateTime in any zone.
func (d clickHouse) tick(at string) string {
	since := fmt.Sprintf("toUnixTimestamp64Micro(toDateTime64(%s, 6, 'UTC')) - %d", at, d.Epoch.UnixMicro())
	return fmt.Sprintf("intDiv(%s, %d)", since, d.Unit/time.Microsecond)
}

func (clickHouse) between(n string, most int64) string {
	return fmt.Sprintf("least(greatest(%s, 0), %d)", n, most)
}

// uuid returns a text, because ClickHouse sorts a UUID by its second half. hex writes two digits
// for a byte.
func (clickHouse) uuid(n [4]string) string {
	return fmt.Sprintf("lower(concat(leftPad(hex(%s), 8, '0'), '-', leftPad(hex(%s), 4, '0'), '-8', right(leftPad(hex(%s), 4, '0'), 3), '-9', right(hex(%s), 1), '73-6e6f776b6579'))",
		n[0], n[1], n[2], n[3])
}
