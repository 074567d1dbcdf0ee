package keysql_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/keysql"
)

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func partitions(t *testing.T, d keysql.Dialect, l core.Layout, every keysql.Period, z *time.Location) keysql.Partitions {
	t.Helper()
	c, err := keysql.New(d, l, "id")
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.Partitions("orders", every, z)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func list(t *testing.T, p keysql.Partitions, from, until time.Time) []keysql.Partition {
	t.Helper()
	l, err := p.List(from, until)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// The label of a moment is the period of the latest time that the clocks have shown so far, found
// by looking at every half minute of two days.
func TestPartitionsHaveNoGapAndNoOverlapInAnyZone(t *testing.T) {
	zones := []string{
		"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "America/Sao_Paulo",
		"America/Havana", "America/St_Johns", "Asia/Kathmandu", "Pacific/Chatham", "Atlantic/Azores", "Africa/Monrovia",
		"Antarctica/Casey", "Antarctica/Troll", "Asia/Beirut", "Africa/Cairo", "America/Asuncion", "Asia/Tehran",
		"Asia/Pyongyang", "America/Caracas", "Pacific/Kiritimati", "Pacific/Kwajalein", "Asia/Gaza", "Africa/Casablanca",
	}
	layouts := []core.Layout{
		core.Mastodon(), core.Default(), core.Twitter(),
		{Epoch: time.Date(1970, 1, 1, 0, 0, 0, 7000, time.UTC), Unit: 7 * time.Millisecond, TimeBits: 40, WorkerBits: 5, SequenceBits: 10},
		{Epoch: time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC), Unit: time.Second, TimeBits: 33, SequenceBits: 30}, // all 63 bits
	}
	formats := map[keysql.Period]string{keysql.Hour: "2006010215", keysql.Day: "20060102", keysql.Month: "200601", keysql.Year: "2006"}
	rng := rand.New(rand.NewPCG(5, 6))
	for range 1500 {
		z, l := zone(t, zones[rng.IntN(len(zones))]), layouts[rng.IntN(len(layouts))]
		every := keysql.Hour + keysql.Period(rng.IntN(5))
		length := []int64{3600, 86400, 7 * 86400, 31 * 86400, 366 * 86400}[every-keysql.Hour]
		from := time.Unix(l.Epoch.Unix()+3*86400+rng.Int64N(60*365*86400), rng.Int64N(1e9))
		if _, end := from.In(z).ZoneBounds(); !end.IsZero() && end.Year() < 2080 && rng.IntN(2) == 0 { // where clocks are set
			from = end.Add(-time.Duration(rng.Int64N(2*length)) * time.Second)
		}
		if earliest := l.Epoch.AddDate(0, 0, 3); from.Before(earliest) {
			from = earliest
		}
		until := from.Add(time.Duration(1+rng.Int64N(5*length)) * time.Second)
		got := list(t, partitions(t, keysql.PostgreSQL, l, every, z), from, until)
		name := fmt.Sprintf("%v in %v of %d-bit ticks of %v, %v to %v", every, z, l.TimeBits, l.Unit, from.UTC(), until.UTC())
		if len(got) == 0 || got[0].First > l.Min(from) || got[len(got)-1].Last < l.Min(until.Add(-1)) {
			t.Fatalf("%s: %+v; want all keys of the span", name, got)
		}
		if got[0].Until.Compare(from) <= 0 || !got[len(got)-1].From.Before(until) {
			t.Fatalf("%s: %+v; want no partition outside the span", name, got)
		}
		for i, p := range got {
			first, last := l.Between(p.From, p.Until)
			if !p.From.Before(p.Until) || p.First != first || p.Last != last {
				t.Fatalf("%s: %+v; want the keys %d to %d", name, p, first, last)
			}
			if i > 0 && (got[i-1].Last+1 != p.First || !got[i-1].Until.Equal(p.From) || got[i-1].Name >= p.Name) {
				t.Fatalf("%s: %+v, %+v; want one after the other, with names that sort", name, got[i-1], p)
			}
			for _, edge := range []time.Time{p.From, p.Until} {
				before, after := label(edge.Add(-30*time.Second), z, every, formats), label(edge, z, every, formats)
				if before == after {
					t.Fatalf("%s: a partition ends at %v, within %s", name, edge, after)
				}
				if edge.Equal(p.From) && !strings.HasSuffix(p.Name, "_p"+after) {
					t.Fatalf("%s: partition %s begins with %s", name, p.Name, after)
				}
			}
		}
	}
}

func label(at time.Time, z *time.Location, every keysql.Period, formats map[keysql.Period]string) string {
	var latest time.Time
	for back := 48 * time.Hour; back >= 0; back -= 30 * time.Second {
		local := at.Add(-back).In(z)
		year, month, day := local.Date()
		hour, minute, second := local.Clock()
		if c := time.Date(year, month, day, hour, minute, second, 0, time.UTC); c.After(latest) {
			latest = c
		}
		if back > time.Hour+30*time.Second { // no clock is set back by more than a day, nor twice in it
			back -= 29 * time.Minute
		}
	}
	if every == keysql.Week {
		year, week := latest.ISOWeek()
		return fmt.Sprintf("%04dw%02d", year, week)
	}
	return latest.Format(formats[every])
}

// At 00:01 the clocks of St. John's showed 23:01 of the day before again.
func TestAMomentAfterClocksAreSetBackIsInTheLaterPeriod(t *testing.T) {
	from := time.Date(2006, 10, 29, 2, 45, 0, 0, time.UTC)
	for every, want := range map[keysql.Period]string{keysql.Hour: "orders_p2006102900", keysql.Day: "orders_p20061029"} {
		got := list(t, partitions(t, keysql.PostgreSQL, core.Mastodon(), every, zone(t, "America/St_Johns")), from, from.Add(time.Minute))
		if len(got) != 1 || got[0].Name != want || got[0].From.After(from) || !got[0].Until.After(from) {
			t.Errorf("%v of %v = %+v; want %s alone", every, from, got, want)
		}
	}
}

func TestPartitionsStopWhereTheLayoutDoes(t *testing.T) {
	l := core.Default()
	p := partitions(t, keysql.PostgreSQL, l, keysql.Year, time.UTC)
	got := list(t, p, time.Date(1960, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC))
	if len(got) != 70 || got[0].First != 0 || got[69].Last != l.Max(l.Exhausted()) {
		t.Errorf("List = %d partitions from %+v; want those of 2025 to 2094", len(got), got[:1])
	}
	for _, d := range []keysql.Dialect{keysql.PostgreSQL, keysql.MySQL} {
		p := partitions(t, d, l, keysql.Year, time.UTC)
		made, err := p.Create(nil, time.Date(2094, 2, 1, 0, 0, 0, 0, time.UTC), time.Date(2095, 1, 1, 0, 0, 0, 0, time.UTC))
		if err != nil || len(made) != 1 || strings.Count(made[0], "MAXVALUE") != 1 || strings.Contains(made[0], "9223372036854775808") {
			t.Errorf("%v: the last partition = %q, %v; want it to end at MAXVALUE, and none after it", d, made, err)
		}
	}
}

func TestPartitionsAreRefusedWhereNoneIsRight(t *testing.T) {
	for _, test := range []struct {
		dialect keysql.Dialect
		column  string
		table   string
		every   keysql.Period
		zone    *time.Location
		want    string
	}{
		{keysql.SQLite, "id", "orders", keysql.Day, time.UTC, "PostgreSQL or MySQL"},
		{keysql.PostgreSQL, "id", "orders", 0, time.UTC, "Period(0)"},
		{keysql.PostgreSQL, "id", "orders", 6, time.UTC, "Period(6)"},
		{keysql.PostgreSQL, "id", "orders", keysql.Day, nil, "zone is nil"},
		{keysql.PostgreSQL, "id", "", keysql.Day, time.UTC, `""`},
		{keysql.PostgreSQL, "id", "a.b.c", keysql.Day, time.UTC, `"a.b.c"`},
		{keysql.PostgreSQL, "id", "o'r", keysql.Day, time.UTC, `"o'r"`},
		{keysql.PostgreSQL, "id", `o"r`, keysql.Day, time.UTC, `"o\"r"`},
		{keysql.PostgreSQL, "i'd", "orders", keysql.Day, time.UTC, "i'd"},
		{keysql.MySQL, "id", `o\r`, keysql.Day, time.UTC, `"o\\r"`},
		{keysql.PostgreSQL, "id", "$snowkey$", keysql.Day, time.UTC, "$snowkey$"},
		{keysql.PostgreSQL, "id", strings.Repeat("o", 52), keysql.Day, time.UTC, "at most 51 bytes"},
	} {
		c, err := keysql.New(test.dialect, core.Default(), test.column)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Partitions(test.table, test.every, test.zone)
		var value *core.ValueError
		if !errors.As(err, &value) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: Partitions(%q, %v, %v) = %v; want a ValueError with %s", test.dialect, test.table, test.every, test.zone, err, test.want)
		}
	}
}

var may = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// rows returns partitions as the query of Existing does.
func rows(list []keysql.Partition) []keysql.Existing {
	var all []keysql.Existing
	for _, p := range list {
		all = append(all, keysql.Existing{Name: p.Name, From: fmt.Sprint(int64(p.First)), Until: fmt.Sprint(int64(p.Last) + 1)})
	}
	return all
}

func TestSpansAndTablesThatAreWrongAreRefusedBeforeAStatement(t *testing.T) {
	p := partitions(t, keysql.PostgreSQL, core.Default(), keysql.Month, time.UTC)
	my := partitions(t, keysql.MySQL, core.Default(), keysql.Month, time.UTC)
	hours := partitions(t, keysql.PostgreSQL, core.Default(), keysql.Hour, time.UTC)
	discord := rows(list(t, partitions(t, keysql.PostgreSQL, core.Twitter(), keysql.Month, time.UTC), may, may.AddDate(0, 1, 0)))
	berlin := rows(list(t, partitions(t, keysql.PostgreSQL, core.Default(), keysql.Day, zone(t, "Europe/Berlin")), may, may.AddDate(0, 0, 2)))
	kathmandu := rows(list(t, partitions(t, keysql.PostgreSQL, core.Default(), keysql.Day, zone(t, "Asia/Kathmandu")), may, may.AddDate(0, 0, 2)))
	for name, test := range map[string]struct {
		call func() ([]string, error)
		want string
	}{
		"backwards":  {func() ([]string, error) { return p.Create(nil, may, may.Add(-1)) }, "an end that is not before"},
		"too many":   {func() ([]string, error) { return hours.Create(nil, may, may.AddDate(1, 0, 0)) }, "at most 8192"},
		"too late":   {func() ([]string, error) { return p.Create(nil, may, may.AddDate(8000, 0, 0)) }, "before the year 9999"},
		"layout":     {func() ([]string, error) { return p.Create(discord, may, may.AddDate(0, 1, 0)) }, "another layout"},
		"other zone": {func() ([]string, error) { return p.Create(kathmandu, may, may.AddDate(0, 1, 0)) }, "another zone"},
		"overlap":    {func() ([]string, error) { return p.Create(berlin, may, may.AddDate(0, 1, 0)) }, "a part of orders_p202605"},
		"no number":  {func() ([]string, error) { return p.Create([]keysql.Existing{{"x", "a", "b"}}, may, may) }, `"a"`},
		"foreign key": {func() ([]string, error) {
			return my.Create([]keysql.Existing{{"shop.lines.fk", "", "FOREIGN KEY"}}, may, may)
		}, "shop.lines.fk: want none from or to"},
		"ahead":   {func() ([]string, error) { return plan(p.Maintain(nil, may, 0, 0)) }, "partitions ahead is 0"},
		"keep":    {func() ([]string, error) { return plan(p.Maintain(nil, may, 1, -1)) }, "partitions to keep is -1"},
		"far":     {func() ([]string, error) { return plan(p.Maintain(nil, may, 8193, 0)) }, "partitions ahead is 8193"},
		"long":    {func() ([]string, error) { return plan(p.Maintain(nil, may, 1, 8193)) }, "partitions to keep is 8193"},
		"convert": {func() ([]string, error) { return my.Convert(may, 1) }, "Create divides"},
		"a lot":   {func() ([]string, error) { return p.Convert(may, 8193) }, "partitions ahead is 8193"},
		"late":    {func() ([]string, error) { return p.Convert(core.Default().Exhausted(), 1) }, "the layout has keys"},
	} {
		statements, err := test.call()
		var value *core.ValueError
		if len(statements) > 0 || !errors.As(err, &value) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s = %q, %v; want a ValueError with %s", name, statements, err, test.want)
		}
	}
}

func plan(p keysql.Plan, err error) ([]string, error) { return append(p.Create, p.Drop...), err }

func TestMaintainMakesWhatIsAheadAndListsWhatIsOld(t *testing.T) {
	p := partitions(t, keysql.PostgreSQL, core.Default(), keysql.Month, time.UTC)
	have := rows(list(t, p, may.AddDate(0, -5, 0), may.AddDate(0, -2, 0)))
	slices.Reverse(have) // in any order
	have = append(have, keysql.Existing{Name: "orders_rest"})
	got, err := p.Maintain(have, may, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"202604", "202605", "202606", "202607"} { // April was forgotten
		if len(got.Create) != 4 || !strings.Contains(got.Create[i], `CREATE TABLE "orders_p`+want+`"`) {
			t.Errorf("Maintain makes %q; want April to July", got.Create)
			break
		}
	}
	if want := []string{"orders_p202512", "orders_p202601"}; !slices.Equal(got.Old, want) || len(got.Drop) != 2 || !strings.Contains(got.Drop[0], "DETACH PARTITION \"orders_p202512\"") {
		t.Errorf("Maintain finds %q old, and drops them by %q; want %q", got.Old, got.Drop, want)
	}
	have = rows(list(t, p, may.AddDate(0, -3, 0), may.AddDate(0, 2, 0)))
	if got, err := p.Maintain(have, may, 2, 3); err != nil || len(got.Create)+len(got.Old)+len(got.Drop) > 0 {
		t.Errorf("Maintain, again = %+v, %v; want nothing to do", got, err)
	}
	if got, err := p.Maintain(have, may.AddDate(1, 0, 0), 1, 0); err != nil || len(got.Old) > 0 || len(got.Create) != 11 {
		t.Errorf("Maintain that keeps all = %+v, %v; want nothing old, and the eleven months to June 2027", got, err)
	}
	// One partition for the quarter, which ends within a tick where none begins with a month.
	for _, l := range []core.Layout{core.Default(), {Epoch: core.Default().Epoch, Unit: 11 * time.Millisecond, TimeBits: 40, WorkerBits: 10, SequenceBits: 12}} {
		p := partitions(t, keysql.PostgreSQL, l, keysql.Month, time.UTC)
		months := list(t, p, may.AddDate(0, -1, 0), may.AddDate(0, 2, 0))
		have := []keysql.Existing{{Name: "orders_q2", From: fmt.Sprint(int64(months[0].First)), Until: fmt.Sprint(int64(months[3].First))}}
		if got, err := p.Maintain(have, may, 2, 0); err != nil || len(got.Create) != 1 || !strings.Contains(got.Create[0], `CREATE TABLE "orders_p202607"`) {
			t.Errorf("Maintain of a quarter in ticks of %v = %q, %v; want July alone", l.Unit, got.Create, err)
		}
	}
}

func TestPartmanCountsKeysAndIsRefusedElsewhere(t *testing.T) {
	twitter, seconds := core.Twitter(), core.Layout{Epoch: core.Default().Epoch, Unit: time.Second, TimeBits: 32, DatacenterBits: 3, WorkerBits: 8, SequenceBits: 20}
	for _, test := range []struct {
		layout core.Layout
		table  string
		every  keysql.Period
		zone   string
		want   string
	}{
		{core.Default(), "public.orders", keysql.Day, "UTC", ""},
		{seconds, "public.orders", keysql.Day, "UTC", ""},
		{core.Default(), "orders", keysql.Day, "UTC", "with its schema"},
		{core.Default(), "public.orders", keysql.Month, "UTC", "use Maintain"},
		{core.Default(), "public.orders", keysql.Week, "UTC", "beginning of a Week"},
		{core.Default(), "public.orders", keysql.Day, "Europe/Berlin", "UTC"},
		{twitter, "public.orders", keysql.Day, "UTC", "beginning of a Day"},
		{core.Layout{Epoch: core.Default().Epoch, Unit: 7 * time.Millisecond, TimeBits: 40, WorkerBits: 10, SequenceBits: 12}, "public.orders", keysql.Day, "UTC", "whole ticks"},
	} {
		c, err := keysql.New(keysql.PostgreSQL, test.layout, "id")
		if err != nil {
			t.Fatal(err)
		}
		p, err := c.Partitions(test.table, test.every, zone(t, test.zone))
		if err != nil {
			t.Fatal(err)
		}
		text, err := p.Partman(may, 4)
		day := list(t, p, may, may.Add(time.Hour))[0]
		if test.want == "" && (err != nil || !strings.Contains(text, fmt.Sprintf("p_interval := '%d'", day.Last-day.First+1)) || !strings.Contains(text, fmt.Sprintf("p_start_partition := '%d'", day.First))) ||
			test.want != "" && (err == nil || text != "" || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("Partman of %s by %v in %s = %s, %v; want %q", test.table, test.every, test.zone, text, err, test.want)
		}
	}
}
