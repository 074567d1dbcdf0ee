package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/core/segment/segmenttest"
)

// The load: calls at fixed times, slow, a hundred times as fast, slow, and fast again.
const (
	slowRate  = 2_000
	fastRate  = 200_000
	phaseTime = 2 * time.Second
	slowTime  = 100 * time.Millisecond // of the store
)

// rules are what is compared.
var rules = []struct {
	name string
	c    segment.Config
}{
	// With less than 20,000 numbers per fetch it cannot keep up with the store.
	{"no-prefetch", segment.Config{Step: 25_000, Hold: -1}},
	{"leaf", segment.Config{Rule: segment.Leaf}},
	{"by-rate-10s", segment.Config{Hold: 10 * time.Second}},
	{"by-rate", segment.Config{}},
}

// TestSegmentLatencyInSimulatedTime measures how long a call takes while the load jumps,
// with a store that needs 100 ms. A call takes no time unless it waits for the store, so
// what is left is what the rule does. It is measured from the time at which it is due,
// and not from its start, so that each call that another one's wait held up counts with
// what it lost. The first call, which has to wait, is made before. With -v it prints the
// results of a benchmark.
func TestSegmentLatencyInSimulatedTime(t *testing.T) {
	if testing.Short() {
		t.Skip("plays 8 s of load with 808,000 calls for each rule")
	}
	got := map[string]played{}
	for _, r := range rules {
		if r.name == "no-prefetch" && !testing.Verbose() {
			continue // for the table only
		}
		synctest.Test(t, func(t *testing.T) {
			l := playLoad(t, r.c)
			got[r.name] = l
			if testing.Verbose() {
				fmt.Printf("Benchmark%s%s 1", simulated, r.name)
				for _, m := range l.metrics() {
					fmt.Printf(" %v %s", m.value, m.unit)
				}
				fmt.Println()
			}
		})
	}
	leaf := got["leaf"]
	for _, name := range []string{"by-rate", "by-rate-10s"} {
		l := got[name]
		if w := l.waits; w[0]+w[2]+w[3] > 0 {
			t.Errorf("%s: waits in the four phases = %v; want some in the second at most", name, w)
		}
		if l.waits[1] > 1 || l.jump[0] > slowTime*3/2 || l.at(0.99) > leaf.at(0.99)/2 {
			t.Errorf("%s: after the first jump %d waits, the longest call %v, p99 %v; want at most 1, %v and %v",
				name, l.waits[1], l.jump[0], l.at(0.99), slowTime*3/2, leaf.at(0.99)/2)
		}
	}
	// With the default of Hold there are more: it fetches for 10 minutes, 1,000,000 at a time.
	if l := got["by-rate-10s"]; l.fetches > leaf.fetches/2 {
		t.Errorf("by-rate-10s: %d fetches, Leaf's rule %d; want half of them at most", l.fetches, leaf.fetches)
	}
}

// A slowStore needs slowTime for each range.
type slowStore struct {
	*segmenttest.Memory

	mu      sync.Mutex
	ended   []time.Time // of the fetches
	longest time.Duration
}

func (s *slowStore) Take(ctx context.Context, t segment.Take) (segment.Range, error) {
	began := time.Now()
	time.Sleep(slowTime)
	r, err := s.Memory.Take(ctx, t)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.ended = append(s.ended, now)
	s.longest = max(s.longest, now.Sub(began))
	return r, err
}

// A call is one of the load.
type call struct{ due, began, ended time.Duration }

// playLoad makes the calls.
func playLoad(t *testing.T, c segment.Config) played {
	s := &slowStore{Memory: new(segmenttest.Memory)}
	must(t, s.Create(t.Context(), segment.Row{Tag: "a", Next: 1, Step: 1000, Stride: 1}))
	c.Tag, c.Logger = "a", slog.New(slog.DiscardHandler)
	a, err := segment.New(s, c)
	must(t, err)
	defer func() { _ = a.Close(context.Background()) }()
	calls := schedule()
	if _, err := a.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	time.Sleep(phaseTime / 10)
	start := time.Now()
	for i := range calls {
		c := &calls[i]
		for c.began = time.Since(start); c.began < c.due; c.began = time.Since(start) {
			time.Sleep(c.due - c.began)
		}
		if _, err := a.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.ended = time.Since(start)
	}
	return s.load(start, calls)
}

// schedule returns when the calls are due.
func schedule() []call {
	calls := make([]call, 0, 2*(slowRate+fastRate)*int(phaseTime/time.Second))
	for phase := range 4 {
		rate := []int{slowRate, fastRate}[phase%2]
		for i := range rate * int(phaseTime/time.Second) {
			due := time.Duration(phase)*phaseTime + time.Duration(i)*time.Second/time.Duration(rate)
			calls = append(calls, call{due: due})
		}
	}
	return calls
}

// A played is what the calls took.
type played struct {
	took    []time.Duration  // sorted
	jump    [2]time.Duration // the longest call of each fast phase
	waits   [4]int           // calls that waited for the store, by phase
	fetches int
	longest time.Duration // of the fetches
}

func (s *slowStore) load(start time.Time, calls []call) played {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := played{took: make([]time.Duration, len(calls)), fetches: len(s.ended), longest: s.longest}
	for i, c := range calls {
		l.took[i] = c.ended - c.due
		phase := min(int(c.due/phaseTime), 3)
		if phase%2 == 1 {
			l.jump[phase/2] = max(l.jump[phase/2], l.took[i])
		}
		if s.waited(start, c) {
			l.waits[phase]++
		}
	}
	slices.Sort(l.took)
	return l
}

// at returns what this share of the calls does not exceed.
func (l played) at(share float64) time.Duration { return l.took[int(share*float64(len(l.took)-1))] }

type metric struct {
	value float64
	unit  string
}

func (l played) metrics() []metric {
	µs := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
	return []metric{
		{µs(l.at(0.5)), "p50-µs"},
		{µs(l.at(0.99)), "p99-µs"},
		{µs(l.at(0.9999)), "p99.99-µs"},
		{µs(l.at(1)), "max-µs"},
		{l.jump[0].Seconds() / l.longest.Seconds(), "jump1/fetch"},
		{l.jump[1].Seconds() / l.longest.Seconds(), "jump2/fetch"},
		{float64(l.waits[0] + l.waits[2]), "waits-slow"},
		{float64(l.waits[1]), "waits-jump1"},
		{float64(l.waits[3]), "waits-jump2"},
		{float64(l.fetches), "fetches"},
	}
}

// waited reports whether a call waited for the store. Other calls that take long were
// stopped by the machine.
func (s *slowStore) waited(start time.Time, c call) bool {
	if c.ended-c.began < 100*time.Microsecond {
		return false
	}
	for _, end := range s.ended {
		if e := end.Sub(start); c.began < e && e <= c.ended {
			return true
		}
	}
	return false
}
