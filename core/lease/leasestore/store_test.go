package leasestore_test

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
	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// Times of these tests, in milliseconds: T is the store's clock.
const (
	storeT = leasestore.Millis(1_000_000_000)
	hourMS = leasestore.Millis(3_600_000)
)

func plainClaim() leasestore.Claim {
	return leasestore.Claim{
		Space: leasestore.Space{Namespace: "shop", Datacenter: 2, Workers: 8, Layout: "ours"},
		Owner: "claimant", Nonce: "n1",
		Window: 10_000, Now: storeT, Skew: 500,
	}
}

func TestMillisKeepsTheMoment(t *testing.T) {
	at := time.Date(2025, 6, 1, 12, 30, 15, 123_999_999, time.FixedZone("", 3600))
	m := leasestore.MillisOf(at)
	if want := at.Truncate(time.Millisecond); !m.Time().Equal(want) || m.Time().Location() != time.UTC {
		t.Errorf("MillisOf(%v).Time() = %v; want %v, in UTC", at, m.Time(), want)
	}
	if got := leasestore.Millis(1500).Duration(); got != 1500*time.Millisecond {
		t.Errorf("Millis(1500).Duration() = %v; want 1.5s", got)
	}
}

func TestClaimChecksBothDirectionsOfSkew(t *testing.T) {
	c := plainClaim()
	for now, ok := range map[leasestore.Millis]bool{
		storeT: true, storeT + 500: true, storeT - 500: true, storeT + 501: false, storeT - 501: false,
	} {
		err := c.Check(now)
		if (err == nil) != ok {
			t.Errorf("Check(%+d from the claimant's) = error %v; want none: %t", now-storeT, err, ok)
		}
		want := leasestore.ClockSkewError{Store: now.Time(), Local: storeT.Time(), Max: 500 * time.Millisecond}
		var got *leasestore.ClockSkewError
		if !ok && (!errors.As(err, &got) || *got != want || !errors.Is(err, leasestore.ErrClockSkew)) {
			t.Errorf("Check(%+d from the claimant's) = error %#v; want %#v", now-storeT, err, want)
		}
	}
}

// A version that knows no retired rows compares times and nothing else, and writes back more than
// it has read only in a fence.
func TestOlderVersionsDoNotTakeARetiredRow(t *testing.T) {
	retirement := plainClaim()
	retirement.Retire, retirement.Holder = true, "retired: gone"
	row, ok := retirement.Apply(leasestore.Row{Worker: 3}, storeT+7)
	if want := (leasestore.Row{Worker: 3, Epoch: 1, Owner: "claimant", Nonce: "n1", Until: 1<<50 + storeT + 7, Renewals: 1, Holder: "retired: gone"}); !ok || row != want {
		t.Fatalf("Apply = %+v, %t; want %+v", row, ok, want)
	}
	fenced := row
	fenced.Owner = ""
	for _, now := range []leasestore.Millis{storeT, storeT + 1000*365*24*hourMS} {
		for _, r := range []leasestore.Row{row, fenced} {
			const ahead = 10*hourMS + 600_000 // more than skew, window and guard
			if r.Until <= now+ahead {
				t.Errorf("Until of %+v is at most %d; want no version to find it over", r, now+ahead)
			}
		}
	}
	fence := leasestore.Fencing{Nonce: "f", Until: storeT + hourMS}
	if got := fence.Apply(row); got != row {
		t.Errorf("Fencing.Apply(%+v) = %+v; want it as it was", row, got)
	}
}

func TestFreeRowsAreThoseWhoseLimitHasPassed(t *testing.T) {
	retire := func(c *leasestore.Claim) { c.Retire = true }
	for _, c := range []struct {
		name string
		row  leasestore.Row
		edit func(c *leasestore.Claim)
		want bool
	}{
		{"never claimed", leasestore.Row{}, nil, true},
		{"held", leasestore.Row{Owner: "o", Until: storeT + 1}, nil, false},
		{"expired this millisecond", leasestore.Row{Owner: "o", Until: storeT}, nil, true},
		{"released, within the skew", leasestore.Row{Until: storeT + 500}, nil, true},
		{"released, beyond the skew", leasestore.Row{Until: storeT + 501}, nil, false},
		{"held, within the skew", leasestore.Row{Owner: "o", Until: storeT + 500}, nil, false},
		{"expired less than the guard ago", leasestore.Row{Owner: "o", Until: storeT - 99}, func(c *leasestore.Claim) { c.Guard = 100 }, false},
		{"expired the guard ago", leasestore.Row{Owner: "o", Until: storeT - 100}, func(c *leasestore.Claim) { c.Guard = 100 }, true},
		{"released under the guard", leasestore.Row{Until: storeT + 500 + 10_000 + 100}, func(c *leasestore.Claim) { c.Guard = 100 }, true},
		{"released beyond all that", leasestore.Row{Until: storeT + 500 + 10_000 + 101}, func(c *leasestore.Claim) { c.Guard = 100 }, false},
		{"among those that will do", leasestore.Row{Worker: 3}, func(c *leasestore.Claim) { c.Only = []int64{5, 3} }, true},
		{"not among them", leasestore.Row{Worker: 4}, func(c *leasestore.Claim) { c.Only = []int64{5, 3} }, false},
		{"none will do", leasestore.Row{}, func(c *leasestore.Claim) { c.Only = []int64{} }, false},
		{"the last of the space", leasestore.Row{Worker: 7}, nil, true},
		{"beyond the space", leasestore.Row{Worker: 8}, nil, false},
		{"beyond the space, asked for", leasestore.Row{Worker: 8}, func(c *leasestore.Claim) { c.Only = []int64{8} }, false},
		{"below the space", leasestore.Row{Worker: -1}, nil, false},
		{"retired", leasestore.Row{Owner: "o", Until: leasestore.Retired + storeT}, nil, false},
		{"retired, and fenced by an older version", leasestore.Row{Until: leasestore.Retired}, func(c *leasestore.Claim) { c.Guard = 100 }, false},
		{"to be retired", leasestore.Row{Worker: 3}, retire, true},
		{"to be retired, used", leasestore.Row{Worker: 3, Epoch: 2, Nonce: "n", Until: 5, Renewals: 2}, retire, false},
		{"to be retired, known to have been lost", leasestore.Row{Worker: 3, Until: 5}, retire, false},
		{"to be retired twice", leasestore.Row{Worker: 3, Epoch: 1, Until: leasestore.Retired + storeT}, retire, false},
	} {
		claim := plainClaim()
		if c.edit != nil {
			c.edit(&claim)
		}
		if got := claim.Free(c.row, storeT); got != c.want {
			t.Errorf("%s: Free(%+v) = %t; want %t", c.name, c.row, got, c.want)
		}
		after, ok := claim.Apply(c.row, storeT)
		if ok != c.want || !ok && after != (leasestore.Row{}) {
			t.Errorf("%s: Apply(%+v) = %+v, %t; want %t", c.name, c.row, after, ok, c.want)
		}
	}
}

func TestChooseIsUniformAmongFreeRows(t *testing.T) {
	const draws = 20_000
	c := plainClaim()
	c.Space.Workers = 16
	var rows []leasestore.Row
	counts := map[int64]int{}
	for worker := range int64(16) {
		row := leasestore.Row{Worker: worker}
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
	held := func(worker int64, ahead leasestore.Millis) leasestore.Row {
		return leasestore.Row{Worker: worker, Owner: "o", Until: storeT + ahead}
	}
	far := 10_000 + hourMS // a window, and as far as a limit may be ahead
	for _, c := range []struct {
		name string
		rows []leasestore.Row
		edit func(c *leasestore.Claim)
		want leasestore.NoFreeWorkerError
	}{
		{"no rows", nil, nil, leasestore.NoFreeWorkerError{}},
		{"none that will do", []leasestore.Row{held(0, 5), held(8, 1), held(-1, 1)}, func(c *leasestore.Claim) { c.Only = []int64{1, 8, -1} }, leasestore.NoFreeWorkerError{}},
		{"all held", []leasestore.Row{held(0, 500), held(1, 300), held(2, 400), held(8, 1)}, nil,
			leasestore.NoFreeWorkerError{Rows: 3, Earliest: (storeT + 300).Time(), Wait: 300 * time.Millisecond}},
		{"those of Only", []leasestore.Row{held(0, 500), held(1, 300), held(2, 400)}, func(c *leasestore.Claim) { c.Only = []int64{2, 0} },
			leasestore.NoFreeWorkerError{Rows: 2, Earliest: (storeT + 400).Time(), Wait: 400 * time.Millisecond}},
		{"the guard", []leasestore.Row{held(0, -50), held(1, 300)}, func(c *leasestore.Claim) { c.Guard = 100 },
			leasestore.NoFreeWorkerError{Rows: 2, Earliest: (storeT + 50).Time(), Wait: 50 * time.Millisecond}},
		{"far ahead", []leasestore.Row{held(0, far+1), held(1, far), held(2, 2*far)}, nil,
			leasestore.NoFreeWorkerError{Rows: 3, Earliest: (storeT + far).Time(), Wait: far.Duration(), Ahead: []int64{0, 2}}},
		{"far ahead under the guard", []leasestore.Row{held(0, far+1), held(1, far)}, func(c *leasestore.Claim) { c.Guard = 100 },
			leasestore.NoFreeWorkerError{Rows: 2, Earliest: (storeT + far + 100).Time(), Wait: (far + 100).Duration(), Ahead: []int64{0}}},
	} {
		claim := plainClaim()
		if c.edit != nil {
			c.edit(&claim)
		}
		c.want.Namespace, c.want.Datacenter = "shop", 2
		row, err := claim.Choose(c.rows, storeT, func(int) int { return 0 })
		var got *leasestore.NoFreeWorkerError
		if !errors.As(err, &got) || !reflect.DeepEqual(*got, c.want) || row != (leasestore.Row{}) || !errors.Is(err, leasestore.ErrNoFreeWorker) {
			t.Errorf("%s: Choose(%+v) = %+v, error %#v; want %#v", c.name, c.rows, row, err, &c.want)
		}
	}
}

func TestClaimReservesAWindowFromWhereTheLastEnds(t *testing.T) {
	for _, c := range []struct {
		name  string
		until leasestore.Millis // of the row, released
		edit  func(c *leasestore.Claim)
		want  leasestore.Millis // Until
		from  leasestore.Millis
	}{
		{"new", 0, nil, storeT + 10_000, storeT},
		{"long past", storeT - hourMS, nil, storeT + 10_000, storeT},
		{"ahead of the clock", storeT + 400, nil, storeT + 10_400, storeT + 400},
		{"the claimant's clock does not count", 0, func(c *leasestore.Claim) { c.Now += 300 }, storeT + 10_000, storeT},
		{"guard: the limit by the slower clock, the start by the faster", 0, func(c *leasestore.Claim) { c.Guard, c.Now = 100, storeT+300 },
			storeT + 10_000, storeT + 300 + 10_000 + 100},
		{"guard: the other is slower", 0, func(c *leasestore.Claim) { c.Guard, c.Now = 100, storeT-300 },
			storeT - 300 + 10_000, storeT + 10_000 + 100},
		{"guard: released far ahead", storeT + 10_500, func(c *leasestore.Claim) { c.Guard = 100 }, storeT + 10_500, storeT + 10_500},
	} {
		claim := plainClaim()
		if c.edit != nil {
			c.edit(&claim)
		}
		before := leasestore.Row{Worker: 3, Epoch: 6, Nonce: "old", Until: c.until, Renewals: 40}
		want := leasestore.Row{Worker: 3, Epoch: 7, Owner: "claimant", Nonce: "n1", Until: c.want, Renewals: 41}
		got, ok := claim.Apply(before, storeT)
		if !ok || got != want {
			t.Errorf("%s: Apply(%+v) = %+v, %t; want %+v", c.name, before, got, ok, want)
		}
		if from := claim.From(leasestore.Reply{Row: got, Before: before.Until, Now: storeT}); from != c.from {
			t.Errorf("%s: From = T%+d; want T%+d", c.name, from-storeT, c.from-storeT)
		}
	}
}

func plainRenewal() (leasestore.Row, leasestore.Renewal) {
	row := leasestore.Row{Worker: 3, Epoch: 7, Owner: "holder", Nonce: "n1", Until: storeT + 5_000, Renewals: 41}
	return row, leasestore.Renewal{
		Space: plainClaim().Space, Worker: 3, Epoch: 7, Owner: "holder", Known: []string{"n1"}, Nonce: "n2",
		Next: storeT, Until: storeT + 5_000, Window: 10_000, Now: storeT, Skew: 500,
	}
}

func TestRenewalRaisesTheLimit(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(row *leasestore.Row, r *leasestore.Renewal)
		want leasestore.Millis // beyond T
	}{
		{"a window from now", func(*leasestore.Row, *leasestore.Renewal) {}, 10_000},
		{"a window from the next ID", func(_ *leasestore.Row, r *leasestore.Renewal) { r.Next += 20 }, 10_020},
		{"IDs behind the clock", func(_ *leasestore.Row, r *leasestore.Renewal) { r.Next -= hourMS }, 10_000},
		{"IDs an hour ahead", func(_ *leasestore.Row, r *leasestore.Renewal) { r.Next += hourMS }, 10_000 + hourMS},
		{"IDs further ahead", func(_ *leasestore.Row, r *leasestore.Renewal) { r.Next += 5 * hourMS }, 10_000 + hourMS},
		{"stored limit higher", func(row *leasestore.Row, _ *leasestore.Renewal) { row.Until = storeT + 70_000 }, 70_000},
		{"confirmed limit higher: the row was lowered", func(_ *leasestore.Row, r *leasestore.Renewal) { r.Until = storeT + 60_000 }, 60_000},
		{"clocks within the skew: the store's", func(_ *leasestore.Row, r *leasestore.Renewal) { r.Now, r.Next = storeT-500, storeT-500 }, 10_000},
		{"the holder's clock far behind", func(_ *leasestore.Row, r *leasestore.Renewal) { r.Now, r.Next = storeT-501, storeT-501 }, 10_000 - 501},
		{"clocks within the skew: the holder's", func(_ *leasestore.Row, r *leasestore.Renewal) { r.Now = storeT + 500 }, 10_500},
		{"the holder's clock far ahead", func(_ *leasestore.Row, r *leasestore.Renewal) { r.Now = storeT + 501 }, 10_000},
		{"the store's clock far ahead", func(_ *leasestore.Row, r *leasestore.Renewal) {
			r.Now, r.Next, r.Until = storeT-hourMS, storeT-hourMS, storeT-hourMS+9_000
		}, 5_000},
		{"guard: the slower clock, the store's", func(_ *leasestore.Row, r *leasestore.Renewal) { r.Guard, r.Now, r.Next = 100, storeT+90, storeT+4_000 }, 10_000},
		{"guard: the slower clock, the holder's", func(_ *leasestore.Row, r *leasestore.Renewal) { r.Guard, r.Now = 100, storeT-90 }, 10_000 - 90},
		{"guard: just not lapsed", func(_ *leasestore.Row, r *leasestore.Renewal) { r.Guard, r.Until = 100, storeT+100 }, 10_000},
		{"lapsed without the guard", func(_ *leasestore.Row, r *leasestore.Renewal) { r.Until = storeT - hourMS }, 10_000},
		{"one nonce of several", func(_ *leasestore.Row, r *leasestore.Renewal) { r.Known = []string{"x", "n1", "y"} }, 10_000},
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
		edit func(row *leasestore.Row, r *leasestore.Renewal)
		want leasestore.Reason
	}{
		{"a later epoch", func(row *leasestore.Row, _ *leasestore.Renewal) { row.Epoch++ }, leasestore.TakenOver},
		{"an earlier epoch", func(row *leasestore.Row, _ *leasestore.Renewal) { row.Epoch-- }, leasestore.TakenOver},
		{"another owner", func(row *leasestore.Row, _ *leasestore.Renewal) { row.Owner = "x" }, leasestore.TakenOver},
		{"released", func(row *leasestore.Row, _ *leasestore.Renewal) { row.Owner, row.Epoch = "", 8 }, leasestore.TakenOver},
		{"another nonce", func(row *leasestore.Row, _ *leasestore.Renewal) { row.Nonce = "x" }, leasestore.Copied},
		{"its own nonce, not yet known", func(row *leasestore.Row, _ *leasestore.Renewal) { row.Nonce = "n2" }, leasestore.Copied},
		{"no nonce known", func(_ *leasestore.Row, r *leasestore.Renewal) { r.Known = nil }, leasestore.Copied},
		{"guard lapsed by the holder's clock", func(_ *leasestore.Row, r *leasestore.Renewal) { r.Guard, r.Now = 100, r.Until-99 }, leasestore.Lapsed},
		{"guard lapsed by the store's clock", func(_ *leasestore.Row, r *leasestore.Renewal) { r.Guard, r.Until, r.Now = 100, storeT+99, storeT-500 }, leasestore.Lapsed},
		{"guard lapsed, though the stored limit is higher", func(row *leasestore.Row, r *leasestore.Renewal) {
			row.Until, r.Guard, r.Until = storeT+hourMS, 100, storeT+99
		}, leasestore.Lapsed},
		{"taken over and lapsed", func(row *leasestore.Row, r *leasestore.Renewal) { row.Epoch, r.Guard, r.Until = 8, 100, 0 }, leasestore.TakenOver},
	} {
		row, r := plainRenewal()
		c.edit(&row, &r)
		got, err := r.Apply(row, storeT)
		want := leasestore.LostError{Worker: 3, Epoch: 7, Reason: c.want}
		var lost *leasestore.LostError
		if !errors.As(err, &lost) || *lost != want || got != (leasestore.Row{}) || !errors.Is(err, leasestore.ErrLost) {
			t.Errorf("%s: Apply(%+v) = %+v, error %v; want error %v", c.name, row, got, err, &want)
		}
	}
}

func TestReleaseFreesTheRow(t *testing.T) {
	row, r := plainRenewal()
	release := leasestore.Release{Worker: 3, Epoch: 7, Owner: "holder", Known: r.Known, Nonce: "n2", End: storeT + 7}
	want := leasestore.Row{Worker: 3, Epoch: 8, Nonce: "n2", Until: storeT + 7, Renewals: 42}
	if got, err := release.Apply(row); err != nil || got != want {
		t.Errorf("Apply(%+v) = %+v, error %v; want %+v", row, got, err, want)
	}
	for _, c := range []struct {
		name string
		edit func(row *leasestore.Row)
		want leasestore.Reason
	}{
		{"a later epoch", func(row *leasestore.Row) { row.Epoch++ }, leasestore.TakenOver},
		{"an earlier epoch", func(row *leasestore.Row) { row.Epoch-- }, leasestore.TakenOver},
		{"another owner", func(row *leasestore.Row) { row.Owner = "x" }, leasestore.TakenOver},
		{"another nonce", func(row *leasestore.Row) { row.Nonce = "x" }, leasestore.Copied},
	} {
		row, _ := plainRenewal()
		c.edit(&row)
		got, err := release.Apply(row)
		want := leasestore.LostError{Worker: 3, Epoch: 7, Reason: c.want}
		var lost *leasestore.LostError
		if !errors.As(err, &lost) || *lost != want || got != (leasestore.Row{}) {
			t.Errorf("%s: Apply(%+v) = %+v, error %v; want error %v", c.name, row, got, err, &want)
		}
	}
}

func TestStoreErrorsSayWhatAndHowMuch(t *testing.T) {
	at := time.Date(2025, 6, 1, 12, 0, 0, 5_000_000, time.UTC)
	full := leasestore.NoFreeWorkerError{Namespace: "shop", Datacenter: 2, Rows: 32, Earliest: at, Wait: 1500 * time.Millisecond}
	ahead := full
	for worker := range int64(10) {
		ahead.Ahead = append(ahead.Ahead, worker)
	}
	for _, c := range []struct {
		err  error
		is   error
		want string
	}{
		{&full, leasestore.ErrNoFreeWorker, `lease: no worker number is free: all 32 of namespace "shop", datacenter 2 are reserved; the earliest is free at 2025-06-01T12:00:00.005Z, in 1.5s, unless it is renewed`},
		{&ahead, leasestore.ErrNoFreeWorker, full.Error() + `; reserved more than an hour ahead, as by a wrong clock: 10 rows, among them workers [0 1 2 3 4 5 6 7]`},
		{&leasestore.NoFreeWorkerError{Namespace: "shop"}, leasestore.ErrNoFreeWorker, `lease: no worker number is free: there is none to choose from in namespace "shop", datacenter 0`},
		{&leasestore.NoFreeWorkerError{Namespace: "shop", Retired: 2}, leasestore.ErrNoFreeWorker, `lease: no worker number is free: all 2 that would do in namespace "shop", datacenter 0 are retired`},
		{&leasestore.NoFreeWorkerError{Namespace: "shop", Rows: 3}, leasestore.ErrNoFreeWorker, `lease: no worker number is free to be retired: all 3 of namespace "shop", datacenter 0 have been used`},
		{&leasestore.LostError{Worker: 3, Epoch: 7, Reason: leasestore.TakenOver}, leasestore.ErrLost, `lease: worker 3, epoch 7, is lost: another lease has claimed its row, or an operator has fenced it, or the store has lost a write (failover to a replica that lagged, restore)`},
		{&leasestore.LostError{Worker: 3, Epoch: 7, Reason: leasestore.Copied}, leasestore.ErrLost, `lease: worker 3, epoch 7, is lost: a copy of this process has renewed its row, or the store has lost a write (failover to a replica that lagged, restore)`},
		{&leasestore.LostError{Worker: 3, Epoch: 7, Reason: leasestore.Gone}, leasestore.ErrLost, `lease: worker 3, epoch 7, is lost: its row is gone: somebody has deleted it, which must never be done, or the store has lost a write (failover to a replica that lagged, restore)`},
		{&leasestore.LostError{Worker: 3, Epoch: 7, Reason: leasestore.Lapsed}, leasestore.ErrLost, `lease: worker 3, epoch 7, is lost: it was not renewed in time for the loss guard`},
		{&leasestore.LayoutError{Namespace: "shop", Stored: "theirs", Own: "ours"}, leasestore.ErrLayout, `lease: the layout differs from the stored one: namespace "shop" has "theirs", this process "ours": want the stored one, or a namespace of its own`},
		{&leasestore.LayoutError{Namespace: "shop", Stored: "epoch 2025-01-01T00:00:00Z, unit 1ms, bits 41/0/10/12", Own: "epoch 2025-01-01T00:00:00Z, unit 10ms, bits 40/0/6/7"}, leasestore.ErrLayout,
			`lease: the layout differs from the stored one: namespace "shop" has "epoch 2025-01-01T00:00:00Z, unit 1ms, bits 41/0/10/12", this process "epoch 2025-01-01T00:00:00Z, unit 10ms, bits 40/0/6/7": want the stored one, or a namespace of its own; if no program uses it, ` + "`snowkey workers -namespace shop -epoch 2025-01-01T00:00:00Z -unit 10ms -bits 40/0/6/7 empty` gives it this layout"},
		{&leasestore.LayoutError{Namespace: "shop", Stored: "epoch 2025-01-01T00:00:00Z, unit 1ms, bits 41/2/8/12", Own: "epoch 2025-01-01T00:00:00Z, unit 1ms, bits 41/0/10/12"}, leasestore.ErrLayout,
			`lease: the layout differs from the stored one: namespace "shop" has "epoch 2025-01-01T00:00:00Z, unit 1ms, bits 41/2/8/12", this process "epoch 2025-01-01T00:00:00Z, unit 1ms, bits 41/0/10/12": want the stored one, or a namespace of its own`},
		{&leasestore.ClockSkewError{Store: at.Add(time.Hour), Local: at, Max: 5 * time.Second}, leasestore.ErrClockSkew, `lease: the clocks are too far apart: the store shows 2025-06-01T13:00:00.005Z, this process 2025-06-01T12:00:00.005Z: want at most 5s between them`},
		{&core.ValueError{Package: "lease", Name: "Config.Window", Value: "1s", Want: "3s..10m0s"}, nil, `lease: Config.Window is 1s: want 3s..10m0s`},
		{&core.ValueError{Package: "sqllease", Name: "db", Want: "an open database"}, nil, `sqllease: db: want an open database`},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("Error() = %q; want %q", got, c.want)
		}
		if c.is == nil {
			continue
		}
		if !errors.Is(c.err, c.is) || !strings.HasPrefix(c.err.Error(), c.is.Error()) && c.is != leasestore.ErrLost {
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
		c.Now, c.Window, c.Skew, c.Guard = leasestore.Millis(local%most), 1+leasestore.Millis(abs(window)%most), leasestore.Millis(abs(skew)%most), leasestore.Millis(abs(guard)%most)
		at := leasestore.Millis(now % most)
		c.Space.Workers = int64(len(rows) / 2)
		for worker := range int64(64) {
			if only&(1<<worker) != 0 {
				c.Only = append(c.Only, worker)
			}
		}
		var all []leasestore.Row
		free := 0
		for worker := range c.Space.Workers {
			row := leasestore.Row{Worker: worker, Until: at + leasestore.Millis(int8(rows[2*worker+1]))}
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
			if !errors.Is(err, leasestore.ErrNoFreeWorker) {
				t.Fatalf("Choose = error %v; want it to match lease.ErrNoFreeWorker", err)
			}
			return
		}
		after, ok := c.Apply(before, at)
		if !ok || after.Worker != before.Worker || after.Epoch != before.Epoch+1 || after.Owner != c.Owner ||
			after.Nonce != c.Nonce || after.Renewals != before.Renewals+1 || after.Until < before.Until {
			t.Fatalf("%+v.Apply(%+v, %d) = %+v, %t", c, before, at, after, ok)
		}
		from := c.From(leasestore.Reply{Row: after, Before: before.Until, Now: at})
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
	row   leasestore.Row
	all   []*ranged                 // in the order of their epochs
	late  []func(leasestore.Millis) // requests under way that were abandoned
	fresh int
}

// A ranged is a holder and its range.
type ranged struct {
	epoch       int64
	owner       string
	known       []string
	from, until leasestore.Millis // it issues only in here
	sealed      bool              // by a release: until is its end
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
		now := storeT + leasestore.Millis(clock)
		if clock%2 == 0 { // where rows become free
			now = l.row.Until + leasestore.Millis(clock>>8)
		}
		length := leasestore.Millis(binary.LittleEndian.Uint16(data[3:]))
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

func (l *law) newClaim(now, window leasestore.Millis) leasestore.Claim {
	return leasestore.Claim{
		Space: leasestore.Space{Workers: 1}, Owner: l.token(), Nonce: l.token(),
		Window: window, Now: now + window%7 - 3, Skew: window % 50,
	}
}

func (l *law) claim(now, window leasestore.Millis) {
	c, before := l.newClaim(now, window), l.row
	row, ok := c.Apply(before, now)
	if !ok {
		return
	}
	l.row = row
	from := c.From(leasestore.Reply{Row: row, Before: before.Until, Now: now})
	l.all = append(l.all, &ranged{epoch: row.Epoch, owner: c.Owner, known: []string{c.Nonce}, from: from, until: row.Until})
}

func (l *law) renewal(by *ranged, now, window leasestore.Millis) leasestore.Renewal {
	return leasestore.Renewal{
		Epoch: by.epoch, Owner: by.owner, Known: slices.Clone(by.known), Nonce: l.token(),
		Next: by.from + window/2, Until: by.until, Window: window, Now: now - window%11, Skew: window % 20,
	}
}

// renew renews for a holder that gets the reply or does not.
func (l *law) renew(by *ranged, now, window leasestore.Millis, reply bool) {
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
func (l *law) release(by *ranged, length leasestore.Millis) {
	r := l.giveBack(by, length)
	if row, err := r.Apply(l.row); err == nil {
		l.row = row
	}
}

func (l *law) giveBack(by *ranged, length leasestore.Millis) leasestore.Release {
	by.until, by.sealed = min(by.until, by.from+length), true
	return leasestore.Release{Epoch: by.epoch, Owner: by.owner, Known: slices.Clone(by.known), Nonce: l.token(), End: by.until}
}

// sendLate sends a request whose reply never reaches the caller.
func (l *law) sendLate(by *ranged, now, length leasestore.Millis) {
	switch {
	case length%3 == 0:
		c := l.newClaim(now, length)
		l.late = append(l.late, func(now leasestore.Millis) {
			if row, ok := c.Apply(l.row, now); ok && l.row.Nonce != c.Nonce {
				l.row = row
			}
		})
	case length%3 == 1 && !by.sealed:
		r := l.renewal(by, now, length)
		by.known = append(by.known, r.Nonce)
		l.late = append(l.late, func(now leasestore.Millis) {
			if row, err := r.Apply(l.row, now); err == nil {
				l.row = row
			}
		})
	case length%3 == 2:
		r := l.giveBack(by, length)
		l.late = append(l.late, func(leasestore.Millis) {
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
	for _, good := range []leasestore.Space{
		{Namespace: "a", Workers: 1},
		{Namespace: "..", Workers: 1},
		{Namespace: "azAZ09._-" + strings.Repeat("n", 55), Datacenter: math.MaxInt64, Workers: 1 << 16, Layout: strings.Repeat(" ~", 127) + "x"},
	} {
		if err := good.Validate(); err != nil {
			t.Errorf("Check of %+v = %v; want nil", good, err)
		}
		for _, test := range []struct {
			name, value, want string
			change            func(*leasestore.Space)
		}{
			{"Namespace", `""`, names, func(s *leasestore.Space) { s.Namespace = "" }},
			{"Namespace", `"a/b"`, names, func(s *leasestore.Space) { s.Namespace = "a/b" }},
			{"Namespace", `"a'b"`, names, func(s *leasestore.Space) { s.Namespace = "a'b" }},
			{"Namespace", `"a "`, names, func(s *leasestore.Space) { s.Namespace = "a " }},
			{"Namespace", `"a?"`, names, func(s *leasestore.Space) { s.Namespace = "a?" }},
			{"Namespace", `"a:b"`, names, func(s *leasestore.Space) { s.Namespace = "a:b" }},
			{"Namespace", `"{a}"`, names, func(s *leasestore.Space) { s.Namespace = "{a}" }},
			{"Namespace", `"@a"`, names, func(s *leasestore.Space) { s.Namespace = "@a" }},
			{"Namespace", `"a\x00"`, names, func(s *leasestore.Space) { s.Namespace = "a\x00" }},
			{"Namespace", `"aüa"`, names, func(s *leasestore.Space) { s.Namespace = "aüa" }},
			{"Namespace", `"` + strings.Repeat("n", 64) + `"… (65 bytes)`, names, func(s *leasestore.Space) { s.Namespace = strings.Repeat("n", 65) }},
			{"Datacenter", "-1", "0 or more", func(s *leasestore.Space) { s.Datacenter = -1 }},
			{"Workers", "-1", "1..65536", func(s *leasestore.Space) { s.Workers = -1 }},
			{"Workers", "0", "1..65536", func(s *leasestore.Space) { s.Workers = 0 }},
			{"Workers", "65537", "1..65536", func(s *leasestore.Space) { s.Workers = 1<<16 + 1 }},
			{"Layout", `"\n"`, "at most 255 printable characters of ASCII", func(s *leasestore.Space) { s.Layout = "\n" }},
			{"Layout", `"\x7f"`, "at most 255 printable characters of ASCII", func(s *leasestore.Space) { s.Layout = "\x7f" }},
			{"Layout", `"µ"`, "at most 255 printable characters of ASCII", func(s *leasestore.Space) { s.Layout = "µ" }},
			{"Layout", `"` + strings.Repeat("x", 64) + `"… (256 bytes)`, "at most 255 printable characters of ASCII", func(s *leasestore.Space) { s.Layout = strings.Repeat("x", 256) }},
		} {
			s := good
			test.change(&s)
			want := core.ValueError{Package: "lease", Err: leasestore.ErrPermanent, Name: "Space." + test.name, Value: test.value, Want: test.want}
			var got *core.ValueError
			if err := s.Validate(); !errors.As(err, &got) || *got != want {
				t.Errorf("Check of %+v = %v; want %v", s, err, &want)
			}
		}
	}
}
