package segment_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/core/segment/segmenttest"
	"github.com/snowkey/snowkey/types"
)

// databases returns n stores with the rows of one Spread.
func databases(t *testing.T, n int, stride int64) []*faulty {
	t.Helper()
	var list []*faulty
	for i := range n {
		f := &faulty{}
		if err := f.Create(t.Context(), segment.Row{Tag: "a", Next: 1, Step: 10, Stride: stride, Offset: int64(i)}); err != nil {
			t.Fatal(err)
		}
		list = append(list, f)
	}
	return list
}

func spread(t *testing.T, list ...*faulty) segment.Store {
	t.Helper()
	var stores []segment.Store
	for _, f := range list {
		stores = append(stores, f)
	}
	s, err := segment.Spread(stores...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSpreadSharesTheLoadAndNumbersIncrease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dbs := databases(t, 3, 3)
		// Two processes.
		a, b := start(t, spread(t, dbs...), segment.Config{Hold: -1}), start(t, spread(t, dbs...), segment.Config{Hold: -1})
		seen := map[types.Snowflake]bool{}
		last := map[*segment.Allocator]types.Snowflake{}
		for range 300 {
			for _, x := range []*segment.Allocator{a, b} {
				id := next(t, x)
				if seen[id] || id <= last[x] {
					t.Fatalf("Next = %d after %d; returned before: %t", id, last[x], seen[id])
				}
				seen[id], last[x] = true, id
			}
		}
		for i, db := range dbs {
			if n := db.takes.Load(); n < 15 || n > 25 {
				t.Errorf("database %d of 3 has %d of 60 fetches; want a third", i+1, n)
			}
		}
	})
}

func TestADatabaseThatIsAwayCostsNoNumberAndNoWaitInSteadyState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dbs := databases(t, 2, 2)
		a := start(t, spread(t, dbs...), segment.Config{})
		play(t, a, load{1000, 10 * time.Second})
		dbs[1].hang.Store(true)
		before := dbs[0].takes.Load()
		// Use up what is held, so that there are fetches.
		if waits := play(t, a, load{20_000, 40 * time.Second}); waits[0] != 0 {
			t.Errorf("with one of two databases away a call waits %v; want no wait", waits[0])
		}
		if dbs[0].takes.Load() == before {
			t.Error("there was no fetch while one database was away")
		}
		dbs[0].fail(errors.New("down"))
		for a.Stats().Held > 0 {
			if err := a.Fill(t.Context(), make([]types.Snowflake, min(10000, a.Stats().Held))); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := a.Next(t.Context()); !errors.Is(err, segment.ErrUnavailable) || !strings.Contains(err.Error(), "down") {
			t.Errorf("Next with both databases away = %v; want %v and the reason", err, segment.ErrUnavailable)
		}
		dbs[0].fails.Store(nil)
		next(t, a)
	})
}

func TestRowsThatDoNotFitTogetherAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		dbs  func(t *testing.T) []*faulty
		want string
	}{
		"equal offsets": {func(t *testing.T) []*faulty {
			return []*faulty{databases(t, 1, 3)[0], databases(t, 1, 3)[0]}
		}, "offset 0"},
		"one database twice": {func(t *testing.T) []*faulty {
			db := databases(t, 1, 2)[0]
			return []*faulty{db, db}
		}, "same one"},
		"strides that differ": {func(t *testing.T) []*faulty {
			return []*faulty{databases(t, 2, 2)[0], databases(t, 2, 3)[1]}
		}, "stride 3"},
		"more databases than the stride": {func(t *testing.T) []*faulty { return databases(t, 3, 3)[:2:2] }, ""},
		"three of stride 2": {func(t *testing.T) []*faulty {
			return append(databases(t, 2, 2), databases(t, 1, 2)...)
		}, "3 databases"},
	} {
		bubble(t, name, func(t *testing.T) {
			a := start(t, spread(t, c.dbs(t)...), segment.Config{Hold: -1, Step: 1})
			seen := map[types.Snowflake]bool{}
			var err error
			for range 10 {
				var id types.Snowflake
				if id, err = a.Next(t.Context()); err != nil {
					break
				}
				if seen[id] {
					t.Fatalf("%d was returned twice", id)
				}
				seen[id] = true
			}
			if c.want == "" {
				if err != nil {
					t.Errorf("Next = %v; want nil", err)
				}
				return
			}
			if !errors.Is(err, segment.ErrStride) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Next = %v; want %v that says %q", err, segment.ErrStride, c.want)
			}
		})
	}
}

func TestARestoredDatabaseOfSeveralIsSeenByItsVersion(t *testing.T) {
	for _, lost := range []int64{5, 1} { // writes
		synctest.Test(t, func(t *testing.T) {
			dbs := databases(t, 2, 2)
			a := start(t, spread(t, dbs...), segment.Config{Hold: -1})
			for range 100 {
				next(t, a)
			}
			rows, err := dbs[0].Rows(t.Context())
			if err != nil || rows[0].Version != 5 {
				t.Fatalf("Rows() = %+v, %v; want version 5 after 50 numbers", rows, err)
			}
			dbs[0].Memory = segmenttest.Memory{}
			if err := dbs[0].Create(t.Context(), segment.Row{Tag: "a", Next: 1, Step: 10, Stride: 2, Version: 5 - lost}); err != nil {
				t.Fatal(err)
			}
			for range 30 {
				if _, err = a.Next(t.Context()); err != nil {
					break
				}
			}
			if !errors.Is(err, segment.ErrWentBack) {
				t.Errorf("Next after the last %d writes were lost = %v; want %v", lost, err, segment.ErrWentBack)
			}
		})
	}
}

// The ranges of two databases end at one k, and their rows have one version. What the
// process that holds the one gives back must not reach the other.
func TestARangeIsGivenBackToItsOwnDatabase(t *testing.T) {
	ctx := t.Context()
	dbs := databases(t, 2, 2)
	s := spread(t, dbs...)
	first, err := s.Take(ctx, segment.Take{Tag: "a", Count: 5}) // k 1 to 5 of the first: 2 to 10
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.Take(ctx, segment.Take{Tag: "a", Count: 1}) // k 5 of the second: 11
	if err != nil || second.Last != first.Last {
		t.Fatalf("Take = %+v, %v; want it to end where %+v does", second, err, first)
	}
	if err := s.GiveBack(ctx, segment.GiveBack{Tag: "a", First: 5, End: 6, Version: first.Version}); err != nil {
		t.Fatal(err)
	}
	wantNext(t, dbs[0], 5)
	wantNext(t, dbs[1], 6)
}

func TestAddingADatabaseWhileAllocatorsAreLiveRepeatsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dbs := append(databases(t, 2, 2), &faulty{}) // the third joins later
		var (
			wg  sync.WaitGroup
			mu  sync.Mutex
			all []types.Snowflake
		)
		stop := make(chan struct{})
		// use takes numbers until stop, in processes that know n databases.
		use := func(n int) {
			for range 3 {
				a := start(t, spread(t, dbs[:n]...), segment.Config{Hold: -1, Step: 3, MaxWait: -1})
				for range 4 {
					wg.Go(func() {
						for {
							select {
							case <-stop:
								return
							default:
							}
							id, err := a.Next(t.Context())
							if err != nil {
								t.Error(err)
								return
							}
							mu.Lock()
							all = append(all, id)
							mu.Unlock()
							time.Sleep(time.Millisecond)
						}
					})
				}
			}
		}
		use(2)
		time.Sleep(time.Second)
		if err := segment.Restride(t.Context(), "a", 3, dbs[0], dbs[1]); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if err := dbs[2].Create(t.Context(), segment.Row{Tag: "a", Next: 1, Step: 10, Stride: 3, Offset: 2}); err != nil {
			t.Fatal(err)
		}
		use(3)
		time.Sleep(time.Second)
		if err := segment.Restride(t.Context(), "a", 7, dbs[0], dbs[1], dbs[2]); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		close(stop)
		wg.Wait()
		slices.Sort(all)
		for i := range all[1:] {
			if all[i] == all[i+1] {
				t.Fatalf("%d was returned twice", all[i])
			}
		}
		if len(all) < 10_000 {
			t.Errorf("only %d numbers were returned", len(all))
		}
		if dbs[2].takes.Load() == 0 {
			t.Error("the third database was never used")
		}
	})
}

func TestAChangeOfStrideThatStoppedHalfWayIsFinishedByAnother(t *testing.T) {
	ctx := t.Context()
	dbs := databases(t, 2, 2)
	s := spread(t, dbs...)
	var top int64
	for range 5 {
		r, err := s.Take(ctx, segment.Take{Tag: "a"})
		if err != nil {
			t.Fatal(err)
		}
		top = r.Last*r.Stride + r.Offset
	}
	if err := segment.Restride(ctx, "a", 4, dbs[0], &cannotThaw{dbs[1]}); err == nil {
		t.Fatal("Restride with a database that fails = nil")
	}
	if _, err := s.Take(ctx, segment.Take{Tag: "a"}); !errors.Is(err, segment.ErrStride) {
		t.Errorf("Take in between = %v; want %v", err, segment.ErrStride)
	}
	if err := segment.Restride(ctx, "a", 4, dbs[0], dbs[1]); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Take(ctx, segment.Take{Tag: "a"}); err != nil || r.Stride != 4 || r.First*4+r.Offset <= top {
		t.Errorf("Take after it = %+v, %v; want stride 4 and numbers above %d", r, err, top)
	}
}

type cannotThaw struct{ *faulty }

func (*cannotThaw) Thaw(context.Context, segment.Row) error { return errors.New("down") }

func TestASetFetchesFourTagsAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &counting{}
		store.delay.Store(int64(time.Second))
		for i := range 20 {
			if err := store.Create(t.Context(), segment.Row{Tag: fmt.Sprint(i), Next: 1, Step: 10, Stride: 1}); err != nil {
				t.Fatal(err)
			}
		}
		set, err := segment.NewSet(store, segment.Config{MaxWait: -1})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				if id, err := set.Next(t.Context(), fmt.Sprint(i)); id != 1 || err != nil {
					t.Errorf("Next of tag %d = %d, %v; want 1", i, id, err)
				}
			})
		}
		wg.Wait()
		store.mu.Lock()
		most := store.most
		store.mu.Unlock()
		if most != 4 {
			t.Errorf("%d fetches ran at a time; want 4", most)
		}
		if stats := set.Stats(); len(stats) != 20 || stats[1].Tag != "1" {
			t.Errorf("Stats has %d tags; want 20, sorted", len(stats))
		}
		if a := set.Source("3"); a != set.Source("3") {
			t.Error("Source returns two allocators for one tag")
		}
		if err := set.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, tag := range []string{"3", "new"} {
			if _, err := set.Next(t.Context(), tag); !errors.Is(err, segment.ErrClosed) {
				t.Errorf("Next of tag %s after Close = %v; want %v", tag, err, segment.ErrClosed)
			}
		}
		var value *core.ValueError
		if _, err := set.Next(t.Context(), "bad\n"); !errors.As(err, &value) {
			t.Errorf("Next of a bad tag = %v; want a *core.ValueError", err)
		}
	})
}

// counting counts how many calls of Take run at a time.
type counting struct {
	faulty
	mu        sync.Mutex
	now, most int
}

func (c *counting) Take(ctx context.Context, t segment.Take) (segment.Range, error) {
	c.mu.Lock()
	c.now++
	c.most = max(c.most, c.now)
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.now--
		c.mu.Unlock()
	}()
	return c.faulty.Take(ctx, t)
}

// A database that lags behind would give numbers that another gave with the old stride.
func TestAChangeOfStrideGoesAboveTheNumbersOfEveryDatabase(t *testing.T) {
	ctx := t.Context()
	dbs := databases(t, 2, 2)
	if _, err := dbs[0].Raise(ctx, "a", 1000); err != nil { // numbers up to 1998
		t.Fatal(err)
	}
	if err := segment.Restride(ctx, "a", 3, dbs[0], dbs[1]); err != nil {
		t.Fatal(err)
	}
	for i, db := range dbs {
		if r, err := db.Take(ctx, segment.Take{Tag: "a"}); err != nil || r.Stride != 3 || r.First*3+r.Offset <= 1998 {
			t.Errorf("database %d gives %+v, %v; want stride 3 and numbers above 1998", i+1, r, err)
		}
	}
}
