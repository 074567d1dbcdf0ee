package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/snowkey/snowkey/types"
)

var keyRange = command{
	name:    "range",
	summary: "print the first and the last key of a span of time",
	args:    "period | from until",
	most:    2,
	flags:   "zone layout bits epoch unit dialect column json",
	text: `Prints the keys of a span of time, so that the primary key serves as the index of time. The span is a period, or from one time until before another. 2026, 2026-05, 2026-W19, which is a week from Monday on, 2026-05-04 and 2026-05-04T09 are periods, and so are the days today, yesterday and monday, which is the last one; for from and until they are their beginnings. 2026-05-04T09:30 and 2026-05-04T09:30:15.5 are times. They are in UTC, unless -zone names a zone or the time ends in its offset, as in 2026-05-04T09:30:00+02:00.

    snowkey range 2026-05-04
    snowkey range -zone Europe/Berlin 2026-05-04T08 2026-05-04T17

With -json the keys are strings. With -dialect it prints a condition on the column, and nothing else. The database uses the column's index for it.

    psql -c "DELETE FROM orders
      WHERE $(snowkey range -dialect postgres 2026-03)"

Spans that follow each other share no key and miss none.`,
	run: func(_ context.Context, o *options, out *bufio.Writer, args []string) error {
		l, err := o.keyLayout()
		if err != nil {
			return err
		}
		from, until, err := spanOf(args, time.Now().In(cmp.Or(o.zone, time.UTC)))
		if err != nil {
			return usageError{err}
		}
		first, last := l.Between(from, until)
		if first > last {
			return usagef("no key of the layout, which lasts from %s until %s, is from %s until %s", stamp(l.Epoch), stamp(l.Exhausted()), stamp(from), stamp(until))
		}
		if o.json {
			if o.dialect.chosen {
				return usagef("-json and -dialect: want one of them")
			}
			return json.NewEncoder(out).Encode(struct {
				From  string          `json:"from"`
				Until string          `json:"until"`
				First types.Snowflake `json:"first"`
				Last  types.Snowflake `json:"last"`
			}{stamp(from), stamp(until), first, last})
		}
		if !o.dialect.chosen {
			_, err = fmt.Fprintf(out, "from   %s\nuntil  %s\nfirst  %d\nlast   %d\n", stamp(from), stamp(until), first, last)
			return err
		}
		c, err := o.keyColumn()
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "%s BETWEEN %d AND %d\n", c, first, last)
		return err
	},
}

// spanOf returns the span that one or two texts name, in the zone of now.
func spanOf(args []string, now time.Time) (from, until time.Time, err error) {
	switch len(args) {
	case 0:
		return from, until, fmt.Errorf("no time: want a period such as 2026-05-04, or two times")
	case 1:
		from, until, err = readTime(args[0], now)
	default:
		if from, _, err = readTime(args[0], now); err == nil {
			until, _, err = readTime(args[1], now)
		}
	}
	if err == nil && !from.Before(until) {
		err = fmt.Errorf("from %s until %s is no span: want a period, or two times of which the second is later", stamp(from), stamp(until))
	}
	return from, until, err
}

// readTime returns the beginning and the end of what a text names: a time, which is both, or a
// period of the calendar in the zone of now.
func readTime(text string, now time.Time) (from, until time.Time, err error) {
	zone := now.Location()
	if day, days := namedDays(text, now); days > 0 {
		from, _ = moment(day, zone)
		until, _ = moment(day.AddDate(0, 0, days), zone)
		return from, until, nil
	}
	iso := strings.Replace(text, " ", "T", 1)
	if from, err = time.Parse(time.RFC3339, iso); err == nil {
		return from.In(zone), from.In(zone), nil
	}
	for _, p := range []struct {
		format       string
		months, days int
		length       time.Duration
	}{
		{"2006", 12, 0, 0}, {"2006-01", 1, 0, 0}, {"2006-01-02", 0, 1, 0},
		{"2006-01-02T15", 0, 0, time.Hour}, {"2006-01-02T15:04", 0, 0, 0}, {"2006-01-02T15:04:05", 0, 0, 0},
	} {
		civil, err := time.Parse(p.format, iso)
		if err != nil {
			if bad := (*time.ParseError)(nil); errors.As(err, &bad) && strings.HasSuffix(bad.Message, "out of range") {
				return from, until, fmt.Errorf("%.64q is no time%s", text, bad.Message) // ": month out of range"
			}
			continue
		}
		if p.months+p.days > 0 {
			from, _ = moment(civil, zone)
			until, _ = moment(civil.AddDate(0, p.months, p.days), zone)
			return from, until, nil
		}
		from, times := moment(civil, zone)
		if times != 1 {
			return from, until, fmt.Errorf("clocks in %s show %s %s: want an offset, as in 2026-05-04T09:30:00+02:00", zone, text, [...]string{"never", "once", "twice"}[times])
		}
		return from, from.Add(p.length), nil
	}
	return from, until, fmt.Errorf("%.64q is no time: want one such as 2026, 2026-05, 2026-W19, 2026-05-04, 2026-05-04T09, 2026-05-04T09:30, today, yesterday or monday", text)
}

// namedDays returns the first day, in UTC, of a week by its number in ISO 8601, or of a day by its
// name, and how many they are; 0 for other texts.
func namedDays(text string, now time.Time) (first time.Time, days int) {
	today := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
	var year, week int
	switch name := strings.ToLower(text); {
	case isoWeek.MatchString(name):
		_, _ = fmt.Sscanf(name, "%d-w%d", &year, &week)
		january4 := time.Date(year, 1, 4, 0, 0, 0, 0, time.UTC) // of week 1
		monday := january4.AddDate(0, 0, 7*(week-1)-int(january4.Weekday()+6)%7)
		if y, w := monday.ISOWeek(); y != year || w != week {
			return first, 0 // 2026-W54
		}
		return monday, 7
	case name == "today":
		return today, 1
	case name == "yesterday":
		return today.AddDate(0, 0, -1), 1
	default:
		for ago := range 7 {
			if day := today.AddDate(0, 0, -ago); strings.ToLower(day.Weekday().String()) == name {
				return day, 1
			}
		}
	}
	return first, 0
}

var isoWeek = regexp.MustCompile(`^\d{4}-w\d\d$`)

// moment returns the first moment at which the clocks of a zone show a civil time, which is in
// UTC here, or a later one, and how many times they show it: none where they are set forward,
// and two where they are set back.
func moment(civil time.Time, zone *time.Location) (first time.Time, times int) {
	const day = 26 * time.Hour // no zone is farther from UTC
	for _, near := range []time.Time{civil.Add(day), civil.Add(-day)} {
		_, offset := near.In(zone).Zone()
		at := civil.Add(-time.Duration(offset) * time.Second).In(zone)
		if at.Format(time.DateTime) == civil.Format(time.DateTime) && !at.Equal(first) {
			first, times = at, times+1
		}
	}
	if times == 0 {
		_, first = civil.Add(-day).In(zone).ZoneBounds()
	}
	return first, times
}
