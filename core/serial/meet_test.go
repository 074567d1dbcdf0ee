package serial

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestSeriesMeetIfATextMayBeOfBoth(t *testing.T) {
	yearly := Series{Name: "a", Prefix: "A", Period: Yearly, Digits: 4}
	for _, c := range []struct {
		series Series
		meets  bool
	}{
		{yearly, true},
		{Series{Prefix: "A", Digits: 8}, true}, // A20260001 both ways
		{Series{Prefix: "A2026", Digits: 4}, true},
		{Series{Prefix: "A", Period: Monthly, Digits: 2}, true},
		{Series{Prefix: "A", Period: Yearly, Digits: 3, Check: Luhn}, true},
		{Series{Prefix: "A", Period: Yearly, Digits: 2, Check: Mod97_10}, true},
		{Series{Prefix: "A", Period: Yearly, Digits: 4, Zone: time.FixedZone("here, 9 digits from 1, Luhn", 3600), Chronological: true, First: 7}, true},
		{Series{Prefix: "A", Period: Yearly, Digits: 4, YearBegins: time.May, YearByEnd: true}, true},
		{Series{Prefix: "A", Period: Yearly, Digits: 4, Scope: "other"}, false},
		{Series{Prefix: "B", Period: Yearly, Digits: 4}, false},
		{Series{Prefix: "A", Period: Yearly, Digits: 5}, false},
		{Series{Prefix: "A", Period: Yearly, Digits: 3, Separator: "-"}, false},
		{Series{Prefix: "A2026-", Digits: 3}, false},
		{Series{Prefix: "", Digits: 9}, false},
		{Series{Prefix: "A", Period: Yearly, Digits: 4, Check: Luhn}, false},
	} {
		c.series.Name = "b"
		if err := c.series.Validate(); err != nil {
			t.Fatal(err)
		}
		if got := yearly.Meets(c.series.Definition()); got != c.meets {
			t.Errorf("%s meets %s: %t; want %t", yearly.Definition(), c.series.Definition(), got, c.meets)
		}
		if got := c.series.Meets(yearly.Definition()); got != c.meets {
			t.Errorf("%s meets %s: %t; want %t", c.series.Definition(), yearly.Definition(), got, c.meets)
		}
	}
	for _, text := range []string{"", "no series: one program at a time adds one", "prefix \"A\", Yearly in UTC, 4 digits from 1", "prefix \"A\", Yearly in UTC, 99999999999999999999 digits from 1, Luhn"} {
		if yearly.Meets(text) {
			t.Errorf("%s meets %q, which is no definition", yearly.Definition(), text)
		}
	}
}

// Texts of one series are read as those of others.
func TestSeriesThatDoNotMeetHaveNoTextInCommon(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	pick := func() Series {
		s := Series{
			Name: "x", Prefix: []string{"", "A", "A2", "A20", "A-", "2", "20", "2026"}[r.IntN(8)], Period: Period(r.IntN(4)),
			Digits: 1 + r.IntN(8), Check: Check(r.IntN(4)), First: int64(r.IntN(3)), Scope: []string{"", "s"}[r.IntN(2)],
		}
		if s.Period != Never {
			s.Separator = []string{"", "-", "/"}[r.IntN(3)]
		}
		if s.Period == Yearly {
			s.YearBegins = time.Month(r.IntN(13))
		}
		return s
	}
	common := 0
	for range 100_000 {
		a, b := pick(), pick()
		b.Scope = a.Scope
		first, last := a.Bounds()
		n, err := a.Number(at.AddDate(r.IntN(30), r.IntN(12), 0), first+r.Int64N(last-first+1))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Parse(n.Text); err != nil {
			continue
		}
		common++
		if !a.Meets(b.Definition()) || !b.Meets(a.Definition()) {
			t.Fatalf("%s is a text of %s and of %s, which do not meet", n.Text, a.Definition(), b.Definition())
		}
	}
	if common < 100 {
		t.Errorf("%d texts were those of two series; want more, or nothing is shown", common)
	}
}
