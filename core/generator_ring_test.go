package core

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/snowkey/snowkey/types"
)

// readings runs a design on every sequence of clock readings up to a length. It
// returns the shortest after which a number was returned twice, and how many it
// tried. The result of take is the number taken at a tick, or false. Calling undo
// restores the design.
func readings(length, ticks int, take func(tick uint64) (number uint64, ok bool, undo func())) (worst []uint64, tried int) {
	var schedule []uint64
	seen := map[uint64]bool{}
	var search func(left int) bool
	search = func(left int) bool {
		for tick := range uint64(ticks) {
			tried++
			number, ok, undo := take(tick)
			schedule = append(schedule, tick)
			if ok && seen[number] {
				worst = slices.Clone(schedule)
				return true
			}
			if ok {
				seen[number] = true
			}
			if left > 1 && search(left-1) {
				return true
			}
			if ok {
				delete(seen, number)
			}
			schedule = schedule[:len(schedule)-1]
			undo()
		}
		return false
	}
	for n := 1; n <= length && worst == nil; n++ { // by length, so that the first found is a shortest
		search(n)
	}
	return worst, tried
}

// small is a ring of three slots with two numbers per tick, so that a search covers every way
// to fill, overtake and forget it.
func small(ahead int64) *ring {
	l := Layout{Epoch: time.Unix(0, 0), Unit: time.Millisecond, TimeBits: 20, SequenceBits: 1}
	s := settings{ahead: ahead * int64(l.Unit), rollback: Backfill}
	r := newRing(counterConfig{newNumbering(l, 0, 0), newClock(l.Epoch, nil), s, new(notifier)}, 0)
	r.slots = r.slots[:3]
	r.first, r.born = 1, 0 // the ticks of the search are 1, 2, …
	return r
}

func TestNoClockReadingsMakeTheRingRepeat(t *testing.T) {
	length := 6
	if *large {
		length = 8
	}
	for _, ahead := range []int64{0, 1} {
		ring := small(ahead)
		slots := ring.slots
		worst, tried := readings(length, 7, func(tick uint64) (uint64, bool, func()) {
			var before [3]uint64
			for i := range slots {
				before[i] = slots[i].Load()
			}
			number, n, _ := ring.reserveAt(int64(tick+1)*ring.unit, 1)
			return number, n > 0, func() {
				for i := range slots {
					slots[i].Store(before[i])
				}
			}
		})
		if worst != nil {
			t.Errorf("run-ahead %d: the ring repeats a number on the readings %v; want never", ahead, worst)
		}
		t.Logf("run-ahead %d: %d readings tried", ahead, tried)
	}
}

// A wrongRing is the ring that is often published: the last tick, and beside it the last sequence
// number of each recent tick.
type wrongRing struct {
	last int64    // the tick of the last ID, -1 for none
	seqs [3]int64 // -1 for none
}

// take is what such a ring does at a tick, with one of two mistakes. After a step
// back, masks does not see that the tick is full, and lowers takes the last tick
// back to the clock.
func (w *wrongRing) take(tick int64, masks, lowers bool) (number uint64, ok bool) {
	seq := &w.seqs[tick%3]
	switch {
	case tick > w.last:
		*seq, w.last = 0, tick
	case *seq == 1 && (tick == w.last || !masks):
		return 0, false // full: wait
	default:
		*seq = (*seq + 1) & 1
		if lowers {
			w.last = tick
		}
	}
	return uint64(tick<<1 | *seq), true
}

// The search bites: it finds both mistakes, by the shortest readings.
func TestTheSearchFindsBothMistakesOfPublishedRings(t *testing.T) {
	for _, c := range []struct {
		masks, lowers bool
		want          []uint64
	}{
		{true, false, []uint64{0, 0, 1, 0}},
		{false, true, []uint64{1, 0, 1}},
		{false, false, nil},
	} {
		w := wrongRing{last: -1, seqs: [3]int64{-1, -1, -1}}
		worst, _ := readings(5, 3, func(tick uint64) (uint64, bool, func()) {
			before := w
			number, ok := w.take(int64(tick), c.masks, c.lowers)
			return number, ok, func() { w = before }
		})
		if !slices.Equal(worst, c.want) {
			t.Errorf("masks %v, lowers %v: the search finds %v; want %v", c.masks, c.lowers, worst, c.want)
		}
	}
}

func backfill(sequenceBits int) Config {
	return Config{Layout: bubbleLayout(sequenceBits), Rollback: Backfill}
}

func TestBackfillFollowsTheClockBackWithoutAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := new(stepper)
		g := newTest(t, backfill(4), clock)
		l := g.Layout()
		mustNext(t, g)
		time.Sleep(time.Second)
		var got []types.Snowflake
		random := rand.New(rand.NewPCG(1, 1))
		for range 200 {
			for range 5 {
				time.Sleep(time.Millisecond)
				ids := make([]types.Snowflake, 1+random.IntN(3))
				if err := g.Fill(context.Background(), ids); err != nil {
					t.Fatalf("Fill() within the ring = %v", err)
				}
				wall := time.Now().Add(clock.offset())
				for _, id := range append(ids, mustNext(t, g)) {
					if at := l.Parts(id).Time; at.Before(wall.Truncate(l.Unit)) || at.After(wall.Add(defaultRunAhead)) {
						t.Fatalf("an ID has time %v; want that of the wall clock, %v", at, wall)
					}
					got = append(got, id)
				}
			}
			if random.IntN(3) == 0 { // within what the clock has gained: the ring has 256 ms
				clock.by(-time.Duration(random.IntN(4)) * time.Millisecond)
			}
		}
		requireDistinct(t, l, got)
	})
}

func TestBackfillRefusesWhatItHasForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := new(stepper)
		g := newTest(t, backfill(4), clock)
		for range 1000 {
			mustNext(t, g)
			time.Sleep(time.Millisecond)
		}
		clock.by(-250 * time.Millisecond)
		if id, err := g.Next(context.Background()); err != nil {
			t.Errorf("Next() 250 ticks back = %d, %v; want an ID, the ring has 256", id, err)
		}
		clock.by(-20 * time.Millisecond)
		id, err := g.Next(context.Background())
		var back *ClockBackError
		if id != 0 || !errors.As(err, &back) || !errors.Is(err, ErrClockBack) || back.Behind > 20*time.Millisecond || back.Behind < 10*time.Millisecond {
			t.Errorf("Next() 270 ticks back = %d, %v; want 0 and a ClockBackError of 10 to 20 ms", id, err)
		}
		clock.by(back.Behind) // from then on IDs can be had
		if id, err := g.Next(context.Background()); err != nil {
			t.Errorf("Next() when the time has come that the error named = %d, %v; want an ID", id, err)
		}
		clock.by(-back.Behind)
		ids := []types.Snowflake{9}
		if err := g.Fill(context.Background(), ids); ids[0] != 0 || !errors.Is(err, ErrClockBack) {
			t.Errorf("Fill() 270 ticks back = %v, %v; want zeros and ErrClockBack", ids, err)
		}
		clock.by(270 * time.Millisecond)
		mustNext(t, g)
	})
}

func TestBackfillRefusesTimesBeforeItBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := new(stepper)
		g := newTest(t, backfill(4), clock)
		mustNext(t, g)
		time.Sleep(5 * time.Millisecond)
		clock.by(-time.Hour)
		id, err := g.Next(context.Background())
		var back *ClockBackError
		if id != 0 || !errors.As(err, &back) || back.Behind < 59*time.Minute || back.Behind > time.Hour+time.Second {
			t.Errorf("Next() an hour before the generator began = %d, %v; want 0 and a ClockBackError of about 1h", id, err)
		}
		clock.by(-20 * 365 * 24 * time.Hour) // before the epoch
		if id, err := g.Next(context.Background()); id != 0 || !errors.Is(err, ErrClockBack) {
			t.Errorf("Next() before the epoch = %d, %v; want 0, ErrClockBack", id, err)
		}
	})
}

// A full tick spills into the next ones, up to the run-ahead; then calls wait.
func TestBackfillAtItsCapWaitsAndLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTest(t, backfill(2), nil)
		l := g.Layout()
		began := time.Now()
		var got []types.Snowflake
		for range 500 {
			ids := make([]types.Snowflake, 7)
			if err := g.Fill(context.Background(), ids); err != nil {
				t.Fatal(err)
			}
			got = append(got, append(ids, mustNext(t, g))...)
			if at := l.Parts(got[len(got)-1]).Time; at.After(time.Now().Add(defaultRunAhead)) {
				t.Fatalf("an ID has time %v at %v; want at most 20ms ahead", at, time.Now())
			}
		}
		if took := time.Since(began); took > 1001*time.Millisecond { // 4000 IDs at 4 per ms
			t.Errorf("4000 IDs at 4 per ms took %v; want 1s", took)
		}
		if g.Stats().Waits == 0 || g.Stats().Ahead < 19*time.Millisecond || g.Stats().Ahead > defaultRunAhead {
			t.Errorf("Stats() = %+v; want waits, and the lead of the run-ahead", g.Stats())
		}
		requireDistinct(t, l, got)
		ctx, cancel := context.WithTimeout(context.Background(), 500*time.Microsecond)
		defer cancel()
		if _, err := g.Next(ctx); err == nil {
			_, err = g.Next(ctx)
			for err == nil {
				_, err = g.Next(ctx)
			}
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Next(ctx ends) = %v; want DeadlineExceeded", err)
			}
		}
	})
}

func TestBackfillEndsWithItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := backfill(2)
		config.Layout.TimeBits = 35
		g := newTest(t, config, nil)
		time.Sleep(time.Until(config.Layout.Exhausted()) - 2*time.Millisecond)
		for range 8 {
			mustNext(t, g)
		}
		if id, err := g.Next(context.Background()); id != 0 || !errors.Is(err, ErrTimeExhausted) {
			t.Errorf("Next(past the last tick) = %d, %v; want 0, ErrTimeExhausted", id, err)
		}
	})
}
