package serialcases

import (
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/serial"
	"github.com/snowkey/snowkey/core/serial/sqlserial"
)

// A period is what its counter has to be.
type period struct {
	moved, last int64
	closed      bool
	events      []sqlserial.Event
}

// Books are what a series has to be, and the invoices that are stored.
type books struct {
	*bench
	*rand.Rand
	serial.Series
	first, limit int64
	periods      map[string]period
	date         string // of the last number, 20261122
	texts        []string
	table        string
	began, now   time.Time
	pace         int // in hours, from one step to the next at most
}

// books makes random calls, in transactions that may be rolled back, whole or up to a
// savepoint, and compares each answer with what the books say.
func (b *bench) books(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	must(t, err)
	pace := map[serial.Period]int{serial.Never: 24, serial.Yearly: 400, serial.Monthly: 100, serial.Daily: 8}
	for i, s := range []serial.Series{
		{Digits: 2},
		{Digits: 1, First: 5},
		{Prefix: "INV", Period: serial.Yearly, Digits: 6, First: 7, Chronological: true},
		{Prefix: "FY-", Period: serial.Yearly, YearBegins: time.April, Separator: "-", Digits: 2, Chronological: true},
		{Period: serial.Monthly, Digits: 2, Zone: berlin, Check: serial.Luhn, Chronological: true},
		{Period: serial.Daily, Digits: 1, Zone: berlin},
	} {
		s.Name = fmt.Sprint("books-", i)
		k := &books{
			bench: b.fresh(t), Rand: rand.New(rand.NewPCG(7, uint64(i))), Series: b.define(t, s), periods: map[string]period{},
			table: b.invoices(t), began: time.Now(), now: noon, pace: pace[s.Period],
		}
		k.first, k.limit = k.Bounds()
		for step := range 80 {
			if k.now = k.now.Add(time.Duration(k.IntN(k.pace)) * time.Hour); step%20 == 0 { // another process goes on
				k.bench = b.fresh(t)
				must(t, errors.Join(k.store.CreateTables(t.Context()), k.store.Define(t.Context(), k.Series)))
			}
			k.step(t)
			if t.Failed() {
				t.Fatalf("step %d of %s", step, k.Definition())
			}
		}
		var got []string
		rows, err := b.db.QueryContext(t.Context(), "SELECT text FROM "+k.table)
		must(t, err)
		for rows.Next() {
			got = append(got, "")
			must(t, rows.Scan(&got[len(got)-1]))
		}
		must(t, rows.Close())
		slices.Sort(got)
		slices.Sort(k.texts)
		if !slices.Equal(got, k.texts) {
			t.Errorf("stored are the invoices %q; want %q", got, k.texts)
		}
	}
}

// at returns a moment of now, or some paces before or ahead of it, and its period.
func (k *books) at(t *testing.T, ahead int) (time.Time, string) {
	t.Helper()
	at := k.now.Add(time.Duration(k.IntN(ahead*k.pace+1)) * time.Hour)
	if ahead == 0 && k.IntN(3) == 0 {
		at = at.Add(-time.Duration(k.IntN(3*k.pace)) * time.Hour)
	}
	name, err := k.PeriodOf(at)
	must(t, err)
	if _, ok := k.periods[name]; !ok {
		k.periods[name] = period{moved: k.first - 1, last: k.first - 1}
	}
	return at, name
}

// day is the date of a moment, in the zone of the series.
func (k *books) day(at time.Time) string {
	zone := k.Zone
	if zone == nil {
		zone = time.UTC
	}
	return at.In(zone).Format("20060102")
}

func (k *books) step(t *testing.T) {
	t.Helper()
	call, ahead := k.IntN(8), 0
	if call == 1 {
		ahead = k.IntN(2) * 10 // the program that has numbered before may have come to the next period
	}
	at, name := k.at(t, ahead)
	p := k.periods[name]
	reason := []string{"vergessen: Müller & Söhne 日本 🧾", strings.Repeat("ü", 255)}[k.IntN(2)]
	last := min(max(0, p.last+k.Int64N(5)-2), k.limit)
	switch call {
	default:
		k.transaction(t)
		return
	case 0:
		count := 1 + k.Int64N(5)
		got, err := k.store.Take(t.Context(), k.Name, name, at, count)
		if text, is := k.refuses(at, p); !k.wants(t, "Take", err, is, text) {
			if got != p.last+1 {
				t.Errorf("Take(%s) = %d; want %d", name, got, p.last+1)
			}
			p.last = min(p.last+count, k.limit)
			k.date = max(k.date, k.day(at))
		}
	case 1:
		err := k.store.MoveIn(t.Context(), k.Name, name, last)
		switch {
		case last <= p.moved:
			k.wants(t, "MoveIn of less", err, nil, "")
		case p.closed:
			k.wants(t, "MoveIn", err, serial.ErrPeriodClosed, "")
		case p.last > p.moved:
			k.wants(t, "MoveIn", err, serial.ErrCounted, fmt.Sprintf("given %d to %d", p.moved+1, p.last))
		default:
			k.wants(t, "MoveIn", err, nil, "")
			p.moved, p.last = last, last
			p.add(sqlserial.MovedIn, "")
			switch { // no earlier date is accepted from now on
			case k.YearBegins == time.April:
				k.date = max(k.date, name+"0401")
			case k.Period != serial.Never:
				k.date = max(k.date, (name + "0101")[:8])
			}
		}
	case 2:
		err := k.store.Raise(t.Context(), k.Name, name, last, reason)
		switch {
		case last <= p.last:
			k.wants(t, "Raise to less", err, nil, "")
		case p.closed:
			k.wants(t, "Raise", err, serial.ErrPeriodClosed, "")
		default:
			k.wants(t, "Raise", err, nil, "")
			p.last = last
			p.add(sqlserial.Raised, reason)
		}
	case 3:
		k.wants(t, "ClosePeriod", k.store.ClosePeriod(t.Context(), k.Name, at), nil, "")
		if !p.closed {
			p.closed = true
			p.add(sqlserial.Closed, "")
		}
	case 4:
		if err := k.store.ReopenPeriod(t.Context(), k.Name, at, reason); !p.closed {
			k.wants(t, "ReopenPeriod", err, serial.ErrPeriodOpen, "")
		} else {
			k.wants(t, "ReopenPeriod", err, nil, "")
			p.closed = false
			p.add(sqlserial.Reopened, reason)
		}
	}
	k.periods[name] = p
	k.audit(t, name)
}

func (p *period) add(what sqlserial.What, reason string) {
	p.events = append(slices.Clip(p.events), sqlserial.Event{What: what, Last: p.last, Reason: reason})
}

// refuses returns what the error says of a period that gives no number, and which error that is.
func (k *books) refuses(at time.Time, p period) (text string, is error) {
	switch day := k.day(at); {
	case k.Chronological && day < k.date:
		return fmt.Sprintf("date %s-%s-%s, the last number %s-%s-%s", day[:4], day[4:6], day[6:], k.date[:4], k.date[4:6], k.date[6:]), serial.ErrBackdated
	case p.closed:
		return "", serial.ErrPeriodClosed
	case p.last == k.limit:
		return fmt.Sprint("up to ", k.limit), serial.ErrSeriesFull
	}
	return "", nil
}

// wants fails the test if an error is not as it should be, and reports whether there should be one.
func (k *books) wants(t *testing.T, call string, err, is error, text string) bool {
	t.Helper()
	if !errors.Is(err, is) || err != nil && !strings.Contains(err.Error(), text) {
		t.Errorf("%s = %v; want %v with %q", call, err, is, text)
	}
	return is != nil
}

// transaction takes numbers for invoices. It goes on after what was rolled back to a savepoint.
func (k *books) transaction(t *testing.T) {
	t.Helper()
	tx := k.begin(t)
	defer func() { _ = tx.Rollback() }()
	say := func(text string) {
		_, err := tx.ExecContext(t.Context(), text)
		must(t, err)
	}
	before := *k
	before.periods = maps.Clone(k.periods)
	for range 1 + k.IntN(3) {
		held, undo := *k, k.IntN(3) == 0
		held.periods = maps.Clone(k.periods)
		if undo {
			say("SAVEPOINT here")
		}
		at, name := k.at(t, 0)
		p := k.periods[name]
		n, err := k.store.NextIn(t.Context(), tx, k.Series, at)
		if text, is := k.refuses(at, p); k.wants(t, "NextIn", err, is, text) {
			if n != (serial.Number{}) {
				t.Errorf("NextIn = %+v with an error; want none", n)
			}
			*k = before
			return
		}
		p.last++
		if want, err := k.Number(at, p.last); n != want || err != nil {
			t.Errorf("NextIn(%v) = %+v; want %+v, %v", at, n, want, err)
		}
		must(t, k.insert(t.Context(), tx, k.table, n))
		k.periods[name], k.date, k.texts = p, max(k.date, k.day(at)), append(slices.Clip(k.texts), n.Text)
		if undo {
			say("ROLLBACK TO SAVEPOINT here")
			*k = held
		}
	}
	end := (*sql.Tx).Commit
	if k.IntN(3) == 0 {
		end, *k = (*sql.Tx).Rollback, before
	}
	must(t, end(tx))
}

// audit compares the events of a period, and the gaps in some of its numbers.
func (k *books) audit(t *testing.T, name string) {
	t.Helper()
	p := k.periods[name]
	events, err := k.store.Events(t.Context(), k.Name, name)
	must(t, err)
	for i := range events {
		if at := events[i].At; at.Before(k.began.Add(-time.Minute)) || at.After(time.Now().Add(time.Minute)) {
			t.Errorf("the event %+v is of another time; want about %v", events[i], k.began)
		}
		events[i].At = time.Time{}
	}
	if !slices.Equal(events, p.events) {
		t.Errorf("Events(%s) = %+v; want %+v", name, events, p.events)
	}

	var numbers []int64
	var want []sqlserial.Gap
	wrong := func(kind sqlserial.Kind, n int64) {
		if i := len(want) - 1; i >= 0 && want[i].Kind == kind && want[i].Last >= n-1 && n-1 != p.last {
			want[i].Last = n
		} else {
			want = append(want, sqlserial.Gap{Kind: kind, First: n, Last: n})
		}
	}
	for n := int64(0); n < p.last+4; n++ {
		given := n >= k.first && n <= p.last
		switch times := []int{0, 1, 1, 2}[k.IntN(4)]; {
		case times == 0 && given && n > p.moved:
			wrong(sqlserial.Missing, n)
		case times > 0 && given:
			if numbers = append(numbers, n); times == 2 {
				numbers = append(numbers, n)
				wrong(sqlserial.Repeated, n)
			}
		case times > 0:
			numbers = append(numbers, n)
			wrong(sqlserial.Foreign, n)
		}
	}
	if got, err := k.store.Gaps(t.Context(), k.Name, name, slices.Values(numbers)); err != nil || !slices.Equal(got, want) {
		t.Errorf("Gaps(%s, %v) = %v, %v; want %v, of %d to %d, of which those to %d have moved in", name, numbers, got, err, want, k.first, p.last, p.moved)
	}
}

// gaps looks for gaps while numbers are taken, and for more of them than are listed.
func (b *bench) gaps(t *testing.T) {
	s := b.define(t, serial.Series{Name: "gaps", Digits: 4, First: 10})
	read := func(numbers ...int64) func(yield func(int64) bool) {
		return func(yield func(int64) bool) {
			_, err := b.store.Take(t.Context(), s.Name, "", noon, 2)
			must(t, err)
			slices.Values(numbers)(yield)
		}
	}
	foreign := func(n int64) []sqlserial.Gap { return []sqlserial.Gap{{Kind: sqlserial.Foreign, First: n, Last: n}} }
	for _, c := range []struct { // 10 and 11 are taken while the first are read, 12 and 13 while the next are
		numbers []int64
		want    []sqlserial.Gap
	}{{[]int64{9, 10, 11}, foreign(9)}, {[]int64{10, 11, 12, 13, 14}, foreign(14)}, {[]int64{10, 11, 12, 13, math.MaxInt64}, foreign(math.MaxInt64)}} {
		if got, err := b.store.Gaps(t.Context(), s.Name, "", read(c.numbers...)); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("Gaps(%d) while numbers are taken = %v, %v; want %v", c.numbers, got, err, c.want)
		}
	}
	_, err := b.store.Take(t.Context(), s.Name, "", noon, 9000)
	must(t, err)
	got, err := b.store.Gaps(t.Context(), s.Name, "", func(yield func(int64) bool) {
		for n := int64(10); n < 9000 && yield(n); n += 2 {
		}
	})
	if !errors.Is(err, sqlserial.ErrManyGaps) || len(got) != 1000 {
		t.Errorf("Gaps with 4,495 of them = %d, %v; want %d and %v", len(got), err, 1000, sqlserial.ErrManyGaps)
	}
}

func (b *bench) arguments(t *testing.T) {
	s := b.define(t, serial.Series{Name: "arguments", Period: serial.Yearly, Digits: 2})
	gaps := func(series, period string, numbers ...int64) error {
		_, err := b.store.Gaps(t.Context(), series, period, slices.Values(numbers))
		return err
	}
	bad := map[string]error{"Gaps out of order": gaps(s.Name, "2026", 2, 1)}
	for _, reason := range []string{"", "   ", "a\nb", "\x00", "\xff", strings.Repeat("ü", 256)} {
		bad["ReopenPeriod for "+reason] = b.store.ReopenPeriod(t.Context(), s.Name, noon, reason)
		bad["Raise for "+reason] = b.store.Raise(t.Context(), s.Name, "2026", 5, reason)
	}
	for _, last := range []int64{-1, 100} {
		bad[fmt.Sprint("MoveIn to ", last)] = b.store.MoveIn(t.Context(), s.Name, "2026", last)
		bad[fmt.Sprint("Raise to ", last)] = b.store.Raise(t.Context(), s.Name, "2026", last, "x")
	}
	for _, period := range []string{"", "x", " ", "202611"} {
		bad["MoveIn of "+period], bad["Gaps of "+period] = b.store.MoveIn(t.Context(), s.Name, period, 1), gaps(s.Name, period)
		_, bad["Events of "+period] = b.store.Events(t.Context(), s.Name, period)
	}
	for call, err := range bad {
		if !errors.As(err, new(*core.ValueError)) {
			t.Errorf("%q = %v; want a ValueError", call, err)
		}
	}

	unknown := serial.Series{Name: "unknown", Digits: 3}
	tx := b.begin(t)
	_, in := b.store.NextIn(t.Context(), tx, unknown, noon)
	must(t, tx.Rollback())
	_, take := b.store.Take(t.Context(), unknown.Name, "", noon, 1)
	_, lookup := b.store.Lookup(t.Context(), unknown.Name)
	for call, err := range map[string]error{
		"NextIn": in, "Take": take, "Gaps": gaps(unknown.Name, ""), "Lookup": lookup, "ClosePeriod": b.store.ClosePeriod(t.Context(), unknown.Name, noon),
		"MoveIn": b.store.MoveIn(t.Context(), unknown.Name, "", 1), "Raise": b.store.Raise(t.Context(), unknown.Name, "", 1, "x"),
	} {
		if !errors.Is(err, serial.ErrNoSeries) {
			t.Errorf("%s of a series that nobody has defined = %v; want %v", call, err, serial.ErrNoSeries)
		}
	}
}
