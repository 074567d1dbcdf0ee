package segment_test

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/segment"
)

func TestADatabaseThatComesBackIsUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dbs := databases(t, 2, 2)
		var log strings.Builder
		a, err := segment.New(spread(t, dbs...), segment.Config{Tag: "a", Hold: -1, Step: 1, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close(context.WithoutCancel(t.Context()))
		next(t, a)
		next(t, a)
		dbs[1].fail(errors.New("the disk is full"))
		for range 100 {
			next(t, a)
		}
		stats := a.Stats().Databases
		if len(stats) != 2 || stats[0].Err != nil || stats[1].Err == nil || !strings.Contains(stats[1].Err.Error(), "the disk is full") || stats[1].Fetches != 1 || stats[1].Failures != 1 || stats[0].Fetches != 101 {
			t.Errorf("Stats with one of two databases away = %+v; want a line for each, and the reason", stats)
		}
		if stats[0].Max != int64(next(t, a))-2 || stats[1].Max > 4 {
			t.Errorf("the greatest numbers of the databases are %d and %d", stats[0].Max, stats[1].Max)
		}
		if n := strings.Count(log.String(), "the disk is full"); n != 1 || !strings.Contains(log.String(), "database=2") {
			t.Errorf("the log says %d times why database 2 is away; want once: %s", n, log.String())
		}
		dbs[1].fails.Store(nil)
		before := dbs[1].takes.Load()
		time.Sleep(2 * time.Minute)
		for range 10 {
			next(t, a)
		}
		if n := dbs[1].takes.Load() - before; n < 4 {
			t.Errorf("a database that came back two minutes ago has %d of 10 fetches; want about half", n)
		}
		if stats := a.Stats().Databases; stats[1].Err != nil {
			t.Errorf("Stats with all databases back = %+v; want no error", stats)
		}
		if !strings.Contains(log.String(), "gives ranges again") {
			t.Errorf("the log does not say that database 2 is back: %s", log.String())
		}
	})
}

// One that stays away is asked less and less often.
func TestADatabaseThatStaysAwayIsAskedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dbs := databases(t, 2, 2)
		a := start(t, spread(t, dbs...), segment.Config{Hold: -1, Step: 1})
		dbs[0].fail(errors.New("down"))
		for range 3600 {
			next(t, a)
			time.Sleep(time.Second)
		}
		if n := dbs[0].takes.Load(); n < 40 || n > 130 { // a pause is half a minute to one and a half
			t.Errorf("in an hour a database that is away is asked %d times; want about once a minute", n)
		}
	})
}

// It is a mistake in a row, and not a database that is away: another one must not hide it.
func TestARowThatCannotBeIsNotPassedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dbs := databases(t, 2, 2)
		bad := &rangeOf{faulty: dbs[1], change: func(r *segment.Range) { r.Offset = 2 }}
		s, err := segment.Spread(dbs[0], bad)
		if err != nil {
			t.Fatal(err)
		}
		var value *core.ValueError
		for range 4 {
			if _, err = s.Take(t.Context(), segment.Take{Tag: "a"}); err != nil {
				break
			}
		}
		if !errors.As(err, &value) || value.Name != "Range.Offset" || !strings.Contains(err.Error(), "database 2 of 2") {
			t.Errorf("Take with an offset of 2 in the second database = %v; want a *core.ValueError of it", err)
		}
	})
}

type rangeOf struct {
	*faulty
	change func(*segment.Range)
}

func (s *rangeOf) Take(ctx context.Context, t segment.Take) (segment.Range, error) {
	r, err := s.faulty.Take(ctx, t)
	if err == nil {
		s.change(&r)
	}
	return r, err
}

func TestVersionsUpToTheGreatestAreGivenBackToTheirDatabase(t *testing.T) {
	for _, version := range []int64{0, 1<<62 - 1, 1 << 62, math.MaxInt64 - 1} {
		ctx := t.Context()
		var dbs []*faulty
		for i := range int64(3) {
			f := &faulty{}
			if err := f.Create(ctx, segment.Row{Tag: "a", Next: 1, Step: 10, Stride: 3, Offset: i, Version: version}); err != nil {
				t.Fatal(err)
			}
			dbs = append(dbs, f)
		}
		s := spread(t, dbs...)
		for i := range dbs {
			r, err := s.Take(ctx, segment.Take{Tag: "a"})
			if err != nil || r.Offset != int64(i) {
				t.Fatalf("Take with version %d = %+v, %v; want a range of database %d", version, r, err, i+1)
			}
			if err := s.GiveBack(ctx, segment.GiveBack{Tag: "a", First: r.First + 4, End: r.Last + 1, Version: r.Version}); err != nil {
				t.Fatal(err)
			}
			if version < math.MaxInt64-1 { // which ends the row
				wantNext(t, dbs[i], r.First+4)
			}
		}
		for _, v := range []int64{0, -1, math.MinInt64, 5, math.MaxInt64} {
			if err := s.GiveBack(ctx, segment.GiveBack{Tag: "a", First: 0, End: 5, Version: v}); err != nil {
				t.Errorf("GiveBack of a version %d that nobody has = %v; want it refused without an error", v, err)
			}
		}
	}
}

// Databases that do not answer may have numbers left when another one has none.
func TestSeveralDatabasesAreExhaustedOnlyIfAllAre(t *testing.T) {
	ctx := t.Context()
	dbs := databases(t, 2, 2)
	s := spread(t, dbs...)
	if _, err := dbs[0].Raise(ctx, "a", math.MaxInt64); err != nil {
		t.Fatal(err)
	}
	dbs[1].fail(errors.New("down"))
	if _, err := s.Take(ctx, segment.Take{Tag: "a"}); err == nil || errors.Is(err, segment.ErrExhausted) || !strings.Contains(err.Error(), "last number") || !strings.Contains(err.Error(), "down") {
		t.Errorf("Take with one database exhausted and one down = %v; want an error with both that is not %v", err, segment.ErrExhausted)
	}
	dbs[1].fails.Store(nil)
	if _, err := s.Take(ctx, segment.Take{Tag: "a"}); err != nil {
		t.Errorf("Take with the other back = %v; want a range of it", err)
	}
	if _, err := dbs[1].Raise(ctx, "a", math.MaxInt64); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Take(ctx, segment.Take{Tag: "a"}); !errors.Is(err, segment.ErrExhausted) {
		t.Errorf("Take with both exhausted = %v; want %v", err, segment.ErrExhausted)
	}
}

// slowRestride is Restride that is slow: it stays between its two steps until f returns.
func slowRestride(t *testing.T, stride int64, f func(), dbs ...*faulty) {
	t.Helper()
	var rows []segment.Freezer
	for i, db := range dbs {
		var between func()
		if i == 0 {
			between = f
		}
		rows = append(rows, slowThaw{db, between})
	}
	if err := segment.Restride(t.Context(), "a", stride, rows...); err != nil {
		t.Fatal(err)
	}
}

type slowThaw struct {
	*faulty
	before func()
}

func (s slowThaw) Thaw(ctx context.Context, r segment.Row) error {
	if s.before != nil {
		s.before()
	}
	return s.faulty.Thaw(ctx, r)
}

func TestCallsWaitForTheEndOfAChangeOfStride(t *testing.T) {
	bubble(t, "one database", func(t *testing.T) {
		dbs := databases(t, 1, 1)
		waitsForRestride(t, dbs, dbs[0])
	})
	bubble(t, "two databases", func(t *testing.T) {
		dbs := databases(t, 2, 2)
		waitsForRestride(t, dbs, spread(t, dbs...))
	})
	bubble(t, "a new process", func(t *testing.T) {
		dbs := databases(t, 2, 2)
		a := start(t, spread(t, dbs...), segment.Config{Hold: -1, Step: 1})
		slowRestride(t, 4, func() {
			go func() { _, _ = a.Next(t.Context()) }()
			time.Sleep(3 * time.Second)
		}, dbs...)
		if next(t, a) == 0 {
			t.Error("Next = 0")
		}
	})
}

func waitsForRestride(t *testing.T, dbs []*faulty, store segment.Store) {
	a := start(t, store, segment.Config{Hold: -1, Step: 1})
	last := next(t, a)
	result := make(chan error, 1)
	slowRestride(t, 5, func() {
		go func() {
			id, err := a.Next(t.Context())
			if err == nil && id <= last {
				err = errors.New("a number that is not above the one before")
			}
			result <- err
		}()
		time.Sleep(3 * time.Second)
		select {
		case err := <-result:
			t.Errorf("Next during a change of the stride returns %v; want it to wait", err)
			result <- nil
		default:
		}
	}, dbs...)
	if err := <-result; err != nil {
		t.Errorf("Next during a change of the stride = %v; want a number after it", err)
	}
	// A change that has stopped half way is said, when the call has waited.
	for _, db := range dbs {
		if _, err := db.Freeze(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	if _, err := a.Next(t.Context()); !errors.Is(err, segment.ErrUnavailable) || !errors.Is(err, segment.ErrFrozen) || !errors.Is(err, segment.ErrStride) || !strings.Contains(err.Error(), "run Restride again") {
		t.Errorf("Next with rows that stay frozen = %v; want %v, %v and what to do", err, segment.ErrUnavailable, segment.ErrFrozen)
	}
	if took := time.Since(began); took != 5*time.Second {
		t.Errorf("Next with rows that stay frozen takes %v; want Config.MaxWait", took)
	}
}
