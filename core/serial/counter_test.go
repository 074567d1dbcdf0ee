package serial

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/snowkey/snowkey/core"
)

// A memory is a Store whose periods are forgotten at its end.
type memory struct {
	mu      sync.Mutex
	series  Series
	last    map[string]int64
	takes   []string
	failure error
	block   chan struct{} // Take waits for it, unless it is nil
}

func (m *memory) Define(_ context.Context, s Series) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.series = s
	return nil
}

func (m *memory) Take(ctx context.Context, series, period string, _ time.Time, count int64) (int64, error) {
	if m.block != nil {
		select {
		case <-m.block:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.series.Name != series {
		return 0, ErrNoSeries
	}
	m.takes = append(m.takes, fmt.Sprint(period, " ", count))
	if m.failure != nil {
		return 0, m.failure
	}
	first, last := m.series.Bounds()
	if m.last == nil {
		m.last = map[string]int64{}
	}
	before, ok := m.last[period]
	if !ok {
		before = first - 1
	}
	if before >= last {
		return 0, ErrSeriesFull
	}
	m.last[period] = min(before+count, last)
	return before + 1, nil
}

func counter(t *testing.T, store Store, s Series, block int64) *Counter {
	t.Helper()
	c, err := NewCounter(store, s, block)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func day(n int) time.Time { return time.Date(2026, 11, n, 12, 0, 0, 0, time.UTC) }

var daily = Series{Name: "x", Period: Daily, Digits: 4}

func TestCounterKeepsTheTwoLatestPeriods(t *testing.T) {
	m := new(memory)
	c := counter(t, m, daily, 10)
	for _, step := range []struct {
		day  int
		want int64
	}{
		{5, 1}, {6, 1}, {5, 2}, {6, 2}, // a late one finds its period
		{4, 1}, {4, 2}, // earlier: one by one
		{7, 1}, {6, 3}, {5, 11}, {5, 12}, // the rest of the 5th was dropped
		{7, 2}, {6, 4},
	} {
		n, err := c.Next(t.Context(), day(step.day))
		if err != nil || n.N != step.want || n.Period != fmt.Sprintf("202611%02d", step.day) {
			t.Fatalf("Next of day %d = %+v, %v; want %d", step.day, n, err, step.want)
		}
	}
	want := "[20261105 10 20261106 10 20261104 1 20261104 1 20261107 10 20261105 1 20261105 1]"
	if got := fmt.Sprint(m.takes); got != want {
		t.Errorf("takes = %s; want %s", got, want)
	}

	c = counter(t, new(memory), daily, 10) // the later period first
	for i, step := range []int{6, 5, 5} {
		if n, err := c.Next(t.Context(), day(step)); err != nil || n.N != int64(max(i, 1)) {
			t.Fatalf("Next of day %d, after the 6th = %+v, %v; want %d", step, n, err, max(i, 1))
		}
	}

	m = new(memory)
	c = counter(t, m, Series{Name: "x", Digits: 4}, 10)
	for want := int64(1); want < 4; want++ {
		if n, err := c.Next(t.Context(), day(5)); err != nil || n.N != want {
			t.Fatalf("Next of a series without periods = %+v, %v; want %d", n, err, want)
		}
	}
	if got := fmt.Sprint(m.takes); got != "[ 10]" {
		t.Errorf("takes of a series without periods = %s; want one block", got)
	}
}

func TestCounterAsksTheStoreAgainAfterAnError(t *testing.T) {
	m := &memory{failure: errors.New("away")}
	c := counter(t, m, daily, 2)
	for range 3 {
		if n, err := c.Next(t.Context(), day(1)); n != (Number{}) || !errors.Is(err, m.failure) {
			t.Errorf("Next = %+v, %v; want %v", n, err, m.failure)
		}
	}
	m.failure = nil
	for want := int64(1); want < 6; want++ {
		if n, err := c.Next(t.Context(), day(1)); err != nil || n.N != want {
			t.Errorf("Next = %+v, %v; want %d", n, err, want)
		}
	}
}

func TestCounterEndsWithTheSeries(t *testing.T) {
	c := counter(t, new(memory), Series{Name: "x", Digits: 1, First: 4}, 4)
	for want := int64(4); want <= 9; want++ {
		if n, err := c.Next(t.Context(), day(1)); err != nil || n.N != want {
			t.Errorf("Next = %+v, %v; want %d", n, err, want)
		}
	}
	if n, err := c.Next(t.Context(), day(1)); n != (Number{}) || !errors.Is(err, ErrSeriesFull) {
		t.Errorf("Next after the last = %+v, %v; want %v", n, err, ErrSeriesFull)
	}
}

type wrongStore struct {
	memory
	first int64
}

func (w *wrongStore) Take(context.Context, string, string, time.Time, int64) (int64, error) {
	return w.first, nil
}

func TestCounterRefusesNumbersThatTheSeriesDoesNotHave(t *testing.T) {
	for _, first := range []int64{-1, 0, 10000} {
		c := counter(t, &wrongStore{first: first}, daily, 2)
		if n, err := c.Next(t.Context(), day(1)); n != (Number{}) || !errors.As(err, new(*core.ValueError)) {
			t.Errorf("Next with %d from the store = %+v, %v; want a ValueError", first, n, err)
		}
	}
}

func TestCounterLeavesACallWhoseContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{block: make(chan struct{})}
		c := counter(t, m, daily, 2)
		first, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		go func() { _, _ = c.Next(first, day(1)) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if n, err := c.Next(ctx, day(1)); n != (Number{}) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Next behind one that waits = %+v, %v; want %v", n, err, context.DeadlineExceeded)
		}
		<-first.Done()
		close(m.block)
		if n, err := c.Next(t.Context(), day(1)); err != nil || n.N != 1 {
			t.Errorf("Next afterwards = %+v, %v; want 1", n, err)
		}
	})
}

// A server that does not answer has taken no number that the counter holds.
func TestCounterReturnsWhatItHoldsWhileItWaitsForTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(memory)
		c := counter(t, m, daily, 3)
		if _, err := c.Next(t.Context(), day(1)); err != nil {
			t.Fatal(err)
		}
		m.block = make(chan struct{})
		long, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var got Number
		var taken error
		go func() { got, taken = c.Next(long, day(2)) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for want := int64(2); want <= 3; want++ {
			if n, err := c.Next(ctx, day(1)); err != nil || n.N != want {
				t.Errorf("Next of a period that has numbers, while another waits for the store = %+v, %v; want %d", n, err, want)
			}
		}
		close(m.block)
		synctest.Wait()
		if taken != nil || got.N != 1 || got.Period != "20261102" {
			t.Errorf("Next that waits for the store = %+v, %v; want 1 of 20261102", got, taken)
		}
	})
}

// One block is enough for all who wait for it.
func TestCallsThatWaitForOneBlockTakeOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{block: make(chan struct{})}
		c := counter(t, m, daily, 10)
		numbers := make(chan int64, 10)
		for range cap(numbers) {
			go func() {
				n, err := c.Next(t.Context(), day(1))
				if err != nil {
					t.Error(err)
				}
				numbers <- n.N
			}()
		}
		synctest.Wait()
		close(m.block)
		synctest.Wait()
		seen := map[int64]bool{}
		for range cap(numbers) {
			seen[<-numbers] = true
		}
		if len(seen) != cap(numbers) || len(m.takes) != 1 {
			t.Errorf("%d numbers from the blocks %v; want %d from one", len(seen), m.takes, cap(numbers))
		}
	})
}

func TestCloseWithoutACallToWaitForNeedsNoContext(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	c := counter(t, new(memory), daily, 3)
	for range 100 { // a select of several chooses at random
		if err := c.Close(ended); err != nil {
			t.Fatalf("Close under an ended context = %v; want nil", err)
		}
	}
}

func TestCloseEndsTheNumbersThoughTheStoreDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(memory)
		c := counter(t, m, daily, 3)
		if _, err := c.Next(t.Context(), day(1)); err != nil {
			t.Fatal(err)
		}
		m.block = make(chan struct{})
		waits := func() <-chan error {
			ended := make(chan error, 1)
			go func() {
				_, err := c.Next(t.Context(), day(2))
				ended <- err
			}()
			synctest.Wait()
			return ended
		}
		first, second := waits(), waits()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close while the store does not answer = %v; want %v", err, context.DeadlineExceeded)
		}
		if n, err := c.Next(t.Context(), day(1)); n != (Number{}) || !errors.Is(err, ErrClosed) || !errors.Is(err, core.ErrClosed) {
			t.Errorf("Next of a number that is there, after Close = %+v, %v; want %v", n, err, ErrClosed)
		}
		close(m.block)
		if err := <-first; err != nil {
			t.Errorf("Next that the store has answered after Close = %v; want its number", err)
		}
		if err := <-second; !errors.Is(err, ErrClosed) {
			t.Errorf("Next that waited behind it = %v; want %v", err, ErrClosed)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Errorf("a second Close = %v; want no error", err)
		}
	})
}

func TestCountersArgumentsOutOfRangeAreRefused(t *testing.T) {
	chronological := daily
	chronological.Chronological = true
	for _, c := range []struct {
		store  Store
		series Series
		block  int64
	}{{nil, daily, 1}, {new(memory), daily, 0}, {new(memory), daily, -1}, {new(memory), daily, maxBlock + 1}, {new(memory), chronological, 2}} {
		if got, err := NewCounter(c.store, c.series, c.block); got != nil || !errors.As(err, new(*core.ValueError)) {
			t.Errorf("NewCounter(%v, %d) = %v, %v; want a ValueError", c.series.Definition(), c.block, got, err)
		}
	}
}
