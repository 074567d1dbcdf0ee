package keysql

import (
	"fmt"
	"time"

	"github.com/snowkey/snowkey/core"
)

type mySQL struct {
	operators
	core.Layout
}

// time writes a literal of type TIMESTAMP, which is a DATETIME and has no time zone, and counts
// in microseconds, because MySQL has no interval of milliseconds. DATE_ADD is what TiDB reads too: in
// TIMESTAMP '…' + INTERVAL (…) * 1000 MICROSECOND it takes INTERVAL for the function of that name.
func (d mySQL) time(ticks string) string {
	return fmt.Sprintf("DATE_ADD(TIMESTAMP '%s', INTERVAL %s MICROSECOND)", moment(d.Epoch), scale(ticks, d.Unit, time.Microsecond, ""))
}

func (d mySQL) tick(at string) string {
	return scale(fmt.Sprintf("TIMESTAMPDIFF(MICROSECOND, TIMESTAMP '%s', %s)", moment(d.Epoch), at), time.Microsecond, d.Unit, "DIV")
}

func (mySQL) uuid(n [4]string) string {
	return fmt.Sprintf("LOWER(CONCAT(LPAD(HEX(%s), 8, '0'), '-', LPAD(HEX(%s), 4, '0'), '-8', LPAD(HEX(%s), 3, '0'), '-9', HEX(%s), '73-6e6f776b6579'))",
		n[0], n[1], n[2], n[3])
}
