package sqlserial

import (
	"errors"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/serial"
)

func TestAPeriodBeginsWithItsFirstDate(t *testing.T) {
	april := serial.Series{Name: "x", Digits: 3, Period: serial.Yearly, YearBegins: time.April}
	october := serial.Series{Name: "x", Digits: 3, Period: serial.Yearly, YearBegins: time.October, YearByEnd: true}
	for _, c := range []struct {
		series serial.Series
		period string
		want   int64
	}{
		{april, "2025", 20250401},
		{october, "2026", 20251001},
		{serial.Series{Name: "x", Digits: 3, Period: serial.Yearly}, "2026", 20260101},
		{serial.Series{Name: "x", Digits: 3, Period: serial.Monthly}, "202611", 20261101},
		{serial.Series{Name: "x", Digits: 3, Period: serial.Daily}, "20261122", 20261122},
		{serial.Series{Name: "x", Digits: 3}, "", 0},
	} {
		if got, err := begin(c.series, c.period); err != nil || got != c.want {
			t.Errorf("begin(%s, %q) = %d, %v; want %d", c.series.Definition(), c.period, got, err, c.want)
		}
	}
	if got, err := begin(april, "202613"); got != 0 || !errors.As(err, new(*core.ValueError)) {
		t.Errorf("begin of no period = %d, %v; want a ValueError", got, err)
	}
}
