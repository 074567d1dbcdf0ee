package core

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/snowkey/snowkey/types"
)

func TestRefuseErrsUntilTheClockHasCaughtUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := new(stepper)
		g := newTest(t, Config{Layout: bubbleLayout(4), Rollback: Refuse}, clock)
		mustNext(t, g)
		time.Sleep(time.Second)
		last := mustNext(t, g)
		clock.by(-time.Hour)
		time.Sleep(time.Millisecond) // out of the tick of last
		before := number(g)
		for range 3 {
			id, err := g.Next(context.Background())
			var back *ClockBackError
			if id != 0 || !errors.As(err, &back) || !errors.Is(err, ErrClockBack) || back.Behind != time.Hour-time.Millisecond {
				t.Fatalf("Next() after a step back of 1h = %d, %v; want 0 and a ClockBackError of 59m59.999s", id, err)
			}
			if !strings.Contains(err.Error(), "59m59.999s behind") {
				t.Errorf("the error says %q; want how far the clock is behind", err)
			}
			ids := []types.Snowflake{1, 2}
			if err := g.Fill(context.Background(), ids); ids[0]|ids[1] != 0 || !errors.Is(err, ErrClockBack) {
				t.Errorf("Fill() after a step back of 1h = %v, %v; want zeros, ErrClockBack", ids, err)
			}
		}
		if after := number(g); after != before {
			t.Errorf("refused calls moved the counter from %d to %d", before, after)
		}
		time.Sleep(time.Hour - defaultRunAhead - 2*time.Millisecond)
		if id, err := g.Next(context.Background()); err == nil {
			t.Errorf("Next() just before the clock has caught up = %d; want ErrClockBack", id)
		}
		time.Sleep(time.Millisecond)
		if id := mustNext(t, g); id <= last {
			t.Errorf("Next() when the clock has caught up = %d; want more than %d", id, last)
		}
	})
}

// Refuse and Wait keep the time in an ID near the wall clock. An ID of a new tick
// is at most the run-ahead ahead of it. IDs are in order.
func TestRefuseAndWaitStayNearTheWallClock(t *testing.T) {
	for _, policy := range []Rollback{Refuse, Wait} {
		for seed := range uint64(50) {
			t.Run(fmt.Sprint(policy, " seed=", seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					random := rand.New(rand.NewPCG(seed, 7))
					clock := new(stepper)
					l := bubbleLayout([]int{1, 4}[seed%2])
					g := newTest(t, Config{Layout: l, Rollback: policy}, clock)
					last := mustNext(t, g)
					refused := 0
					for range 2000 {
						switch p := random.IntN(100); {
						case p < 20:
							time.Sleep(time.Duration(random.Int64N(int64(3 * time.Millisecond))))
						case p < 23:
							clock.by(time.Duration(random.Int64N(int64(60*time.Millisecond))) - 40*time.Millisecond)
						}
						id, err := g.Next(context.Background())
						if errors.Is(err, ErrClockBack) {
							refused++
							continue
						}
						if err != nil || id <= last {
							t.Fatalf("Next() = %d, %v; want more than %d", id, err, last)
						}
						wall := time.Now().Add(clock.offset())
						if at := l.Parts(id).Time; at.After(l.Parts(last).Time) && at.After(wall.Add(defaultRunAhead+time.Duration(tolerated))) {
							t.Fatalf("Next() has time %v; want at most 20ms after the wall clock, %v", at, wall)
						}
						last = id
					}
					if refused == 0 && policy == Refuse {
						t.Error("no call was refused; the schedule does not test anything")
					}
				})
			})
		}
	}
}

func TestAStepThatTheRunAheadMakesUpForIsNone(t *testing.T) {
	for _, policy := range []Rollback{Refuse, Wait} {
		synctest.Test(t, func(t *testing.T) {
			clock := new(stepper)
			g := newTest(t, Config{Layout: bubbleLayout(4), Rollback: policy}, clock)
			mustNext(t, g)
			time.Sleep(time.Second)
			mustNext(t, g)
			clock.by(-15 * time.Millisecond)
			began := time.Now()
			for range 16 { // one tick and the first of the next
				mustNext(t, g)
			}
			if took := time.Since(began); took != 0 {
				t.Errorf("%v: a step back of 15ms cost %v; want nothing with 20ms of run-ahead", policy, took)
			}
			wall := time.Now().Add(clock.offset()).Sub(g.Layout().Epoch)
			if logical := time.Duration(g.term.Load().offset.Load() + g.term.Load().clock.monotonic()); logical != wall {
				t.Errorf("%v: the logical clock shows %v; want the wall clock's %v", policy, logical, wall)
			}
		})
	}
}

// NTP slews small differences away; that is no step, even at the ceiling.
func TestLessThanAMillisecondIsNoStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := new(stepper)
		g := newTest(t, Config{Layout: bubbleLayout(2), Rollback: Refuse}, clock)
		stall(t, g)
		for range 100 {
			clock.by(-10 * time.Microsecond)
			mustNext(t, g)
		}
		stall(t, g)
		clock.by(-900 * time.Microsecond)
		for range 10 {
			mustNext(t, g)
		}
	})
}

func TestWaitWaitsWithinItsBound(t *testing.T) {
	for _, c := range []struct {
		bound, step, want time.Duration // want < 0: refused at once
	}{
		{0, -24 * time.Millisecond, 4 * time.Millisecond}, // 20ms of run-ahead, and 4
		{0, -26 * time.Millisecond, -1},
		{0, -time.Hour, -1},
		{time.Second, -500 * time.Millisecond, 480 * time.Millisecond},
		{time.Minute, -time.Minute, time.Minute - 20*time.Millisecond},
		{time.Minute, -time.Hour, -1},
		{-1, -time.Hour, time.Hour - 20*time.Millisecond}, // no limit
	} {
		synctest.Test(t, func(t *testing.T) {
			clock := new(stepper)
			g := newTest(t, Config{Layout: bubbleLayout(4), Rollback: Wait, RollbackWait: c.bound}, clock)
			mustNext(t, g)
			time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
			last := mustNext(t, g)
			for number(g)&15 != 15 { // the next call leaves the tick
				last = mustNext(t, g)
			}
			clock.by(c.step)
			began := time.Now()
			id, err := g.Next(context.Background())
			took := time.Since(began)
			// The ID is of the tick after last's, so it falls due a tick later.
			if c.want >= 0 && (err != nil || id <= last || took > c.want+time.Millisecond) {
				t.Errorf("Next(bound %v) after a step of %v = %d, %v after %v; want an ID after at most %v", c.bound, c.step, id, err, took, c.want+time.Millisecond)
			}
			if c.want < 0 && (id != 0 || !errors.Is(err, ErrClockBack) || took != 0) {
				t.Errorf("Next(bound %v) after a step of %v = %d, %v after %v; want ErrClockBack at once", c.bound, c.step, id, err, took)
			}
		})
	}
}

// A second step during the wait does not start the bound anew.
func TestWaitCountsAllWaitsOfACallTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := new(stepper)
		g := newTest(t, Config{Layout: bubbleLayout(4), Rollback: Wait}, clock)
		mustNext(t, g)
		time.Sleep(time.Second)
		mustNext(t, g)
		clock.by(-26 * time.Millisecond)
		time.Sleep(2 * time.Millisecond) // 4 ms are missing
		time.AfterFunc(2*time.Millisecond, func() { clock.by(-3 * time.Millisecond) })
		began := time.Now()
		id, err := g.Next(context.Background())
		if took := time.Since(began); id != 0 || !errors.Is(err, ErrClockBack) || took > defaultRollbackWait {
			t.Errorf("Next() with a second step during its wait = %d, %v after %v; want ErrClockBack within 5ms", id, err, took)
		}
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := new(stepper)
		g := newTest(t, Config{Layout: bubbleLayout(4), Rollback: Wait, RollbackWait: time.Minute}, clock)
		mustNext(t, g)
		time.Sleep(time.Second)
		clock.by(-30 * time.Second)
		time.Sleep(time.Millisecond)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		began := time.Now()
		id, err := g.Next(ctx)
		for err == nil { // the rest of the tick
			id, err = g.Next(ctx)
		}
		if took := time.Since(began); id != 0 || !errors.Is(err, context.DeadlineExceeded) || took != time.Second {
			t.Errorf("Next(ctx of 1s) = %d, %v after %v; want DeadlineExceeded after 1s", id, err, took)
		}
	})
}

func TestWaitNoticesAClockThatIsSetRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := new(stepper)
		g := newTest(t, Config{Layout: bubbleLayout(4), Rollback: Wait, RollbackWait: time.Minute}, clock)
		mustNext(t, g)
		time.Sleep(time.Second)
		mustNext(t, g)
		clock.by(-30 * time.Second)
		time.Sleep(time.Millisecond)
		time.AfterFunc(10*time.Millisecond, func() { clock.by(30 * time.Second) })
		began := time.Now()
		mustNext(t, g)
		if took := time.Since(began); took > time.Duration(maxWait) {
			t.Errorf("Next() took %v though the clock was set right after 10ms; want at most %v", took, time.Duration(maxWait))
		}
	})
}

// What looks like a step, because the goroutine stood still between the two
// readings of one time.Now, is read again.
func TestOneBadReadingIsNoStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := 0
		g, err := New(Config{Layout: bubbleLayout(4), Rollback: Refuse, Worker: moved{StaticWorker(1), func() time.Duration {
			if bad > 0 {
				bad--
				return -time.Hour
			}
			return 0
		}}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { forget(g) })
		mustNext(t, g)
		time.Sleep(time.Second)
		bad = 2
		mustNext(t, g)
	})
}

// A generator and the one before it have any two policies, and the clock steps back
// before or after the change. No ID repeats. Continue goes on at once. The others
// refuse at once, and go on when the clock has caught up.
func TestASuccessorKeepsItsOwnPolicyAfterAStepBack(t *testing.T) {
	policies := []Rollback{Continue, Refuse, Wait, Backfill}
	for _, before := range policies {
		for _, after := range policies {
			for _, closeFirst := range []bool{true, false} {
				synctest.Test(t, func(t *testing.T) {
					name := fmt.Sprintf("%v, then %v, closed before the step %v", before, after, closeFirst)
					clock := new(stepper)
					l := bubbleLayout(4)
					first := newTest(t, Config{Layout: l, Rollback: before}, clock)
					mustNext(t, first)
					time.Sleep(time.Second)
					last := mustNext(t, first)
					if closeFirst {
						_ = first.Close(context.Background())
					}
					clock.by(-time.Hour)
					if !closeFirst {
						if id, err := first.Next(context.Background()); err == nil {
							last = id
						}
						_ = first.Close(context.Background())
					}
					time.Sleep(time.Millisecond)
					began := time.Now()
					second := newTest(t, Config{Layout: l, Rollback: after}, clock)
					var err error
					var id types.Snowflake
					for n := 0; err == nil && n < 400; n++ { // what may be left up to the ceiling, and one
						if id, err = second.Next(context.Background()); err == nil && id <= last {
							t.Errorf("%s: Next() = %d; want more than %d", name, id, last)
						}
					}
					if took := time.Since(began); took > 2*defaultRunAhead {
						t.Errorf("%s: the answer took %v; want it at once", name, took)
					}
					if after == Continue && err != nil || after != Continue && !errors.Is(err, ErrClockBack) {
						t.Errorf("%s: Next() = %d, %v; want IDs from Continue, and ErrClockBack from the others", name, id, err)
					}
					time.Sleep(time.Hour + time.Second)
					if id := mustNext(t, second); id <= last {
						t.Errorf("%s: Next() when the clock has caught up = %d; want more than %d", name, id, last)
					}
				})
			}
		}
	}
}

func TestASuccessorWithASmallerRunAheadIsNoOutageUnderContinue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := bubbleLayout(4)
		first := newTest(t, Config{Layout: l, RunAhead: 10 * time.Second}, nil)
		last := mustNext(t, first)
		_ = first.Close(context.Background())
		began := time.Now()
		second := newTest(t, Config{Layout: l}, nil)
		if id := mustNext(t, second); id <= last || time.Since(began) > time.Millisecond {
			t.Errorf("Next() = %d after %v; want more than %d within a tick", id, time.Since(began), last)
		}
	})
}

// The default run-ahead under Backfill is smaller with short ticks. What it leaves
// to an earlier process must not be.
func TestARestartUnderAnotherPolicyStartsAboveToo(t *testing.T) {
	policies := []Rollback{Continue, Refuse, Wait, Backfill}
	for _, before := range policies {
		for _, after := range policies {
			synctest.Test(t, func(t *testing.T) {
				l := bubbleLayout(2)
				l.Unit, l.TimeBits = time.Microsecond, 56
				first := newTest(t, Config{Layout: l, Rollback: before}, nil)
				stall(t, first)
				last := mustNext(t, first)
				forget(first) // a crash
				second := newTest(t, Config{Layout: l, Rollback: after}, nil)
				began := time.Now()
				if id := mustNext(t, second); id <= last || time.Since(began) > defaultRunAhead {
					t.Errorf("%v, then %v: Next() after a crash = %d after %v; want more than %d, within 20ms", before, after, id, time.Since(began), last)
				}
			})
		}
	}
}

// A goroutine that reads the clock, is stopped for longer than the ring remembers,
// and goes on, is not told that the clock stepped.
func TestBackfillBelievesNoSingleOldReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := 0
		g, err := New(Config{Layout: bubbleLayout(4), Rollback: Backfill, Worker: moved{StaticWorker(1), func() time.Duration {
			if old > 0 {
				old--
				return -300 * time.Millisecond
			}
			return 0
		}}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { forget(g) })
		for range 600 {
			mustNext(t, g)
			time.Sleep(time.Millisecond)
		}
		old = 2
		mustNext(t, g)
	})
}

func TestNewRefusesPoliciesOutOfRange(t *testing.T) {
	for _, c := range []struct {
		config Config
		want   string
	}{
		{Config{Rollback: -1}, "core: Config.Rollback is Rollback(-1): want Continue, Refuse, Wait or Backfill"},
		{Config{Rollback: 4}, "core: Config.Rollback is Rollback(4)"},
		{Config{RollbackWait: 1}, "core: Config.RollbackWait is 1ns: want 0 unless Config.Rollback is Wait"},
		{Config{Rollback: Refuse, RollbackWait: -1}, "core: Config.RollbackWait is -1ns: want 0 unless Config.Rollback is Wait"},
		{Config{Rollback: Backfill, RunAhead: 129 * time.Millisecond}, "core: Config.RunAhead is 129ms: want 0 for the default, or up to 128ms (128 ticks) under Backfill"},
		{Config{SequenceStart: -1}, "core: Config.SequenceStart is SequenceStart(-1): want Zero, Random or Rotating"},
		{Config{SequenceStart: 3}, "core: Config.SequenceStart is SequenceStart(3)"},
	} {
		c.config.Worker = StaticWorker(1)
		g, err := New(c.config)
		var ve *ValueError
		if g != nil || !errors.As(err, &ve) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("New(%+v) = %v, %v; want a ValueError with %q", c.config, g, err, c.want)
		}
	}
}

func TestPoliciesAndStartsHaveNames(t *testing.T) {
	for want, got := range map[string]fmt.Stringer{
		"Continue": Continue, "Refuse": Refuse, "Wait": Wait, "Backfill": Backfill,
		"Zero": Zero, "Random": Random, "Rotating": Rotating,
	} {
		if got.String() != want {
			t.Errorf("String() = %q; want %q", got.String(), want)
		}
	}
}

// The run-ahead is none, or shorter than a tick. After a step back the logical clock
// must not be held in the tick of the last number.
func TestContinueGoesOnAfterAStepBackWithoutRunAhead(t *testing.T) {
	for _, unit := range []time.Duration{time.Millisecond, time.Second} {
		for _, ahead := range []time.Duration{1, unit / 2, unit} {
			synctest.Test(t, func(t *testing.T) {
				clock := new(stepper)
				l := bubbleLayout(2)
				l.Unit, l.TimeBits = unit, 41
				g := newTest(t, Config{Layout: l, RunAhead: ahead}, clock)
				mustNext(t, g)
				clock.by(-time.Hour)
				began := time.Now()
				for range 40 { // ten ticks
					mustNext(t, g)
				}
				if took := time.Since(began); took > 11*unit {
					t.Errorf("40 IDs at 4 per %v with RunAhead %v took %v after a step back; want 10 ticks", unit, ahead, took)
				}
			})
		}
	}
}
