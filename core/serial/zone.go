package serial

import (
	"fmt"
	"math"
	"sort"
	"time"
)

// A span is a span of time in which a zone has one offset.
type span struct {
	from   int64 // Unix seconds
	offset int64 // seconds, east of Greenwich
	again  int64 // until then, local times occur for the second time; or never
}

// fixedZones have one offset for all time in older copies of the time-zone database. Since 2024b
// they are other names of America/Panama, America/Phoenix and Pacific/Honolulu, whose clocks
// changed until 1967. This package uses the fixed offset, so that programs with different copies
// agree.
var fixedZones = map[string]*time.Location{
	"EST": time.FixedZone("EST", -5*60*60),
	"MST": time.FixedZone("MST", -7*60*60),
	"HST": time.FixedZone("HST", -10*60*60),
}

// resolve returns the zone of a CodecConfig or a Series, which is UTC for nil.
func resolve(zone *time.Location) *time.Location {
	if zone == nil {
		return time.UTC
	}
	if fixed, ok := fixedZones[zone.String()]; ok {
		year1970 := time.Unix(0, 0)
		_, offset := year1970.In(zone).Zone()
		if _, want := year1970.In(fixed).Zone(); offset == want {
			return fixed
		}
	}
	return zone
}

const never = math.MinInt64 // before each Unix second

// A zone is the offsets of a time zone from the epoch of a layout on.
type zone []span

// newZone returns the spans from first to last, both included.
//
// With the fold digit after the hour, a text of the first pass of a repeated span is "hour 0
// minutes", and one of the second pass "hour 1 minutes". Texts stay in order only if the repeated
// span lies within one clock hour, because otherwise the hour of the second pass could be less than
// the hour of the first, and if it ends with that hour, because later times of the same hour would
// have the digit 0 again. A local time that occurs three times would need a second digit. Few zones
// are refused: Chatham repeats 02:45 to 03:45, Troll two hours.
func newZone(where *time.Location, first, last int64, fold bool) (zone, error) {
	const day = 24 * 60 * 60
	t := time.Unix(first-day, 0).In(where) // the first hour may be a second pass
	_, offset := t.Zone()
	z := zone{{from: never, offset: int64(offset), again: never}}
	for {
		_, end := t.ZoneBounds()
		if end.IsZero() || end.Unix() > last {
			return z, nil
		}
		if !end.After(t) {
			// After the last change in its table, Go ends every year after 365 days. The bound of
			// the last day of a leap year is then its beginning. No clock changes on that day.
			end = t.Add(day * time.Second)
		}
		t = end
		_, offset := t.Zone()
		before, now := &z[len(z)-1], span{from: t.Unix(), offset: int64(offset), again: never}
		if now.offset == before.offset {
			continue // only the name has changed
		}
		back := before.offset - now.offset
		if back > 0 {
			now.again = now.from + back
		}
		if now.from <= first && (!fold || now.again <= first) {
			z = zone{{from: never, offset: now.offset, again: never}}
			continue
		}
		if err := check(where, *before, now, fold); err != nil {
			return nil, err
		}
		z = append(z, now)
	}
}

// check returns an error for a change of the offset that texts cannot show.
func check(where *time.Location, before, now span, fold bool) error {
	const hour = 60 * 60
	at := time.Unix(now.from, 0).UTC().Format(time.RFC3339)
	refuse := func(why, want string) error {
		return invalid("CodecConfig.Zone", fmt.Sprintf("%s, %s at %s", where, why, at), want)
	}
	if !fold {
		return refuse("whose clock changes", "UTC, a zone whose offset never changes after the epoch, or CodecConfig.Fold")
	}
	begin, end := now.from+now.offset, now.from+before.offset // of the repeated local times
	switch {
	case now.from < before.again:
		return refuse("whose clock changes twice in one hour", "another zone")
	case now.again == never:
		return nil
	case before.from != never && now.from-(now.again-now.from) < before.from:
		return refuse("which repeats a local time twice", "another zone")
	case end%hour != 0 || end-begin > hour:
		return refuse("which repeats more or less than the end of one clock hour", "another zone")
	}
	return nil
}

// fold returns 1 for a moment whose local time occurs for the second time.
func (s span) fold(unix int64) int64 {
	if unix < s.again {
		return 1
	}
	return 0
}

// at returns the span of a moment.
func (z zone) at(unix int64) span {
	if len(z) == 1 {
		return z[0]
	}
	return z[sort.Search(len(z), func(i int) bool { return z[i].from > unix })-1]
}

// unix returns the first or the second moment of a local time.
func (z zone) unix(local int64, second bool) (moment int64, ok bool) {
	// Two moments of one local time are in neighbouring spans, less than a day away from the local
	// time taken as UTC.
	const day = 24 * 60 * 60
	from := sort.Search(len(z), func(i int) bool { return z[i].from > local-day }) - 1
	for i := max(from, 0); i < len(z) && z[i].from <= local+day; i++ {
		moment = local - z[i].offset
		if moment < z[i].from || i+1 < len(z) && moment >= z[i+1].from {
			continue
		}
		if second == (moment < z[i].again) {
			return moment, true
		}
	}
	return 0, false
}
