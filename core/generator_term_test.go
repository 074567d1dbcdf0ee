package core

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/snowkey/snowkey/types"
)

// These tests put one goroutine between look and take of another. They call the steps one by one,
// because real goroutines cannot be scheduled on demand.

// takeAfter is what next does after look has returned last and true.
func takeAfter(ctx context.Context, t *term, last uint64) (types.Snowflake, error) {
	n, ok := t.take(last)
	if ok {
		return t.compose(n), nil
	}
	return t.settle(ctx, n, new(waited))
}

// Callers that looked while the last number of the ceiling's tick was free all add. One of them
// gets it; the others are beyond the ceiling, and return only when the ceiling has reached them.
// No other call takes a number meanwhile.
func TestANumberBeyondTheCeilingWaitsForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := bubbleLayout(2)
		g := newTest(t, Config{Layout: l}, nil)
		term := g.term.Load()
		mustNext(t, g)
		// Up to the last tick of the ceiling, with one number left in it.
		for ceiling := uint64(time.Now().Add(defaultRunAhead).Sub(l.Epoch)/l.Unit)<<l.SequenceBits | 3; number(g) < ceiling-1; {
			mustNext(t, g)
		}
		last, ok := term.look(term.now())
		if !ok {
			t.Fatalf("look() below the ceiling = %d, false; want true", last)
		}
		began := time.Now()
		for i, wait := range []time.Duration{0, time.Millisecond, time.Millisecond} {
			id, err := takeAfter(context.Background(), term, last)
			if err != nil || time.Since(began) != wait {
				t.Errorf("take(%d) by caller %d = %d, %v after %v; want an ID after %v", last, i, id, err, time.Since(began), wait)
			}
			if at := l.Parts(id).Time; at.After(time.Now().Add(defaultRunAhead)) {
				t.Errorf("take(%d) by caller %d has time %v at %v; want at most 20ms ahead", last, i, at, time.Now())
			}
		}
	})
}

func TestNobodyAddsWhileTheCounterIsBeyondTheCeiling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTest(t, Config{Layout: bubbleLayout(2)}, nil)
		stall(t, g)
		g.term.Load().state.Add(40) // 40 callers that passed the same look
		before := number(g)
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Millisecond)
		defer cancel()
		ids := make([]types.Snowflake, 2)
		if id, err := g.Next(ctx); id != 0 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Next() with the counter 10ms beyond the ceiling = %d, %v; want DeadlineExceeded", id, err)
		}
		if err := g.Fill(ctx, ids); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Fill() with the counter 10ms beyond the ceiling = %v, %v; want DeadlineExceeded", ids, err)
		}
		if after := number(g); after != before {
			t.Errorf("the counter went from %d to %d; want no number taken", before, after)
		}
	})
}

func TestATakeThatMeetsTheSealFails(t *testing.T) {
	g := newTest(t, Config{}, nil)
	mustNext(t, g)
	last, _ := g.term.Load().look(g.term.Load().now())
	_ = g.Close(context.Background())
	for range 3 {
		if id, err := takeAfter(context.Background(), g.term.Load(), last); id != 0 || !errors.Is(err, errSealed) {
			t.Errorf("take(sealed meanwhile) = %d, %v; want 0, errSealed", id, err)
		}
	}
	if last, ok := g.term.Load().look(g.term.Load().now()); ok {
		t.Errorf("look(sealed) = %d, true; want false", last)
	}
}

// With all 63 bits in use the number past the last one is 1<<63. It is neither an
// ID (it would be negative) nor mistaken for the seal.
func TestTakesPastTheLastNumberFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Layout{Epoch: time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC), Unit: time.Millisecond, TimeBits: 35, SequenceBits: 28}
		g := newTest(t, Config{Layout: l, Worker: StaticWorker(0)}, nil)
		time.Sleep(time.Until(l.Exhausted()) - time.Millisecond)
		mustNext(t, g)
		g.term.Load().state.Store(g.term.Load().end - 2)
		last, ok := g.term.Load().look(g.term.Load().now())
		if !ok {
			t.Fatalf("look() before the last number = %d, false; want true", last)
		}
		if id, err := takeAfter(context.Background(), g.term.Load(), last); id != 1<<63-1 || err != nil {
			t.Errorf("take(the last number) = %d, %v; want all 63 bits", id, err)
		}
		for range 3 {
			if id, err := takeAfter(context.Background(), g.term.Load(), last); id != 0 || !errors.Is(err, ErrTimeExhausted) {
				t.Errorf("take(past the last number) = %d, %v; want 0, ErrTimeExhausted", id, err)
			}
		}
		if id, err := g.Next(context.Background()); id != 0 || !errors.Is(err, ErrTimeExhausted) {
			t.Errorf("Next(past the last number) = %d, %v; want 0, ErrTimeExhausted", id, err)
		}
	})
}

func TestFillAcrossTheEndGivesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := bubbleLayout(2)
		l.TimeBits = 35
		g := newTest(t, Config{Layout: l}, nil)
		time.Sleep(time.Until(l.Exhausted()) - 2*time.Millisecond)
		ids := make([]types.Snowflake, 9) // eight are left
		if err := g.Fill(context.Background(), ids); !errors.Is(err, ErrTimeExhausted) || !slices.Equal(ids, make([]types.Snowflake, 9)) {
			t.Errorf("Fill(9 of the last 8) = %v, %v; want zeros, ErrTimeExhausted", ids, err)
		}
	})
}

// A goroutine that is stopped between reading the clocks and storing the offset
// must not undo what others have learnt meanwhile. Here the reading itself is
// used to let another finish in between.
func TestAnOldClockReadingIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := bubbleLayout(2)
		var g *Generator
		var interrupt bool
		step := new(stepper)
		read := func() time.Duration {
			d := step.offset()
			if interrupt { // after the reading, before it is stored
				interrupt = false
				step.by(-time.Hour)
				g.term.Load().resync()
			}
			return d
		}
		var err error
		if g, err = New(Config{Layout: l, Worker: moved{StaticWorker(1), read}}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { forget(g) })
		step.by(3 * time.Hour)
		interrupt = true
		g.term.Load().resync() // reads 3 h, and meanwhile another reads 2 h
		want := time.Now().Add(2 * time.Hour).Sub(l.Epoch)
		if got := time.Duration(g.term.Load().offset.Load() + g.term.Load().clock.monotonic()); got != want {
			t.Errorf("the logical clock shows %v; want %v, the later reading", got, want)
		}
	})
}

// A caller that is looking at the clock when the term is sealed gets ErrClosed,
// not a verdict on the clock.
func TestASealDuringALookAtTheClockIsClosed(t *testing.T) {
	for bits := 1; bits <= 18; bits++ { // where the seal's tick lies on the clock depends on them
		synctest.Test(t, func(t *testing.T) {
			var g *Generator
			interrupt, step := false, new(stepper)
			var err error
			g, err = New(Config{Layout: bubbleLayout(bits), Rollback: Refuse, Worker: moved{StaticWorker(1), func() time.Duration {
				if interrupt {
					interrupt = false
					_ = g.Close(context.Background())
				}
				return step.offset()
			}}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { forget(g) })
			mustNext(t, g)
			time.Sleep(time.Second)
			mustNext(t, g)
			step.by(-time.Hour)
			time.Sleep(time.Millisecond)
			interrupt = true
			if id, err := g.Next(context.Background()); id != 0 || !errors.Is(err, ErrClosed) {
				t.Errorf("%d bits: Next(closed while it reads the clock) = %d, %v; want 0, ErrClosed", bits, id, err)
			}
		})
	}
}

// A clock far past the end has ticks whose bits do not fit above the sequence.
// Shifted out, they would look like early ticks, and the counter would go back.
func TestAClockFarPastTheEndTakesNothingBack(t *testing.T) {
	epoch := time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, rollback := range []Rollback{Continue, Refuse, Wait, Backfill} {
		for _, c := range []struct {
			layout Layout
			steps  []time.Duration // forward, one after the other
		}{
			{Layout{epoch, time.Millisecond, 41, 0, 0, 22, 0}, []time.Duration{1 << 42 * time.Millisecond, time.Hour}},
			{Layout{epoch, time.Millisecond, 41, 0, 0, 22, 0}, []time.Duration{1<<42*time.Millisecond - time.Hour, time.Hour, time.Hour}},
			{Layout{epoch, time.Second, 1, 0, 0, 62, 0}, []time.Duration{time.Second, time.Second, time.Second, time.Second, time.Second}},
		} {
			synctest.Test(t, func(t *testing.T) {
				l := c.layout
				if l.Unit == time.Second { // one that lasts two seconds, from the beginning of the bubble
					l.Epoch = time.Now()
				}
				clock := new(stepper)
				g := newTest(t, Config{Layout: l, Worker: StaticWorker(0), Rollback: rollback}, clock)
				var last types.Snowflake
				take := func() error {
					ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
					defer cancel()
					id, err := g.Next(ctx)
					if err != nil && id != 0 || err == nil && id <= last {
						t.Fatalf("%v, %+v: Next() = %d, %v after %d; want more, or 0 and an error", rollback, l, id, err, last)
					}
					if err == nil {
						last = id
					}
					return err
				}
				if l.Unit == time.Millisecond {
					if err := take(); err != nil {
						t.Fatal(err)
					}
				}
				var err error
				for _, step := range c.steps {
					clock.by(step)
					time.Sleep(2 * l.Unit * 20) // out of the tick of the last number
					err = take()
				}
				if !errors.Is(err, ErrTimeExhausted) {
					t.Errorf("%v, %+v: Next() far past the end = %v; want ErrTimeExhausted", rollback, l, err)
				}
			})
		}
	}
}

// An interrupted counter lets something happen right after the first load of its
// limit or its seal, or right before it is sealed.
type interrupted struct {
	counter
	then func()
}

func (c *interrupted) happen() {
	if then := c.then; then != nil {
		c.then = nil
		then()
	}
}

func (c *interrupted) reserved() uint64 {
	defer c.happen()
	return c.counter.reserved()
}

func (c *interrupted) isSealed() bool {
	defer c.happen()
	return c.counter.isSealed()
}

func (c *interrupted) seal() uint64 {
	c.happen()
	return c.counter.seal()
}

// A number above the limit belongs to the next owner once the term is sealed, so it must not be
// returned, even if the limit is raised after that.
func TestANumberAboveTheLimitAtTheSealIsNotReturned(t *testing.T) {
	for _, rollback := range []Rollback{Continue, Backfill} {
		synctest.Test(t, func(t *testing.T) {
			g, w := leased(t, Config{Rollback: rollback})
			until := time.Now().Add(ms)
			r := w.mustReserve(t, 1, time.Now(), until)
			for range 16 {
				mustNext(t, g)
			}
			n := r.before(until) // what the next caller takes, if it races past the limit
			var end time.Time
			c := &interrupted{counter: r.counter, then: func() {
				end = r.Seal()
				r.counter.extend(n + 16)
			}}
			if err := refusal(c, n, r.end); err == nil || end.After(until) {
				t.Errorf("%v: refusal() of a number at %v = %v, sealed meanwhile with end %v; want an error", rollback, until, err, end)
			}
		})
	}
}

// The limit may be raised, and a number above the old one returned, until the very
// moment of the seal.
func TestTheEndOfASealIsAboveTheLastIDWheneverTheLimitWasRaised(t *testing.T) {
	for _, rollback := range []Rollback{Continue, Backfill} {
		synctest.Test(t, func(t *testing.T) {
			g, w := leased(t, Config{Rollback: rollback})
			until := time.Now().Add(ms)
			r := w.mustReserve(t, 1, time.Now(), until)
			for range 16 {
				mustNext(t, g)
			}
			var at time.Time
			r.counter = &interrupted{counter: r.counter, then: func() {
				mustExtend(t, r, until.Add(time.Minute))
				at = g.Layout().Parts(mustNext(t, g)).Time
			}}
			if end := r.Seal(); end.Before(at.Add(ms)) || at.Before(until) {
				t.Errorf("%v: Seal() = %v after an ID of %v; want the end of its tick", rollback, end, at)
			}
		})
	}
}

// The store is away, and the reserved time is over: at a low rate nearly all of its
// numbers are left. They are not used up, at times that stand still.
func TestNoIDIsFarBehindTheClock(t *testing.T) {
	for _, rollback := range []Rollback{Continue, Refuse, Wait, Backfill} {
		for _, test := range []struct {
			max, want, unit time.Duration
		}{
			{0, time.Second, ms},
			{100 * ms, 100 * ms, ms},
			{1, 1, ms},
			{time.Second, time.Second, 10 * ms},
			{ms, ms, time.Second}, // less than a tick
			{3 * time.Second, 3 * time.Second, time.Second},
		} {
			synctest.Test(t, func(t *testing.T) {
				l := bubbleLayout(12)
				l.Unit = test.unit
				g, w := leased(t, Config{Layout: l, Rollback: rollback, MaxBehind: test.max})
				start := time.Now()
				until := start.Add(10 * time.Second)
				r := w.mustReserve(t, 1, start, until)
				for {
					id, err := g.Next(t.Context())
					if err != nil {
						if id != 0 || !errors.Is(err, ErrReservationExhausted) {
							t.Fatalf("%v, %+v: Next() = %d, %v; want 0, ErrReservationExhausted", rollback, test, id, err)
						}
						break
					}
					at := l.Parts(id).Time
					if behind := time.Since(at.Add(l.Unit)); behind > test.want {
						t.Fatalf("%v, %+v: Next() has time %v at %v; want it at most %v behind", rollback, test, at, time.Now(), test.want)
					}
					if s := g.Stats(); s.Behind != max(0, time.Since(at.Add(l.Unit))) || s.Ahead != max(0, time.Until(at)) {
						t.Fatalf("%v, %+v: Stats() = %+v after an ID of %v at %v", rollback, test, s, at, time.Now())
					}
					time.Sleep(10 * ms)
				}
				if waited := time.Since(until); waited < 5*time.Second || waited > 5*time.Second+test.want+10*ms {
					t.Errorf("%v, %+v: Next() failed %v after the end of the reservation; want MaxBehind and 5s", rollback, test, waited)
				}
				time.Sleep(time.Minute)
				began := time.Now()
				time.AfterFunc(time.Second, func() { mustExtend(t, r, time.Now().Add(time.Hour)) })
				id := mustNext(t, g)
				if took, at := time.Since(began), l.Parts(id).Time; took != time.Second || time.Since(at) >= l.Unit {
					t.Errorf("%v, %+v: Next() has time %v, %v later; want the present, %v, as soon as it is extended", rollback, test, at, took, time.Now())
				}
			})
		}
	}
}

func TestANegativeMaxBehindUsesUpTheReservation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, w := leased(t, Config{MaxBehind: -1})
		w.mustReserve(t, 1, time.Now(), time.Now().Add(time.Second))
		mustNext(t, g)
		time.Sleep(time.Hour)
		for range 1000 {
			mustNext(t, g)
		}
		if got := g.Stats().Behind; got < time.Hour-time.Second {
			t.Errorf("Stats().Behind = %v; want about an hour", got)
		}
	})
}

// A caller that has raced past the limit keeps its number while it waits for the
// lease. If that takes long, the number is of a time long over.
func TestANumberThatFallsBehindIsBurnt(t *testing.T) {
	for _, wait := range []time.Duration{100 * ms, 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			g, w := leased(t, Config{MaxLeaseWait: -1})
			l := g.Layout()
			start := time.Now()
			r := w.mustReserve(t, 1, start, start.Add(ms))
			term := g.term.Load()
			for range 15 {
				mustNext(t, g)
			}
			last, ok := term.look(term.now())
			if !ok {
				t.Fatal("look() = false; want one number left")
			}
			time.AfterFunc(wait, func() { mustExtend(t, r, start.Add(time.Hour)) })
			var both sync.WaitGroup
			for range 2 {
				both.Go(func() {
					id, err := takeAfter(context.Background(), term, last)
					if at := l.Parts(id).Time; err != nil || time.Since(at) > time.Second+l.Unit {
						t.Errorf("take() by one that waited %v for the lease = ID of %v, %v, at %v; want at most 1s behind", wait, at, err, time.Now())
					}
				})
				synctest.Wait()
			}
			both.Wait()
		})
	}
}

// The first part of a slice must not be of a time long over when the last part is
// there. All that a slice takes because it is long is as it was.
func TestAFillThatWaitsForTheLeaseIsNearTheClock(t *testing.T) {
	for _, rollback := range []Rollback{Continue, Backfill} {
		synctest.Test(t, func(t *testing.T) {
			g, w := leased(t, Config{Rollback: rollback})
			l := g.Layout()
			start := time.Now()
			r := w.mustReserve(t, 1, start, start.Add(3*ms))
			time.AfterFunc(3*time.Second, func() { mustExtend(t, r, time.Now().Add(time.Hour)) })
			ids := make([]types.Snowflake, 100) // 48 are reserved
			if err := g.Fill(t.Context(), ids); err != nil {
				t.Fatal(err)
			}
			if at := l.Parts(ids[0]).Time; time.Since(at) > time.Second {
				t.Errorf("%v: Fill() = IDs from %v on, at %v; want at most 1s behind", rollback, at, time.Now())
			}
			ids = make([]types.Snowflake, 16*2000) // 2 s
			began := time.Now()
			if err := g.Fill(t.Context(), ids); err != nil || time.Since(began) > 2100*ms {
				t.Errorf("%v: Fill() of 2 s = %v after %v; want nil", rollback, err, time.Since(began))
			}
		})
	}
}

// The clock is hours behind, so the lease is extended by as much time as passes, and
// each time only its last second is near enough. A slice that needs more never fits.
func TestAFillThatStartsOverEndsWithTheWaitForTheLease(t *testing.T) {
	for _, rollback := range []Rollback{Continue, Backfill} {
		synctest.Test(t, func(t *testing.T) {
			g, w := leased(t, Config{Rollback: rollback})
			r := w.mustReserve(t, 1, time.Now(), time.Now().Add(ms))
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			var renewals sync.WaitGroup
			renewals.Go(func() {
				for ctx.Err() == nil {
					time.Sleep(2500 * ms)
					mustExtend(t, r, time.Now())
				}
			})
			began := time.Now()
			err := g.Fill(ctx, make([]types.Snowflake, 16*2000)) // 2 s
			if took := time.Since(began); !errors.Is(err, ErrReservationExhausted) || took > time.Minute {
				t.Errorf("%v: Fill() = %v after %v; want ErrReservationExhausted after some waits", rollback, err, took)
			}
			cancel()
			renewals.Wait()
		})
	}
}

// Whatever the clocks do, and whenever the lease is extended: by the logical clock no
// ID is too far behind.
func TestNoIDIsFarBehindTheClockWhateverItDoes(t *testing.T) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 9))
			clock := new(stepper)
			w := &tenant{}
			l := bubbleLayout(3)
			g := newTest(t, Config{Layout: l, Worker: w, MaxBehind: 5 * ms, MaxLeaseWait: ms}, clock)
			until := time.Now().Add(20 * ms)
			r := w.mustReserve(t, 0, time.Now(), until)
			var last types.Snowflake
			for range 300 {
				switch random.IntN(8) {
				case 0:
					clock.by(time.Duration(random.IntN(60)-30) * ms)
				case 1, 2:
					if now := time.Now().Add(clock.offset()); now.After(until) || random.IntN(4) == 0 {
						until = now.Add(time.Duration(random.IntN(40)) * ms)
						mustExtend(t, r, until)
					}
				}
				time.Sleep(time.Duration(random.IntN(4000)) * time.Microsecond)
				id, err := g.Next(t.Context())
				if err != nil {
					if !errors.Is(err, ErrReservationExhausted) {
						t.Fatalf("seed %d: Next() = %v", seed, err)
					}
					continue
				}
				term := g.term.Load()
				if now := l.Epoch.Add(time.Duration(term.now())); id <= last || now.Sub(l.Parts(id).Time.Add(l.Unit)) > 5*ms {
					t.Fatalf("seed %d: Next() = an ID of %v after %d, at %v; want more, at most 5ms behind", seed, l.Parts(id).Time, last, now)
				}
				last = id
			}
		})
	}
}
