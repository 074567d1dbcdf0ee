package core

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/snowkey/snowkey/types"
)

// A tenant is a Worker whose terms a test sets by hand.
type tenant struct {
	binding *Binding
	refuse  error
	clock   func() time.Time
	space   string

	closes int
	live   bool // whether IDs could still be had when Close was called
}

func (w *tenant) Bind(b *Binding) error { w.binding = b; return w.refuse }

func (w *tenant) Close(ctx context.Context) error {
	w.closes++
	_, err := w.binding.g.Next(ctx)
	w.live = !errors.Is(err, ErrClosed)
	return errReleased
}

func (w *tenant) WallClock() func() time.Time { return w.clock }

func (w *tenant) Namespace() string { return w.space }

var errReleased = errors.New("released")

// leased returns a generator without a term yet.
func leased(t *testing.T, config Config) (*Generator, *tenant) {
	t.Helper()
	w := &tenant{}
	config.Worker = w
	if config.Layout == (Layout{}) {
		config.Layout = bubbleLayout(4)
		config.Layout.WorkerBits = 4
	}
	return newTest(t, config, nil), w
}

func (w *tenant) mustReserve(t *testing.T, worker int64, from, until time.Time) *Reservation {
	t.Helper()
	r, err := w.binding.Reserve(worker, from, until)
	if err != nil {
		t.Fatalf("Reserve(%d, %v, %v) = %v", worker, from, until, err)
	}
	return r
}

func mustExtend(t *testing.T, r *Reservation, until time.Time) {
	t.Helper()
	if err := r.Extend(until); err != nil {
		t.Fatalf("Extend(%v) = %v", until, err)
	}
}

const ms = time.Millisecond

func TestEveryIDOfAReservationLiesInIt(t *testing.T) {
	for _, rollback := range []Rollback{Continue, Backfill} {
		for _, unit := range []time.Duration{ms, 10 * ms, 100 * time.Microsecond, 7 * ms / 2} {
			synctest.Test(t, func(t *testing.T) {
				l := bubbleLayout(3)
				l.Unit, l.TimeBits, l.WorkerBits = unit, 50, 4
				g, w := leased(t, Config{Layout: l, Rollback: rollback, MaxLeaseWait: ms, RunAhead: 10 * ms})
				// Neither is on a tick of the longer units.
				from, until := time.Now().Add(13*ms), time.Now().Add(58*ms)
				r := w.mustReserve(t, 5, from, until)
				var last types.Snowflake
				n := 0
				for {
					id, err := g.Next(t.Context())
					if err != nil {
						if id != 0 || !errors.Is(err, ErrReservationExhausted) {
							t.Fatalf("%v, %v: Next() after %d = %d, %v; want 0, ErrReservationExhausted", rollback, unit, n, id, err)
						}
						break
					}
					p := l.Parts(id)
					if p.Worker != 5 || p.Time.Before(from) || p.Time.Add(unit).After(until) || id <= last && rollback == Continue {
						t.Fatalf("%v, %v: Next() = %+v after %d; want worker 5, ticks within %v..%v", rollback, unit, p, last, from, until)
					}
					last = id
					n++
				}
				first, limit := r.from(from)>>l.SequenceBits, r.before(until)>>l.SequenceBits
				if want := int(limit-first) << l.SequenceBits; n != want && rollback == Continue {
					t.Errorf("%v, %v: %d IDs; want all %d of the reservation", rollback, unit, n, want)
				}
				if end := r.Seal(); end.After(until) || end.Before(l.Parts(last).Time.Add(unit)) || end.Nanosecond()%1e6 != 0 {
					t.Errorf("%v, %v: Seal() = %v; want a whole ms, not before the end of the last tick %v, nor after %v", rollback, unit, end, l.Parts(last).Time, until)
				}
			})
		}
	}
}

func TestExtendLetsWaitersGoOn(t *testing.T) {
	for _, rollback := range []Rollback{Continue, Refuse, Backfill} {
		synctest.Test(t, func(t *testing.T) {
			g, w := leased(t, Config{Rollback: rollback})
			now := time.Now()
			r := w.mustReserve(t, 1, now, now.Add(2*ms))
			var waiting sync.WaitGroup
			for range 8 {
				waiting.Go(func() {
					ids := make([]types.Snowflake, 40) // 32 are reserved
					if err := g.Fill(context.Background(), ids); err != nil {
						t.Errorf("%v: Fill() = %v; want IDs", rollback, err)
					}
				})
				waiting.Go(func() {
					if _, err := g.Next(context.Background()); err != nil {
						t.Errorf("%v: Next() = %v; want an ID", rollback, err)
					}
				})
			}
			time.Sleep(4 * time.Second)
			mustExtend(t, r, now.Add(ms)) // earlier: ignored
			if got, want := g.Stats().Reserved, now.Add(2*ms); !got.Equal(want) {
				t.Errorf("%v: Stats().Reserved = %v; want %v", rollback, got, want)
			}
			mustExtend(t, r, time.Now().Add(time.Second))
			began := time.Now()
			waiting.Wait()
			if took := time.Since(began); took > 50*ms {
				t.Errorf("%v: the waiters went on %v after Extend; want at once", rollback, took)
			}
		})
	}
}

func TestAtTheLimitACallWaitsForCtxOrMaxLeaseWait(t *testing.T) {
	for _, rollback := range []Rollback{Continue, Backfill} {
		synctest.Test(t, func(t *testing.T) {
			for _, test := range []struct {
				config, ctx, want time.Duration
			}{
				{0, time.Hour, 5 * time.Second},
				{0, time.Second, time.Second},
				{time.Minute, time.Hour, time.Minute},
				{-1, time.Hour, time.Hour},
			} {
				g, w := leased(t, Config{Rollback: rollback, MaxLeaseWait: test.config})
				for _, state := range []string{"no term yet", "at the limit", "sealed"} {
					switch state {
					case "at the limit":
						w.mustReserve(t, 1, time.Now().Add(time.Hour), time.Now())
					case "sealed":
						w.binding.g.held.Seal()
					}
					for name, call := range map[string]func(ctx context.Context) error{
						"Next": func(ctx context.Context) error {
							id, err := g.Next(ctx)
							if id != 0 {
								t.Errorf("Next() = %d; want 0", id)
							}
							return err
						},
						"Fill": func(ctx context.Context) error { return g.Fill(ctx, make([]types.Snowflake, 3)) },
					} {
						ctx, cancel := context.WithTimeout(context.Background(), test.ctx)
						began := time.Now()
						err := call(ctx)
						cancel()
						if took := time.Since(began); took != test.want || !errors.Is(err, ErrReservationExhausted) || errors.Is(err, context.DeadlineExceeded) != (test.ctx <= test.want) {
							t.Errorf("%v, %s, MaxLeaseWait %v, ctx %v: %s() = %v after %v; want ErrReservationExhausted after %v",
								rollback, state, test.config, test.ctx, name, err, took, test.want)
						}
					}
				}
			}
		})
	}
}

// A wall clock at the limit or beyond is ignored. IDs go on from the last one at
// the pace of the monotonic clock. They return to the wall clock when it is below
// the limit.
func TestAClockBeyondTheLimitIsIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := &stepper{}
		w := &tenant{}
		l := bubbleLayout(4)
		g := newTest(t, Config{Layout: l, Worker: w}, clock)
		start := time.Now()
		r := w.mustReserve(t, 0, start, start.Add(time.Minute))
		mustNext(t, g)
		clock.by(365 * 24 * time.Hour)
		for range 5 { // 5 s
			time.Sleep(time.Second)
			for range 100 {
				id := mustNext(t, g)
				if at := l.Parts(id).Time; at.After(time.Now().Add(defaultRunAhead)) || at.Before(start) {
					t.Fatalf("Next() with the clock a year fast has time %v; want %v at most", at, time.Now())
				}
			}
		}
		if next := r.Next(); next.After(time.Now().Add(defaultRunAhead + ms)) {
			t.Errorf("Next() = %v; want the real time %v", next, time.Now())
		}
		clock.by(-365 * 24 * time.Hour)
		time.Sleep(time.Second)
		if at := l.Parts(mustNext(t, g)).Time; time.Until(at).Abs() > defaultRunAhead {
			t.Errorf("Next() has time %v; want that of the clock, which is right again: %v", at, time.Now())
		}
	})
}

// So it is when the term begins. The first ID is at the beginning of the reservation,
// whether the wall clock is beyond its end or before its beginning.
func TestAReservationBeginsAtOnceWhereverTheClockIs(t *testing.T) {
	for _, off := range []time.Duration{-time.Hour, -time.Second, 0, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			clock := &stepper{}
			w := &tenant{}
			l := bubbleLayout(4)
			g := newTest(t, Config{Layout: l, Worker: w}, clock)
			clock.by(off)
			start := time.Now()
			w.mustReserve(t, 0, start, start.Add(time.Minute))
			id := mustNext(t, g)
			if took := time.Since(start); took != 0 || !l.Parts(id).Time.Equal(start) {
				t.Errorf("Next() with the clock off by %v has time %v after %v; want the start of the reservation, %v, at once", off, l.Parts(id).Time, took, start)
			}
		})
	}
}

func TestIDsIncreaseAcrossReservations(t *testing.T) {
	for _, gap := range []time.Duration{-time.Hour, -ms, 0, ms, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			g, w := leased(t, Config{})
			until := time.Now().Add(2 * time.Hour)
			old := w.mustReserve(t, 9, time.Now(), until)
			last := mustNext(t, g)
			for range 20 { // beyond one tick
				last = mustNext(t, g)
			}
			from := g.Layout().Parts(last).Time.Add(gap)
			w.mustReserve(t, 2, from, until)
			id := mustNext(t, g)
			if p := g.Layout().Parts(id); id <= last || p.Worker != 2 || p.Time.Before(from) {
				t.Errorf("Next() after a new reservation from %v = %+v; want worker 2, more than %+v", from, p, g.Layout().Parts(last))
			}
			// The old one is over, whatever its owner still does with it.
			mustExtend(t, old, until.Add(time.Hour))
			if end := old.Seal(); end.Before(g.Layout().Parts(last).Time.Add(ms)) || end.After(until) {
				t.Errorf("Seal() = %v; want the end of the last tick, %v", end, g.Layout().Parts(last).Time.Add(ms))
			}
			if next := mustNext(t, g); next <= id {
				t.Errorf("Next() = %d; want more than %d", next, id)
			}
		})
	}
}

func TestSealOfAnUnusedReservationGivesItBackWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, w := leased(t, Config{})
		from := time.Now().Add(time.Second)
		r := w.mustReserve(t, 1, from, from.Add(time.Minute))
		if end := r.Seal(); !end.Equal(from) {
			t.Errorf("Seal() of an unused reservation from %v = %v; want its beginning", from, end)
		}
		// Under the loss guard a reservation may begin after its limit.
		r = w.mustReserve(t, 1, from.Add(time.Hour), from.Add(time.Minute))
		if end := r.Seal(); end.After(from.Add(time.Minute)) {
			t.Errorf("Seal() = %v; want its limit, %v, at most", end, from.Add(time.Minute))
		}
	})
}

// Seal rounds up, to whole milliseconds: a tick may end within one.
func TestSealEndsAtTheFirstMillisecondAfterTheLastTick(t *testing.T) {
	for _, unit := range []time.Duration{time.Microsecond, 700 * time.Microsecond, time.Millisecond, 3500 * time.Microsecond, 12345678} {
		for _, off := range []time.Duration{0, 1, 300 * time.Microsecond, 999999} {
			l := Layout{Epoch: time.Now().Add(-time.Hour).Truncate(time.Second).Add(off), Unit: unit, TimeBits: 42, WorkerBits: 5, SequenceBits: 3}
			g, w := leased(t, Config{Layout: l})
			from := time.Now().Truncate(time.Millisecond)
			r := w.mustReserve(t, 3, from, from.Add(time.Minute))
			var last types.Snowflake
			for range 17 { // three ticks
				id, err := g.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				last = id
			}
			end := l.Parts(last).Time.Add(unit)
			if got := r.Seal(); got.Before(end) || got.Sub(end) >= time.Millisecond || got.Nanosecond()%1e6 != 0 {
				t.Errorf("unit %v, epoch %v: Seal() = %v; want the first whole millisecond that is not before %v", unit, l.Epoch, got, end)
			}
		}
	}
}

func TestCloseSealsAndThenClosesItsWorker(t *testing.T) {
	for _, rollback := range []Rollback{Continue, Backfill} {
		synctest.Test(t, func(t *testing.T) {
			g, w := leased(t, Config{Rollback: rollback})
			w.mustReserve(t, 1, time.Now(), time.Now().Add(time.Minute))
			mustNext(t, g)
			for range 2 {
				if err := g.Close(t.Context()); err != errReleased || w.closes != 1 || w.live {
					t.Errorf("%v: Close() = %v, the worker closed %d times, with a live generator: %v; want its error, once, sealed", rollback, err, w.closes, w.live)
				}
			}
			if r, err := w.binding.Reserve(2, time.Now(), time.Now().Add(time.Hour)); r != nil || !errors.Is(err, ErrClosed) {
				t.Errorf("%v: Reserve(closed) = %v, %v; want ErrClosed", rollback, r, err)
			}
			if id, err := g.Next(t.Context()); id != 0 || !errors.Is(err, ErrClosed) {
				t.Errorf("%v: Next(closed) = %d, %v; want ErrClosed at once", rollback, id, err)
			}
		})
	}
}

func TestCloseWakesCallersThatWaitForTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := leased(t, Config{MaxLeaseWait: -1})
		var waiting sync.WaitGroup
		waiting.Go(func() {
			if id, err := g.Next(context.Background()); id != 0 || !errors.Is(err, ErrClosed) {
				t.Errorf("Next() = %d, %v; want ErrClosed", id, err)
			}
		})
		synctest.Wait()
		_ = g.Close(t.Context())
		waiting.Wait()
	})
}

func TestAWorkerThatClosesItsBindingEndsEveryWait(t *testing.T) {
	for _, rollback := range []Rollback{Continue, Backfill} {
		synctest.Test(t, func(t *testing.T) {
			g, w := leased(t, Config{Rollback: rollback})
			wantClosed := func(state string, took time.Duration) {
				began := time.Now()
				if id, err := g.Next(t.Context()); id != 0 || !errors.Is(err, ErrClosed) || time.Since(began) != took {
					t.Errorf("%v, %s: Next() = %d, %v after %v; want 0, ErrClosed after %v", rollback, state, id, err, time.Since(began), took)
				}
			}
			w.mustReserve(t, 1, time.Now(), time.Now())
			time.AfterFunc(time.Second, w.binding.Close)
			wantClosed("at the limit", time.Second)
			wantClosed("later", 0)
			if r, err := w.binding.Reserve(1, time.Now(), time.Now().Add(time.Hour)); r != nil || !errors.Is(err, ErrClosed) {
				t.Errorf("%v: Reserve(closed) = %v, %v; want ErrClosed", rollback, r, err)
			}
			w.binding.Close()
			if err := g.Close(t.Context()); err != errReleased || w.closes != 1 {
				t.Errorf("%v: Close() = %v, the worker closed %d times; want its error, once", rollback, err, w.closes)
			}
		})
	}
}

func TestABindErrorFailsNew(t *testing.T) {
	w := &tenant{refuse: errReleased}
	if g, err := New(Config{Worker: w}); g != nil || !errors.Is(err, errReleased) || w.closes != 0 {
		t.Errorf("New() = %v, %v; want the error of Bind", g, err)
	}
}

func TestReserveRefusesAWorkerOutsideTheLayout(t *testing.T) {
	_, w := leased(t, Config{})
	for _, worker := range []int64{-1, 16} {
		var bad *ValueError
		if r, err := w.binding.Reserve(worker, time.Now(), time.Now().Add(time.Hour)); r != nil || !errors.As(err, &bad) || !strings.Contains(err.Error(), "0..15") {
			t.Errorf("Reserve(%d) = %v, %v; want a *ValueError with the range 0..15", worker, r, err)
		}
	}
}

func TestTheWorkersClockIsTheWallClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &tenant{clock: func() time.Time { return time.Now().Add(time.Hour) }}
		l := bubbleLayout(4)
		g, err := New(Config{Layout: l, Worker: w})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close(t.Context())
		w.mustReserve(t, 0, time.Now(), time.Now().Add(2*time.Hour))
		time.Sleep(time.Second)
		if id := mustNext(t, g); l.Parts(id).Time.Before(time.Now().Add(time.Hour)) {
			t.Errorf("Next() has time %v; want that of the worker's clock, an hour after %v", l.Parts(id).Time, time.Now())
		}
	})
}

// The worker number and the range of an ID are of one reservation. Many goroutines
// take IDs while the lease goes from worker to worker. All IDs of worker w lie in
// the stretches that w had.
func TestWorkerAndRangeAlwaysMatch(t *testing.T) {
	for _, rollback := range []Rollback{Continue, Backfill} {
		l := Layout{Epoch: time.Now().Add(-time.Hour), Unit: ms, TimeBits: 41, WorkerBits: 4, SequenceBits: 10}
		w := &tenant{}
		g := newTest(t, Config{Layout: l, Worker: w, Rollback: rollback, MaxLeaseWait: -1}, nil)
		type stretch struct {
			worker      int64
			from, until types.Snowflake
		}
		var stretches []stretch
		var readers sync.WaitGroup
		ctx, stop := context.WithCancel(context.Background())
		got := make([][]types.Snowflake, 4)
		for i := range got {
			readers.Go(func() {
				few := make([]types.Snowflake, 3)
				for ctx.Err() == nil && len(got[i]) < 100_000 {
					if id, err := g.Next(ctx); err == nil {
						got[i] = append(got[i], id)
					}
					if g.Fill(ctx, few) == nil {
						got[i] = append(got[i], few...)
					}
				}
			})
		}
		from := time.Now()
		reservations := 100
		if *large {
			reservations = 300
		}
		for k := range reservations {
			worker := int64(k % 16)
			until := from.Add(2 * ms)
			r := w.mustReserve(t, worker, from, until)
			for range k % 3 {
				until = until.Add(2 * ms)
				mustExtend(t, r, until)
			}
			for time.Now().Before(from.Add(ms)) {
				time.Sleep(100 * time.Microsecond)
			}
			stretches = append(stretches, stretch{worker, l.Min(from.Add(ms - 1)), l.Min(until)})
			from = until // and sometimes the next one begins where this one was sealed
			if k%2 == 0 {
				from = r.Seal()
			}
		}
		stop()
		_ = g.Close(context.Background())
		readers.Wait()
		total := 0
		for _, ids := range got {
			total += len(ids)
			for _, id := range ids {
				worker, tick := l.Parts(id).Worker, id
				fits := false
				for _, s := range stretches {
					fits = fits || s.worker == worker && tick >= s.from && tick < s.until
				}
				if !fits {
					t.Fatalf("%v: Next() = %+v; want a time that its worker had", rollback, l.Parts(id))
				}
			}
		}
		if total == 0 {
			t.Errorf("%v: no ID was taken", rollback)
		}
		requireDistinct(t, l, got...)
	}
}

// A slow store must not hold up a second Close beyond its own context.
func TestASecondCloseWaitsForTheFirstOrItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &slowTenant{release: make(chan struct{})}
		g, err := New(Config{Layout: bubbleLayout(4), Worker: w})
		if err != nil {
			t.Fatal(err)
		}
		var both sync.WaitGroup
		both.Go(func() {
			if err := g.Close(context.Background()); err != errReleased {
				t.Errorf("Close() = %v; want the worker's error", err)
			}
		})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := g.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close() during another = %v; want DeadlineExceeded", err)
		}
		both.Go(func() {
			if err := g.Close(context.Background()); err != errReleased {
				t.Errorf("Close() during another = %v; want the first one's result", err)
			}
		})
		synctest.Wait()
		close(w.release)
		both.Wait()
		if err := g.Close(ctx); err != errReleased {
			t.Errorf("Close(done ctx) after another = %v; want the first one's result", err)
		}
	})
}

type slowTenant struct {
	tenant
	release chan struct{}
}

func (w *slowTenant) Close(context.Context) error {
	<-w.release
	return errReleased
}

// Calls wait for a reservation that begins ahead of the clock, as with the loss
// guard, under every policy. They wait within MaxLeaseWait. There is no error of a
// step back, since no clock has stepped.
func TestAReservationAheadOfTheClockIsWaitedFor(t *testing.T) {
	for _, rollback := range []Rollback{Continue, Refuse, Wait, Backfill} {
		for _, ahead := range []time.Duration{50 * ms, 3 * time.Second, time.Hour} {
			synctest.Test(t, func(t *testing.T) {
				g, w := leased(t, Config{Rollback: rollback})
				from := time.Now().Add(ahead)
				w.mustReserve(t, 1, from, from.Add(time.Minute))
				began := time.Now()
				id, err := g.Next(t.Context())
				took := time.Since(began)
				switch {
				case rollback == Continue:
					if err != nil || took != 0 {
						t.Errorf("Continue, %v ahead: Next() = %v after %v; want an ID at once", ahead, err, took)
					}
				case ahead < time.Minute:
					if err != nil || took > ahead || took < ahead-2*defaultRunAhead || g.Layout().Parts(id).Time.Before(from) {
						t.Errorf("%v, %v ahead: Next() = %d, %v after %v; want an ID when the clock is there", rollback, ahead, id, err, took)
					}
				default:
					if id != 0 || !errors.Is(err, ErrReservationExhausted) || took != defaultLeaseWait {
						t.Errorf("%v, %v ahead: Next() = %d, %v after %v; want ErrReservationExhausted after %v", rollback, ahead, id, err, took, defaultLeaseWait)
					}
				}
			})
		}
	}
}

// But if it is the generator that has been there already, the clock has stepped
// back, and the policies say so.
func TestANewReservationAfterAStepBackIsAsAfterAnyStepBack(t *testing.T) {
	for _, rollback := range []Rollback{Refuse, Backfill} {
		synctest.Test(t, func(t *testing.T) {
			clock := &stepper{}
			w := &tenant{}
			g := newTest(t, Config{Layout: bubbleLayout(4), Worker: w, Rollback: rollback}, clock)
			w.mustReserve(t, 0, time.Now(), time.Now().Add(2*time.Hour))
			mustNext(t, g)
			clock.by(-time.Hour)
			w.mustReserve(t, 0, time.Now().Add(-time.Hour), time.Now().Add(2*time.Hour))
			began := time.Now()
			if id, err := g.Next(t.Context()); id != 0 || !errors.Is(err, ErrClockBack) || time.Since(began) != 0 {
				t.Errorf("%v: Next() = %d, %v after %v; want a ClockBackError at once", rollback, id, err, time.Since(began))
			}
		})
	}
}

// A call that has read a clock which was wrong for a moment does not wait for the
// lease to get there.
func TestBackfillLooksAtTheClockAgainWhileItWaitsForTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := &stepper{}
		w := &tenant{}
		g := newTest(t, Config{Layout: bubbleLayout(4), Worker: w, Rollback: Backfill, MaxLeaseWait: -1}, clock)
		w.mustReserve(t, 0, time.Now(), time.Now().Add(time.Minute))
		mustNext(t, g)
		clock.by(365 * 24 * time.Hour)
		var waiting sync.WaitGroup
		waiting.Go(func() {
			began := time.Now()
			if _, err := g.Next(context.Background()); err != nil || time.Since(began) > time.Second+2*time.Duration(maxWait) {
				t.Errorf("Next() = %v after %v; want an ID soon after the clock is right", err, time.Since(began))
			}
		})
		time.Sleep(time.Second)
		clock.by(-365 * 24 * time.Hour)
		waiting.Wait()
	})
}

// The limit may be raised after a call has seen it, and before it waits for that.
func TestBackfillDoesNotWaitForALimitThatWasRaised(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, w := leased(t, Config{Rollback: Backfill})
		r := w.mustReserve(t, 1, time.Now(), time.Now())
		ring := g.ring.Load()
		wall, _ := ring.clock.both()
		n, _, err := ring.reserveAt(wall, 1)
		if !errors.Is(err, errBeyond) {
			t.Fatalf("reserveAt() = %v; want errBeyond", err)
		}
		mustExtend(t, r, time.Now().Add(time.Minute))
		began := time.Now()
		if err := ring.await(t.Context(), n, wall, new(waited)); err != nil || time.Since(began) != 0 {
			t.Errorf("await() = %v after %v; want nil at once", err, time.Since(began))
		}
	})
}

func TestWaitsAreCountedAcrossReservations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, w := leased(t, Config{})
		now := time.Now()
		for k := range 3 {
			w.mustReserve(t, int64(k), now, now.Add(time.Hour))
			if err := g.Fill(t.Context(), make([]types.Snowflake, 2000)); err != nil {
				t.Fatal(err)
			}
			if waits := g.Stats().Waits; waits <= uint64(k) {
				t.Errorf("Stats().Waits = %d after %d reservations; want more than before", waits, k+1)
			}
		}
	})
}

// tenantOf returns a generator without a number, whose IDs are of a namespace.
func tenantOf(t *testing.T, l Layout, namespace string) (*Generator, *tenant) {
	t.Helper()
	w := &tenant{space: namespace}
	return newTest(t, Config{Layout: l, Worker: w}, nil), w
}

func TestAFixedAndALeasedNumberAreNotOneNumber(t *testing.T) {
	for _, rollback := range []Rollback{Continue, Backfill} {
		synctest.Test(t, func(t *testing.T) {
			l := bubbleLayout(12)
			now := time.Now()
			_, lease := tenantOf(t, l, "orders")
			lease.mustReserve(t, 3, now, now.Add(time.Minute))
			config := Config{Layout: l, Worker: StaticWorker(3), Rollback: rollback}
			if g, err := New(config); g != nil || !errors.Is(err, ErrWorkerInUse) || !strings.Contains(err.Error(), "worker 3") {
				t.Fatalf("%v: New(fixed, as a lease has) = %v, %v; want ErrWorkerInUse that names it", rollback, g, err)
			}

			config.Worker = StaticWorker(4)
			g := newTest(t, config, nil)
			if r, err := lease.binding.Reserve(4, now.Add(time.Hour), now.Add(2*time.Hour)); r != nil || !errors.Is(err, ErrWorkerInUse) {
				t.Fatalf("%v: Reserve(a fixed one) = %v, %v; want ErrWorkerInUse", rollback, r, err)
			}
			if id, err := lease.binding.g.Next(context.Background()); id != 0 || !errors.Is(err, ErrReservationExhausted) {
				t.Errorf("%v: Next() after a refused Reserve = %d, %v; want ErrReservationExhausted", rollback, id, err)
			}

			// The other one has both numbers once they are free, and starts above.
			last := mustNext(t, g)
			_ = g.Close(t.Context())
			lease.mustReserve(t, 4, now, now.Add(time.Minute))
			if id := mustNext(t, lease.binding.g); id <= last {
				t.Errorf("%v: Next(leased, was fixed) = %d; want more than %d", rollback, id, last)
			}
			for range 1 << 15 { // beyond what a restart leaves free
				last = mustNext(t, lease.binding.g)
			}
			_ = lease.binding.g.Close(t.Context())
			if id := mustNext(t, newTest(t, config, nil)); id <= last {
				t.Errorf("%v: Next(fixed, was leased) = %d; want more than %d", rollback, id, last)
			}
		})
	}
}

func TestNoTwoReservationsShareATimeOfAWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		at := func(s int) time.Time { return now.Add(time.Duration(s) * time.Second) }
		for _, test := range []struct {
			namespace   string
			worker      int64
			from, until int
			want        error
		}{
			{"orders", 2, 60, 120, ErrWorkerInUse}, // the same
			{"orders", 2, 0, 61, ErrWorkerInUse},
			{"orders", 2, 119, 200, ErrWorkerInUse},
			{"", 2, 70, 80, ErrWorkerInUse}, // of any namespace
			{"orders", 2, 0, 60, nil},       // taken over, before or after
			{"orders", 2, 120, 180, nil},
			{"orders", 2, 130, 80, nil}, // under the loss guard
			{"orders", 3, 60, 120, nil},
			{"invoices", 2, 60, 120, nil},
		} {
			l := bubbleLayout(4)
			_, one := tenantOf(t, l, "orders")
			g, other := tenantOf(t, l, test.namespace)
			r := one.mustReserve(t, 2, at(60), at(90))
			if err := r.Extend(at(120)); err != nil {
				t.Fatalf("Extend() = %v", err)
			}
			if _, err := other.binding.Reserve(test.worker, at(test.from), at(test.until)); !errors.Is(err, test.want) {
				t.Errorf("Reserve(%q, %d, %d s, %d s) beside worker 2 of orders, 60..120 s = %v; want %v", test.namespace, test.worker, test.from, test.until, err, test.want)
			}
			// Once it is sealed nothing is in the way.
			r.Seal()
			if _, err := other.binding.Reserve(test.worker, at(test.from), at(test.until)); err != nil {
				t.Errorf("Reserve(%+v) when the other one is sealed = %v; want nil", test, err)
			}
			forget(g)
			forget(one.binding.g)
		}
	})
}

func TestExtendStopsAtTheTimeOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := bubbleLayout(4)
		now := time.Now()
		g, one := tenantOf(t, l, "orders")
		_, other := tenantOf(t, l, "orders")
		r := one.mustReserve(t, 2, now, now.Add(time.Minute))
		taken := other.mustReserve(t, 2, now.Add(time.Minute), now.Add(2*time.Minute))
		if err := r.Extend(now.Add(time.Minute + ms)); !errors.Is(err, ErrWorkerInUse) {
			t.Errorf("Extend(into another's time) = %v; want ErrWorkerInUse", err)
		}
		if got := g.Stats().Reserved; !got.Equal(now.Add(time.Minute)) {
			t.Errorf("Stats().Reserved = %v after a refused Extend; want what it was, %v", got, now.Add(time.Minute))
		}
		taken.Seal()
		if err := r.Extend(now.Add(time.Hour)); err != nil {
			t.Errorf("Extend() when the other one is sealed = %v; want nil", err)
		}
		r.Seal()
		if err := r.Extend(now.Add(2 * time.Hour)); err != nil {
			t.Errorf("Extend(sealed) = %v; want nil", err)
		}
	})
}

// Two stores, one after the other, know nothing of each other's times.
func TestAReservationStartsAboveThoseBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := bubbleLayout(4)
		now := time.Now()
		_, one := tenantOf(t, l, "orders")
		one.mustReserve(t, 2, now, now.Add(time.Minute))
		var last types.Snowflake
		for range 100 {
			last = mustNext(t, one.binding.g)
		}
		_ = one.binding.g.Close(t.Context())
		for namespace, above := range map[string]bool{"orders": true, "invoices": false} {
			g, other := tenantOf(t, l, namespace)
			other.mustReserve(t, 2, now, now.Add(time.Minute))
			if id := mustNext(t, g); id > last != above {
				t.Errorf("Next(%s) = %d after %d of orders; want more: %v", namespace, id, last, above)
			}
		}
	})
}
