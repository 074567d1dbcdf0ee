package core

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/snowkey/snowkey/types"
)

// These tests put one goroutine between look and take of another by calling the
// steps one by one, which no schedule of real goroutines does on demand.

// takeAfter is what next does after look has returned last and true.
func takeAfter(ctx context.Context, t *term, last uint64) (types.Snowflake, error) {
	n, ok := t.take(last)
	if ok {
		return t.compose(n), nil
	}
	return t.settle(ctx, n)
}

// Callers that looked while the last number of the ceiling's tick was free all
// add: one gets it, the others are beyond the ceiling and return only when it is
// there. Nobody else takes a number meanwhile.
func TestANumberBeyondTheCeilingWaitsForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := bubbleLayout(2)
		g := newTest(t, Config{Layout: l}, nil)
		term := g.term
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
		g.term.state.Add(40) // 40 callers that passed the same look
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
	last, _ := g.term.look(g.term.now())
	_ = g.Close(context.Background())
	for range 3 {
		if id, err := takeAfter(context.Background(), g.term, last); id != 0 || !errors.Is(err, ErrClosed) {
			t.Errorf("take(sealed meanwhile) = %d, %v; want 0, ErrClosed", id, err)
		}
	}
	sealedLast, _ := g.term.look(g.term.now())
	if id, err := takeAfter(context.Background(), g.term, sealedLast); id != 0 || !errors.Is(err, ErrClosed) {
		t.Errorf("take(the seal itself) = %d, %v; want 0, ErrClosed", id, err)
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
		g.term.state.Store(g.term.limit - 2)
		last, ok := g.term.look(g.term.now())
		if !ok {
			t.Fatalf("look() before the last number = %d, false; want true", last)
		}
		if id, err := takeAfter(context.Background(), g.term, last); id != 1<<63-1 || err != nil {
			t.Errorf("take(the last number) = %d, %v; want all 63 bits", id, err)
		}
		for range 3 {
			if id, err := takeAfter(context.Background(), g.term, last); id != 0 || !errors.Is(err, ErrTimeExhausted) {
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
				g.term.resync()
			}
			return d
		}
		var err error
		if g, err = newGenerator(Config{Layout: l, Worker: StaticWorker(1)}, read); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { forget(g) })
		step.by(3 * time.Hour)
		interrupt = true
		g.term.resync() // reads 3 h, and meanwhile another reads 2 h
		want := time.Now().Add(2 * time.Hour).Sub(l.Epoch)
		if got := time.Duration(g.term.offset.Load() + g.term.clock.monotonic()); got != want {
			t.Errorf("the logical clock shows %v; want %v, the later reading", got, want)
		}
	})
}

// A resync between the swap of the seal and its reading of the offset must not
// take the logical clock down to a wall clock that has stepped back: the successor
// goes on from that reading, and would wait as long as the step.
func TestASealThatMeetsAResyncKeepsTheLogicalClock(t *testing.T) {
	for _, rollback := range []Rollback{Continue, Refuse} {
		synctest.Test(t, func(t *testing.T) {
			clock := new(stepper)
			config := Config{Layout: bubbleLayout(2), Worker: StaticWorker(1), Rollback: rollback}
			g := newTest(t, config, clock)
			mustNext(t, g)
			time.Sleep(time.Second)
			mustNext(t, g)
			clock.by(-time.Hour)
			_, _ = g.Next(context.Background())
			before := g.term.offset.Load()
			stop := checkpoint{last: g.term.state.Swap(sealed)}
			if _, err := g.term.accept(context.Background(), new(patience)); err != nil {
				t.Errorf("%v: accept() with the seal = %v; want nil, the caller will see the seal", rollback, err)
			}
			stop.logical, stop.at = g.term.offset.Load()+g.term.clock.monotonic(), time.Now()
			if after := g.term.offset.Load(); after != before {
				t.Errorf("%v: the offset went from %v to %v; want it kept", rollback, time.Duration(before), time.Duration(after))
			}
			g.close.Do(func() { leave(g.identity, stop) }) // as Close would
			if rollback != Continue {
				return
			}
			began := time.Now()
			successor := newTest(t, config, clock)
			mustNext(t, successor)
			if took := time.Since(began); took > 2*defaultRunAhead {
				t.Errorf("Next() of the successor took %v; want at most 40ms", took)
			}
		})
	}
}
