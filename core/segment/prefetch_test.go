package segment_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/snowkey/snowkey/core/segment"
)

// A load is calls at a steady rate.
type load struct {
	perSecond int
	lasts     time.Duration
}

// play makes the calls of the loads, in bursts of a millisecond, and returns the longest
// wait of each load.
func play(t *testing.T, a *segment.Allocator, loads ...load) (waits []time.Duration) {
	t.Helper()
	for _, l := range loads {
		longest := time.Duration(0)
		done, began := 0, time.Now()
		for time.Since(began) < l.lasts {
			for due := int(time.Since(began).Seconds() * float64(l.perSecond)); done < due; done++ {
				before := time.Now()
				next(t, a)
				longest = max(longest, time.Since(before))
			}
			time.Sleep(time.Millisecond)
		}
		waits = append(waits, longest)
	}
	return waits
}

func TestByRateWaitsForAFetchOnceAndNotInSteadyState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 1000)
		const delay = 100 * time.Millisecond
		store.delay.Store(int64(delay))
		a := start(t, store, segment.Config{MaxStep: 10_000_000})
		waits := play(t, a,
			load{2000, time.Minute},
			load{200_000, 2 * time.Second},
			load{2000, time.Minute},
			load{200_000, 2 * time.Second})
		t.Logf("longest waits %v, %d fetches", waits, store.takes.Load())
		if waits[0] > 2*delay {
			t.Errorf("at the start a call waits %v; want at most two fetches of %v", waits[0], delay)
		}
		if waits[1] > delay*3/2 {
			t.Errorf("after the first jump a call waits %v; want at most 1.5 fetches of %v", waits[1], delay)
		}
		if waits[2] != 0 || waits[3] != 0 {
			t.Errorf("after it calls wait %v and %v; want no wait", waits[2], waits[3])
		}
	})
}

func TestByRateHoldsWhatHoldSaysAndNotMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const hold, rate, most = 10 * time.Second, 5000, 20_000
		store := newStore(t, 1, 10)
		store.delay.Store(int64(10 * time.Millisecond))
		worst := int64(0)
		a := start(t, store, segment.Config{Hold: hold, MaxStep: most, OnRefill: func(r segment.Refill) {
			worst = max(worst, r.Held)
			if r.Count > most {
				t.Errorf("a fetch brings %d numbers; want at most %d", r.Count, most)
			}
		}})
		play(t, a, load{rate, 30 * time.Second})
		// The peak is measured over 100 ms, in bursts of a millisecond.
		if bound := int64(hold.Seconds()*rate*1.05) + most; worst > bound {
			t.Errorf("%d numbers are held; want at most %d", worst, bound)
		}
		// It goes on for half of Hold at least, without the store.
		store.hang.Store(true)
		if waits := play(t, a, load{rate, hold * 45 / 100}); waits[0] != 0 {
			t.Errorf("with the store away a call waits %v within half of Hold", waits[0])
		}
	})
}

func TestAnIdleAllocatorDoesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 10)
		a := start(t, store, segment.Config{})
		play(t, a, load{100, time.Second})
		time.Sleep(time.Second)
		before := store.takes.Load()
		time.Sleep(1000 * time.Hour)
		if n := store.takes.Load() - before; n != 0 {
			t.Errorf("1000 idle hours make %d fetches; want 0", n)
		}
	})
}

func TestLeafDoublesTheCountOfAShortRangeAndHalvesThatOfALongOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 1000)
		var counts []int64
		a := start(t, store, segment.Config{Rule: segment.Leaf, MaxStep: 8000, OnRefill: func(r segment.Refill) { counts = append(counts, r.Count) }})
		// Each round uses up one range and so begins the next, which fetches another.
		use := func(pause time.Duration) {
			fetched := len(counts)
			for len(counts) == fetched {
				next(t, a)
				synctest.Wait()
			}
			time.Sleep(pause)
		}
		for _, pause := range []time.Duration{1, 1, 1, 1, 1, 1, 20 * time.Minute, 20 * time.Minute, 31 * time.Minute, 31 * time.Minute, 31 * time.Minute, 31 * time.Minute, 31 * time.Minute, 1} {
			use(pause)
		}
		want := []int64{1000, 1000, 2000, 4000, 8000, 8000, 8000, 8000, 8000, 4000, 2000, 1000, 1000, 1000}
		if len(counts) < len(want) {
			t.Fatalf("the counts are %v; want %v", counts, want)
		}
		for i := range want {
			if counts[i] != want[i] {
				t.Fatalf("the counts are %v; want %v", counts, want)
			}
		}
	})
}

func TestLeafFetchesWhenATenthIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 1000)
		a := start(t, store, segment.Config{Rule: segment.Leaf})
		for range 100 {
			next(t, a)
			synctest.Wait()
		}
		if n := store.takes.Load(); n != 1 {
			t.Errorf("100 of 1000 numbers make %d fetches; want 1", n)
		}
		next(t, a)
		synctest.Wait()
		if n := store.takes.Load(); n != 2 {
			t.Errorf("101 of 1000 numbers make %d fetches; want 2", n)
		}
	})
}
