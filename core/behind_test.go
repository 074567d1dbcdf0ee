package core

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/snowkey/snowkey/types"
)

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
