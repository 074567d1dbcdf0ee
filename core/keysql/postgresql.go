package keysql

import (
	"fmt"
	"strconv"
	"time"

	"github.com/snowkey/snowkey/core"
)

type postgreSQL struct {
	operators
	core.Layout
}

func (d postgreSQL) time(ticks string) string {
	return fmt.Sprintf("timestamptz '%sZ' + %s * interval '%s'", moment(d.Epoch), ticks, d.interval())
}

// interval returns the unit as the text of an interval.
func (d postgreSQL) interval() string {
	n, name := d.Unit/time.Microsecond, "microsecond"
	switch {
	case d.Unit%time.Second == 0:
		n, name = d.Unit/time.Second, "second"
	case d.Unit%time.Millisecond == 0:
		n, name = d.Unit/time.Millisecond, "millisecond"
	}
	if n > 1 {
		name += "s"
	}
	return fmt.Sprintf("%d %s", n, name)
}

// tick relies on extract, which returns a numeric and is therefore exact.
func (d postgreSQL) tick(at string) string {
	epoch := strconv.FormatFloat(float64(d.Epoch.UnixMicro())/1e6, 'f', -1, 64)
	since := fmt.Sprintf("(extract(epoch FROM %s) - %s)", at, epoch)
	return fmt.Sprintf("floor(%s)", scale(since, time.Second, d.Unit, "/"))
}

func (postgreSQL) between(n string, most int64) string {
	return fmt.Sprintf("least(greatest(%s, 0), %d)::bigint", n, most)
}

func (postgreSQL) uuid(n [4]string) string {
	return fmt.Sprintf("(lpad(to_hex(%s), 8, '0') || lpad(to_hex(%s), 4, '0') || '8' || lpad(to_hex(%s), 3, '0') || '9' || to_hex(%s) || '736e6f776b6579')::uuid",
		n[0], n[1], n[2], n[3])
}
