package serial

import (
	"fmt"
	"strconv"
	"time"
)

// A Period says when the numbers of a [Series] begin again.
type Period int

const (
	// Never goes on for ever. The text has no date.
	Never Period = iota
	// Yearly begins again each year: 2026.
	Yearly
	// Monthly begins again each month: 202611.
	Monthly
	// Daily begins again each day: 20261122.
	Daily
)

// String returns the name of the constant.
func (p Period) String() string {
	switch p {
	case Never:
		return "Never"
	case Yearly:
		return "Yearly"
	case Monthly:
		return "Monthly"
	case Daily:
		return "Daily"
	}
	return "Period(" + strconv.Itoa(int(p)) + ")"
}

// width is how many digits the period of a text has.
func (p Period) width() int {
	switch p {
	case Yearly:
		return 4
	case Monthly:
		return 6
	case Daily:
		return 8
	}
	return 0
}

// maxDigits is how many digits each number of 63 bits has at most that is all nines.
const maxDigits = 18

// A Series is a sequence of numbers with one form: invoices of a company, say. A store
// keeps this definition beside the counter, and refuses another one of the same name. Who
// wants to change it begins another series.
type Series struct {
	// Name tells the series apart: 1 to 64 letters, digits, "_", "-", "." and "/" of ASCII.
	Name string

	// Prefix begins each text, as in a [CodecConfig]. No two series of a Scope may write the same
	// text: the definition of the second one fails by [ErrMeets].
	Prefix string

	// Scope is within which the texts are unique, such as a company if several have series
	// in one database: up to 64 letters, digits, "_", "-", "." and "/" of ASCII.
	Scope string

	// Period says when the numbers begin again. The zero value is Never.
	Period Period

	// Zone is where the date is taken. Nil: UTC. [time.Local] is refused, since it is
	// another zone on another machine.
	Zone *time.Location

	// Separator stands between the period and the number: "-", "/" or ".". Empty: nothing.
	// A series of the period Never has none. What stands before the period ends the Prefix.
	Separator string

	// YearBegins is the month with which the years of a Yearly series begin: [time.April] for
	// a fiscal year from April to March. Zero: January. The period is the year in which it
	// begins, or if YearByEnd is set the one in which it ends.
	YearBegins time.Month
	YearByEnd  bool

	// Digits is how wide the number is: 1 to 18. It is filled with zeros, and never wider.
	// After the last number follows [ErrSeriesFull].
	Digits int

	// First is the first number of each period. Zero: 1.
	First int64

	// Check are the check digits at the end.
	Check Check

	// Chronological refuses a date before that of the last number, see [ErrBackdated].
	Chronological bool
}

// A Number is one of a series.
type Number struct {
	Text   string    // the prefix, the period, the separator, N with leading zeros, check digits
	N      int64     // from Series.First on
	Series string    // Series.Name
	Period string    // "", "2026", "202611" or "20261122"
	At     time.Time // what the period follows from; zero after [Series.Parse]
}

// Validate returns a [*core.ValueError] for the first field that is out of its range.
func (s Series) Validate() error {
	if err := checkName("Series.Name", s.Name, 1); err != nil {
		return err
	}
	if err := checkName("Series.Scope", s.Scope, 0); err != nil {
		return err
	}
	if err := checkPrefix("Series.Prefix", s.Prefix); err != nil {
		return err
	}
	if s.Period < Never || s.Period > Daily {
		return invalid("Series.Period", s.Period.String(), "Never, Yearly, Monthly or Daily")
	}
	if err := s.checkSeparator(); err != nil {
		return err
	}
	if err := s.checkYear(); err != nil {
		return err
	}
	if err := checkZone("Series.Zone", s.Zone); err != nil {
		return err
	}
	if name := s.zone().String(); !shortASCII(name) {
		return invalid("Series.Zone", quote(name), "a zone whose name is 1 to 64 printable characters of ASCII")
	}
	if s.Digits < 1 || s.Digits > maxDigits {
		return invalid("Series.Digits", strconv.Itoa(s.Digits), fmt.Sprintf("1 to %d", maxDigits))
	}
	if s.First < 0 || s.First > s.greatest() {
		return invalid("Series.First", strconv.FormatInt(s.First, 10), fmt.Sprintf("0 to %d, which has %d digits", s.greatest(), s.Digits))
	}
	return checkCheck("Series.Check", s.Check)
}

func (s Series) checkSeparator() error {
	switch s.Separator {
	case "":
		return nil
	case "-", "/", ".":
		if s.Period != Never {
			return nil
		}
		return invalid("Series.Separator", quote(s.Separator), "nothing if there is no period: end the prefix with it")
	}
	return invalid("Series.Separator", quote(s.Separator), `nothing, "-", "/" or "."`)
}

func (s Series) checkYear() error {
	switch {
	case s.YearBegins < 0 || s.YearBegins > time.December:
		return invalid("Series.YearBegins", strconv.Itoa(int(s.YearBegins)), "a month, or 0 for January")
	case s.YearBegins > time.January && s.Period != Yearly:
		return invalid("Series.YearBegins", s.YearBegins.String(), "0, since the series is "+s.Period.String()+" and not Yearly")
	case s.YearByEnd && s.YearBegins <= time.January:
		return invalid("Series.YearByEnd", "true", "false for years that begin with January: they end in the same one")
	}
	return nil
}

func checkName(field, name string, least int) error {
	const most = 64
	wrong := len(name) < least || len(name) > most
	for _, b := range []byte(name) {
		letter := 'A' <= b && b <= 'Z' || 'a' <= b && b <= 'z'
		wrong = wrong || !letter && !isDigit(b) && b != '_' && b != '-' && b != '.' && b != '/'
	}
	if wrong {
		return invalid(field, quote(name), fmt.Sprintf("%d to %d letters, digits, _, -, . and / of ASCII", least, most))
	}
	return nil
}

// shortASCII reports whether a name can stand in a definition.
func shortASCII(name string) bool {
	for _, b := range []byte(name) {
		if b < ' ' || b > '~' {
			return false
		}
	}
	return 1 <= len(name) && len(name) <= 64
}

// Bounds returns the first and the last number of each period.
func (s Series) Bounds() (first, last int64) { return max(s.First, 1), s.greatest() }

// greatest returns the greatest number of so many digits.
func (s Series) greatest() int64 {
	n := int64(0)
	for range min(s.Digits, maxDigits) {
		n = n*10 + 9
	}
	return n
}

// Definition returns all fields but the name, for people and for comparison: two series
// are defined alike if and only if the texts are equal.
//
//	prefix "INV", Yearly in Europe/Berlin, 6 digits from 1, Luhn, chronological
func (s Series) Definition() string {
	first, _ := s.Bounds()
	text := fmt.Sprintf("prefix %q, %s in %s, %d digits from %d, %s", s.Prefix, s.Period, zoneName(s.zone()), s.Digits, first, s.Check)
	if s.Chronological {
		text += ", chronological"
	}
	if s.Separator != "" {
		text += fmt.Sprintf(", separator %q", s.Separator)
	}
	if s.YearBegins > time.January {
		text += ", years from " + s.YearBegins.String()
	}
	if s.YearByEnd {
		text += " by their end"
	}
	if s.Scope != "" {
		text += ", scope " + s.Scope
	}
	return text
}

func (s Series) zone() *time.Location { return resolve(s.Zone) }

// zoneName returns the name of a zone. A zone that never changes may have any name, so
// its offset is beside it.
func zoneName(zone *time.Location) string {
	at := time.Unix(0, 0).In(zone)
	if start, end := at.ZoneBounds(); zone == time.UTC || !start.IsZero() || !end.IsZero() {
		return zone.String()
	}
	return zone.String() + at.Format(" (-07:00:00)")
}

// date returns the civil date of a moment in the zone of the series, as the number
// 20261122. The zero time, and a year that has no four digits, are a [*core.ValueError].
func (s Series) date(at time.Time) (int64, error) {
	year, month, day := at.In(s.zone()).Date()
	if at.IsZero() || year < 1 || year > 9999 {
		return 0, invalid("at", at.UTC().Format(time.RFC3339), "a time that was set, in a year from 1 to 9999 in "+s.zone().String())
	}
	return int64(year)*10000 + int64(month)*100 + int64(day), nil
}

// PeriodOf returns the period of a moment. It follows from the moment and the zone alone:
// "2026", "202611", "20261122", or nothing for [Never].
func (s Series) PeriodOf(at time.Time) (string, error) {
	date, err := s.date(at)
	if err != nil {
		return "", err
	}
	if s.YearBegins > time.January {
		year := date / 10000
		if date/100%100 < int64(s.YearBegins) {
			year--
		}
		if s.YearByEnd {
			year++
		}
		if year < 1 || year > 9999 {
			return "", invalid("at", at.UTC().Format(time.RFC3339), "a time in a fiscal year from 1 to 9999")
		}
		date = year * 10000
	}
	return string(appendDigits(nil, date, 8)[:s.Period.width()]), nil
}

// Number returns the n-th number of the period of a moment. A number that has no place in
// the series is a [*core.ValueError].
func (s Series) Number(at time.Time, n int64) (Number, error) {
	if err := s.Validate(); err != nil {
		return Number{}, err
	}
	period, err := s.PeriodOf(at)
	if err != nil {
		return Number{}, err
	}
	if first, last := s.Bounds(); n < first || n > last {
		return Number{}, invalid("number", strconv.FormatInt(n, 10), fmt.Sprintf("%d to %d, as the series %s has them", first, last, s.Name))
	}
	text := append([]byte(s.Prefix), period...)
	text = append(text, s.Separator...)
	text = appendDigits(text, n, s.Digits)
	text = appendDigits(text, int64(s.Check.digits(text)), s.Check.width())
	return Number{Text: string(text), N: n, Series: s.Name, Period: period, At: at}, nil
}

// Parse reads a text that [Series.Number] has written, and accepts nothing else. The error
// is a [*core.ValueError] that names the part, and wraps [ErrCheckDigit] where the check digits
// are wrong.
func (s Series) Parse(text string) (Number, error) {
	if err := s.Validate(); err != nil {
		return Number{}, err
	}
	width := s.Period.width()
	p, err := frame(text, s.Prefix, width, s.Separator, s.Digits, s.Check)
	if err != nil {
		return Number{}, err
	}
	period := p.rest[:width]
	if err := s.ValidatePeriod(period); err != nil {
		return Number{}, err
	}
	p.rest = p.rest[width:]
	first, last := s.Bounds()
	n := p.number("number", s.Digits, first, last)
	if p.err != nil {
		return Number{}, p.err
	}
	return Number{Text: text, N: n, Series: s.Name, Period: period}, nil
}

// ValidatePeriod returns a [*core.ValueError] for a text that is no period of the series.
func (s Series) ValidatePeriod(period string) error {
	layout := "20060102"[:s.Period.width()]
	if at, err := time.Parse(layout, period); err != nil || layout != "" && at.Year() < 1 {
		return invalid("period", quote(period), "as the series "+s.Name+" has it, such as "+strconv.Quote(layout))
	}
	return nil
}
