package keysql

import (
	"fmt"
	"time"

	"github.com/snowkey/snowkey/core"
)

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
