package keysql

import (
	"fmt"
	"time"

	"github.com/snowkey/snowkey/core"
)

// duckDB counts in BIGINT throughout: an overflow is an error, and no literal is a HUGEINT.
type duckDB struct {
	operators
	core.Layout
}

// time returns a TIMESTAMP, because a TIMESTAMPTZ is read and shown by an extension of DuckDB.
func (d duckDB) time(ticks string) string {
	return fmt.Sprintf("make_timestamp(%s)", micros(ticks, d.Layout))
}

// tick divides towards zero, not downwards. That makes no difference, because between takes
// every time before the epoch for the first tick.
func (d duckDB) tick(at string) string {
	return scale(fmt.Sprintf("(epoch_us(%s) - %d)", at, d.Epoch.UnixMicro()), time.Microsecond, d.Unit, "//")
}

func (duckDB) uuid(n [4]string) string {
	return fmt.Sprintf("printf('%%08x-%%04x-8%%03x-9%%x73-6e6f776b6579', %s, %s, %s, %s)::UUID", n[0], n[1], n[2], n[3])
}

// micros counts the microseconds from 1970 to a tick, which fit 63 bits for 292,000 years.
func micros(ticks string, l core.Layout) string {
	return fmt.Sprintf("%s + %d", scale(ticks, l.Unit, time.Microsecond, ""), l.Epoch.UnixMicro())
}
