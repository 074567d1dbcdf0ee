package serial

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A Period is the span after which the numbers of a [Series] begin again.
type Period int

const (
	// Never has no end, and no date in the text.
	Never Period = iota
	// Yearly begins again every year: 2026.
	Yearly
	// Monthly begins again every month: 202611.
	Monthly
	// Daily begins again every day: 20261122.
	Daily
)

// String returns the name of the constant.
func (p Period) String() string {
	if p < Never || p > Daily {
		return "Period(" + strconv.Itoa(int(p)) + ")"
	}
	return [...]string{"Never", "Yearly", "Monthly", "Daily"}[p]
}

// width returns the number of digits of the period in a text.
func (p Period) width() int {
	if p < Never || p > Daily {
		return 0
	}
	return [...]int{0, 4, 6, 8}[p]
}

// maxDigits is the number of digits of the greatest number of 63 bits that is all nines.
const maxDigits = 18

// A Series is a sequence of numbers with one form, such as the invoices of a company. A store keeps
// this definition beside the counter and refuses another one of the same name; to change a series,
// begin another one.
type Series struct {
	// Name identifies the series: 1 to 64 letters, digits, "_", "-", "." and "/" of ASCII.
	Name string

	// Prefix begins every text, as in a [CodecConfig]. Two series of one Scope must not be able to
	// write the same text: defining the second one fails with [ErrMeets].
	Prefix string

	// Scope is where the texts are unique, such as the company if several companies have series in
	// one database: up to 64 letters, digits, "_", "-", "." and "/" of ASCII.
	Scope string

	// Period is the span after which the numbers begin again. Defaults to Never.
	Period Period

	// Zone is the time zone of the date. Defaults to UTC. [time.Local] is refused, because it
	// differs between machines.
	Zone *time.Location

	// Separator is written between the period and the number: nothing, "-", "/" or ".". A series of
	// the period Never has none. A separator before the period is part of the Prefix.
	Separator string

	// YearBegins is the first month of the years of a Yearly series, such as [time.April] for a
	// fiscal year from April to March. Defaults to January. A fiscal year is named after the year in
	// which it begins, or with YearByEnd after the one in which it ends.
	YearBegins time.Month
	YearByEnd  bool

	// Digits is the width of the number, 1 to 18, which is filled with zeros and never exceeded: the
	// call after the last number fails with [ErrSeriesFull].
	Digits int

	// First is the first number of every period. Defaults to 1.
	First int64

	// Check selects the check digits that end a text.
	Check Check

	// Chronological refuses a date before the date of the last number, see [ErrBackdated].
	Chronological bool
}

// A Number is a number of a series.
type Number struct {
	Text   string    // the prefix, the period, the separator, N with leading zeros, check digits
	N      int64     // from Series.First on
	Series string    // Series.Name
	Period string    // "", "2026", "202611" or "20261122"
	At     time.Time // the moment that determines the period; zero after [Series.Parse]
}

// Validate returns a [*core.ValueError] for the first field that is out of range.
func (s Series) Validate() error {
	if err := validateName("Series.Name", s.Name, 1); err != nil {
		return err
	}
	if err := validateName("Series.Scope", s.Scope, 0); err != nil {
		return err
	}
	if err := validatePrefix("Series.Prefix", s.Prefix); err != nil {
		return err
	}
	if s.Period < Never || s.Period > Daily {
		return invalid("Series.Period", s.Period.String(), "Never, Yearly, Monthly or Daily")
	}
	if err := s.validateSeparator(); err != nil {
		return err
	}
	if err := s.validateYear(); err != nil {
		return err
	}
	if err := validateZone("Series.Zone", s.Zone); err != nil {
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
	return validateCheck("Series.Check", s.Check)
}

func (s Series) validateSeparator() error {
	switch s.Separator {
	case "":
		return nil
	case "-", "/", ".":
		if s.Period != Never {
			return nil
		}
		return invalid("Series.Separator", quote(s.Separator), "no separator without a period: end the prefix with it")
	}
	return invalid("Series.Separator", quote(s.Separator), `nothing, "-", "/" or "."`)
}

func (s Series) validateYear() error {
	switch {
	case s.YearBegins < 0 || s.YearBegins > time.December:
		return invalid("Series.YearBegins", strconv.Itoa(int(s.YearBegins)), "a month, or 0 for January")
	case s.YearBegins > time.January && s.Period != Yearly:
		return invalid("Series.YearBegins", s.YearBegins.String(), "0, because the series is "+s.Period.String()+" and not Yearly")
	case s.YearByEnd && s.YearBegins <= time.January:
		return invalid("Series.YearByEnd", "true", "false for years that begin with January, because they end in the same year")
	}
	return nil
}

func validateName(field, name string, least int) error {
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

// shortASCII reports whether a definition can hold a name.
func shortASCII(name string) bool {
	for _, b := range []byte(name) {
		if b < ' ' || b > '~' {
			return false
		}
	}
	return 1 <= len(name) && len(name) <= 64
}

// Bounds returns the first and the last number of every period.
func (s Series) Bounds() (first, last int64) { return max(s.First, 1), s.greatest() }

// greatest returns the greatest number of s.Digits digits.
func (s Series) greatest() int64 {
	n := int64(0)
	for range min(s.Digits, maxDigits) {
		n = n*10 + 9
	}
	return n
}

// Definition returns all fields but the name as a text, for people and for comparison: two series
// have the same definition if and only if the texts are equal.
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

// definition matches what Definition writes. The name of a zone may look like what follows it, so
// the longest one is taken.
var definition = regexp.MustCompile(`^prefix ("[^"]*"), (\w+) in (.*), ([0-9]+) digits from ([0-9]+), (\w+)(, chronological)?` +
	`(?:, separator "([^"]*)")?(?:, years from ([A-Z][a-z]+)( by their end)?)?(?:, scope ([^ ,]+))?$`)

// ParseDefinition returns the series of a name that has a definition. The error is a
// [*core.ValueError], also if this machine does not know the zone.
func ParseDefinition(name, text string) (Series, error) {
	found := definition.FindStringSubmatch(text)
	if found == nil {
		return Series{}, invalid("definition", quote(text), `a text such as prefix "INV", Yearly in Europe/Berlin, 6 digits from 1, NoCheck`)
	}
	s := Series{Name: name, Chronological: found[7] != "", Separator: found[8], YearByEnd: found[10] != "", Scope: found[11]}
	s.Prefix, _ = strconv.Unquote(found[1]) // what does not fit is in no definition, which is compared below
	s.Digits, _ = strconv.Atoi(found[4])
	s.First, _ = strconv.ParseInt(found[5], 10, 64)
	for s.Period < Daily && s.Period.String() != found[2] {
		s.Period++
	}
	for s.Check < Mod97_10 && s.Check.String() != found[6] {
		s.Check++
	}
	for m := time.January; m <= time.December; m++ {
		if m.String() == found[9] {
			s.YearBegins = m
		}
	}
	var err error
	if at := strings.LastIndex(found[3], " ("); at >= 0 { // zoneName has written the offset
		var offset time.Time
		offset, err = time.Parse("(-07:00:00)", found[3][at+1:])
		_, seconds := offset.Zone()
		s.Zone = time.FixedZone(found[3][:at], seconds)
	} else {
		s.Zone, err = time.LoadLocation(found[3])
	}
	if err != nil {
		return Series{}, invalid("definition", quote(text), "a zone that this machine knows: "+err.Error())
	}
	if err := s.Validate(); err != nil {
		return Series{}, err
	}
	if want := s.Definition(); want != text {
		return Series{}, invalid("definition", quote(text), want)
	}
	return s, nil
}

func (s Series) zone() *time.Location { return resolve(s.Zone) }

// zoneName returns the name of a zone, and also the offset of a zone that never changes, because
// such a zone may have any name.
func zoneName(zone *time.Location) string {
	at := time.Unix(0, 0).In(zone)
	if start, end := at.ZoneBounds(); zone == time.UTC || !start.IsZero() || !end.IsZero() {
		return zone.String()
	}
	return zone.String() + at.Format(" (-07:00:00)")
}

// date returns the civil date of a moment in the zone of the series as the number 20261122. The
// zero time and a year without four digits are a *core.ValueError.
func (s Series) date(at time.Time) (int64, error) {
	year, month, day := at.In(s.zone()).Date()
	if at.IsZero() || year < 1 || year > 9999 {
		return 0, invalid("at", at.UTC().Format(time.RFC3339), "a time that was set, in a year from 1 to 9999 in "+s.zone().String())
	}
	return int64(year)*10000 + int64(month)*100 + int64(day), nil
}

// PeriodOf returns the period of a moment, which depends on the moment and the zone alone: "2026",
// "202611", "20261122", or "" for [Never]. The zero time and a year without four digits are a
// [*core.ValueError].
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

// Number returns the number n of the period of a moment. If n is not within [Series.Bounds] it is a
// [*core.ValueError].
func (s Series) Number(at time.Time, n int64) (Number, error) {
	if err := s.Validate(); err != nil {
		return Number{}, err
	}
	period, err := s.PeriodOf(at)
	if err != nil {
		return Number{}, err
	}
	if first, last := s.Bounds(); n < first || n > last {
		return Number{}, invalid("number", strconv.FormatInt(n, 10), fmt.Sprintf("%d to %d, the numbers of series %s", first, last, s.Name))
	}
	text := append([]byte(s.Prefix), period...)
	text = append(text, s.Separator...)
	text = appendDigits(text, n, s.Digits)
	text = appendDigits(text, int64(s.Check.digits(text)), s.Check.width())
	return Number{Text: string(text), N: n, Series: s.Name, Period: period, At: at}, nil
}

// Parse reads a text that [Series.Number] has written, and accepts nothing else. The error is a
// [*core.ValueError] that names the part, and matches [ErrCheckDigit] if the check digits are wrong.
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

// ValidatePeriod returns a [*core.ValueError] unless the series can have the period.
func (s Series) ValidatePeriod(period string) error {
	layout := "20060102"[:s.Period.width()]
	if at, err := time.Parse(layout, period); err != nil || layout != "" && at.Year() < 1 {
		return invalid("period", quote(period), "a period of series "+s.Name+", such as "+strconv.Quote(layout))
	}
	return nil
}
