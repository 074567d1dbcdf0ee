package keysql

import (
	"fmt"
	"strconv"
	"time"
)

// A Period is the length of a partition, in the civil time of a zone. The zero value is not a
// valid one.
type Period uint8

// The periods. A week begins on Monday.
const (
	Hour Period = iota + 1
	Day
	Week
	Month
	Year
)

// String returns the name of p, or "Period(n)" for a number without a name.
func (p Period) String() string {
	if Hour <= p && p <= Year {
		return [...]string{"Hour", "Day", "Week", "Month", "Year"}[p-Hour]
	}
	return "Period(" + strconv.Itoa(int(p)) + ")"
}

// A civil time is what clocks show, as a time.Time in UTC: it has no offset, and every day has 24
// hours.

// begin returns the beginning of the period that contains a civil time.
func (p Period) begin(civil time.Time) time.Time {
	year, month, day := civil.Date()
	hour := 0
	switch p {
	case Hour:
		hour = civil.Hour()
	case Week:
		day -= (int(civil.Weekday()) + 6) % 7
	case Month:
		day = 1
	case Year:
		month, day = time.January, 1
	}
	return time.Date(year, month, day, hour, 0, 0, 0, time.UTC)
}

// add returns the beginning of the period n periods after the one that begins at civil.
func (p Period) add(civil time.Time, n int) time.Time {
	switch p {
	case Hour:
		return civil.Add(time.Duration(n) * time.Hour)
	case Week:
		return civil.AddDate(0, 0, 7*n)
	case Month:
		return civil.AddDate(0, n, 0)
	case Year:
		return civil.AddDate(n, 0, 0)
	}
	return civil.AddDate(0, 0, n)
}

// name returns the name of the period that begins at civil. Names of one period sort as the
// periods do, and none is also that of another one.
func (p Period) name(civil time.Time) string {
	switch p {
	case Hour:
		return civil.Format("2006010215")
	case Week:
		year, week := civil.ISOWeek()
		return fmt.Sprintf("%04dw%02d", year, week)
	case Month:
		return civil.Format("200601")
	case Year:
		return civil.Format("2006")
	}
	return civil.Format("20060102")
}

// start returns the first moment at which the clocks of a zone show a civil time or a later one.
// It is the one beginning that leaves no gap and no overlap where clocks are set: an hour or a
// day that they skip has no moment, and one that they repeat has all of them.
func start(civil time.Time, zone *time.Location) time.Time {
	at := civil.Add(-26 * time.Hour).In(zone) // no zone is that far from UTC
	for {
		_, offset := at.Zone()
		_, end := at.ZoneBounds()
		if !end.IsZero() && !end.After(at) {
			// After the last change in its table, Go ends every year after 365 days. No clock
			// changes on the last day of a leap year.
			end = at.Add(24 * time.Hour)
		}
		begin := civil.Add(-time.Duration(offset) * time.Second).In(zone)
		if begin.Before(at) { // skipped when the zone began to have this offset
			begin = at
		}
		if end.IsZero() || begin.Before(end) {
			return begin
		}
		at = end
	}
}

// civilAt returns the civil beginning of the period that contains a moment.
func (p Period) civilAt(at time.Time, zone *time.Location) time.Time {
	at = at.In(zone)
	year, month, day := at.Date()
	civil := p.begin(time.Date(year, month, day, at.Hour(), 0, 0, 0, time.UTC))
	for { // clocks set back may show a time of the period before
		next := p.add(civil, 1)
		if start(next, zone).After(at) {
			return civil
		}
		civil = next
	}
}
