package core

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/snowkey/snowkey/types"
)

// bubbleLayout has an epoch before 2000-01-01, where the time of a synctest
// bubble begins.
func bubbleLayout(sequenceBits int) Layout {
	return Layout{
		Epoch:    time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC),
		Unit:     time.Millisecond,
		TimeBits: 41, WorkerBits: 4, SequenceBits: sequenceBits,
	}
}

// A stepper is a wall clock that a test moves.
type stepper struct{ ns atomic.Int64 }

func (s *stepper) offset() time.Duration { return time.Duration(s.ns.Load()) }
func (s *stepper) by(d time.Duration)    { s.ns.Add(int64(d)) }

// moved is a Worker that shows the wall clock moved by step.
type moved struct {
	Worker
	step func() time.Duration
}

func (w moved) WallClock() func() time.Time { return movedBy(w.step) }

// movedBy returns the wall clock moved by step, which is called after the clock is read.
func movedBy(step func() time.Duration) func() time.Time {
	return func() time.Time {
		now := time.Now()
		return now.Add(step())
	}
}

// newTest returns a generator that is closed, and forgotten by the registry, when
// the test ends: to the next test it never was.
func newTest(t testing.TB, config Config, clock *stepper) *Generator {
	t.Helper()
	if config.Worker == nil {
		config.Worker = StaticWorker(1)
	}
	if clock != nil {
		config.Worker = moved{config.Worker, clock.offset}
	}
	g, err := New(config)
	if err != nil {
		t.Fatalf("New(%+v) = %v", config, err)
	}
	t.Cleanup(func() { forget(g) })
	return g
}

// forget ends g as a crash does: nothing of it is remembered.
func forget(g *Generator) {
	_ = g.Close(context.Background())
	registry.Lock()
	defer registry.Unlock()
	maps.DeleteFunc(registry.records, func(id identity, r *record) bool {
		return id == g.identity(id.worker) && len(r.live) == 0
	})
}

func mustNext(t testing.TB, s source) types.Snowflake {
	id, err := s.Next(context.Background())
	if err != nil {
		t.Helper() // not before: it takes longer than the call
		t.Fatalf("Next() = %d, %v", id, err)
	}
	return id
}

// bothSources runs a claim over the generator and over the oracle.
func bothSources(t *testing.T, config Config, claim func(t *testing.T, s source, clock *stepper)) {
	config.Worker = StaticWorker(3)
	t.Run("generator", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			clock := new(stepper)
			claim(t, newTest(t, config, clock), clock)
		})
	})
	t.Run("oracle", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			clock := new(stepper)
			claim(t, newOracle(config, clock.offset), clock)
		})
	})
}

// On one schedule of calls, pauses and steps of the wall clock, the generator and
// the oracle return the same IDs. The schedules have overflows, steps back and
// forward, and a second step during the first.
func TestEqualsTheOracleOnAnySchedule(t *testing.T) {
	for seed := range uint64(200) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 1))
				clock := new(stepper)
				layout := bubbleLayout([]int{1, 3, 12}[seed%3])
				config := Config{Layout: layout, Worker: StaticWorker(int64(seed % 16))}
				g := newTest(t, config, clock)
				o := newOracle(config, clock.offset)
				for range 300 {
					switch p := random.IntN(100); {
					case p < 20:
						time.Sleep(time.Duration(random.Int64N(int64(3 * time.Millisecond))))
					case p < 22:
						time.Sleep(time.Duration(random.Int64N(int64(time.Hour))))
					case p < 26:
						clock.by(time.Duration(random.Int64N(int64(4*time.Second))) - 2*time.Second)
					case p < 27:
						clock.by(time.Duration(random.Int64N(int64(2*time.Hour))) - time.Hour)
					case p < 40:
						ids := make([]types.Snowflake, random.IntN(1<<min(layout.SequenceBits, 6)))
						wants := make([]types.Snowflake, len(ids))
						if err := errors.Join(g.Fill(context.Background(), ids), o.Fill(context.Background(), wants)); err != nil {
							t.Fatal(err)
						}
						if !slices.Equal(ids, wants) {
							t.Fatalf("Fill(%d) = %v; want the oracle's %v", len(ids), ids, wants)
						}
					default:
						if id, want := mustNext(t, g), mustNext(t, o); id != want {
							t.Fatalf("Next() = %d %v; want the oracle's %d %v", id, layout.Parts(id), want, layout.Parts(want))
						}
					}
				}
			})
		})
	}
}

// Steps back of every size, a second one during the first, and forward and back
// again: the IDs go on, increasing, without an outage.
func TestStepBackIsNeitherAnOutageNorADisorder(t *testing.T) {
	for _, steps := range [][]time.Duration{
		{-time.Millisecond}, {-time.Second}, {-time.Hour},
		{-time.Hour, -time.Hour}, {-time.Second, -time.Hour, -time.Millisecond},
		{365 * 24 * time.Hour, -365 * 24 * time.Hour},
		{-365 * 24 * time.Hour}, // to before the epoch
		{-time.Second, time.Second},
	} {
		t.Run(fmt.Sprint(steps), func(t *testing.T) {
			bothSources(t, Config{Layout: bubbleLayout(9)}, func(t *testing.T, s source, clock *stepper) {
				last := mustNext(t, s)
				for _, step := range steps {
					clock.by(step)
					began := time.Now()
					const n = 100 * 512 // 100 ms at the full rate
					for range n {
						id := mustNext(t, s)
						if id <= last {
							t.Fatalf("after a step of %v: Next() = %d; want more than %d", step, id, last)
						}
						last = id
					}
					if took := time.Since(began); took > 125*time.Millisecond {
						t.Fatalf("after a step of %v: %d IDs took %v; want about 100ms, the full rate", step, n, took)
					}
				}
			})
		})
	}
}

// The time of an ID is never before its call (floor) and never after the clock
// plus run-ahead (ceiling), on a clock that does not step.
func TestIDTimesStayBetweenCallAndRunAhead(t *testing.T) {
	bothSources(t, Config{Layout: bubbleLayout(3)}, func(t *testing.T, s source, _ *stepper) {
		random := rand.New(rand.NewPCG(1, 2))
		for range 2000 {
			if random.IntN(50) == 0 {
				time.Sleep(time.Duration(random.Int64N(int64(50 * time.Millisecond))))
			}
			called := time.Now().Truncate(time.Millisecond)
			id := mustNext(t, s)
			at := bubbleLayout(3).Parts(id).Time
			if at.Before(called) || at.After(time.Now().Add(defaultRunAhead)) {
				t.Fatalf("Next() called at %v has time %v; want within [call, now + 20ms]", called, at)
			}
		}
	})
}

// After a step back the ceiling follows the monotonic clock from the last ID, so that a loop does
// not run away into the future.
func TestStepBackDoesNotLiftTheCeiling(t *testing.T) {
	bothSources(t, Config{Layout: bubbleLayout(3)}, func(t *testing.T, s source, clock *stepper) {
		random := rand.New(rand.NewPCG(3, 4))
		latest := bubbleLayout(3).Parts(mustNext(t, s)).Time // the latest time that any clock has shown
		for range 3000 {
			if random.IntN(100) == 0 {
				clock.by(-time.Duration(random.Int64N(int64(time.Minute))))
			}
			before := time.Now()
			at := bubbleLayout(3).Parts(mustNext(t, s)).Time
			// Real time that passed is the only thing that lifts it.
			latest = latest.Add(time.Since(before))
			if at.After(latest.Add(defaultRunAhead)) {
				t.Fatalf("Next() has time %v; want at most 20ms after %v", at, latest)
			}
		}
	})
}

// At the full rate every number is used: no gap in the sequence, no lost tick.
func TestSaturationLeavesNoGaps(t *testing.T) {
	bothSources(t, Config{Layout: bubbleLayout(4)}, func(t *testing.T, s source, _ *stepper) {
		l := bubbleLayout(4)
		number := func(id types.Snowflake) int64 {
			return int64(id)>>l.timeShift()<<l.SequenceBits | l.Parts(id).Sequence
		}
		for range 16 * 20 {
			mustNext(t, s) // use up the run-ahead
		}
		last := number(mustNext(t, s))
		began := time.Now()
		for range 16 * 1000 {
			n := number(mustNext(t, s))
			if n != last+1 {
				t.Fatalf("Next() has number %d; want %d", n, last+1)
			}
			last = n
		}
		if took := time.Since(began); took > 1002*time.Millisecond {
			t.Fatalf("16 × 1000 IDs at 16 per ms took %v; want 1s", took)
		}
	})
}

// number returns the last number taken, as an ID's bits less the worker.
func number(g *Generator) uint64 { return g.term.Load().state.Load() }

func TestADoneContextTakesNoNumber(t *testing.T) {
	g := newTest(t, Config{}, nil)
	mustNext(t, g)
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errAny)
	before := number(g)
	if id, err := g.Next(ctx); id != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("Next(done) = %d, %v; want 0, context.Canceled", id, err)
	}
	ids := []types.Snowflake{7, 8, 9}
	if err := g.Fill(ctx, ids); !errors.Is(err, context.Canceled) || !slices.Equal(ids, make([]types.Snowflake, 3)) {
		t.Errorf("Fill(done) = %v, %v; want zeros, context.Canceled", ids, err)
	}
	if after := number(g); after != before {
		t.Errorf("the counter went from %d to %d; want no number taken", before, after)
	}
	if err := g.Fill(ctx, nil); err != nil {
		t.Errorf("Fill(empty slice) = %v; want nil", err)
	}
}

// Callers that give up while they wait at the ceiling hold no number, so they cannot push the
// counter away from the clock, however many they are.
func TestCancelledWaitersDoNotMoveTheCounter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := new(stepper)
		g := newTest(t, Config{Layout: bubbleLayout(1)}, clock)
		stall(t, g)
		before := number(g)
		for range 1000 {
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Microsecond)
			var calls sync.WaitGroup
			for range 8 {
				calls.Go(func() {
					for {
						if _, err := g.Next(ctx); err != nil {
							if !errors.Is(err, context.DeadlineExceeded) {
								t.Errorf("Next(ctx ends) = %v; want context.DeadlineExceeded", err)
							}
							return
						}
					}
				})
			}
			calls.Wait()
			cancel()
		}
		// 100 ms have passed: 200 numbers, and a few that raced.
		if taken := number(g) - before; taken > 200+8 {
			t.Errorf("1000 × 8 cancelled callers took %d numbers in 100ms; want at most 200, and one per racing caller", taken)
		}
	})
}

// stall takes every number up to the ceiling.
func stall(t testing.TB, g *Generator) {
	t.Helper()
	for waits := g.Stats().Waits; g.Stats().Waits < waits+2; {
		mustNext(t, g)
	}
}

func TestNextReturnsWhenItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := bubbleLayout(1)
		l.Unit = time.Second // a tick to wait for
		g := newTest(t, Config{Layout: l}, nil)
		mustNext(t, g)
		mustNext(t, g)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		defer cancel()
		began := time.Now()
		id, err := g.Next(ctx)
		if took := time.Since(began); id != 0 || !errors.Is(err, context.DeadlineExceeded) || took != 10*time.Millisecond {
			t.Errorf("Next(ctx of 10ms) = %d, %v after %v; want 0, DeadlineExceeded after 10ms", id, err, took)
		}
		ids := make([]types.Snowflake, 5) // two per tick: some are taken before ctx ends
		ctx, cancel = context.WithTimeout(context.Background(), 1500*time.Millisecond)
		defer cancel()
		if err := g.Fill(ctx, ids); !errors.Is(err, context.DeadlineExceeded) || !slices.Equal(ids, make([]types.Snowflake, 5)) {
			t.Errorf("Fill(ctx ends half way) = %v, %v; want zeros, DeadlineExceeded", ids, err)
		}
		before := number(g)
		mustNext(t, g)
		if after := number(g); after != before+1 {
			t.Errorf("after the failed Fill the counter went from %d to %d; want the taken numbers to stay taken", before, after)
		}
	})
}

func TestTimeEndsWithAnErrorAndNeverWraps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := bubbleLayout(2)
		l.TimeBits = 35 // ends 2000-02-02
		clock := new(stepper)
		g := newTest(t, Config{Layout: l}, clock)
		last := mustNext(t, g)
		time.Sleep(time.Until(l.Exhausted()) - 3*time.Millisecond)
		var n int
		for {
			id, err := g.Next(context.Background())
			if err != nil {
				if id != 0 || !errors.Is(err, ErrTimeExhausted) {
					t.Fatalf("Next(at the end) = %d, %v; want 0, ErrTimeExhausted", id, err)
				}
				break
			}
			if id <= last {
				t.Fatalf("Next(near the end) = %d; want more than %d", id, last)
			}
			last, n = id, n+1
		}
		if want := (Parts{l.Exhausted().Add(-l.Unit), 0, 1, 3, 0}); n != 3*4 || l.Parts(last) != want {
			t.Errorf("%d IDs in the last 3ms, the last %+v; want 12, the last %+v", n, l.Parts(last), want)
		}
		var calls sync.WaitGroup
		for range 64 {
			calls.Go(func() {
				ids := make([]types.Snowflake, 3)
				if id, err := g.Next(context.Background()); id != 0 || !errors.Is(err, ErrTimeExhausted) {
					t.Errorf("Next(after the end) = %d, %v; want 0, ErrTimeExhausted", id, err)
				}
				if err := g.Fill(context.Background(), ids); !errors.Is(err, ErrTimeExhausted) || ids[0] != 0 {
					t.Errorf("Fill(after the end) = %v, %v; want zeros, ErrTimeExhausted", ids, err)
				}
			})
		}
		calls.Wait()
	})
}

// A clock that shows a time past the end for a moment costs no number.
func TestAClockPastTheEndForAMomentIsNoEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := bubbleLayout(2)
		l.TimeBits = 35
		clock := new(stepper)
		g := newTest(t, Config{Layout: l}, clock)
		first := mustNext(t, g)
		clock.by(365 * 24 * time.Hour)
		time.Sleep(time.Second)
		if id, err := g.Next(context.Background()); !errors.Is(err, ErrTimeExhausted) {
			t.Fatalf("Next(clock past the end) = %d, %v; want ErrTimeExhausted", id, err)
		}
		clock.by(-365 * 24 * time.Hour)
		if id := mustNext(t, g); id <= first || l.Parts(id).Time.After(time.Now().Add(defaultRunAhead)) {
			t.Errorf("Next(clock right again) = %d at %v; want the present time", id, l.Parts(id).Time)
		}
	})
}

func TestNewRefusesWhatIsOutOfRange(t *testing.T) {
	twitter := Config{Layout: Twitter(), Worker: StaticWorker(1)}
	for _, c := range []struct {
		change func(*Config)
		want   string
		is     error
	}{
		{func(c *Config) { c.Worker = nil }, "core: Config.Worker is missing: want a lease of package lease", nil},
		{func(c *Config) { c.Worker = StaticWorker(32) }, "core: Config.Worker is 32: want 0..31 (5 bits)", nil},
		{func(c *Config) { c.Worker = StaticWorker(-1) }, "core: Config.Worker is -1: want 0..31 (5 bits)", nil},
		{func(c *Config) { c.Layout, c.Worker = Mastodon(), StaticWorker(1) }, "core: Config.Worker is 1: want 0..0 (0 bits)", nil},
		{func(c *Config) { c.Datacenter = 32 }, "core: Config.Datacenter is 32: want 0..31 (5 bits)", nil},
		{func(c *Config) { c.Datacenter = -1 }, "core: Config.Datacenter is -1: want 0..31 (5 bits)", nil},
		{func(c *Config) { c.RunAhead = 10*time.Second + 1 }, "core: Config.RunAhead is 10.000000001s: want 0 for the default, or up to 10s; less than a tick for none", nil},
		{func(c *Config) { c.RunAhead = -1 }, "core: Config.RunAhead is -1ns: want 0 for the default, or up to 10s", nil},
		{func(c *Config) { c.Layout.SequenceBits = 13 }, "want at most 63", nil},
		{func(c *Config) { c.Layout.Epoch = time.Time{} }, "core: Layout.Epoch is the zero time", nil},
		{func(c *Config) { c.Layout.Epoch = time.Now().Add(time.Hour) }, "want a time in the past; the clock shows", nil},
		{func(c *Config) { c.Layout.Epoch = time.Date(1700, 1, 1, 0, 0, 0, 0, time.UTC) }, "want a time in the last 250 years", nil},
		{func(c *Config) { c.Layout.Epoch = time.Date(-5000, 1, 1, 0, 0, 0, 0, time.UTC) }, "want a time in the last 250 years", nil},
		{func(c *Config) { c.Layout.TimeBits = 30 }, "30 TimeBits of 1ms end at 2010-11-16", ErrTimeExhausted},
	} {
		config := twitter
		c.change(&config)
		g, err := New(config)
		var ve *ValueError
		if g != nil || err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, c.is) && !errors.As(err, &ve) {
			t.Errorf("New(%+v) = %v, %v; want an error with %q", config, g, err, c.want)
		}
	}
}

func TestASecondLiveGeneratorIsRefusedUntilClose(t *testing.T) {
	config := Config{Layout: Twitter(), Datacenter: 3, Worker: StaticWorker(4)}
	first := newTest(t, config, nil)
	if g, err := New(config); g != nil || !errors.Is(err, ErrWorkerInUse) || !strings.Contains(err.Error(), "datacenter 3, worker 4") {
		t.Fatalf("New(same layout, datacenter and worker) = %v, %v; want ErrWorkerInUse with both numbers", g, err)
	}
	local := config
	local.Layout.Epoch = config.Layout.Epoch.In(time.FixedZone("elsewhere", 3600))
	if g, err := New(local); !errors.Is(err, ErrWorkerInUse) {
		t.Fatalf("New(same epoch in another zone) = %v, %v; want ErrWorkerInUse", g, err)
	}
	other := config
	other.Datacenter = 4
	newTest(t, other, nil)
	if err := first.Close(context.Background()); err != nil {
		t.Fatalf("Close() = %v", err)
	}
	newTest(t, config, nil)
}

func TestASuccessorStartsAboveEvenAfterAStepBack(t *testing.T) {
	for _, step := range []time.Duration{0, -time.Second, -time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			clock := new(stepper)
			config := Config{Layout: bubbleLayout(3), Worker: StaticWorker(1)}
			first := newTest(t, config, clock)
			stall(t, first)
			last := mustNext(t, first)
			_ = first.Close(context.Background())
			clock.by(step)
			time.Sleep(time.Millisecond)
			began := time.Now()
			second := newTest(t, config, clock)
			for range 800 { // 100 ms at the full rate
				id := mustNext(t, second)
				if id <= last {
					t.Fatalf("step %v: Next() of the successor = %d; want more than %d", step, id, last)
				}
				last = id
			}
			if took := time.Since(began); took > 150*time.Millisecond {
				t.Errorf("step %v: 800 IDs at 8 per ms took %v; want about 100ms", step, took)
			}
		})
	}
}

// A process that dies leaves nothing but the IDs that it returned. The next one has
// the same worker, and a clock that did not step back. Its IDs are above all of them,
// even if the first was at its ceiling in the last moment.
func TestARestartedProcessStartsAboveACrashedOne(t *testing.T) {
	for _, rollback := range []Rollback{Continue, Backfill} {
		for _, unit := range []time.Duration{time.Microsecond, time.Millisecond, 10 * time.Millisecond, time.Second} {
			synctest.Test(t, func(t *testing.T) {
				l := bubbleLayout(2)
				l.Unit, l.TimeBits = unit, 56
				if unit > time.Microsecond {
					l.TimeBits = 46
				}
				random := rand.New(rand.NewPCG(uint64(unit), 6))
				var last types.Snowflake
				for life := range 200 {
					g := newTest(t, Config{Layout: l, Rollback: rollback}, nil)
					time.Sleep(time.Duration(random.Int64N(int64(2 * unit))))
					for range random.IntN(200) {
						id := mustNext(t, g)
						if id <= last {
							t.Fatalf("%v, unit %v, life %d: Next() = %d; want more than %d", rollback, unit, life, id, last)
						}
						last = id
					}
					forget(g)
				}
			})
		}
	}
}

// Closing and opening must not get around the ceiling, also not while the clock
// catches up after a step back. Otherwise IDs would move ahead of time for good.
func TestSuccessorsDoNotDriftAheadOfTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := bubbleLayout(2)
		clock := new(stepper)
		for life := range 300 {
			g := newTest(t, Config{Layout: l}, clock)
			stall(t, g)
			if at := l.Parts(mustNext(t, g)).Time; at.After(time.Now().Add(defaultRunAhead)) {
				t.Fatalf("life %d: Next() has time %v at %v; want at most 20ms ahead of the clock before its step", life, at, time.Now())
			}
			_ = g.Close(context.Background())
			if life == 100 {
				clock.by(-time.Hour)
			}
		}
	})
}

// Programs test with synctest, whose clock begins in 2000 in every bubble. A
// generator that was closed outside is then in the future, and the monotonic clocks
// are unrelated. That is no reason to hang.
func TestASuccessorInABubbleGoesOnFromTheOneOutside(t *testing.T) {
	config := Config{Layout: bubbleLayout(4), Worker: StaticWorker(9)}
	outside := newTest(t, config, nil)
	last := mustNext(t, outside)
	_ = outside.Close(context.Background())
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		g := newTest(t, config, nil)
		if id := mustNext(t, g); id <= last || time.Since(began) > 2*defaultRunAhead {
			t.Errorf("Next() = %d after %v; want more than %d, at once", id, time.Since(began), last)
		}
	})
}

func TestAStepForwardEndsAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := bubbleLayout(1)
		l.Unit = time.Second
		clock := new(stepper)
		g := newTest(t, Config{Layout: l}, clock)
		mustNext(t, g)
		mustNext(t, g)
		began := time.Now()
		time.AfterFunc(time.Millisecond, func() { clock.by(time.Hour) })
		mustNext(t, g)
		if took := time.Since(began); took > time.Duration(maxWait) {
			t.Errorf("Next() took %v though the clock stepped past the tick; want at most %v", took, time.Duration(maxWait))
		}
	})
}

// An Epoch from time.Now would otherwise be compared by the monotonic clock, which
// knows nothing of steps and stops while the machine sleeps.
func TestTheEpochLosesItsMonotonicReading(t *testing.T) {
	l := Default()
	l.Epoch = time.Now().Add(-time.Hour)
	g := newTest(t, Config{Layout: l}, nil)
	if got := g.Layout().Epoch; got != l.Epoch.Round(0).UTC() {
		t.Errorf("Layout().Epoch = %v; want %v", got, l.Epoch.Round(0).UTC())
	}
}

func TestAGeneratorHasTheWorkerOfItsConfig(t *testing.T) {
	worker := StaticWorker(3)
	if got := newTest(t, Config{Worker: worker}, nil).Worker(); got != worker {
		t.Errorf("Worker() = %v; want %v", got, worker)
	}
}

func TestCloseEndsTheGenerator(t *testing.T) {
	for _, rollback := range []Rollback{Continue, Refuse, Wait, Backfill} {
		g := newTest(t, Config{Rollback: rollback}, nil)
		mustNext(t, g)
		for range 2 {
			if err := g.Close(context.Background()); err != nil {
				t.Errorf("%v: Close() = %v; want nil, also the second time", rollback, err)
			}
		}
		for range 3 { // a sealed counter that is counted up stays sealed
			if id, err := g.Next(context.Background()); id != 0 || !errors.Is(err, ErrClosed) {
				t.Errorf("%v: Next(closed) = %d, %v; want 0, ErrClosed", rollback, id, err)
			}
		}
		ids := []types.Snowflake{5}
		if err := g.Fill(context.Background(), ids); ids[0] != 0 || !errors.Is(err, ErrClosed) {
			t.Errorf("%v: Fill(closed) = %v, %v; want zeros, ErrClosed", rollback, ids, err)
		}
		if s := g.Stats(); s.Ahead != 0 {
			t.Errorf("%v: Stats(closed).Ahead = %v; want 0", rollback, s.Ahead)
		}
	}
}

func TestCloseWakesCallersThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := bubbleLayout(1)
		l.Unit = time.Second
		g := newTest(t, Config{Layout: l}, nil)
		mustNext(t, g)
		mustNext(t, g)
		began := time.Now()
		failed := make(chan error)
		go func() { _, err := g.Next(context.Background()); failed <- err }()
		synctest.Wait()
		_ = g.Close(context.Background())
		if err := <-failed; !errors.Is(err, ErrClosed) || time.Since(began) > time.Duration(maxWait) {
			t.Errorf("Next(closed while it waits) = %v after %v; want ErrClosed within %v", err, time.Since(began), time.Duration(maxWait))
		}
	})
}

// Generators for one worker are closed and replaced, while 8 goroutines take IDs
// from the present one. None repeats. What a replaced one returns late was its own.
func TestCloseRacingNextNeverSharesAnID(t *testing.T) {
	for _, rollback := range []Rollback{Continue, Backfill} {
		config := Config{Layout: Default(), Worker: StaticWorker(77), Rollback: rollback}
		config.Layout.WorkerBits, config.Layout.SequenceBits = 7, 15
		var current atomic.Pointer[Generator]
		current.Store(newTest(t, config, nil))
		var done atomic.Bool
		got := make([][]types.Snowflake, 8)
		var calls sync.WaitGroup
		for i := range got {
			calls.Go(func() {
				ids := make([]types.Snowflake, 3)
				for !done.Load() {
					g := current.Load()
					if id, err := g.Next(context.Background()); err == nil {
						got[i] = append(got[i], id)
					} else if !errors.Is(err, ErrClosed) {
						t.Errorf("%v: Next() = %v; want an ID or ErrClosed", rollback, err)
					}
					if g.Fill(context.Background(), ids) == nil {
						got[i] = append(got[i], ids...)
					}
				}
			})
		}
		rounds := 15
		if *large {
			rounds = 50
		}
		for range rounds {
			time.Sleep(2 * time.Millisecond) // so that each has a first tick and more
			_ = current.Load().Close(context.Background())
			current.Store(newTest(t, config, nil))
		}
		done.Store(true)
		calls.Wait()
		_ = current.Load().Close(context.Background())
		requireDistinct(t, config.Layout, got...)
	}
}

// Where they need not wait: waiting for a context that can end takes a timer.
func TestNextAndFillDoNotAllocate(t *testing.T) {
	l := Default()
	l.WorkerBits, l.SequenceBits = 0, 22
	g := newTest(t, Config{Layout: l, Worker: StaticWorker(0)}, nil)
	mustNext(t, g)
	ctx := t.Context() // one that can be cancelled, as in a server
	ids := make([]types.Snowflake, 1000)
	if n := testing.AllocsPerRun(1000, func() { _, _ = g.Next(ctx) }); n != 0 {
		t.Errorf("Next allocates %v times; want 0", n)
	}
	if n := testing.AllocsPerRun(1000, func() { _ = g.Fill(ctx, ids) }); n != 0 {
		t.Errorf("Fill allocates %v times; want 0", n)
	}
}

func TestEveryBitOfTheIDIsWhereTheLayoutSays(t *testing.T) {
	for name, l := range named() {
		config := Config{Layout: l, Datacenter: ones(l.DatacenterBits), Worker: StaticWorker(ones(l.WorkerBits))}
		g := newTest(t, config, nil)
		before := time.Now().Truncate(l.Unit)
		id := mustNext(t, g)
		p := g.Layout().Parts(id)
		if p.Datacenter != config.Datacenter || p.Worker != ones(l.WorkerBits) || p.Time.Before(before) || p.Time.After(time.Now().Add(defaultRunAhead)) {
			t.Errorf("%s: Parts(Next()) = %+v; want datacenter %d, worker %d and the present", name, p, config.Datacenter, ones(l.WorkerBits))
		}
		if id < g.Min(p.Time) || id > g.Max(p.Time) {
			t.Errorf("%s: Next() = %d; want within Min..Max of its time, %d..%d", name, id, g.Min(p.Time), g.Max(p.Time))
		}
		if s := g.Stats(); s.Datacenter != p.Datacenter || s.Worker != p.Worker || !s.Exhausted.Equal(l.Exhausted()) {
			t.Errorf("%s: Stats() = %+v; want the numbers of %+v", name, s, p)
		}
	}
}

func TestStatsShowTheLeadOverTheClockAndTheWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := new(stepper)
		g := newTest(t, Config{Layout: bubbleLayout(3)}, clock)
		mustNext(t, g)
		time.Sleep(time.Second)
		if s := g.Stats(); s.Ahead != 0 {
			t.Errorf("Stats(idle).Ahead = %v; want 0", s.Ahead)
		}
		waits := g.Stats().Waits
		stall(t, g)
		if s := g.Stats(); s.Ahead > defaultRunAhead || s.Ahead <= defaultRunAhead-time.Millisecond || s.Waits < waits+2 {
			t.Errorf("Stats(at the ceiling) = %+v; want 19 to 20 ms ahead and the waits counted", s)
		}
		clock.by(-time.Hour)
		mustNext(t, g)
		if s := g.Stats(); s.Ahead < time.Hour {
			t.Errorf("Stats(after a step back of 1h).Ahead = %v; want over 1h", s.Ahead)
		}
	})
}

func TestStatsRaiseTheAlarmFiveYearsBeforeTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := bubbleLayout(2)
		l.TimeBits = 38 // ends in September 2007
		g := newTest(t, Config{Layout: l}, nil)
		alarm := l.Exhausted().AddDate(-5, 0, 0)
		time.Sleep(time.Until(alarm) - time.Second)
		if s := g.Stats(); s.ExhaustedSoon {
			t.Errorf("Stats() at %v = %+v; want no alarm", time.Now(), s)
		}
		time.Sleep(time.Second)
		if s := g.Stats(); !s.ExhaustedSoon || !s.Exhausted.Equal(l.Exhausted()) {
			t.Errorf("Stats() at %v = %+v; want the alarm", time.Now(), s)
		}
	})
}

func TestNoRunAheadMeansNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := bubbleLayout(2)
		g := newTest(t, Config{Layout: l, RunAhead: 1}, nil)
		for range 100 {
			if at := l.Parts(mustNext(t, g)).Time; at.After(time.Now()) {
				t.Fatalf("Next() has time %v at %v; want not ahead", at, time.Now())
			}
		}
	})
}

// chiSquare returns the statistic of id % n against an even distribution.
func chiSquare(ids []types.Snowflake, n int) float64 {
	count := make([]int, n)
	for _, id := range ids {
		count[int64(id)%int64(n)]++
	}
	want := float64(len(ids)) / float64(n)
	var sum float64
	for _, c := range count {
		sum += (float64(c) - want) * (float64(c) - want) / want
	}
	return sum
}

// critical returns the value that chi-square exceeds with probability 3e-7 (z = 5)
// for an even distribution over n, by the approximation of Wilson and Hilferty.
func critical(n int) float64 {
	k := float64(n - 1)
	return k * math.Pow(1-2/(9*k)+5*math.Sqrt(2/(9*k)), 3)
}

// At one ID per tick every ID is the first of its tick. Random and rotating starts
// spread id % n evenly for every n; from zero, half of two shards stay empty.
func TestSequenceStartsSpreadModulo(t *testing.T) {
	const ids = 5 * 5 * 4096 // whole turns of Rotating
	for _, rollback := range []Rollback{Continue, Backfill} {
		for _, start := range []SequenceStart{Random, Rotating} {
			t.Run(fmt.Sprint(rollback, start), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					g := newTest(t, Config{Layout: bubbleLayout(12), Rollback: rollback, SequenceStart: start}, nil)
					mustNext(t, g)
					time.Sleep(time.Second)
					got := make([]types.Snowflake, ids)
					for i := range got {
						time.Sleep(time.Millisecond)
						got[i] = mustNext(t, g)
					}
					for _, n := range []int{2, 3, 10, 16, 64, 1000} {
						x := chiSquare(got, n)
						t.Logf("id %% %d: chi-square %.1f, %d degrees of freedom, critical value %.1f", n, x, n-1, critical(n))
						if x > critical(n) {
							t.Errorf("%d IDs, one per ms, id %% %d: chi-square = %.1f; want at most %.1f", ids, n, x, critical(n))
						}
					}
				})
			})
		}
	}
}

func TestFromZeroEveryIDOfASlowGeneratorIsEven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTest(t, Config{Layout: bubbleLayout(12)}, nil)
		mustNext(t, g)
		time.Sleep(time.Second)
		for range 100 {
			time.Sleep(time.Millisecond)
			if id := mustNext(t, g); id%4096 != 0 {
				t.Fatalf("Next(), one per ms = %d; want sequence 0", id)
			}
		}
	})
}

func TestASequenceGoesOnFromItsStart(t *testing.T) {
	for _, start := range []SequenceStart{Random, Rotating} {
		synctest.Test(t, func(t *testing.T) {
			g := newTest(t, Config{Layout: bubbleLayout(2), SequenceStart: start}, nil)
			mustNext(t, g)
			time.Sleep(time.Second)
			var count [4]int
			for range 400 {
				time.Sleep(time.Millisecond)
				id := mustNext(t, g)
				count[id%4]++
				if next := mustNext(t, g); id%4 < 3 && next != id+1 {
					t.Fatalf("%v: the second ID of a tick = %d after %d; want one more", start, next, id)
				}
				time.Sleep(time.Millisecond) // out of the tick that the second ID may have gone on to
			}
			if count[0] == 0 || count[1] == 0 || count[2] == 0 || count[3] == 0 || start == Rotating && count != [4]int{100, 100, 100, 100} {
				t.Errorf("%v: beginnings %v; want all four used", start, count)
			}
		})
	}
}

// A start high in the tick leaves little of it, and must cost nothing at the full
// rate.
func TestSequenceStartsKeepTheFullRate(t *testing.T) {
	for _, rollback := range []Rollback{Continue, Backfill} {
		for _, start := range []SequenceStart{Random, Rotating} {
			synctest.Test(t, func(t *testing.T) {
				g := newTest(t, Config{Layout: bubbleLayout(4), Rollback: rollback, SequenceStart: start}, nil)
				for range 400 {
					mustNext(t, g)
				}
				began := time.Now()
				for range 16 * 1000 {
					mustNext(t, g)
				}
				if took := time.Since(began); took > 1001*time.Millisecond {
					t.Errorf("%v, %v: 16000 IDs at 16 per ms took %v; want 1s", rollback, start, took)
				}
			})
		}
	}
}
