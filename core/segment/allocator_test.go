package segment_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/core/segment/segmenttest"
	"github.com/snowkey/snowkey/internal/base/wait"
	"github.com/snowkey/snowkey/types"
)

var large = flag.Bool("large", false, "run the searches that take long")

// A faulty store passes calls on to a store in memory, late, or fails them.
type faulty struct {
	segmenttest.Memory
	delay atomic.Int64          // of each Take, in ns
	hang  atomic.Bool           // until the context ends
	fails atomic.Pointer[error] // of each Take; nil: none
	takes atomic.Int64
	asked atomic.Int64 // the Count of the last Take
	backs atomic.Int64
}

func (f *faulty) Take(ctx context.Context, t segment.Take) (segment.Range, error) {
	f.takes.Add(1)
	f.asked.Store(t.Count)
	if f.hang.Load() {
		<-ctx.Done()
		return segment.Range{}, ctx.Err()
	}
	if d := time.Duration(f.delay.Load()); d > 0 {
		time.Sleep(d)
	}
	if err := f.fails.Load(); err != nil {
		return segment.Range{}, *err
	}
	return f.Memory.Take(ctx, t)
}

func (f *faulty) GiveBack(ctx context.Context, g segment.GiveBack) error {
	f.backs.Add(1)
	return f.Memory.GiveBack(ctx, g)
}

func (f *faulty) fail(err error) { f.fails.Store(&err) }

// newStore returns a store with a row for the tag "a".
func newStore(t *testing.T, next, step int64) *faulty {
	t.Helper()
	f := &faulty{}
	if err := f.Create(t.Context(), segment.Row{Tag: "a", Next: next, Step: step, Stride: 1}); err != nil {
		t.Fatal(err)
	}
	return f
}

// start returns an allocator of the tag "a", which the test closes at its end.
func start(t *testing.T, store segment.Store, c segment.Config) *segment.Allocator {
	t.Helper()
	c.Tag, c.Logger = "a", slog.New(slog.DiscardHandler)
	a, err := segment.New(store, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close(context.Background()) })
	return a
}

func next(t *testing.T, a *segment.Allocator) types.Snowflake {
	id, err := a.Next(t.Context())
	if err != nil {
		t.Helper() // not before: it takes longer than the call
		t.Fatalf("Next = %v", err)
	}
	return id
}

// wantNext checks the first number that has not been given out.
func wantNext(t *testing.T, store segment.Lister, want int64) {
	t.Helper()
	rows, err := store.Rows(t.Context())
	if err != nil || len(rows) != 1 || rows[0].Next != want {
		t.Errorf("Rows = %+v, %v; want next = %d", rows, err, want)
	}
}

// bubble runs a test in simulated time.
func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

func TestNewAsksNothingAndStartsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which fails if a goroutine stays
		store := newStore(t, 1, 10)
		a, err := segment.New(store, segment.Config{Tag: "a"})
		if err != nil {
			t.Fatal(err)
		}
		if n := store.takes.Load(); n != 0 {
			t.Errorf("New asks the store %d times; want 0", n)
		}
		if err := a.Close(t.Context()); err != nil {
			t.Errorf("Close of an allocator that was not used = %v; want nil", err)
		}
	})
}

// fetchers returns how many goroutines of Allocators there are.
func fetchers() int {
	stacks := make([]byte, 1<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "segment.(*fetcher).run(")
}

func TestTheFirstCallsStartOneGoroutineAndCloseEndsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 1000)
		store.delay.Store(int64(time.Second))
		a := start(t, store, segment.Config{})
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() { _, _ = a.Next(t.Context()) })
		}
		wg.Wait()
		if n := fetchers(); n != 1 {
			t.Errorf("50 first calls start %d goroutines; want 1", n)
		}
		if err := a.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // Close returns when the goroutine is about to end
		if n := fetchers(); n != 0 {
			t.Errorf("after Close there are %d goroutines; want none", n)
		}
	})
}

func TestCloseEndsWithItsContextThoughTheStoreIsDeaf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &deaf{faulty: newStore(t, 1, 10), answer: make(chan struct{})}
		a := start(t, store, segment.Config{MaxWait: time.Second})
		if _, err := a.Next(t.Context()); !errors.Is(err, segment.ErrUnavailable) {
			t.Errorf("Next = %v; want %v", err, segment.ErrUnavailable)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if err := a.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("Close = %v after %v; want the end of its context after 1s", err, time.Since(began))
		}
		close(store.answer)
		synctest.Wait()
		if n := fetchers(); n != 0 {
			t.Errorf("when the store has answered there are %d goroutines; want none", n)
		}
		if err := a.Close(t.Context()); err != nil {
			t.Errorf("a second Close = %v; want nil", err)
		}
	})
}

// One store obeys its context, the other does not, and neither answers.
func TestCloseThatGivesNumbersBackEndsThoughTheStoreDoesNotAnswer(t *testing.T) {
	for _, heeds := range []bool{false, true} {
		for name, limit := range map[string]time.Duration{"a second": time.Second, "no deadline": 0} {
			synctest.Test(t, func(t *testing.T) {
				store := &silent{faulty: newStore(t, 1, 10), heeds: heeds, answer: make(chan struct{})}
				a := start(t, store, segment.Config{})
				next(t, a)
				ctx, want := t.Context(), 3*time.Second
				if limit > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, limit)
					defer cancel()
					want = limit
				}
				if !heeds {
					want += wait.Grace
				}
				began := time.Now()
				if err := a.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != want {
					t.Errorf("Close with %s, the store heeds its context: %t = %v after %v; want the end after %v", name, heeds, err, time.Since(began), want)
				}
				close(store.answer)
			})
		}
	}
}

// A silent store gives ranges, and does not answer when one is given back.
type silent struct {
	*faulty
	heeds  bool
	answer chan struct{}
}

func (s *silent) GiveBack(ctx context.Context, _ segment.GiveBack) error {
	if !s.heeds {
		ctx = context.WithoutCancel(ctx)
	}
	select {
	case <-s.answer:
		return errors.New("late")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A deaf store does not heed its context.
type deaf struct {
	*faulty
	answer chan struct{}
}

func (d *deaf) Take(context.Context, segment.Take) (segment.Range, error) {
	<-d.answer
	return segment.Range{}, errors.New("late")
}

func TestNextAndFillTakeNoLockWhileNumbersAreHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]segment.Config{"by rate": {}, "Leaf": {Rule: segment.Leaf}, "no prefetch": {Hold: -1}} {
			a := start(t, newStore(t, 1, 1000), c)
			next(t, a)
			segment.Locked(a, func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				for range 300 { // past every mark
					if _, err := a.Next(ctx); err != nil {
						t.Errorf("%s: Next = %v", name, err)
					}
				}
				if err := a.Fill(ctx, make([]types.Snowflake, 300)); err != nil {
					t.Errorf("%s: Fill = %v", name, err)
				}
			})
		}
	})
}

func TestLessThanATenthLeftIsSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text strings.Builder
		a, err := segment.New(newStore(t, 1, 50), segment.Config{Tag: "a", Hold: -1, Last: 1000, Logger: slog.New(slog.NewTextHandler(&text, nil))})
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close(t.Context())
		for i := range 1000 {
			id := next(t, a)
			s := a.Stats()
			// What is held counts as used up.
			if low := s.Max > 900; s.Low != low || s.Last != 1000 || s.Left != 1000-s.Max || s.Max != int64(i/50+1)*50 {
				t.Fatalf("Stats after %d = %+v; want Low %t", id, s, low)
			}
		}
		synctest.Wait()
		if n := strings.Count(text.String(), "less than a tenth of the numbers is left"); n != 1 {
			t.Errorf("the log says it %d times; want once: %s", n, text.String())
		}
	})
}

func TestNoNumberIsReturnedTwiceAndLaterOnesAreLarger(t *testing.T) {
	for name, c := range map[string]segment.Config{
		"by rate":     {},
		"Leaf":        {Rule: segment.Leaf},
		"no prefetch": {Hold: -1},
		"one by one":  {Hold: -1, Step: 1},
	} {
		bubble(t, name, func(t *testing.T) {
			store := newStore(t, 1, 7)
			store.delay.Store(int64(time.Millisecond))
			a := start(t, store, c)
			var (
				wg  sync.WaitGroup
				mu  sync.Mutex
				all []types.Snowflake
				top atomic.Int64
			)
			for seed := range uint64(32) {
				wg.Go(func() {
					rng := rand.New(rand.NewPCG(seed, 0))
					var mine []types.Snowflake
					for range 40 {
						before := types.Snowflake(top.Load())
						ids := make([]types.Snowflake, 1+rng.IntN(20))
						var err error
						if len(ids) == 1 {
							ids[0], err = a.Next(t.Context())
						} else {
							err = a.Fill(t.Context(), ids)
						}
						if err != nil {
							t.Error(err)
							return
						}
						if ids[0] <= before || !slices.IsSorted(ids) {
							t.Errorf("a call returns %v after %d was returned", ids, before)
						}
						last := int64(ids[len(ids)-1])
						for v := top.Load(); v < last && !top.CompareAndSwap(v, last); v = top.Load() {
						}
						mine = append(mine, ids...)
						time.Sleep(time.Duration(rng.IntN(1000)) * time.Microsecond)
					}
					mu.Lock()
					all = append(all, mine...)
					mu.Unlock()
				})
			}
			wg.Wait()
			slices.Sort(all)
			for i := range all[1:] {
				if all[i] == all[i+1] {
					t.Fatalf("%d was returned twice", all[i])
				}
			}
			if err := a.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			wantNext(t, store, int64(len(all))+1) // and there is no gap
		})
	}
}

func TestACallThatFailsTakesNothingOfTheNextRange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 1000)
		store.fail(errors.New("down"))
		a := start(t, store, segment.Config{Hold: -1, MaxWait: 1})
		goroutines, calls := 10, 5_000
		if *large {
			calls = 100_000
		}
		var wg sync.WaitGroup
		for range goroutines {
			wg.Go(func() {
				for range calls {
					if id, err := a.Next(t.Context()); err == nil || id != 0 {
						t.Errorf("Next = %d, %v; want 0 and an error", id, err)
						return
					}
				}
			})
		}
		wg.Wait()
		store.fails.Store(nil)
		time.Sleep(5 * time.Second) // the pause after a failure
		for want := types.Snowflake(1); want <= 1000; {
			switch id, err := a.Next(t.Context()); {
			case err != nil: // MaxWait is shorter than any fetch
				time.Sleep(time.Second)
			case id != want:
				t.Fatalf("Next = %d; want %d", id, want)
			default:
				want++
			}
		}
		wantNext(t, store, 1001)
	})
}

func TestWithTheStoreAwayItServesWhatItHoldsThenFailsThenRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 100)
		a := start(t, store, segment.Config{Hold: -1})
		next(t, a)
		down := errors.New("the server is down")
		store.fail(down)
		for range 99 {
			next(t, a)
		}
		began := time.Now()
		id, err := a.Next(t.Context())
		if waited := time.Since(began); waited != 5*time.Second {
			t.Errorf("Next has waited %v; want 5s", waited)
		}
		for _, want := range []error{segment.ErrUnavailable, core.ErrReservationExhausted, down} {
			if !errors.Is(err, want) {
				t.Errorf("Next = %d, %v; want an error that matches %v", id, err, want)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := a.Next(ctx); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, segment.ErrUnavailable) {
			t.Errorf("Next = %v; want that it matches %v and %v", err, context.DeadlineExceeded, segment.ErrUnavailable)
		}
		if s := a.Stats(); s.Held != 0 || !errors.Is(s.Err, down) || s.Failures < 5 || s.Failures > 25 {
			t.Errorf("Stats = %+v; want nothing held, the store's error, and a failure per second or so", s)
		}
		store.fails.Store(nil)
		if id := next(t, a); id != 101 {
			t.Errorf("Next after the store is back = %d; want 101", id)
		}
	})
}

func TestAHangingStoreEndsNoCallLateAndNoGoroutineStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 100)
		store.hang.Store(true)
		a := start(t, store, segment.Config{MaxWait: time.Second})
		if _, err := a.Next(t.Context()); !errors.Is(err, segment.ErrUnavailable) || !strings.Contains(err.Error(), "not answered") {
			t.Errorf("Next = %v; want that the store has not answered", err)
		}
		waiting := make(chan error)
		go func() {
			_, err := a.Next(t.Context())
			waiting <- err
		}()
		synctest.Wait()
		if err := a.Close(t.Context()); err != nil {
			t.Errorf("Close = %v; want nil", err)
		}
		if err := <-waiting; !errors.Is(err, segment.ErrClosed) || !errors.Is(err, core.ErrClosed) {
			t.Errorf("a call that waits when Close comes = %v; want %v", err, segment.ErrClosed)
		}
		if err := a.Close(t.Context()); err != nil {
			t.Errorf("a second Close = %v; want nil", err)
		}
	})
}

func TestACleanRestartLeavesNoGap(t *testing.T) {
	for name, c := range map[string]segment.Config{"by rate": {}, "Leaf": {Rule: segment.Leaf}, "no prefetch": {Hold: -1}} {
		bubble(t, name, func(t *testing.T) {
			store := newStore(t, 1, 10)
			last := types.Snowflake(0)
			for range 5 {
				a := start(t, store, c)
				for range 37 { // of several ranges
					if id := next(t, a); id != last+1 {
						t.Fatalf("Next = %d; want %d", id, last+1)
					}
					last++
				}
				time.Sleep(time.Second) // for a prefetch
				if err := a.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				wantNext(t, store, int64(last)+1)
			}
		})
	}
}

// The row is fresh: its version is 0, like the version of the zero Range.
func TestCloseAfterFetchesThatHaveFailedLeavesTheRowAsItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{}
		before := segment.Row{Tag: "a", Next: 1, Step: 10, Stride: 2, Offset: 1}
		if err := store.Create(t.Context(), before); err != nil {
			t.Fatal(err)
		}
		store.fail(errors.New("down"))
		a := start(t, store, segment.Config{MaxWait: time.Second})
		if _, err := a.Next(t.Context()); !errors.Is(err, segment.ErrUnavailable) {
			t.Fatalf("Next = %v; want %v", err, segment.ErrUnavailable)
		}
		store.fails.Store(nil)
		if err := a.Close(t.Context()); err != nil {
			t.Errorf("Close = %v; want nil", err)
		}
		if n := store.backs.Load(); n != 0 {
			t.Errorf("Close gives back %d times; want 0: it holds nothing", n)
		}
		if rows, err := store.Rows(t.Context()); err != nil || rows[0] != before {
			t.Errorf("Rows after Close = %+v, %v; want %+v", rows, err, before)
		}
		if id := next(t, start(t, store, segment.Config{})); id != 3 {
			t.Errorf("Next = %d; want 3, with which the row begins", id)
		}
	})
}

func TestWhatOthersHaveTakenSinceIsNotGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 10)
		a, b := start(t, store, segment.Config{Hold: -1}), start(t, store, segment.Config{Hold: -1})
		next(t, a)
		next(t, b)
		if held := a.Stats().Held; held != 9 {
			t.Errorf("Stats.Held = %d; want 9", held)
		}
		if err := a.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantNext(t, store, 21)
		if err := b.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantNext(t, store, 12)
	})
}

func TestAClosedAllocatorReturnsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := start(t, newStore(t, 1, 10), segment.Config{})
		next(t, a)
		if err := a.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		ids := []types.Snowflake{7, 7}
		if err := a.Fill(t.Context(), ids); !errors.Is(err, segment.ErrClosed) || ids[0] != 0 || ids[1] != 0 {
			t.Errorf("Fill = %v, %v; want zeros and %v", ids, err, segment.ErrClosed)
		}
		if id, err := a.Next(t.Context()); !errors.Is(err, segment.ErrClosed) || id != 0 {
			t.Errorf("Next = %d, %v; want 0 and %v", id, err, segment.ErrClosed)
		}
	})
}

func TestAnEndedContextIsAnErrorAlthoughNumbersAreHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := start(t, newStore(t, 1, 10), segment.Config{})
		next(t, a)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		ids := []types.Snowflake{7}
		if err := a.Fill(ctx, ids); !errors.Is(err, context.Canceled) || ids[0] != 0 {
			t.Errorf("Fill = %v, %v; want 0 and %v", ids, err, context.Canceled)
		}
		if id, err := a.Next(ctx); !errors.Is(err, context.Canceled) || id != 0 {
			t.Errorf("Next = %d, %v; want 0 and %v", id, err, context.Canceled)
		}
		if id := next(t, a); id != 2 {
			t.Errorf("Next = %d; want 2", id)
		}
	})
}

func TestFillSetsAllOrNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 10)
		a := start(t, store, segment.Config{Hold: -1, MaxStep: 10})
		next(t, a)
		store.fail(errors.New("down"))
		ids := make([]types.Snowflake, 25)
		if err := a.Fill(t.Context(), ids); !errors.Is(err, segment.ErrUnavailable) || slices.Max(ids) != 0 {
			t.Errorf("Fill = %v, %v; want zeros and %v", ids, err, segment.ErrUnavailable)
		}
		store.fails.Store(nil)
		if err := a.Fill(t.Context(), ids); err != nil || ids[0] != 11 || ids[24] != 35 {
			t.Errorf("Fill = %v, %v; want 11 to 35", ids, err)
		}
		if err := a.Fill(t.Context(), nil); err != nil {
			t.Errorf("Fill of nothing = %v; want nil", err)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := a.Fill(ended, nil); err != nil {
			t.Errorf("Fill of nothing under an ended context = %v; want nil", err)
		}
	})
}

func TestWithStepOneItIsASequenceTableAndFillIsOneStatement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 1000)
		a := start(t, store, segment.Config{Hold: -1, Step: 1})
		for range 10 {
			next(t, a)
		}
		if n := store.takes.Load(); n != 10 {
			t.Errorf("10 numbers take %d statements; want 10", n)
		}
		if err := a.Fill(t.Context(), make([]types.Snowflake, 500)); err != nil {
			t.Fatal(err)
		}
		if n := store.takes.Load(); n != 11 {
			t.Errorf("Fill takes %d statements; want 1", n-10)
		}
		wantNext(t, store, 511)
	})
}

func TestARowThatWentBackEndsTheAllocatorAndDropsWhatItHolds(t *testing.T) {
	for name, rule := range map[string]segment.Rule{"by rate": segment.ByRate, "Leaf": segment.Leaf} {
		bubble(t, name, func(t *testing.T) {
			store := newStore(t, 1000, 10)
			a := start(t, store, segment.Config{Rule: rule})
			next(t, a)
			// The backup has the row of long ago.
			store.Memory = segmenttest.Memory{}
			if err := store.Create(t.Context(), segment.Row{Tag: "a", Next: 1, Step: 10, Stride: 1}); err != nil {
				t.Fatal(err)
			}
			var err error
			for range 100_000 {
				if _, err = a.Next(t.Context()); err != nil {
					break
				}
				time.Sleep(time.Millisecond)
			}
			if !errors.Is(err, segment.ErrWentBack) {
				t.Fatalf("Next = %v; want %v", err, segment.ErrWentBack)
			}
			if s := a.Stats(); s.Held != 0 {
				t.Errorf("Stats.Held = %d; want 0", s.Held)
			}
			if err := a.Close(t.Context()); err != nil || store.backs.Load() != 0 {
				t.Errorf("Close = %v with %d calls of GiveBack; want nil and none", err, store.backs.Load())
			}
		})
	}
}

func TestFloorRefusesNumbersThatAreInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 10)
		asked := 0
		floor := func(context.Context) (int64, error) { asked++; return 500, nil }
		a := start(t, store, segment.Config{Floor: floor})
		if id, err := a.Next(t.Context()); !errors.Is(err, segment.ErrWentBack) || !strings.Contains(err.Error(), "500") || id != 0 {
			t.Errorf("Next = %d, %v; want %v, with 500", id, err, segment.ErrWentBack)
		}
		if _, err := store.Raise(t.Context(), "a", 500); err != nil {
			t.Fatal(err)
		}
		at := start(t, store, segment.Config{Floor: floor})
		if id, err := at.Next(t.Context()); !errors.Is(err, segment.ErrWentBack) || id != 0 {
			t.Errorf("Next of a row that begins with the number in use = %d, %v; want %v", id, err, segment.ErrWentBack)
		}
		if _, err := store.Raise(t.Context(), "a", 511); err != nil { // above the range that was refused
			t.Fatal(err)
		}
		b := start(t, store, segment.Config{Floor: floor})
		if id := next(t, b); id != 511 {
			t.Errorf("Next after Raise = %d; want 511", id)
		}
		for range 100 {
			next(t, b)
		}
		if asked != 3 {
			t.Errorf("three allocators ask Floor %d times; want 3", asked)
		}
		down := errors.New("no table")
		c := start(t, store, segment.Config{Floor: func(context.Context) (int64, error) { return 0, down }})
		if _, err := c.Next(t.Context()); !errors.Is(err, segment.ErrUnavailable) || !errors.Is(err, down) {
			t.Errorf("Next with a Floor that fails = %v; want %v and %v", err, segment.ErrUnavailable, down)
		}
	})
}

func TestLastIsReturnedAndNothingAboveIt(t *testing.T) {
	for name, c := range map[string]struct {
		next, last int64
		config     segment.Config
	}{
		"in a range":         {1, 25, segment.Config{}},
		"at the end of one":  {1, 20, segment.Config{Rule: segment.Leaf}},
		"of JavaScript":      {1<<53 - 25, 1<<53 - 1, segment.Config{Hold: -1}},
		"of 63 bits":         {math.MaxInt64 - 15, math.MaxInt64 - 1, segment.Config{Hold: -1}}, // no Last: the store refuses
		"below the next one": {100, 99, segment.Config{}},
	} {
		bubble(t, name, func(t *testing.T) {
			store := newStore(t, c.next, 10)
			if c.last != math.MaxInt64-1 {
				c.config.Last = c.last
			}
			a := start(t, store, c.config)
			for want := c.next; want <= c.last; want++ {
				if id := next(t, a); int64(id) != want {
					t.Fatalf("Next = %d; want %d", id, want)
				}
			}
			for range 3 {
				if id, err := a.Next(t.Context()); !errors.Is(err, segment.ErrExhausted) || id != 0 {
					t.Errorf("Next after %d = %d, %v; want %v", c.last, id, err, segment.ErrExhausted)
				}
			}
			if s := a.Stats(); !s.Low {
				t.Errorf("Stats = %+v; want Low", s)
			}
		})
	}
}

// The row says the step, and fewer numbers than that are left. The store is not asked for ever.
func TestAllNumbersUpToTheGreatestAreReturnedThenItIsExhausted(t *testing.T) {
	for _, c := range []struct{ left, step, stride, offset int64 }{
		{0, 1000, 1, 0}, {1, 1000, 1, 0}, {25, 10, 1, 0}, {25, 1000, 1, 0}, {999, 1000, 1, 0}, {25, segment.MaxCount, 1, 0}, {25, 1000, 7, 6},
	} {
		for name, config := range map[string]segment.Config{"": {}, "leaf": {Rule: segment.Leaf}, "no prefetch": {Hold: -1}, "step": {Step: 7}} {
			bubble(t, fmt.Sprintf("%d left of step %d, stride %d %s", c.left, c.step, c.stride, name), func(t *testing.T) {
				store := &faulty{}
				store.delay.Store(int64(time.Millisecond))
				end := (math.MaxInt64 - c.offset) / c.stride // the last of all is never given
				if err := store.Create(t.Context(), segment.Row{Tag: "a", Next: end - c.left, Step: c.step, Stride: c.stride, Offset: c.offset}); err != nil {
					t.Fatal(err)
				}
				a := start(t, store, config)
				for k := end - c.left; k < end; k++ {
					if id := next(t, a); int64(id) != k*c.stride+c.offset {
						t.Fatalf("Next = %d; want %d", id, k*c.stride+c.offset)
					}
				}
				for range 3 {
					if id, err := a.Next(t.Context()); id != 0 || !errors.Is(err, segment.ErrExhausted) {
						t.Errorf("Next after the last = %d, %v; want %v", id, err, segment.ErrExhausted)
					}
				}
				time.Sleep(time.Hour)
				if n := store.takes.Load(); n > 100 {
					t.Errorf("the store was asked %d times; want a few dozen at most", n)
				}
			})
		}
	}
}

func TestATagWithoutARowIsAnErrorAtOnceAndIsFoundWhenItIsMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{}
		store.delay.Store(int64(time.Millisecond))
		set, err := segment.NewSet(store, segment.Config{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = set.Close(context.Background()) }()
		for range 3 {
			began := time.Now()
			if _, err := set.Next(t.Context(), "a"); !errors.Is(err, segment.ErrNoTag) || !strings.Contains(err.Error(), "a") {
				t.Errorf("Next = %v; want %v", err, segment.ErrNoTag)
			}
			if waited := time.Since(began); waited > 2*time.Millisecond {
				t.Errorf("Next has waited %v; want one look at the store", waited)
			}
		}
		if err := store.Create(t.Context(), segment.Row{Tag: "a", Next: 1, Step: 1, Stride: 1}); err != nil {
			t.Fatal(err)
		}
		if id, err := set.Next(t.Context(), "a"); id != 1 || err != nil {
			t.Errorf("Next = %d, %v; want 1", id, err)
		}
		if n := store.takes.Load(); n < 4 || n > 8 { // a wake that comes late costs another look
			t.Errorf("the store was asked %d times; want 4 to 8", n)
		}
	})
}

func TestTheNumberZeroIsNeverReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, step := range []int64{1, 10} {
			a := start(t, newStore(t, 0, step), segment.Config{Hold: -1})
			if id := next(t, a); id != 1 {
				t.Errorf("the first number of a row at 0 with step %d is %d; want 1", step, id)
			}
		}
	})
}

func TestNextAndFillAllocateNothing(t *testing.T) {
	a := start(t, newStore(t, 1, 1_000_000), segment.Config{Hold: -1})
	ids := make([]types.Snowflake, 100)
	next(t, a)
	if n := testing.AllocsPerRun(1000, func() {
		if _, err := a.Next(context.Background()); err != nil {
			t.Error(err)
		}
		if err := a.Fill(context.Background(), ids); err != nil {
			t.Error(err)
		}
	}); n != 0 {
		t.Errorf("Next and Fill allocate %v times; want 0", n)
	}
}

func TestOnRefillTellsWhatCame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 10)
		store.delay.Store(int64(3 * time.Millisecond))
		var got []segment.Refill
		a := start(t, store, segment.Config{Hold: -1, OnRefill: func(r segment.Refill) { got = append(got, r) }})
		next(t, a)
		synctest.Wait()
		want := segment.Refill{Tag: "a", Count: 10, Held: 10, Took: 3 * time.Millisecond}
		if len(got) != 1 || got[0] != want {
			t.Errorf("OnRefill gets %+v; want one %+v", got, want)
		}
	})
}
