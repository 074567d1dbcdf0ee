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
		if got := begin(c.series, c.period); got != c.want {
			t.Errorf("begin(%s, %q) = %d; want %d", c.series.Definition(), c.period, got, c.want)
		}
	}
	s := new(Store)
	s.known.Store("x", &validSeries{Series: april})
	if _, err := s.definedPeriod("x", "202613"); !errors.As(err, new(*core.ValueError)) {
		t.Errorf("definedPeriod of no period = %v; want a ValueError", err)
	}
}
