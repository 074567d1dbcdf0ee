package sqlserial

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/serial"
)

func TestSeriesMeetIfATextMayBeOfBoth(t *testing.T) {
	yearly := serial.Series{Name: "a", Prefix: "A", Period: serial.Yearly, Digits: 4}
	for _, c := range []struct {
		series serial.Series
		meets  bool
	}{
		{yearly, true},
		{serial.Series{Prefix: "A", Digits: 8}, true}, // A20260001 both ways
		{serial.Series{Prefix: "A2026", Digits: 4}, true},
		{serial.Series{Prefix: "A", Period: serial.Monthly, Digits: 2}, true},
		{serial.Series{Prefix: "A", Period: serial.Yearly, Digits: 3, Check: serial.Luhn}, true},
		{serial.Series{Prefix: "A", Period: serial.Yearly, Digits: 2, Check: serial.Mod97_10}, true},
		{serial.Series{Prefix: "A", Period: serial.Yearly, Digits: 4, Zone: time.FixedZone("here, 9 digits from 1, Luhn", 3600), Chronological: true, First: 7}, true},
		{serial.Series{Prefix: "A", Period: serial.Yearly, Digits: 4, YearBegins: time.May, YearByEnd: true}, true},
		{serial.Series{Prefix: "A", Period: serial.Yearly, Digits: 4, Scope: "other"}, false},
		{serial.Series{Prefix: "B", Period: serial.Yearly, Digits: 4}, false},
		{serial.Series{Prefix: "A", Period: serial.Yearly, Digits: 5}, false},
		{serial.Series{Prefix: "A", Period: serial.Yearly, Digits: 3, Separator: "-"}, false},
		{serial.Series{Prefix: "A2026-", Digits: 3}, false},
		{serial.Series{Prefix: "", Digits: 9}, false},
		{serial.Series{Prefix: "A", Period: serial.Yearly, Digits: 4, Check: serial.Luhn}, false},
	} {
		c.series.Name = "b"
		if err := c.series.Validate(); err != nil {
			t.Fatal(err)
		}
		if got := meet(yearly, c.series.Definition()); got != c.meets {
			t.Errorf("%s meets %s: %t; want %t", yearly.Definition(), c.series.Definition(), got, c.meets)
		}
		if got := meet(c.series, yearly.Definition()); got != c.meets {
			t.Errorf("%s meets %s: %t; want %t", c.series.Definition(), yearly.Definition(), got, c.meets)
		}
	}
	for _, text := range []string{"", "no series: one program at a time adds one", "prefix \"A\", serial.Yearly in UTC, 4 digits from 1", "prefix \"A\", serial.Yearly in UTC, 99999999999999999999 digits from 1, Luhn"} {
		if meet(yearly, text) {
			t.Errorf("%s meets %q, which is no definition", yearly.Definition(), text)
		}
	}
}

// Texts of one series are read as those of others.
func TestSeriesThatDoNotMeetHaveNoTextInCommon(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	pick := func() serial.Series {
		s := serial.Series{
			Name: "x", Prefix: []string{"", "A", "A2", "A20", "A-", "2", "20", "2026"}[r.IntN(8)], Period: serial.Period(r.IntN(4)),
			Digits: 1 + r.IntN(8), Check: serial.Check(r.IntN(4)), First: int64(r.IntN(3)), Scope: []string{"", "s"}[r.IntN(2)],
		}
		if s.Period != serial.Never {
			s.Separator = []string{"", "-", "/"}[r.IntN(3)]
		}
		if s.Period == serial.Yearly {
			s.YearBegins = time.Month(r.IntN(13))
		}
		return s
	}
	common := 0
	for range 100_000 {
		a, b := pick(), pick()
		b.Scope = a.Scope
		first, last := a.Bounds()
		n, err := a.Number(time.Date(2026, 11, 22, 23, 30, 0, 0, time.UTC).AddDate(r.IntN(30), r.IntN(12), 0), first+r.Int64N(last-first+1))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Parse(n.Text); err != nil {
			continue
		}
		common++
		if !meet(a, b.Definition()) || !meet(b, a.Definition()) {
			t.Fatalf("%s is a text of %s and of %s, which do not meet", n.Text, a.Definition(), b.Definition())
		}
	}
	if common < 100 {
		t.Errorf("%d texts were those of two series; want more, or nothing is shown", common)
	}
}
