package serial

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
)

var at = time.Date(2026, 11, 22, 23, 30, 0, 0, time.UTC)

func load(t testing.TB, name string) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

func TestTextIsPrefixPeriodNumberAndCheckDigits(t *testing.T) {
	for _, c := range []struct {
		series Series
		n      int64
		want   string
	}{
		{Series{Digits: 3}, 7, "007"},
		{Series{Prefix: "INV-", Digits: 4, Period: Yearly}, 42, "INV-20260042"},
		{Series{Prefix: "INV/", Digits: 4, Period: Monthly}, 9999, "INV/2026119999"},
		{Series{Digits: 1, Period: Daily}, 1, "202611221"},
		{Series{Digits: 1, Period: Daily, Zone: load(t, "Europe/Berlin")}, 1, "202611231"}, // it is half past midnight there
		{Series{Digits: 10, Check: Luhn}, 7992739871, "79927398713"},
		{Series{Prefix: "0", Digits: 3, Check: Mod11_10}, 794, "07945"},
		{Series{Digits: 3, Check: Mod97_10}, 794, "79444"},
		{Series{Digits: 18}, 999999999999999999, "999999999999999999"},
		{Series{Prefix: "INV-", Digits: 4, Period: Yearly, Separator: "-"}, 42, "INV-2026-0042"},
		{Series{Prefix: "R", Digits: 4, Period: Monthly, Separator: "/"}, 42, "R202611/0042"},
		{Series{Digits: 3, Period: Daily, Separator: ".", Check: Luhn}, 794, withCheck("20261122.794")},
		{Series{Digits: 3, Period: Yearly, YearBegins: time.January}, 42, "2026042"},
		{Series{Digits: 3, Period: Yearly, YearBegins: time.November}, 42, "2026042"},
		{Series{Digits: 3, Period: Yearly, YearBegins: time.December}, 42, "2025042"},
		{Series{Digits: 3, Period: Yearly, YearBegins: time.December, YearByEnd: true}, 42, "2026042"},
		{Series{Digits: 3, Period: Yearly, YearBegins: time.November, YearByEnd: true, Separator: "-"}, 42, "2027-042"},
	} {
		c.series.Name = "x"
		if err := c.series.Validate(); err != nil {
			t.Errorf("%+v.Validate() = %v; want no error", c.series, err)
		}
		n, err := c.series.Number(at, c.n)
		if err != nil || n.Text != c.want || n.N != c.n || n.Series != "x" || !n.At.Equal(at) {
			t.Errorf("%s: Number(%d) = %+v, %v; want %s", c.series.Definition(), c.n, n, err, c.want)
		}
		back, err := c.series.Parse(n.Text)
		n.At = time.Time{}
		if err != nil || back != n {
			t.Errorf("%s: Parse(%s) = %+v, %v; want %+v", c.series.Definition(), n.Text, back, err, n)
		}
	}
}

func TestSeriesOutOfRangeAreRefused(t *testing.T) {
	for _, c := range []struct {
		change func(*Series)
		field  string
	}{
		{func(s *Series) { s.Name = "" }, "Series.Name"},
		{func(s *Series) { s.Name = strings.Repeat("x", 65) }, "Series.Name"},
		{func(s *Series) { s.Name = "a b" }, "Series.Name"},
		{func(s *Series) { s.Name = "é" }, "Series.Name"},
		{func(s *Series) { s.Prefix = "inv" }, "Series.Prefix"},
		{func(s *Series) { s.Prefix = strings.Repeat("X", 17) }, "Series.Prefix"},
		{func(s *Series) { s.Period = -1 }, "Series.Period"},
		{func(s *Series) { s.Period = Daily + 1 }, "Series.Period"},
		{func(s *Series) { s.Zone = time.Local }, "Series.Zone"}, //nolint:gosmopolitan // it is refused
		{func(s *Series) { s.Zone = time.FixedZone("", 60) }, "Series.Zone"},
		{func(s *Series) { s.Zone = time.FixedZone("a\nb", 60) }, "Series.Zone"},
		{func(s *Series) { s.Digits = 0 }, "Series.Digits"},
		{func(s *Series) { s.Digits = 19 }, "Series.Digits"},
		{func(s *Series) { s.First = -1 }, "Series.First"},
		{func(s *Series) { s.First = 1000 }, "Series.First"},
		{func(s *Series) { s.Check = -1 }, "Series.Check"},
		{func(s *Series) { s.Scope = strings.Repeat("x", 65) }, "Series.Scope"},
		{func(s *Series) { s.Scope = "a,b" }, "Series.Scope"},
		{func(s *Series) { s.Separator = "-" }, "Series.Separator"}, // there is no period
		{func(s *Series) { s.Period, s.Separator = Yearly, "--" }, "Series.Separator"},
		{func(s *Series) { s.Period, s.Separator = Yearly, " " }, "Series.Separator"},
		{func(s *Series) { s.Period, s.Separator = Yearly, "A" }, "Series.Separator"},
		{func(s *Series) { s.Period, s.YearBegins = Yearly, 13 }, "Series.YearBegins"},
		{func(s *Series) { s.Period, s.YearBegins = Yearly, -1 }, "Series.YearBegins"},
		{func(s *Series) { s.Period, s.YearBegins = Monthly, time.April }, "Series.YearBegins"},
		{func(s *Series) { s.Period, s.YearByEnd = Yearly, true }, "Series.YearByEnd"},
	} {
		s := Series{Name: "x", Digits: 3}
		c.change(&s)
		var wrong *core.ValueError
		if err := s.Validate(); !errors.As(err, &wrong) || wrong.Name != c.field {
			t.Errorf("%+v.Validate() = %v; want a ValueError for %s", s, err, c.field)
		}
		if n, err := s.Parse("001"); err == nil || n != (Number{}) {
			t.Errorf("%+v.Parse = %+v, %v; want an error", s, n, err)
		}
		if c, err := NewCounter(new(memory), s, 1); c != nil || !errors.As(err, &wrong) {
			t.Errorf("NewCounter(%+v) = %v, %v; want a ValueError", s, c, err)
		}
	}
}

func TestNumbersAndMomentsOutsideOfASeriesAreRefused(t *testing.T) {
	s := Series{Name: "x", Digits: 2, First: 5, Period: Yearly}
	for _, n := range []int64{-1, 0, 4, 100} {
		if got, err := s.Number(at, n); got != (Number{}) || err == nil || !strings.Contains(err.Error(), "want 5 to 99") {
			t.Errorf("Number(%d) = %+v, %v; want an error with the range", n, got, err)
		}
	}
	if got, err := (Series{Name: "x", Digits: 20}).Number(at, 1); got != (Number{}) || !errors.As(err, new(*core.ValueError)) {
		t.Errorf("Number of 20 digits = %+v, %v; want a ValueError", got, err)
	}
	if got, err := s.PeriodOf(time.Time{}); got != "" || !errors.As(err, new(*core.ValueError)) {
		t.Errorf("PeriodOf the zero time = %q, %v; want a ValueError", got, err)
	}
	for _, moment := range []time.Time{{}, at.AddDate(-2027, 0, 0), at.AddDate(8000, 0, 0)} {
		s := s
		s.Zone = time.FixedZone("west", -12*60*60)
		if got, err := s.PeriodOf(moment); got != "" || err == nil {
			t.Errorf("PeriodOf(%v) = %q, %v; want an error", moment, got, err)
		}
	}
}

func TestTextsThatTheSeriesDoesNotWriteAreRefused(t *testing.T) {
	s := Series{Name: "x", Prefix: "A", Period: Daily, Digits: 2, First: 2, Check: Luhn}
	good, err := s.Number(at, 34)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"", "A", good.Text + "0", "A20261122-4", // nothing is between
		good.Text[1:], "B" + good.Text[1:], "a" + good.Text[1:], " " + good.Text, good.Text[:5] + "x" + good.Text[6:],
		withCheck("A2026022934"), withCheck("A2026130134"), withCheck("A2026010034"), withCheck("A0000010134"), withCheck("A2026112201"),
	} {
		if n, err := s.Parse(text); n != (Number{}) || !errors.As(err, new(*core.ValueError)) {
			t.Errorf("Parse(%q) = %+v, %v; want a ValueError", text, n, err)
		}
	}
	last := good.Text[len(good.Text)-1]
	if _, err := s.Parse(good.Text[:len(good.Text)-1] + string('0'+(last-'0'+1)%10)); !errors.Is(err, ErrCheckDigit) {
		t.Errorf("Parse with another check digit = %v; want %v", err, ErrCheckDigit)
	}
}

func TestTheSeparatorIsWhereItBelongs(t *testing.T) {
	s := Series{Name: "x", Prefix: "R-", Period: Yearly, Separator: "-", Digits: 3}
	for _, text := range []string{"R-2026001", "R-2026/001", "R-20260-01", "R-202-6001", "R--2026001", "R-2026-0-1", "R-2026-01-", "R-2026--01"} {
		if n, err := s.Parse(text); n != (Number{}) || !errors.As(err, new(*core.ValueError)) {
			t.Errorf("Parse(%q) = %+v, %v; want a ValueError", text, n, err)
		}
	}
	if n, err := s.Parse("R-2026-001"); err != nil || n.N != 1 || n.Period != "2026" {
		t.Errorf("Parse = %+v, %v; want 1 of 2026", n, err)
	}
}

// A fiscal year goes from one midnight of the zone to another.
func TestAFiscalYearBeginsWithItsMonth(t *testing.T) {
	berlin := load(t, "Europe/Berlin")
	april := Series{Name: "x", Digits: 3, Period: Yearly, Zone: berlin, YearBegins: time.April}
	october := Series{Name: "x", Digits: 3, Period: Yearly, Zone: berlin, YearBegins: time.October, YearByEnd: true}
	for _, c := range []struct {
		series Series
		at     time.Time
		period string
	}{
		{april, time.Date(2026, 3, 31, 23, 59, 59, 0, berlin), "2025"},
		{april, time.Date(2026, 3, 31, 22, 0, 0, 0, time.UTC), "2026"},
		{april, time.Date(2026, 12, 31, 0, 0, 0, 0, berlin), "2026"},
		{october, time.Date(2026, 9, 30, 23, 59, 59, 0, berlin), "2026"},
		{october, time.Date(2026, 10, 1, 0, 0, 0, 0, berlin), "2027"},
		{Series{Name: "x", Digits: 3, Period: Yearly}, at, "2026"},
		{Series{Name: "x", Digits: 3, Period: Monthly}, at, "202611"},
		{Series{Name: "x", Digits: 3, Period: Daily}, at, "20261122"},
		{Series{Name: "x", Digits: 3}, at, ""},
	} {
		period, err := c.series.PeriodOf(c.at)
		if err != nil || period != c.period {
			t.Errorf("%s: PeriodOf(%v) = %q, %v; want %q", c.series.Definition(), c.at, period, err, c.period)
		}
	}
	for s, moment := range map[*Series]time.Time{&april: time.Date(1, 2, 1, 0, 0, 0, 0, berlin), &october: time.Date(9999, 11, 1, 0, 0, 0, 0, berlin)} {
		if period, err := s.PeriodOf(moment); period != "" || !errors.As(err, new(*core.ValueError)) {
			t.Errorf("PeriodOf(%v) = %q, %v; want a ValueError: the year has no four digits", moment, period, err)
		}
	}
}

// withCheck appends the check digit, so that nothing else is wrong with it.
func withCheck(text string) string {
	return string(appendDigits([]byte(text), int64(luhn([]byte(text))), 1))
}

func TestDefinitionsAreEqualIfAndOnlyIfTheSeriesAre(t *testing.T) {
	base := Series{Name: "x", Digits: 3}
	texts := map[string]bool{}
	all := []Series{
		base,
		{Name: "x", Digits: 4},
		{Name: "x", Digits: 3, Prefix: "A"},
		{Name: "x", Digits: 3, Period: Yearly},
		{Name: "x", Digits: 3, First: 2},
		{Name: "x", Digits: 3, Check: Luhn},
		{Name: "x", Digits: 3, Chronological: true},
		{Name: "x", Digits: 3, Zone: load(t, "Europe/Berlin")},
		{Name: "x", Digits: 3, Zone: time.FixedZone("CET", 3600)},
		{Name: "x", Digits: 3, Zone: time.FixedZone("CET", 7200)},
		{Name: "x", Digits: 3, Period: Yearly, Separator: "-"},
		{Name: "x", Digits: 3, Period: Yearly, Separator: "/"},
		{Name: "x", Digits: 3, Period: Yearly, YearBegins: time.April},
		{Name: "x", Digits: 3, Period: Yearly, YearBegins: time.July},
		{Name: "x", Digits: 3, Period: Yearly, YearBegins: time.July, YearByEnd: true},
		{Name: "x", Digits: 3, Scope: "a"},
	}
	for _, s := range all {
		texts[s.Definition()] = true
		if back, err := ParseDefinition("x", s.Definition()); err != nil || back.Definition() != s.Definition() {
			t.Errorf("ParseDefinition(%q) = %+v, %v", s.Definition(), back, err)
		}
		if len(s.Definition()) > 400 {
			t.Errorf("%q has %d bytes; want at most 400, as the table has them", s.Definition(), len(s.Definition()))
		}
	}
	if len(texts) != len(all) {
		t.Errorf("%d definitions of %d series: %v", len(texts), len(all), texts)
	}
	same := base
	same.First, same.Zone = 1, time.UTC
	if same.Definition() != base.Definition() {
		t.Errorf("the defaults, and what they stand for: %q and %q; want them equal", base.Definition(), same.Definition())
	}
	longest := Series{Name: "x", Prefix: strings.Repeat("X", 16), Period: Yearly, Zone: time.FixedZone(strings.Repeat("z", 64), -45296), Digits: 18, First: 999999999999999999, Check: Mod97_10, Chronological: true, Separator: "-", YearBegins: time.September, YearByEnd: true, Scope: strings.Repeat("s", 64)}
	if err := longest.Validate(); err != nil || len(longest.Definition()) > 400 {
		t.Errorf("the longest definition has %d bytes (%v); want at most 400", len(longest.Definition()), err)
	}
}

func FuzzParseDefinition(f *testing.F) {
	for _, s := range []Series{{Digits: 3}, {Prefix: "A-", Period: Yearly, Digits: 18, First: 7, Check: Mod97_10, Chronological: true, Separator: "-", YearBegins: time.July, YearByEnd: true, Scope: "s", Zone: time.FixedZone("a (b), 3 digits from 1, Luhn", -3661)}} {
		f.Add(s.Definition())
	}
	for _, text := range []string{"", `prefix "A", Yearly in UTC, 4 digits from 1`, `prefix "A", Weekly in UTC, 4 digits from 1, Luhn`, `prefix "A", Yearly in Mars/Olympus, 4 digits from 1, Luhn`, `prefix "A", Yearly in Local, 4 digits from 1, Luhn`,
		`prefix "A", Yearly in UTC, 04 digits from 1, Luhn`, `prefix "A", Yearly in UTC, 99999999999999999999 digits from 1, Luhn`, `prefix "A\x", Yearly in UTC, 4 digits from 1, Luhn`, `prefix "A", Yearly in x (+1:00), 4 digits from 1, Luhn`, `prefix "A", Never in UTC, 4 digits from 1, Luhn, years from May`} {
		f.Add(text)
		if s, err := ParseDefinition("x", text); !errors.As(err, new(*core.ValueError)) || s != (Series{}) {
			f.Errorf("ParseDefinition(%q) = %+v, %v; want a ValueError", text, s, err)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseDefinition("x", text)
		if (err == nil) != (s != Series{}) || err == nil && (s.Definition() != text || s.Validate() != nil) {
			t.Errorf("ParseDefinition(%q) = %+v, %v", text, s, err)
		}
	})
}

func FuzzSeriesParse(f *testing.F) {
	f.Add("INV2026000042", "INV", 1, 6, 0)
	f.Add("202611220017", "", 3, 3, 1)
	f.Add("A-20260229", "A-", 0, 6, 3)
	f.Fuzz(func(t *testing.T, text, prefix string, period, digits, check int) {
		s := Series{Name: "x", Prefix: prefix, Period: Period(period), Digits: digits, Check: Check(check)}
		n, err := s.Parse(text)
		if err != nil {
			if n != (Number{}) {
				t.Errorf("Parse(%q) = %+v beside %v", text, n, err)
			}
			return
		}
		if n.Text != text || len(text) != len(prefix)+s.Period.width()+digits+s.Check.width() {
			t.Errorf("Parse(%q) = %+v", text, n)
		}
		moment := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		if layout := "20060102"[:s.Period.width()]; layout != "" {
			if moment, err = time.Parse(layout, n.Period); err != nil {
				t.Fatalf("Parse(%q) has the period %q: %v", text, n.Period, err)
			}
		}
		if again, err := s.Number(moment, n.N); err != nil || again.Text != text {
			t.Errorf("Number(%v, %d) = %q, %v; want %q", moment, n.N, again.Text, err, text)
		}
	})
}
