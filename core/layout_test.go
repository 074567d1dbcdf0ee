package core

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/types"
)

func named() map[string]Layout {
	return map[string]Layout{
		"Default": Default(), "Twitter": Twitter(), "Discord": Discord(),
		"Mastodon": Mastodon(), "Instagram": Instagram(), "JavaScript": JavaScript(),
	}
}

// The first two are documented by their makers; the others follow from the
// published formula, computed by hand.
func TestNamedLayoutsReadPublishedIDs(t *testing.T) {
	for _, c := range []struct {
		name   string
		layout Layout
		id     types.Snowflake
		want   Parts
	}{
		{"discord.com/developers/docs/reference", Discord(), 175928847299117063,
			Parts{time.Date(2016, 4, 30, 11, 18, 25, 796e6, time.UTC), 1, 0, 7, 0}},
		{"tweet 1541815603606036480", Twitter(), 1541815603606036480,
			Parts{time.Date(2022, 6, 28, 16, 7, 40, 105e6, time.UTC), 11, 26, 0, 0}},
		{"the example of Instagram's article, shard 1341, 5001st ID", Instagram(), 1387263000<<23 | 1341<<10 | 5001%1024,
			Parts{time.UnixMilli(1314220021721 + 1387263000).UTC(), 0, 1341, 905, 0}},
		{"Mastodon: Unix ms << 16", Mastodon(), 1510000000000<<16 | 0xBEEF,
			Parts{time.UnixMilli(1510000000000).UTC(), 0, 0, 0xBEEF, 0}},
	} {
		if got := c.layout.Parts(c.id); got != c.want {
			t.Errorf("%s: Parts(%d) = %v; want %v", c.name, c.id, got, c.want)
		}
		if got, err := c.layout.Compose(c.want); got != c.id || err != nil {
			t.Errorf("%s: Compose(%v) = %d, %v; want %d", c.name, c.want, got, err, c.id)
		}
	}
}

func TestNamedLayoutsEndWhenTheirCommentSays(t *testing.T) {
	for name, want := range map[string]string{
		"Default": "2094-09-07", "Twitter": "2080-07-10", "Discord": "2084-09-06",
		"Mastodon": "6429-10-17", "Instagram": "2046-06-27", "JavaScript": "2112-02-09",
	} {
		l := named()[name]
		if err := l.Validate(); err != nil {
			t.Errorf("%s().Validate() = %v", name, err)
		}
		if got := l.Exhausted().Format(time.DateOnly); got != want {
			t.Errorf("%s().Exhausted() = %s; want %s", name, got, want)
		}
		if top := l.Max(l.Exhausted()); top < 0 || top != types.Snowflake(ones(l.TimeBits+l.timeShift())) {
			t.Errorf("%s().Max(end) = %d; want all bits of the layout and no sign", name, top)
		}
	}
	if top := JavaScript().Max(JavaScript().Exhausted()); top != 1<<53-1 {
		t.Errorf("JavaScript().Max(end) = %d; want Number.MAX_SAFE_INTEGER, 9007199254740991", top)
	}
}

func TestValidateNamesFieldValueAndRange(t *testing.T) {
	good := Default()
	for _, c := range []struct {
		change func(*Layout)
		want   string // "" for valid
	}{
		{func(*Layout) {}, ""},
		{func(l *Layout) { l.TimeBits = 0 }, "core: Layout.TimeBits is 0: want 1..62"},
		{func(l *Layout) { l.TimeBits = 63 }, "core: Layout.TimeBits is 63: want 1..62"},
		{func(l *Layout) { l.DatacenterBits = -1 }, "core: Layout.DatacenterBits is -1: want 0..62"},
		{func(l *Layout) { l.WorkerBits = -9 }, "core: Layout.WorkerBits is -9: want 0..62"},
		{func(l *Layout) { l.SequenceBits = 0 }, "core: Layout.SequenceBits is 0: want 1..62"},
		{func(l *Layout) { l.SequenceBits = math.MaxInt }, "want 1..62"},
		{func(l *Layout) { l.SequenceBits = 13 }, "41+0+10+13 = 64: want at most 63"},
		{func(l *Layout) { l.Unit = 0 }, "core: Layout.Unit is 0s: want 1µs..1s"},
		{func(l *Layout) { l.Unit = 999 }, "core: Layout.Unit is 999ns: want 1µs..1s"},
		{func(l *Layout) { l.Unit = time.Second + 1 }, "core: Layout.Unit is 1.000000001s: want 1µs..1s"},
		{func(l *Layout) { l.Unit = -time.Millisecond }, "core: Layout.Unit is -1ms: want 1µs..1s"},
		{func(l *Layout) { l.Epoch = time.Time{} }, "core: Layout.Epoch is the zero time"},
		{func(l *Layout) { l.Unit = time.Microsecond }, ""},
		{func(l *Layout) { l.Unit = time.Second }, ""},
		{func(l *Layout) { l.TimeBits, l.WorkerBits, l.SequenceBits = 62, 0, 1 }, ""},
		{func(l *Layout) { l.ShardBits = 11 }, ""},
		{func(l *Layout) { l.ShardBits = 12 }, "core: Layout.ShardBits is 12: want 0..11, less than Layout.SequenceBits"},
		{func(l *Layout) { l.ShardBits = -1 }, "core: Layout.ShardBits is -1: want 0..11"},
		{func(l *Layout) { l.TimeBits, l.WorkerBits, l.SequenceBits = 1, 0, 62 }, ""},
	} {
		l := good
		c.change(&l)
		err := l.Validate()
		var ve *ValueError
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%+v.Validate() = %v; want nil", l, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !errors.As(err, &ve)):
			t.Errorf("%+v.Validate() = %v; want a ValueError with %q", l, err, c.want)
		}
	}
}

func TestComposeRefusesPartsOutsideTheLayout(t *testing.T) {
	l := Twitter()
	good := Parts{time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), 31, 31, 4095, 0}
	if _, err := l.Compose(good); err != nil {
		t.Fatalf("Compose(%v) = %v", good, err)
	}
	for _, c := range []struct {
		change func(*Parts)
		want   string
	}{
		{func(p *Parts) { p.Time = l.Epoch.Add(-1) }, "core: Parts.Time is 2010-11-04T01:42:54.656999999Z"},
		{func(p *Parts) { p.Time = l.Exhausted() }, "until before 2080-07-10T17:30:30.209Z"},
		{func(p *Parts) { p.Time = time.Time{} }, "Parts.Time is 0001-01-01"},
		{func(p *Parts) { p.Datacenter = 32 }, "core: Parts.Datacenter is 32: want 0..31 (5 bits)"},
		{func(p *Parts) { p.Datacenter = -1 }, "core: Parts.Datacenter is -1"},
		{func(p *Parts) { p.Worker = 32 }, "core: Parts.Worker is 32: want 0..31 (5 bits)"},
		{func(p *Parts) { p.Worker = math.MinInt64 }, "core: Parts.Worker is -9223372036854775808"},
		{func(p *Parts) { p.Sequence = 4096 }, "core: Parts.Sequence is 4096: want 0..4095 (12 bits)"},
		{func(p *Parts) { p.Sequence = -1 }, "core: Parts.Sequence is -1"},
		{func(p *Parts) { p.Shard = 1 }, "core: Parts.Shard is 1: want 0..0 (0 bits)"},
	} {
		p := good
		c.change(&p)
		id, err := l.Compose(p)
		var ve *ValueError
		if id != 0 || err == nil || !strings.Contains(err.Error(), c.want) || !errors.As(err, &ve) {
			t.Errorf("Compose(%v) = %d, %v; want 0 and a ValueError with %q", p, id, err, c.want)
		}
	}
}

func TestMinAndMaxHoldEveryIDOfTheirTickAndNoOther(t *testing.T) {
	for name, l := range named() {
		at := l.Epoch.Add(123456*time.Hour + 7*time.Microsecond)
		next := at.Add(l.Unit)
		first, last := l.Min(at), l.Max(at)
		if l.Min(next) != last+1 {
			t.Errorf("%s: Min(next tick) = %d; want Max(tick)+1 = %d", name, l.Min(next), last+1)
		}
		for _, p := range []Parts{
			{at, 0, 0, 0, 0},
			{at, ones(l.DatacenterBits), ones(l.WorkerBits), ones(l.SequenceBits), 0},
		} {
			if id, err := l.Compose(p); err != nil || id < first || id > last {
				t.Errorf("%s: Compose(%v) = %d, %v; want within Min..Max = %d..%d", name, p, id, err, first, last)
			}
		}
		if start := l.Parts(first).Time; start.After(at) || !start.Add(l.Unit).After(at) {
			t.Errorf("%s: Min(%v) begins at %v; want the start of that tick", name, at, start)
		}
	}
}

func TestTimesOutsideTheLayoutCountAsItsFirstAndLastTick(t *testing.T) {
	for name, l := range named() {
		top := types.Snowflake(ones(l.TimeBits + l.timeShift()))
		for _, early := range []time.Time{{}, l.Epoch.Add(-1), time.Unix(-1<<62, 0)} {
			if low, high := l.Min(early), l.Max(early); low != 0 || high != types.Snowflake(ones(l.timeShift())) {
				t.Errorf("%s: Min, Max(%v) = %d, %d; want those of tick 0", name, early, low, high)
			}
		}
		for _, late := range []time.Time{l.Exhausted(), time.Unix(1<<62, 999999999), time.Date(200000, 1, 1, 0, 0, 0, 0, time.UTC)} {
			if low, high := l.Min(late), l.Max(late); low != top-types.Snowflake(ones(l.timeShift())) || high != top {
				t.Errorf("%s: Min, Max(%v) = %d, %d; want those of the last tick", name, late, low, high)
			}
		}
	}
}

func TestConsecutiveSpansShareNoKeyAndMissNone(t *testing.T) {
	random := rand.New(rand.NewPCG(20260504, 1))
	for name, l := range named() {
		far := l.Exhausted().Add(time.Hour)
		bounds := []time.Time{{}, l.Epoch.Add(-1), l.Epoch, l.Epoch.Add(1), l.Epoch.Add(l.Unit - 1), l.Exhausted().Add(-1), l.Exhausted(), far}
		for range 100 {
			bounds = append(bounds, l.Epoch.Add(time.Duration(random.Int64N(int64(60*365*24*time.Hour)))))
		}
		slices.SortFunc(bounds, time.Time.Compare)
		next := types.Snowflake(0)
		for i, from := range bounds[:len(bounds)-1] {
			first, last := l.Between(from, bounds[i+1])
			if last < first {
				if first != 0 || last != -1 {
					t.Errorf("%s: Between(%v, %v) = %d, %d; want 0, -1 for a span without a key", name, from, bounds[i+1], first, last)
				}
				continue
			}
			if first != next || l.Max(l.Parts(last).Time) != last {
				t.Errorf("%s: Between(%v, %v) = %d, %d; want %d and whole ticks", name, from, bounds[i+1], first, last, next)
			}
			next = last + 1
		}
		if top := l.Max(far); next != top+1 {
			t.Errorf("%s: the spans end before %d; want all keys up to %d", name, next, top)
		}
	}
}

func TestAnInvalidLayoutNeverPanics(t *testing.T) {
	for _, l := range []Layout{
		{}, {TimeBits: -5, WorkerBits: -70, SequenceBits: -1},
		{Epoch: time.Now(), Unit: 1, TimeBits: 400, DatacenterBits: 400, WorkerBits: 400, SequenceBits: 400},
	} {
		if p := l.Parts(math.MinInt64); p != (Parts{}) {
			t.Errorf("%+v.Parts = %v; want zero", l, p)
		}
		if id, err := l.Compose(Parts{Time: time.Now()}); id != 0 || err == nil {
			t.Errorf("%+v.Compose = %d, %v; want 0 and an error", l, id, err)
		}
		if low, high := l.Min(time.Now()), l.Max(time.Now()); low != 0 || high != 0 {
			t.Errorf("%+v.Min, Max = %d, %d; want 0, 0", l, low, high)
		}
		if first, last := l.Between(time.Time{}, time.Now()); first != 0 || last != -1 {
			t.Errorf("%+v.Between = %d, %d; want 0, -1", l, first, last)
		}
		if end := l.Exhausted(); !end.IsZero() {
			t.Errorf("%+v.Exhausted() = %v; want the zero time", l, end)
		}
	}
}

// An ID of another system may have more bits than the layout, or the sign. It
// must come out as something that Compose refuses, not as another valid ID.
func TestForeignIDsAreNotTakenForOurs(t *testing.T) {
	l := JavaScript()
	for _, id := range []types.Snowflake{1 << 53, math.MaxInt64, -1, math.MinInt64} {
		p := l.Parts(id)
		if got, err := l.Compose(p); err == nil {
			t.Errorf("Compose(Parts(%d) = %v) = %d; want an error", id, p, got)
		}
	}
}

// FuzzLayout tests three laws on any layout. Compose undoes Parts. A greater ID is
// later, or in a greater place of the same tick. Min and Max enclose every ID. The
// corpus is in testdata.
func FuzzLayout(f *testing.F) {
	f.Fuzz(func(t *testing.T, timeBits, dcBits, workerBits, seqBits uint8, epochMS, unit, a, b int64) {
		shardBits := int(seqBits>>6 | dcBits>>6<<2)
		l := Layout{time.UnixMilli(epochMS % 1e14), time.Duration(unit), int(timeBits), int(dcBits & 63), int(workerBits), int(seqBits & 63), shardBits}
		if l.Validate() != nil {
			return
		}
		all := ones(l.TimeBits + l.timeShift())
		ids := [2]types.Snowflake{types.Snowflake(a & all), types.Snowflake(b & all)}
		parts := [2]Parts{l.Parts(ids[0]), l.Parts(ids[1])}
		for i, id := range ids {
			p := parts[i]
			if back, err := l.Compose(p); back != id || err != nil {
				t.Fatalf("%+v: Compose(Parts(%d) = %v) = %d, %v; want the ID", l, id, p, back, err)
			}
			late := p
			late.Time = p.Time.Add(l.Unit - 1) // still the same tick
			if back, err := l.Compose(late); back != id || err != nil {
				t.Fatalf("%+v: Compose(%v) = %d, %v; want %d", l, late, back, err, id)
			}
			if low, high := l.Min(late.Time), l.Max(p.Time); low > id || high < id || int64(high-low) != ones(l.timeShift()) {
				t.Fatalf("%+v: Min, Max = %d, %d; want the tick around %d", l, low, high, id)
			}
		}
		if got, want := less(parts[0], parts[1]), ids[0] < ids[1]; got != want {
			t.Fatalf("%+v: order of %v and %v = %v; want %v, the order of %d and %d", l, parts[0], parts[1], got, want, ids[0], ids[1])
		}
	})
}

func less(a, b Parts) bool {
	if c := a.Time.Compare(b.Time); c != 0 {
		return c < 0
	}
	if a.Datacenter != b.Datacenter {
		return a.Datacenter < b.Datacenter
	}
	if a.Worker != b.Worker {
		return a.Worker < b.Worker
	}
	if a.Sequence != b.Sequence {
		return a.Sequence < b.Sequence
	}
	return a.Shard < b.Shard
}
