package lease_test

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
)

// Times of these tests, in milliseconds: T is the store's clock.
const (
	storeT = lease.Millis(1_000_000_000)
	hourMS = lease.Millis(3_600_000)
)

func plainClaim() lease.Claim {
	return lease.Claim{
		Space: lease.Space{Namespace: "shop", Datacenter: 2, Workers: 8, Layout: "ours"},
		Owner: "claimant", Nonce: "n1",
		Window: 10_000, Now: storeT, Skew: 500,
	}
}

func TestMillisKeepsTheMoment(t *testing.T) {
	at := time.Date(2025, 6, 1, 12, 30, 15, 123_999_999, time.FixedZone("", 3600))
	m := lease.MillisOf(at)
	if want := at.Truncate(time.Millisecond); !m.Time().Equal(want) || m.Time().Location() != time.UTC {
		t.Errorf("MillisOf(%v).Time() = %v; want %v, in UTC", at, m.Time(), want)
	}
	if got := lease.Millis(1500).Duration(); got != 1500*time.Millisecond {
		t.Errorf("Millis(1500).Duration() = %v; want 1.5s", got)
	}
}

func TestClaimChecksBothDirectionsOfSkew(t *testing.T) {
	c := plainClaim()
	for now, ok := range map[lease.Millis]bool{
		storeT: true, storeT + 500: true, storeT - 500: true, storeT + 501: false, storeT - 501: false,
	} {
		err := c.Check(now)
		if (err == nil) != ok {
			t.Errorf("Check(%+d from the claimant's) = error %v; want none: %t", now-storeT, err, ok)
		}
		want := lease.ClockSkewError{Store: now.Time(), Local: storeT.Time(), Max: 500 * time.Millisecond}
		var got *lease.ClockSkewError
		if !ok && (!errors.As(err, &got) || *got != want || !errors.Is(err, lease.ErrClockSkew)) {
			t.Errorf("Check(%+d from the claimant's) = error %#v; want %#v", now-storeT, err, want)
		}
	}
}

func TestFreeRowsAreThoseWhoseLimitHasPassed(t *testing.T) {
	for _, c := range []struct {
		name string
		row  lease.Row
		edit func(c *lease.Claim)
		want bool
	}{
		{"never claimed", lease.Row{}, nil, true},
		{"held", lease.Row{Owner: "o", Until: storeT + 1}, nil, false},
		{"expired this millisecond", lease.Row{Owner: "o", Until: storeT}, nil, true},
		{"released, within the skew", lease.Row{Until: storeT + 500}, nil, true},
		{"released, beyond the skew", lease.Row{Until: storeT + 501}, nil, false},
		{"held, within the skew", lease.Row{Owner: "o", Until: storeT + 500}, nil, false},
		{"expired less than the guard ago", lease.Row{Owner: "o", Until: storeT - 99}, func(c *lease.Claim) { c.Guard = 100 }, false},
		{"expired the guard ago", lease.Row{Owner: "o", Until: storeT - 100}, func(c *lease.Claim) { c.Guard = 100 }, true},
		{"released under the guard", lease.Row{Until: storeT + 500 + 10_000 + 100}, func(c *lease.Claim) { c.Guard = 100 }, true},
		{"released beyond all that", lease.Row{Until: storeT + 500 + 10_000 + 101}, func(c *lease.Claim) { c.Guard = 100 }, false},
		{"among those that will do", lease.Row{Worker: 3}, func(c *lease.Claim) { c.Only = []int64{5, 3} }, true},
		{"not among them", lease.Row{Worker: 4}, func(c *lease.Claim) { c.Only = []int64{5, 3} }, false},
		{"none will do", lease.Row{}, func(c *lease.Claim) { c.Only = []int64{} }, false},
		{"the last of the space", lease.Row{Worker: 7}, nil, true},
		{"beyond the space", lease.Row{Worker: 8}, nil, false},
		{"beyond the space, asked for", lease.Row{Worker: 8}, func(c *lease.Claim) { c.Only = []int64{8} }, false},
		{"below the space", lease.Row{Worker: -1}, nil, false},
	} {
		claim := plainClaim()
		if c.edit != nil {
			c.edit(&claim)
		}
		if got := claim.Free(c.row, storeT); got != c.want {
			t.Errorf("%s: Free(%+v) = %t; want %t", c.name, c.row, got, c.want)
		}
		after, ok := claim.Apply(c.row, storeT)
		if ok != c.want || !ok && after != (lease.Row{}) {
			t.Errorf("%s: Apply(%+v) = %+v, %t; want %t", c.name, c.row, after, ok, c.want)
		}
	}
}

func TestChooseIsUniformAmongFreeRows(t *testing.T) {
	const draws = 20_000
	c := plainClaim()
	c.Space.Workers = 16
	var rows []lease.Row
	counts := map[int64]int{}
	for worker := range int64(16) {
		row := lease.Row{Worker: worker}
		if worker%3 == 1 { // 1, 4, 7, 10, 13
			row.Owner, row.Until = "o", storeT+1
		} else {
			counts[worker] = 0
		}
		rows = append(rows, row)
	}
	rng := rand.New(rand.NewPCG(7, 7))
	for range draws {
		row, err := c.Choose(rows, storeT, rng.IntN)
		if _, free := counts[row.Worker]; err != nil || !free {
			t.Fatalf("Choose = %+v, error %v; want a free row", row, err)
		}
		counts[row.Worker]++
	}
	expected := float64(draws) / float64(len(counts))
	chi2 := 0.0
	for _, n := range counts {
		chi2 += (float64(n) - expected) * (float64(n) - expected) / expected
	}
	// 10 degrees of freedom. It is above 29.6 once in a thousand seeds. It is below 1.5
	// as seldom, which would be too even for chance.
	if chi2 > 29.6 || chi2 < 1.5 {
		t.Errorf("Choose, %d times among %d free rows, chose %v: chi-square %.1f; want 1.5..29.6", draws, len(counts), counts, chi2)
	}
}

func TestChooseSaysWhyNoneIsFree(t *testing.T) {
	held := func(worker int64, ahead lease.Millis) lease.Row {
		return lease.Row{Worker: worker, Owner: "o", Until: storeT + ahead}
	}
	far := 10_000 + hourMS // a window, and as far as a limit may be ahead
	for _, c := range []struct {
		name string
		rows []lease.Row
		edit func(c *lease.Claim)
		want lease.NoFreeWorkerError
	}{
		{"no rows", nil, nil, lease.NoFreeWorkerError{}},
		{"none that will do", []lease.Row{held(0, 5), held(8, 1), held(-1, 1)}, func(c *lease.Claim) { c.Only = []int64{1, 8, -1} }, lease.NoFreeWorkerError{}},
		{"all held", []lease.Row{held(0, 500), held(1, 300), held(2, 400), held(8, 1)}, nil,
			lease.NoFreeWorkerError{Rows: 3, Earliest: (storeT + 300).Time(), Wait: 300 * time.Millisecond}},
		{"those of Only", []lease.Row{held(0, 500), held(1, 300), held(2, 400)}, func(c *lease.Claim) { c.Only = []int64{2, 0} },
			lease.NoFreeWorkerError{Rows: 2, Earliest: (storeT + 400).Time(), Wait: 400 * time.Millisecond}},
		{"the guard", []lease.Row{held(0, -50), held(1, 300)}, func(c *lease.Claim) { c.Guard = 100 },
			lease.NoFreeWorkerError{Rows: 2, Earliest: (storeT + 50).Time(), Wait: 50 * time.Millisecond}},
		{"far ahead", []lease.Row{held(0, far+1), held(1, far), held(2, 2*far)}, nil,
			lease.NoFreeWorkerError{Rows: 3, Earliest: (storeT + far).Time(), Wait: far.Duration(), Ahead: []int64{0, 2}}},
		{"far ahead under the guard", []lease.Row{held(0, far+1), held(1, far)}, func(c *lease.Claim) { c.Guard = 100 },
			lease.NoFreeWorkerError{Rows: 2, Earliest: (storeT + far + 100).Time(), Wait: (far + 100).Duration(), Ahead: []int64{0}}},
	} {
		claim := plainClaim()
		if c.edit != nil {
			c.edit(&claim)
		}
		c.want.Namespace, c.want.Datacenter = "shop", 2
		row, err := claim.Choose(c.rows, storeT, func(int) int { return 0 })
		var got *lease.NoFreeWorkerError
		if !errors.As(err, &got) || !reflect.DeepEqual(*got, c.want) || row != (lease.Row{}) || !errors.Is(err, lease.ErrNoFreeWorker) {
			t.Errorf("%s: Choose(%+v) = %+v, error %#v; want %#v", c.name, c.rows, row, err, &c.want)
		}
	}
}

func TestClaimReservesAWindowFromWhereTheLastEnds(t *testing.T) {
	for _, c := range []struct {
		name  string
		until lease.Millis // of the row, released
		edit  func(c *lease.Claim)
		want  lease.Millis // Until
		from  lease.Millis
	}{
		{"new", 0, nil, storeT + 10_000, storeT},
		{"long past", storeT - hourMS, nil, storeT + 10_000, storeT},
		{"ahead of the clock", storeT + 400, nil, storeT + 10_400, storeT + 400},
		{"the claimant's clock does not count", 0, func(c *lease.Claim) { c.Now += 300 }, storeT + 10_000, storeT},
		{"guard: the limit by the slower clock, the start by the faster", 0, func(c *lease.Claim) { c.Guard, c.Now = 100, storeT+300 },
			storeT + 10_000, storeT + 300 + 10_000 + 100},
		{"guard: the other is slower", 0, func(c *lease.Claim) { c.Guard, c.Now = 100, storeT-300 },
			storeT - 300 + 10_000, storeT + 10_000 + 100},
		{"guard: released far ahead", storeT + 10_500, func(c *lease.Claim) { c.Guard = 100 }, storeT + 10_500, storeT + 10_500},
	} {
		claim := plainClaim()
		if c.edit != nil {
			c.edit(&claim)
		}
		before := lease.Row{Worker: 3, Epoch: 6, Nonce: "old", Until: c.until, Renewals: 40}
		want := lease.Row{Worker: 3, Epoch: 7, Owner: "claimant", Nonce: "n1", Until: c.want, Renewals: 41}
		got, ok := claim.Apply(before, storeT)
		if !ok || got != want {
			t.Errorf("%s: Apply(%+v) = %+v, %t; want %+v", c.name, before, got, ok, want)
		}
		if from := claim.From(lease.Reply{Row: got, Before: before.Until, Now: storeT}); from != c.from {
			t.Errorf("%s: From = T%+d; want T%+d", c.name, from-storeT, c.from-storeT)
		}
	}
}

func plainRenewal() (lease.Row, lease.Renewal) {
	row := lease.Row{Worker: 3, Epoch: 7, Owner: "holder", Nonce: "n1", Until: storeT + 5_000, Renewals: 41}
	return row, lease.Renewal{
		Space: plainClaim().Space, Worker: 3, Epoch: 7, Owner: "holder", Known: []string{"n1"}, Nonce: "n2",
		Next: storeT, Until: storeT + 5_000, Window: 10_000, Now: storeT, Skew: 500,
	}
}

func TestRenewalRaisesTheLimit(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(row *lease.Row, r *lease.Renewal)
		want lease.Millis // beyond T
	}{
		{"a window from now", func(*lease.Row, *lease.Renewal) {}, 10_000},
		{"a window from the next ID", func(_ *lease.Row, r *lease.Renewal) { r.Next += 20 }, 10_020},
		{"IDs behind the clock", func(_ *lease.Row, r *lease.Renewal) { r.Next -= hourMS }, 10_000},
		{"IDs an hour ahead", func(_ *lease.Row, r *lease.Renewal) { r.Next += hourMS }, 10_000 + hourMS},
		{"IDs further ahead", func(_ *lease.Row, r *lease.Renewal) { r.Next += 5 * hourMS }, 10_000 + hourMS},
		{"stored limit higher", func(row *lease.Row, _ *lease.Renewal) { row.Until = storeT + 70_000 }, 70_000},
		{"confirmed limit higher: the row was lowered", func(_ *lease.Row, r *lease.Renewal) { r.Until = storeT + 60_000 }, 60_000},
		{"clocks within the skew: the store's", func(_ *lease.Row, r *lease.Renewal) { r.Now, r.Next = storeT-500, storeT-500 }, 10_000},
		{"the holder's clock far behind", func(_ *lease.Row, r *lease.Renewal) { r.Now, r.Next = storeT-501, storeT-501 }, 10_000 - 501},
		{"clocks within the skew: the holder's", func(_ *lease.Row, r *lease.Renewal) { r.Now = storeT + 500 }, 10_500},
		{"the holder's clock far ahead", func(_ *lease.Row, r *lease.Renewal) { r.Now = storeT + 501 }, 10_000},
		{"the store's clock far ahead", func(_ *lease.Row, r *lease.Renewal) {
			r.Now, r.Next, r.Until = storeT-hourMS, storeT-hourMS, storeT-hourMS+9_000
		}, 5_000},
		{"guard: the slower clock, the store's", func(_ *lease.Row, r *lease.Renewal) { r.Guard, r.Now, r.Next = 100, storeT+90, storeT+4_000 }, 10_000},
		{"guard: the slower clock, the holder's", func(_ *lease.Row, r *lease.Renewal) { r.Guard, r.Now = 100, storeT-90 }, 10_000 - 90},
		{"guard: just not lapsed", func(_ *lease.Row, r *lease.Renewal) { r.Guard, r.Until = 100, storeT+100 }, 10_000},
		{"lapsed without the guard", func(_ *lease.Row, r *lease.Renewal) { r.Until = storeT - hourMS }, 10_000},
		{"one nonce of several", func(_ *lease.Row, r *lease.Renewal) { r.Known = []string{"x", "n1", "y"} }, 10_000},
	} {
		row, r := plainRenewal()
		c.edit(&row, &r)
		want := row
		want.Until, want.Nonce, want.Renewals = storeT+c.want, "n2", row.Renewals+1
		if got, err := r.Apply(row, storeT); err != nil || got != want {
			t.Errorf("%s: Apply(%+v) = %+v, error %v; want %+v", c.name, row, got, err, want)
		}
	}
}

func TestRenewalIsRefusedToAnyButTheHolder(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(row *lease.Row, r *lease.Renewal)
		want lease.Reason
	}{
		{"a later epoch", func(row *lease.Row, _ *lease.Renewal) { row.Epoch++ }, lease.TakenOver},
		{"an earlier epoch", func(row *lease.Row, _ *lease.Renewal) { row.Epoch-- }, lease.TakenOver},
		{"another owner", func(row *lease.Row, _ *lease.Renewal) { row.Owner = "x" }, lease.TakenOver},
		{"released", func(row *lease.Row, _ *lease.Renewal) { row.Owner, row.Epoch = "", 8 }, lease.TakenOver},
		{"another nonce", func(row *lease.Row, _ *lease.Renewal) { row.Nonce = "x" }, lease.Copied},
		{"its own nonce, not yet known", func(row *lease.Row, _ *lease.Renewal) { row.Nonce = "n2" }, lease.Copied},
		{"no nonce known", func(_ *lease.Row, r *lease.Renewal) { r.Known = nil }, lease.Copied},
		{"guard lapsed by the holder's clock", func(_ *lease.Row, r *lease.Renewal) { r.Guard, r.Now = 100, r.Until-99 }, lease.Lapsed},
		{"guard lapsed by the store's clock", func(_ *lease.Row, r *lease.Renewal) { r.Guard, r.Until, r.Now = 100, storeT+99, storeT-500 }, lease.Lapsed},
		{"guard lapsed, though the stored limit is higher", func(row *lease.Row, r *lease.Renewal) {
			row.Until, r.Guard, r.Until = storeT+hourMS, 100, storeT+99
		}, lease.Lapsed},
		{"taken over and lapsed", func(row *lease.Row, r *lease.Renewal) { row.Epoch, r.Guard, r.Until = 8, 100, 0 }, lease.TakenOver},
	} {
		row, r := plainRenewal()
		c.edit(&row, &r)
		got, err := r.Apply(row, storeT)
		want := lease.LostError{Worker: 3, Epoch: 7, Reason: c.want}
		var lost *lease.LostError
		if !errors.As(err, &lost) || *lost != want || got != (lease.Row{}) || !errors.Is(err, lease.ErrLost) {
			t.Errorf("%s: Apply(%+v) = %+v, error %v; want error %v", c.name, row, got, err, &want)
		}
	}
}

func TestReleaseFreesTheRow(t *testing.T) {
	row, r := plainRenewal()
	release := lease.Release{Worker: 3, Epoch: 7, Owner: "holder", Known: r.Known, Nonce: "n2", End: storeT + 7}
	want := lease.Row{Worker: 3, Epoch: 8, Nonce: "n2", Until: storeT + 7, Renewals: 42}
	if got, err := release.Apply(row); err != nil || got != want {
		t.Errorf("Apply(%+v) = %+v, error %v; want %+v", row, got, err, want)
	}
	for _, c := range []struct {
		name string
		edit func(row *lease.Row)
		want lease.Reason
	}{
		{"a later epoch", func(row *lease.Row) { row.Epoch++ }, lease.TakenOver},
		{"an earlier epoch", func(row *lease.Row) { row.Epoch-- }, lease.TakenOver},
		{"another owner", func(row *lease.Row) { row.Owner = "x" }, lease.TakenOver},
		{"another nonce", func(row *lease.Row) { row.Nonce = "x" }, lease.Copied},
	} {
		row, _ := plainRenewal()
		c.edit(&row)
		got, err := release.Apply(row)
		want := lease.LostError{Worker: 3, Epoch: 7, Reason: c.want}
		var lost *lease.LostError
		if !errors.As(err, &lost) || *lost != want || got != (lease.Row{}) {
			t.Errorf("%s: Apply(%+v) = %+v, error %v; want error %v", c.name, row, got, err, &want)
		}
	}
}

func TestStoreErrorsSayWhatAndHowMuch(t *testing.T) {
	at := time.Date(2025, 6, 1, 12, 0, 0, 5_000_000, time.UTC)
	full := lease.NoFreeWorkerError{Namespace: "shop", Datacenter: 2, Rows: 32, Earliest: at, Wait: 1500 * time.Millisecond}
	ahead := full
	for worker := range int64(10) {
		ahead.Ahead = append(ahead.Ahead, worker)
	}
	for _, c := range []struct {
		err  error
		is   error
		want string
	}{
		{&full, lease.ErrNoFreeWorker, `lease: no worker number is free: all 32 of namespace "shop", datacenter 2 are reserved; the earliest is free at 2025-06-01T12:00:00.005Z, in 1.5s, unless it is renewed`},
		{&ahead, lease.ErrNoFreeWorker, full.Error() + `; reserved more than an hour ahead, as by a wrong clock: 10 rows, among them workers [0 1 2 3 4 5 6 7]`},
		{&lease.NoFreeWorkerError{Namespace: "shop"}, lease.ErrNoFreeWorker, `lease: no worker number is free: there is none to choose from in namespace "shop", datacenter 0`},
		{&lease.LostError{Worker: 3, Epoch: 7, Reason: lease.TakenOver}, lease.ErrLost, `lease: worker 3, epoch 7, is lost: another lease has claimed its row, or an operator has fenced it, or the store has lost a write (failover to a replica that lagged, restore)`},
		{&lease.LostError{Worker: 3, Epoch: 7, Reason: lease.Copied}, lease.ErrLost, `lease: worker 3, epoch 7, is lost: a copy of this process has renewed its row, or the store has lost a write (failover to a replica that lagged, restore)`},
		{&lease.LostError{Worker: 3, Epoch: 7, Reason: lease.Gone}, lease.ErrLost, `lease: worker 3, epoch 7, is lost: its row is gone: somebody has deleted it, which must never be done, or the store has lost a write (failover to a replica that lagged, restore)`},
		{&lease.LostError{Worker: 3, Epoch: 7, Reason: lease.Lapsed}, lease.ErrLost, `lease: worker 3, epoch 7, is lost: it was not renewed in time for the loss guard`},
		{&lease.LayoutError{Namespace: "shop", Stored: "theirs", Own: "ours"}, lease.ErrLayout, `lease: the layout differs from the stored one: namespace "shop" has "theirs", this process "ours": want the stored one, or a namespace of its own`},
		{&lease.ClockSkewError{Store: at.Add(time.Hour), Local: at, Max: 5 * time.Second}, lease.ErrClockSkew, `lease: the clocks are too far apart: the store shows 2025-06-01T13:00:00.005Z, this process 2025-06-01T12:00:00.005Z: want at most 5s between them`},
		{&core.ValueError{Package: "lease", Name: "Config.Window", Value: "1s", Want: "3s..10m0s"}, nil, `lease: Config.Window is 1s: want 3s..10m0s`},
		{&core.ValueError{Package: "sqllease", Name: "db", Want: "an open database"}, nil, `sqllease: db: want an open database`},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("Error() = %q; want %q", got, c.want)
		}
		if c.is == nil {
			continue
		}
		if !errors.Is(c.err, c.is) || !strings.HasPrefix(c.err.Error(), c.is.Error()) && c.is != lease.ErrLost {
			t.Errorf("%q does not match %q; want it to, and to begin like it", c.err, c.is)
		}
	}
}

// FuzzClaim states the law of one claim. It takes a free row if there is one. What it
// reserves begins where the row's last range has ended.
func FuzzClaim(f *testing.F) {
	f.Add([]byte{}, int64(0), int64(0), int64(100), int64(10), int64(0), uint64(0))
	f.Add([]byte{0, 0, 0, 200, 1, 200}, int64(100), int64(90), int64(50), int64(20), int64(0), uint64(1))
	f.Add([]byte{1, 250, 1, 255, 1, 251}, int64(100), int64(90), int64(50), int64(20), int64(0), uint64(2))
	f.Add([]byte{0, 130, 1, 90, 0, 255}, int64(100), int64(100), int64(20), int64(10), int64(5), uint64(0b10))
	f.Fuzz(func(t *testing.T, rows []byte, now, local, window, skew, guard int64, only uint64) {
		const most = 1 << 48 // ms: the year 10889
		c := plainClaim()
		c.Now, c.Window, c.Skew, c.Guard = lease.Millis(local%most), 1+lease.Millis(abs(window)%most), lease.Millis(abs(skew)%most), lease.Millis(abs(guard)%most)
		at := lease.Millis(now % most)
		c.Space.Workers = int64(len(rows) / 2)
		for worker := range int64(64) {
			if only&(1<<worker) != 0 {
				c.Only = append(c.Only, worker)
			}
		}
		var all []lease.Row
		free := 0
		for worker := range c.Space.Workers {
			row := lease.Row{Worker: worker, Until: at + lease.Millis(int8(rows[2*worker+1]))}
			if rows[2*worker]%2 == 1 {
				row.Owner = "holder"
			}
			if c.Free(row, at) {
				free++
			}
			all = append(all, row)
		}

		before, err := c.Choose(all, at, rand.New(rand.NewPCG(only, 1)).IntN)
		if (err == nil) != (free > 0) {
			t.Fatalf("Choose among %d free rows of %+v = %+v, error %v", free, all, before, err)
		}
		if err != nil {
			if !errors.Is(err, lease.ErrNoFreeWorker) {
				t.Fatalf("Choose = error %v; want it to match lease.ErrNoFreeWorker", err)
			}
			return
		}
		after, ok := c.Apply(before, at)
		if !ok || after.Worker != before.Worker || after.Epoch != before.Epoch+1 || after.Owner != c.Owner ||
			after.Nonce != c.Nonce || after.Renewals != before.Renewals+1 || after.Until < before.Until {
			t.Fatalf("%+v.Apply(%+v, %d) = %+v, %t", c, before, at, after, ok)
		}
		from := c.From(lease.Reply{Row: after, Before: before.Until, Now: at})
		if from < before.Until || from < at || c.Guard == 0 && after.Until != from+c.Window {
			t.Fatalf("%+v of %+v at %d: From = %d, Until = %d; want them a window apart, after what was reserved and after now", c, before, at, from, after.Until)
		}
	})
}

// FuzzRangesOfOneRowNeverOverlap states the law on which everything rests. Holders, old
// holders and copies ask anything of a row, with any clocks. The ranges that different
// epochs have won do not overlap, and Until falls by a release only. The guard is off,
// and nothing is lost.
func FuzzRangesOfOneRowNeverOverlap(f *testing.F) {
	op := func(kind byte, clock int16, arg int16) []byte {
		b := []byte{kind}
		b = binary.LittleEndian.AppendUint16(b, uint16(clock))
		return binary.LittleEndian.AppendUint16(b, uint16(arg))
	}
	f.Add(slices.Concat(op(0, 0, 100), op(1, 50, 100), op(0, 200, 100), op(1, 0, 100)))                          // a stale renewal
	f.Add(slices.Concat(op(0, 0, 100), op(4, 10, 5), op(0, -500, 100), op(0, 400, 1)))                           // released, claimed with a clock gone back
	f.Add(slices.Concat(op(0, 0, 10), op(3, 5, 900), op(1, 10, 10), op(0, 2000, 10)))                            // a renewal whose reply is lost
	f.Add(slices.Concat(op(0, 0, 10), op(0, 100, 10), op(4|1<<4, 0, 0), op(0, 0, 10)))                           // a stale release
	f.Add(slices.Concat(op(0, 0, 10), op(5, 5, 902), op(0, 10, 10), op(6, 20, 0), op(0, 2000, 10), op(6, 1, 1))) // a late release, delivered twice
	f.Fuzz(func(t *testing.T, data []byte) {
		newLaw(t).run(data[:min(len(data), 5*200)])
	})
}

// A law runs operations on one row and checks what FuzzRangesOfOneRowNeverOverlap
// states.
type law struct {
	*testing.T
	row   lease.Row
	all   []*ranged            // in the order of their epochs
	late  []func(lease.Millis) // requests on their way, which nobody waits for any more
	fresh int
}

// A ranged is a holder and its range.
type ranged struct {
	epoch       int64
	owner       string
	known       []string
	from, until lease.Millis // it issues only in here
	sealed      bool         // by a release: until is its end
}

func newLaw(t *testing.T) *law { return &law{T: t} }

func (l *law) token() string {
	l.fresh++
	return string(rune('A' + l.fresh))
}

// run takes 5 bytes per operation: what and by whom, the store's clock, a length.
func (l *law) run(data []byte) {
	for ; len(data) >= 5; data = data[5:] {
		clock := int16(binary.LittleEndian.Uint16(data[1:]))
		now := storeT + lease.Millis(clock)
		if clock%2 == 0 { // where rows become free
			now = l.row.Until + lease.Millis(clock>>8)
		}
		length := lease.Millis(binary.LittleEndian.Uint16(data[3:]))
		before := l.row
		kind, who := data[0]%8, int(data[0]>>4)
		if len(l.all) == 0 {
			kind = 0
		}
		var by *ranged
		if kind > 0 {
			by = l.all[max(0, len(l.all)-1-who)]
		}
		switch kind {
		case 0:
			l.claim(now, length)
		case 1, 2:
			l.renew(by, now, length, true)
		case 3:
			l.renew(by, now, length, false)
		case 4:
			l.release(by, length)
		case 5:
			l.sendLate(by, now, length)
		default:
			if len(l.late) > 0 { // delivered, perhaps not for the last time
				l.late[max(0, len(l.late)-1-who)](now)
			}
		}
		if l.row != before && (l.row.Renewals != before.Renewals+1 || l.row.Nonce == before.Nonce) {
			l.Fatalf("%+v became %+v; want one write more, and another nonce", before, l.row)
		}
		if l.row.Until < before.Until && (before.Owner == "" || l.row.Owner != "") {
			l.Fatalf("%+v became %+v; want no fall of Until but by a release", before, l.row)
		}
		for i, newer := range l.all[min(1, len(l.all)):] { // those next to each other: none ends before it begins
			if older := l.all[i]; newer.from < older.until || newer.until < newer.from {
				l.Fatalf("epoch %d has [%d, %d), epoch %d [%d, %d)", older.epoch, older.from, older.until, newer.epoch, newer.from, newer.until)
			}
		}
	}
}

func (l *law) newClaim(now, window lease.Millis) lease.Claim {
	return lease.Claim{
		Space: lease.Space{Workers: 1}, Owner: l.token(), Nonce: l.token(),
		Window: window, Now: now + window%7 - 3, Skew: window % 50,
	}
}

func (l *law) claim(now, window lease.Millis) {
	c, before := l.newClaim(now, window), l.row
	row, ok := c.Apply(before, now)
	if !ok {
		return
	}
	l.row = row
	from := c.From(lease.Reply{Row: row, Before: before.Until, Now: now})
	l.all = append(l.all, &ranged{epoch: row.Epoch, owner: c.Owner, known: []string{c.Nonce}, from: from, until: row.Until})
}

func (l *law) renewal(by *ranged, now, window lease.Millis) lease.Renewal {
	return lease.Renewal{
		Epoch: by.epoch, Owner: by.owner, Known: slices.Clone(by.known), Nonce: l.token(),
		Next: by.from + window/2, Until: by.until, Window: window, Now: now - window%11, Skew: window % 20,
	}
}

// renew renews for a holder that gets the reply or does not.
func (l *law) renew(by *ranged, now, window lease.Millis, reply bool) {
	if by.sealed {
		return // what it has given back it does not renew
	}
	r := l.renewal(by, now, window)
	row, err := r.Apply(l.row, now)
	if err == nil {
		l.row = row
	}
	switch {
	case !reply:
		by.known = append(by.known, r.Nonce)
	case err == nil:
		by.known, by.until = []string{r.Nonce}, row.Until
	}
}

// release ends the range at a moment in it, then tells the store.
func (l *law) release(by *ranged, length lease.Millis) {
	r := l.giveBack(by, length)
	if row, err := r.Apply(l.row); err == nil {
		l.row = row
	}
}

func (l *law) giveBack(by *ranged, length lease.Millis) lease.Release {
	by.until, by.sealed = min(by.until, by.from+length), true
	return lease.Release{Epoch: by.epoch, Owner: by.owner, Known: slices.Clone(by.known), Nonce: l.token(), End: by.until}
}

// sendLate sends a request of which the caller hears no more.
func (l *law) sendLate(by *ranged, now, length lease.Millis) {
	switch {
	case length%3 == 0:
		c := l.newClaim(now, length)
		l.late = append(l.late, func(now lease.Millis) {
			if row, ok := c.Apply(l.row, now); ok && l.row.Nonce != c.Nonce {
				l.row = row
			}
		})
	case length%3 == 1 && !by.sealed:
		r := l.renewal(by, now, length)
		by.known = append(by.known, r.Nonce)
		l.late = append(l.late, func(now lease.Millis) {
			if row, err := r.Apply(l.row, now); err == nil {
				l.row = row
			}
		})
	case length%3 == 2:
		r := l.giveBack(by, length)
		l.late = append(l.late, func(lease.Millis) {
			if row, err := r.Apply(l.row); err == nil {
				l.row = row
			}
		})
	}
}

// The fuzzer's corpus is small; chance adds long histories.
func TestRangesOfOneRowNeverOverlap(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 13))
	for range 2_000 {
		data := make([]byte, 5*(1+rng.IntN(60)))
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		for i := 0; i < len(data); i += 5 {
			if rng.IntN(3) > 0 {
				data[i+4] = 0 // short lengths, so that rows expire
			}
		}
		newLaw(t).run(data)
	}
}

func abs(n int64) int64 {
	if n < 0 {
		return -(n + 1)
	}
	return n
}

func TestWhatIsNoSpaceIsRefusedWithValueAndRange(t *testing.T) {
	const names = "1..64 of the characters a-z A-Z 0-9 . _ -"
	for _, good := range []lease.Space{
		{Namespace: "a", Workers: 1},
		{Namespace: "..", Workers: 1},
		{Namespace: "azAZ09._-" + strings.Repeat("n", 55), Datacenter: math.MaxInt64, Workers: 1 << 16, Layout: strings.Repeat(" ~", 127) + "x"},
	} {
		if err := good.Check(); err != nil {
			t.Errorf("Check of %+v = %v; want nil", good, err)
		}
		for _, test := range []struct {
			name, value, want string
			change            func(*lease.Space)
		}{
			{"Namespace", `""`, names, func(s *lease.Space) { s.Namespace = "" }},
			{"Namespace", `"a/b"`, names, func(s *lease.Space) { s.Namespace = "a/b" }},
			{"Namespace", `"a'b"`, names, func(s *lease.Space) { s.Namespace = "a'b" }},
			{"Namespace", `"a "`, names, func(s *lease.Space) { s.Namespace = "a " }},
			{"Namespace", `"a?"`, names, func(s *lease.Space) { s.Namespace = "a?" }},
			{"Namespace", `"a:b"`, names, func(s *lease.Space) { s.Namespace = "a:b" }},
			{"Namespace", `"{a}"`, names, func(s *lease.Space) { s.Namespace = "{a}" }},
			{"Namespace", `"@a"`, names, func(s *lease.Space) { s.Namespace = "@a" }},
			{"Namespace", `"a\x00"`, names, func(s *lease.Space) { s.Namespace = "a\x00" }},
			{"Namespace", `"aüa"`, names, func(s *lease.Space) { s.Namespace = "aüa" }},
			{"Namespace", `"` + strings.Repeat("n", 64) + `"… (65 bytes)`, names, func(s *lease.Space) { s.Namespace = strings.Repeat("n", 65) }},
			{"Datacenter", "-1", "0 or more", func(s *lease.Space) { s.Datacenter = -1 }},
			{"Workers", "-1", "1..65536", func(s *lease.Space) { s.Workers = -1 }},
			{"Workers", "0", "1..65536", func(s *lease.Space) { s.Workers = 0 }},
			{"Workers", "65537", "1..65536", func(s *lease.Space) { s.Workers = 1<<16 + 1 }},
			{"Layout", `"\n"`, "at most 255 printable characters of ASCII", func(s *lease.Space) { s.Layout = "\n" }},
			{"Layout", `"\x7f"`, "at most 255 printable characters of ASCII", func(s *lease.Space) { s.Layout = "\x7f" }},
			{"Layout", `"µ"`, "at most 255 printable characters of ASCII", func(s *lease.Space) { s.Layout = "µ" }},
			{"Layout", `"` + strings.Repeat("x", 64) + `"… (256 bytes)`, "at most 255 printable characters of ASCII", func(s *lease.Space) { s.Layout = strings.Repeat("x", 256) }},
		} {
			s := good
			test.change(&s)
			want := core.ValueError{Package: "lease", Err: lease.ErrPermanent, Name: "Space." + test.name, Value: test.value, Want: test.want}
			var got *core.ValueError
			if err := s.Check(); !errors.As(err, &got) || *got != want {
				t.Errorf("Check of %+v = %v; want %v", s, err, &want)
			}
		}
	}
}
