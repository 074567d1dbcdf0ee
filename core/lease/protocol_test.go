package lease

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// A bench drives a protocol by hand, against one row in memory.
type bench struct {
	t *testing.T
	*protocol
	row    leasestore.Row
	wall   leasestore.Millis // of the lease
	ahead  leasestore.Millis // of the store's clock before wall
	mono   time.Duration
	id     leasestore.Millis // no ID to come is before
	tokens int
}

const benchWindow = leasestore.Millis(16_000) // so that its parts are round: 4 s, 2 s, 1 s

func newBench(t *testing.T, guard leasestore.Millis) *bench {
	b := &bench{t: t, wall: 1_000_000_000, mono: time.Hour, row: leasestore.Row{Worker: 3, Epoch: 6, Until: 999_999_000}}
	settings := leasestore.Claim{Space: leasestore.Space{Namespace: "n", Workers: 8, Layout: "l"}, Window: benchWindow, Skew: 5000, Guard: guard}
	if guard > 0 {
		settings.Skew = min(guard, benchWindow/2-guard-benchWindow/16) // as Config has it
	}
	b.protocol = newProtocol(settings, func() string { b.tokens++; return fmt.Sprintf("%032x", b.tokens) }, func() float64 { return 0.5 })
	return b
}

// pass lets time go by, on all clocks.
func (b *bench) pass(d time.Duration) {
	b.mono += d
	b.wall += leasestore.Millis(d / time.Millisecond)
}

func (b *bench) next() action { return b.protocol.next(b.wall, b.mono, b.id) }

// request passes the time until next asks for a request.
func (b *bench) request() action {
	b.t.Helper()
	for range 1000 {
		a := b.next()
		if a.wait == 0 {
			return a
		}
		b.pass(a.wait)
	}
	b.t.Fatal("next() only waits; want a request")
	return action{}
}

// store does what a asks for.
func (b *bench) store(a action) (leasestore.Reply, error) {
	b.t.Helper()
	r := leasestore.Reply{Before: b.row.Until, Now: b.wall + b.ahead}
	switch {
	case a.claim != nil:
		row, ok := a.claim.Apply(b.row, r.Now)
		if !ok {
			return leasestore.Reply{}, &NoFreeWorkerError{Rows: 1, Wait: time.Minute}
		}
		b.row = row
	case a.renewal != nil:
		row, err := a.renewal.Apply(b.row, r.Now)
		if err != nil {
			return leasestore.Reply{}, err
		}
		b.row = row
	default:
		b.t.Fatalf("next() = %+v; want a request", a)
	}
	r.Row = b.row
	return r, nil
}

// confirm has the next request done and confirmed.
func (b *bench) confirm() outcome {
	b.t.Helper()
	reply, err := b.store(b.request())
	return b.done(reply, err, b.wall, b.mono)
}

func TestEachClaimAttemptHasAFreshOwnerAndNonce(t *testing.T) {
	b := newBench(t, 0)
	seen := map[string]bool{}
	for range 50 {
		c := b.request().claim
		if c == nil {
			t.Fatal("next() = no claim; want one until it is confirmed")
		}
		if c.Now != b.wall || c.Window != benchWindow || c.Skew != 5000 || c.Space.Namespace != "n" {
			t.Fatalf("claim = %+v; want the settings, and the clock %d", c, b.wall)
		}
		for _, s := range []string{c.Owner, c.Nonce} {
			if seen[s] {
				t.Fatalf("claim = %+v; %s was used before", c, s)
			}
			seen[s] = true
		}
		if o := b.done(leasestore.Reply{}, errStoreAway, b.wall, b.mono); !errors.Is(o.failed, errStoreAway) || o.install || o.seal {
			t.Fatalf("done(error) = %+v; want failed only", o)
		}
	}
}

func TestTokenIs32RandomHexDigits(t *testing.T) {
	form := regexp.MustCompile(`^[0-9a-f]{32}$`)
	seen := map[string]bool{}
	for range 1000 {
		s := token()
		if !form.MatchString(s) || seen[s] {
			t.Fatalf("token() = %q; want 32 hexadecimal digits, never the same twice", s)
		}
		seen[s] = true
	}
}

// A copied machine has the state of the random numbers as well.
func TestCopiesThatDrawTheSameRandomNumbersHaveDifferentTokens(t *testing.T) {
	same := [16]byte{1, 2, 3}
	const wall, monotonic = 1_893_456_000_000_000_000, 12_345
	seen := map[string]bool{}
	for _, at := range [][2]int64{{wall, monotonic}, {wall + 1, monotonic}, {wall, monotonic + 1}, {wall - 1e9, monotonic}, {wall, 0}} {
		token := mix(same, at[0], at[1])
		if seen[token] || len(token) != 32 {
			t.Errorf("mix(%x, %d, %d) = %s; want 32 digits that no other moment gives", same, at[0], at[1], token)
		}
		row := leasestore.Row{Owner: token, Nonce: token, Until: leasestore.MillisOf(time.Unix(0, at[0]).Add(time.Minute))}
		if written, ok := row.Written(); !ok || written.UnixNano() != at[0] {
			t.Errorf("Written() of a row with the nonce %s = %v, %t; want %d", token, written, ok, at[0])
		}
		row.Until = 5
		if written, ok := row.Written(); ok {
			t.Errorf("Written() of a row that was never reserved for the nonce's time = %v; want none", written)
		}
		seen[token] = true
	}
	if mix([16]byte{1}, wall, monotonic) == mix([16]byte{2}, wall, monotonic) {
		t.Error("mix of other random bits at one moment = the same token")
	}
}

func TestClaimInstallsWhatItHasWon(t *testing.T) {
	for _, test := range []struct {
		name      string
		before    leasestore.Millis
		ahead     leasestore.Millis
		from, end leasestore.Millis
	}{
		{"an old row begins at the store's clock", 999_999_000, 200, 1_000_000_200, 1_000_000_200 + benchWindow},
		{"a row given back ahead of the clock begins at its limit", 1_000_004_000, 0, 1_000_004_000, 1_000_004_000 + benchWindow},
	} {
		b := newBench(t, 0)
		b.row.Until, b.ahead = test.before, test.ahead
		o := b.confirm()
		if want := (outcome{install: true, worker: 3, from: test.from, until: test.end}); o != want {
			t.Errorf("%s: done(claim) = %+v; want %+v", test.name, o, want)
		}
	}
}

func TestRenewalIsDueAQuarterWindowAfterTheLastRequestWasSent(t *testing.T) {
	b := newBench(t, 0)
	b.random = func() float64 { return 1 } // none is earlier, to be apart from others
	for i := range 3 {
		a := b.request()
		sent := b.mono
		b.pass(1500 * time.Millisecond) // the answer takes its time
		reply, err := b.store(a)
		b.done(reply, err, b.wall, b.mono)
		if a := b.request(); a.renewal == nil || b.mono != sent+4*time.Second {
			t.Fatalf("request %d: the renewal after it is %+v, %v after it was sent; want 4s", i, a.renewal, b.mono-sent)
		}
		b.done(leasestore.Reply{}, errStoreAway, b.wall, b.mono)
	}
}

// All processes may start at one moment, or find the store back at one moment.
func TestRenewalsOfProcessesThatBeginTogetherAreApart(t *testing.T) {
	for _, random := range []float64{0, 0.25, 0.5} {
		b := newBench(t, 0)
		b.random = func() float64 { return random }
		early := time.Duration(random * float64(4*time.Second))
		next := func(after string, want time.Duration) {
			t.Helper()
			sent := b.mono
			reply, err := b.store(b.request())
			b.done(reply, err, b.wall, b.mono)
			if a := b.request(); a.renewal == nil || b.mono != sent+want {
				t.Fatalf("random %v: the renewal after %s is %v after it; want %v", random, after, b.mono-sent, want)
			}
		}
		next("a claim", early)
		next("a renewal", 4*time.Second)
		b.done(leasestore.Reply{}, errStoreAway, b.wall, b.mono)
		b.request()
		next("the first renewal that succeeds", early)
		next("the second", 4*time.Second)
	}
}

func TestRenewalAsksForWhatIsHeld(t *testing.T) {
	b := newBench(t, 0)
	b.confirm()
	b.id = b.wall + 5
	r := b.request().renewal
	want := leasestore.Renewal{
		Space: b.settings.Space, Worker: 3, Epoch: 7, Owner: b.row.Owner,
		Known: []string{b.row.Nonce}, Nonce: r.Nonce,
		Next: b.id, Until: b.row.Until, Window: benchWindow, Now: b.wall, Skew: 5000,
	}
	if fmt.Sprint(*r) != fmt.Sprint(want) || r.Nonce == b.row.Nonce {
		t.Errorf("renewal = %+v; want %+v with a fresh nonce", *r, want)
	}

	// Without a generator there is no next ID, but none will be before the lease.
	b = newBench(t, 0)
	b.row.Until = b.wall + 4000 // given back by one whose clock was ahead
	begin := b.row.Until
	b.confirm()
	if r := b.request().renewal; r.Next != begin {
		t.Errorf("renewal = %+v; want Next %d, where the lease begins", *r, begin)
	}
}

func TestOnlyAConfirmedReplyRaisesTheLimit(t *testing.T) {
	b := newBench(t, 0)
	limit := b.confirm().until
	for i := range 5 {
		a := b.request()
		if a.renewal.Until != limit {
			t.Fatalf("attempt %d: Renewal.Until = %d; want %d, the last that was confirmed", i, a.renewal.Until, limit)
		}
		if _, err := b.store(a); err != nil { // done, but the reply is lost
			t.Fatal(err)
		}
		if o := b.done(leasestore.Reply{}, errStoreAway, b.wall, b.mono); o.extend || o.seal || o.failed == nil || b.limit != limit {
			t.Fatalf("attempt %d: done(unknown) = %+v, limit %d; want failed only, limit %d", i, o, b.limit, limit)
		}
		failed := b.mono
		b.pass(b.next().wait)
		if wait := b.mono - failed; wait != time.Second { // at the middle of the jitter
			t.Fatalf("attempt %d: retried after %v; want 1s", i, wait)
		}
	}
	o := b.confirm()
	if !o.extend || o.until != b.wall+benchWindow || o.recovered != 5 || o.lowered != 0 {
		t.Errorf("done(confirmed) = %+v; want extended to %d, recovered 5", o, b.wall+benchWindow)
	}
}

func TestRetriesAreSpread(t *testing.T) {
	for _, random := range []float64{0, 0.999} {
		b := newBench(t, 0)
		b.confirm()
		b.random = func() float64 { return random }
		b.request()
		b.done(leasestore.Reply{}, errStoreAway, b.wall, b.mono)
		failed := b.mono
		b.request()
		wait, want := b.mono-failed, time.Duration((0.5+random)*float64(time.Second))
		if d := wait - want; d < -time.Millisecond || d > time.Millisecond {
			t.Errorf("random %v: retried after %v; want %v", random, wait, want)
		}
	}
}

func TestKnownHasTheConfirmedNonceAndThoseOfUnknownOutcome(t *testing.T) {
	b := newBench(t, 0)
	b.confirm()
	want := []string{b.row.Nonce}
	var first *leasestore.Renewal
	sent := map[*leasestore.Renewal]string{}
	for range 100 {
		r := b.request().renewal
		if first == nil {
			first = r
		}
		sent[r] = fmt.Sprint(r.Known)
		if !slices.Equal(r.Known, want) {
			t.Fatalf("Renewal.Known = %v; want %v", r.Known, want)
		}
		b.done(leasestore.Reply{}, errStoreAway, b.wall, b.mono)
		want = append(want, r.Nonce)
		if len(want) > 16 { // the middle is dropped: the first and the last stay
			want = append(want[:8:8], want[9:]...)
		}
	}
	for r, known := range sent {
		if fmt.Sprint(r.Known) != known {
			t.Fatalf("Renewal.Known has become %v; want %s still, since the request may be under way", r.Known, known)
		}
	}
	// The very first of them was done, and nothing since.
	row, err := first.Apply(b.row, b.wall)
	if err != nil {
		t.Fatal(err)
	}
	b.row = row
	if o := b.confirm(); !o.extend {
		t.Fatalf("done = %+v; want the row kept after 100 unknown outcomes", o)
	}
	if r := b.request().renewal; !slices.Equal(r.Known, []string{b.row.Nonce}) {
		t.Errorf("Renewal.Known = %v; want the confirmed nonce %s alone", r.Known, b.row.Nonce)
	}
}

func TestLostRowIsSealedAndAnotherClaimedAtOnce(t *testing.T) {
	for _, test := range []struct {
		reason leasestore.Reason
		change func(*leasestore.Row)
	}{
		{leasestore.TakenOver, func(r *leasestore.Row) { r.Epoch++; r.Owner = "other" }},
		{leasestore.TakenOver, func(r *leasestore.Row) { r.Owner = "other" }}, // the epoch of a lost history
		{leasestore.Copied, func(r *leasestore.Row) { r.Nonce = "other" }},
	} {
		b := newBench(t, 0)
		b.confirm()
		owner := b.row.Owner
		test.change(&b.row)
		o := b.confirm()
		if !o.seal || o.lost == nil || o.lost.Reason != test.reason || o.lost.Worker != 3 || o.lost.Epoch != 7 {
			t.Errorf("done(%s) = %+v; want sealed and lost", test.reason, o)
		}
		if a := b.next(); a.claim == nil || a.claim.Owner == owner {
			t.Errorf("next() after a loss = %+v; want a claim at once, with a fresh owner", a)
		}
		if _, held := b.release(0); held {
			t.Errorf("release() after a loss = a release; want none")
		}
	}
}

func TestLoweredRowIsReportedAndTheLimitDoesNotFall(t *testing.T) {
	b := newBench(t, 0)
	limit := b.confirm().until
	b.row.Until = limit - 12_345
	b.wall -= 3600_000 // and the clock has stepped back
	b.mono += time.Hour
	o := b.confirm()
	if !o.extend || o.seal || o.lowered != 12_345 || o.until != limit || b.row.Until != limit {
		t.Errorf("done = %+v, row at %d; want lowered by 12345 and the limit still %d", o, b.row.Until, limit)
	}
	// Whatever a store answers, a limit that was confirmed stays.
	b.request()
	if o := b.done(leasestore.Reply{Row: leasestore.Row{Until: 5}, Before: limit}, nil, b.wall, b.mono); o.until != limit || b.limit != limit {
		t.Errorf("done(Until 5) = %+v; want the limit still %d", o, limit)
	}
}

func TestSuspendedMachineRenewsSoonAfterItWakes(t *testing.T) {
	b := newBench(t, 0)
	b.confirm()
	a := b.next()
	if a.wait != time.Second {
		t.Fatalf("next() = %+v; want to be asked again after 1s, to see the clock", a)
	}
	b.pass(time.Second)
	b.wall += 3_600_000 // the monotonic clock stood still
	if a := b.next(); a.renewal == nil {
		t.Errorf("next() after an hour asleep = %+v; want a renewal", a)
	}
	// The renewal is early: its regular time is still to come. If the row was lost
	// meanwhile, the lease must not wait for that.
	b.row.Owner = "other"
	b.confirm()
	if a := b.next(); a.claim == nil {
		t.Errorf("next() after an hour asleep and a loss = %+v; want a claim at once", a)
	}
}

func TestFailedClaimsBackOff(t *testing.T) {
	none := &NoFreeWorkerError{Rows: 8, Wait: time.Hour}
	skew := &ClockSkewError{}
	for _, test := range []struct {
		err         error
		random      float64
		first, last time.Duration
	}{
		{errStoreAway, 0, 100 * time.Millisecond, 100 * time.Millisecond},
		{errStoreAway, 1, 200 * time.Millisecond, 2 * time.Second},
		{skew, 1, 200 * time.Millisecond, 2 * time.Second},
		{none, 1, 200 * time.Millisecond, 2 * time.Second},
		{&NoFreeWorkerError{Rows: 8, Wait: 700 * time.Millisecond}, 1, 200 * time.Millisecond, 700 * time.Millisecond},
		{&NoFreeWorkerError{Rows: 8}, 1, 100 * time.Millisecond, 100 * time.Millisecond},
		{&NoFreeWorkerError{}, 1, 200 * time.Millisecond, 2 * time.Second},
		{&LayoutError{}, 0, 8 * time.Second, 8 * time.Second},
		{&LayoutError{}, 1, 24 * time.Second, 24 * time.Second},
	} {
		b := newBench(t, 0)
		b.random = func() float64 { return test.random }
		var waits []time.Duration
		for range 100 {
			if a := b.request(); a.claim == nil {
				t.Fatalf("next() = %+v; want a claim for as long as the lease lives", a)
			}
			b.done(leasestore.Reply{}, test.err, b.wall, b.mono)
			waits = append(waits, b.next().wait)
		}
		if !slices.IsSorted(waits) || waits[0] != test.first || waits[99] != test.last {
			t.Errorf("waits after %T, random %v: %v … %v; want %v … %v", test.err, test.random, waits[0], waits[99], test.first, test.last)
		}
	}
}

func TestDueByOnlyBringsForward(t *testing.T) {
	b := newBench(t, 0)
	b.request()
	b.done(leasestore.Reply{}, errStoreAway, b.wall, b.mono)
	wait := b.next().wait
	b.dueBy(b.mono + time.Hour)
	if got := b.next().wait; got != wait {
		t.Errorf("wait after dueBy(1h) = %v; want %v", got, wait)
	}
	b.dueBy(b.mono + 7)
	if got := b.next().wait; got != 7 {
		t.Errorf("wait after dueBy(7ns) = %v; want 7ns", got)
	}
}

// Under the guard IDs begin with the first renewal. It raises the limit above the
// beginning, for all permitted clocks and all rows that may be claimed. No write goes
// further than a window beyond either clock.
func TestGuardBeginsWithTheFirstRenewal(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 10_000 {
		guard := 10 + leasestore.Millis(random.IntN(int(benchWindow/4)-9))
		if i%4 == 0 {
			guard = benchWindow / 4
		}
		b := newBench(t, guard)
		skew := b.settings.Skew
		b.ahead = leasestore.Millis(random.IntN(2*int(skew)+1)) - skew
		switch random.IntN(3) {
		case 0: // given back, far ahead
			b.row.Until = b.wall + b.ahead + benchWindow + skew + guard - leasestore.Millis(random.IntN(20_000))
		case 1: // not given back
			b.row.Owner, b.row.Until = "crashed", b.wall+b.ahead-guard-leasestore.Millis(random.IntN(3))
		}
		a := b.request()
		reply, err := b.store(a)
		claimed := b.mono
		took := time.Duration(random.IntN(300)) * time.Millisecond
		b.pass(took)
		o := b.done(reply, err, b.wall, b.mono)
		if !o.install || o.from < o.until {
			t.Fatalf("run %d: done(claim) = %+v, %v; want a term with nothing in it yet", i, o, err)
		}
		if o.from < a.claim.Now+benchWindow+guard || o.from < reply.Now+benchWindow+guard {
			t.Fatalf("run %d: a lease from %d, clocks %d and %d; want a window and the guard beyond both", i, o.from, a.claim.Now, reply.Now)
		}
		b.id = o.from
		r := b.confirm()
		if !r.extend || r.until <= o.from {
			t.Fatalf("run %d: first renewal = %+v; want a limit above %d", i, r, o.from)
		}
		if r.until > max(b.wall+benchWindow, o.until) || r.until > max(b.wall+b.ahead+benchWindow, o.until) {
			t.Fatalf("run %d: limit %d, clocks %d and %d; want at most a window beyond both", i, r.until, b.wall, b.wall+b.ahead)
		}
		after := b.mono - claimed - took
		if want := guard.Duration(); after <= want {
			t.Fatalf("run %d: first renewal after %v; want more than %v", i, after, want)
		} else if b.ahead == 0 && b.row.Owner == "" && after > want+time.Second {
			t.Fatalf("run %d: first renewal after %v; want little more than %v", i, after, want)
		}
	}
}

// Just after its start a guarded lease has little room. Its limit is tied to the clock,
// and its IDs are ahead of that. It renews more often until it has more room.
func TestGuardRenewsSoonerWhileThereIsLittleRoom(t *testing.T) {
	b := newBench(t, 1000)
	b.id = b.confirm().from
	b.confirm()
	sent := b.mono
	b.request()
	if got := b.mono - sent; got != time.Second {
		t.Errorf("second renewal after %v; want a 16th of the window, 1s", got)
	}
	b.done(leasestore.Reply{}, errStoreAway, b.wall, b.mono)
	for range 6 {
		b.confirm()
	}
	sent = b.mono
	b.request()
	if got := b.mono - sent; got != 4*time.Second {
		t.Errorf("eighth renewal after %v; want a quarter of the window, 4s", got)
	}
}

func TestGuardedLeaseThatLapsedIsGivenUp(t *testing.T) {
	const guard = 1000
	for _, test := range []struct {
		after  leasestore.Millis // the limit less the guard
		lapsed bool
	}{{0, false}, {1, true}, {3_600_000, true}} {
		b := newBench(t, guard)
		b.confirm()
		limit := b.confirm().until
		b.wall = limit - guard + test.after
		b.mono += time.Duration(benchWindow) * time.Millisecond
		a := b.next()
		if !test.lapsed {
			if a.renewal == nil {
				t.Errorf("next() at the limit less the guard = %+v; want a renewal", a)
			}
			continue
		}
		if a.lost == nil || a.lost.Reason != leasestore.Lapsed || a.lost.Worker != 3 || a.lost.Epoch != 7 {
			t.Errorf("next() %d ms past the limit less the guard = %+v; want the row lost: lapsed", test.after, a)
		}
		if a := b.next(); a.claim == nil {
			t.Errorf("next() after that = %+v; want a claim at once", a)
		}
	}
	b := newBench(t, 0)
	limit := b.confirm().until
	b.pass((limit - b.wall).Duration() + time.Hour)
	if a := b.next(); a.renewal == nil {
		t.Errorf("next() an hour past the limit, no guard = %+v; want a renewal: nobody may have taken the row", a)
	}
}

func TestReleaseGivesBackWhatWasNotUsed(t *testing.T) {
	b := newBench(t, 0)
	if _, held := b.release(5); held {
		t.Error("release() before a claim = a release; want none")
	}
	from := b.confirm().from
	if _, err := b.store(b.request()); err != nil { // done, and its reply lost
		t.Fatal(err)
	}
	b.done(leasestore.Reply{}, errStoreAway, b.wall, b.mono)
	r, held := b.release(from + 77)
	if !held || r.End != from+77 || r.Worker != 3 || r.Epoch != 7 || len(r.Known) != 2 {
		t.Fatalf("release() = %+v, %v; want the end %d and both nonces known", r, held, from+77)
	}
	row, err := r.Apply(b.row)
	if err != nil || row.Until != from+77 || row.Owner != "" || row.Epoch != 8 {
		t.Errorf("Apply(release) = %+v, %v; want the row free from %d", row, err, from+77)
	}
	if _, held := b.release(5); held {
		t.Error("second release() = a release; want none")
	}
}

// Times before the lease belong to earlier ones. A release must not give them away.
func TestReleaseNeverGivesBackTimeBeforeTheLease(t *testing.T) {
	for _, guard := range []leasestore.Millis{0, 1000} {
		b := newBench(t, guard)
		from := b.confirm().from
		if r, held := b.release(0); !held || r.End != from {
			t.Errorf("guard %d: release(0) = %+v; want End %d, where the lease begins", guard, r, from)
		}
	}
}

func TestDoneWithoutARequestDoesNothing(t *testing.T) {
	b := newBench(t, 0)
	b.confirm()
	if o := b.done(leasestore.Reply{Row: leasestore.Row{Until: 1 << 60}}, nil, b.wall, b.mono); o != (outcome{}) {
		t.Errorf("done() without a request = %+v; want nothing", o)
	}
}

// A store may read its clock, then the row, and write long after. Meanwhile the row's
// holder can renew, and the store can forget that.
func TestGuardCountsFromWhenTheAnswerToAClaimCame(t *testing.T) {
	const guard = 1000
	for _, test := range []struct {
		took time.Duration
		step leasestore.Millis // of the clock, meanwhile
		want bool
	}{
		{0, 0, true},
		{3 * time.Second, 0, true},
		{4 * time.Second, 0, true}, // a quarter of the window, when the claim is given up
		{4*time.Second + time.Millisecond, 0, false},
		{time.Second, -5000, true},
		{0, 5000, false}, // the machine was suspended, or the clock was set
	} {
		b := newBench(t, guard)
		a := b.request()
		reply, err := b.store(a)
		b.pass(test.took)
		b.wall += test.step
		o := b.done(reply, err, b.wall, b.mono)
		if o.install != test.want {
			t.Errorf("done(claim) after %v, step %d = %+v; want a term: %t", test.took, test.step, o, test.want)
			continue
		}
		if !test.want {
			if o.failed == nil || b.held {
				t.Errorf("done(claim) after %v, step %d = %+v; want a failure", test.took, test.step, o)
			}
			continue
		}
		if want := max(b.wall, a.claim.Now, reply.Now) + benchWindow + guard; o.from != want {
			t.Errorf("a lease after %v, step %d begins at %d; want %d, a window and the guard after the answer", test.took, test.step, o.from, want)
		}
	}
}

// The store may look at its clock before the limit, and write after it.
func TestGuardedLeaseBelievesNoRenewalAfterItHasLapsed(t *testing.T) {
	const guard = 1000
	for _, after := range []leasestore.Millis{0, 1} {
		b := newBench(t, guard)
		b.confirm()
		b.confirm()
		a := b.request()
		reply, err := b.store(a)
		b.wall = a.renewal.Until - guard + after
		o := b.done(reply, err, b.wall, b.mono)
		if lapsed := after > 0; lapsed != (o.lost != nil && o.lost.Reason == leasestore.Lapsed && o.seal) || lapsed == o.extend {
			t.Errorf("done(renewal) %d ms past the limit less the guard = %+v; want it lapsed: %t", after, o, lapsed)
		}
	}
}
