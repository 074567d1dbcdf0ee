package gormcases

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/types"
)

// A scopePlay has events with keys of a random layout, some softly deleted.
type scopePlay struct {
	*rand.Rand
	layout    core.Layout
	ids, live []types.Snowflake
}

// A keyFilter reports whether it selects a key.
type keyFilter func(types.Snowflake) bool

func (f keyFilter) and(g keyFilter) keyFilter {
	return func(id types.Snowflake) bool { return f(id) && g(id) }
}

func (f keyFilter) or(g keyFilter) keyFilter {
	return func(id types.Snowflake) bool { return f(id) || g(id) }
}

func (f keyFilter) not() keyFilter { return func(id types.Snowflake) bool { return !f(id) } }

func noKey(types.Snowflake) bool { return false }

// playScopes stores events in the layout of seed, and runs steps on them.
func (e *env) playScopes(seed uint64, steps []int) (at int, failure error) {
	p := &scopePlay{Rand: rand.New(rand.NewPCG(seed, 1<<32))}
	p.layout = randomLayout(p.Rand)
	src, options := struct {
		gormplugin.Source
		core.Layout
	}{e.src, p.layout}, []gormplugin.Option(nil)
	if p.IntN(2) == 0 {
		src.Layout, options = core.Twitter(), append(options, gormplugin.WithLayout(p.layout))
	}
	db := e.with(src, options...)
	e.must(db.Where("1 = 1").Unscoped().Delete(&Event{}))
	p.ids = []types.Snowflake{1, p.layout.Max(p.layout.Exhausted())} // the first as a database counts them
	for range 40 {
		parts := core.Parts{Time: p.moment(), Worker: p.Int64N(1 << p.layout.WorkerBits), Sequence: p.Int64N(1 << p.layout.SequenceBits)}
		if id, err := p.layout.Compose(parts); err == nil && id > 0 { // not outside, and not what the plugin takes for missing
			p.ids = append(p.ids, id, p.layout.Max(parts.Time), max(1, p.layout.Min(parts.Time)))
		}
	}
	slices.Sort(p.ids)
	p.ids = slices.Compact(p.ids)
	e.events(p.ids...)
	for _, id := range p.ids {
		if p.IntN(6) == 0 {
			e.must(db.Delete(&Event{}, id))
		} else {
			p.live = append(p.live, id)
		}
	}
	for n, i := range steps {
		p.Rand = rand.New(rand.NewPCG(seed, uint64(i)))
		doing := ""
		if err := undone(db, func(tx *gorm.DB) error { return p.step(tx, &doing) }); err != nil {
			return n, fmt.Errorf("%+v with keys %d, of which %d are not deleted: step %d,%s: %w", p.layout, p.ids, p.live, i, doing, err)
		}
	}
	return len(steps), nil
}

// randomLayout returns a layout of less than 280 years. Some have few ticks, some use all 63 bits.
func randomLayout(r *rand.Rand) core.Layout {
	units := []time.Duration{time.Microsecond, 250 * time.Microsecond, time.Millisecond, 30 * time.Millisecond, time.Second}
	l := core.Layout{Epoch: time.Unix(0, r.Int64N(2e18)-3e17).UTC(), Unit: units[r.IntN(len(units))]}
	l.TimeBits = 2 + r.IntN(bits.Len64(uint64(280*365*24*time.Hour/l.Unit))-2)
	l.WorkerBits = r.IntN(11)
	l.SequenceBits = 63 - l.TimeBits - l.WorkerBits
	if r.IntN(2) == 0 {
		l.SequenceBits = 1 + r.IntN(l.SequenceBits)
	}
	return l
}

// moment returns a time in or at the ends of the first tick, of one between, of the last, or of
// their neighbors. Some are far outside.
func (p *scopePlay) moment() time.Time {
	l, ticks := p.layout, int64(1)<<p.layout.TimeBits
	if p.IntN(8) == 0 {
		far := []time.Time{{}, time.Unix(math.MinInt64, 0), l.Epoch.Add(-time.Hour), l.Exhausted(), l.Exhausted().AddDate(1000, 0, 0)}
		return far[p.IntN(len(far))]
	}
	tick := [...]int64{0, ticks / 3, ticks}[p.IntN(3)] + p.Int64N(9) - 4
	within := [...]time.Duration{0, 1, l.Unit / 2, l.Unit - 1}[p.IntN(4)]
	return l.Epoch.Add(time.Duration(tick)*l.Unit + within).In(time.FixedZone("", 3600*(p.IntN(3)-1)))
}

// near returns a stored key or one beside it, zero, or an end of all numbers.
func (p *scopePlay) near() types.Snowflake {
	if p.IntN(12) == 0 {
		return [...]types.Snowflake{math.MinInt64, 0, math.MaxInt64}[p.IntN(3)]
	}
	return p.ids[p.IntN(len(p.ids))] + types.Snowflake(p.IntN(3)-1)
}

// condition draws a condition, what it selects, and what it is called. A row was created before a
// time if the tick of its key ends by then.
func (p *scopePlay) condition() (c gormplugin.Condition, selects keyFilter, text string) {
	from, until, id := p.moment(), p.moment(), p.near()
	if p.IntN(3) == 0 {
		until = from.Add(time.Duration(p.Int64N(3)) * p.layout.Unit)
	}
	before := func(t time.Time) keyFilter {
		return func(id types.Snowflake) bool { return !p.layout.Parts(id).Time.Add(p.layout.Unit).After(t) }
	}
	switch p.IntN(8) {
	case 0:
		return gormplugin.Condition{}, keyFilter(noKey).not(), "the zero Condition"
	case 1:
		return gormplugin.CreatedBefore(until), before(until), fmt.Sprint("before ", until)
	case 2:
		return gormplugin.CreatedAfter(from), before(from).not(), fmt.Sprint("after ", from)
	case 3:
		return gormplugin.NewerThan(id), func(other types.Snowflake) bool { return other > id }, fmt.Sprint("newer than ", id)
	case 4:
		return gormplugin.OlderThan(id), func(other types.Snowflake) bool { return other < id }, fmt.Sprint("older than ", id)
	}
	return gormplugin.CreatedBetween(from, until), before(from).not().and(before(until)), fmt.Sprint("between ", from, " and ", until)
}

// step adds conditions to a statement, in a random order and by random methods, sends it, and
// compares the rows that it finds or changes with those of a filter.
func (p *scopePlay) step(tx *gorm.DB, doing *string) error {
	model, all := func() *gorm.DB { return tx.Model(&Event{}) }, p.live
	if p.IntN(3) == 0 {
		model, all = func() *gorm.DB { return tx.Model(&Event{}).Unscoped() }, p.ids
		*doing += " unscoped"
	}
	chain := model()
	// Selected are the rows of earlier alternatives, and those of the last: AND binds tighter than OR.
	earlier, last := keyFilter(noKey), keyFilter(noKey).not()
	var scopes []func() // which GORM adds at the end
	for n := range 1 + p.IntN(4) {
		a, f, text := p.condition()
		b, g, more := p.condition()
		methods := []string{"Where", "group", "text", "Not", "Not both", "Clauses", "Where in Clauses", "Scopes", "Or"}
		if n == 0 {
			methods = methods[:5]
		}
		method, id := methods[p.IntN(len(methods))], p.near()
		*doing += fmt.Sprintf(" %s %s, %s, %d;", method, text, more, id)
		switch method {
		case "Where":
			chain, last = chain.Where(a), last.and(f)
		case "group":
			chain, last = chain.Where(tx.Where(a).Or(b)), last.and(f.or(g))
		case "text":
			chain, last = chain.Where("name <> ?", id.String()), last.and(func(other types.Snowflake) bool { return other != id })
		case "Not":
			chain, last = chain.Not(a), last.and(f.not())
		case "Not both":
			chain, last = chain.Not(a, b), last.and(f.and(g).not())
		case "Clauses":
			chain, last = chain.Clauses(a), last.and(f)
		case "Where in Clauses":
			chain, last = chain.Clauses(clause.Where{Exprs: []clause.Expression{clause.Or(a, b)}}), last.and(f.or(g))
		case "Scopes":
			chain, scopes = chain.Scopes(a.Scope), append(scopes, func() { last = last.and(f) })
		case "Or":
			chain, earlier, last = chain.Or(a), earlier.or(last), f
		}
	}
	ends := []string{"Find", "Count", "Update", "Delete", "subquery"}
	end := ends[p.IntN(len(ends))]
	inline, f, text := p.condition()
	*doing += fmt.Sprintf(" %s, inline %s", end, text)
	if end == "Find" {
		last = last.and(f)
	}
	for _, add := range scopes {
		add()
	}
	want := slices.DeleteFunc(slices.Clone(all), earlier.or(last).not())
	var list []Event
	var got []types.Snowflake
	var n int64
	switch end {
	case "Find":
		chain = chain.Order("id").Find(&list, inline)
	case "Count":
		if chain = chain.Count(&n); n == int64(len(want)) {
			got = want
		}
	case "Update":
		if chain = chain.Update("name", "changed"); chain.Error == nil {
			chain = tx.Unscoped().Model(&Event{}).Where("name = ?", "changed").Order("id").Pluck("id", &got)
		}
	case "Delete":
		var left []types.Snowflake
		if chain = chain.Delete(&Event{}); chain.Error == nil {
			chain = model().Pluck("id", &left)
		}
		got = slices.DeleteFunc(slices.Clone(all), func(id types.Snowflake) bool { return slices.Contains(left, id) })
	case "subquery":
		chain = tx.Unscoped().Model(&Event{}).Where("id IN (?)", chain.Select("id")).Order("id").Pluck("id", &got)
	}
	for _, row := range list {
		got = append(got, row.ID)
	}
	if chain.Error != nil || !slices.Equal(got, want) {
		return fmt.Errorf("found %d, counted %d, error %v; want %d", got, n, chain.Error, want)
	}
	return nil
}
