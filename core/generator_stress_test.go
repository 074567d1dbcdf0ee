package core

import (
	"context"
	"errors"
	"flag"
	"math/bits"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/snowkey/snowkey/types"
)

// The flags make this package's tests long:
//
//	go test ./core -large
//	go test ./core -run TestIDsAreUniqueAndOrderedUnderConcurrency -ids 1000000000 -timeout 1h
var (
	large     = flag.Bool("large", false, "search large models, and take 100 million IDs in the stress test")
	stressIDs = flag.Int("ids", 0, "IDs that the stress test takes; 0 for 2 million, 100 million with -large")
)

// A seenSet knows every ID of a layout that was added to it: one bit each, in
// pages of one tick. It is safe for concurrent use.
type seenSet struct {
	layout Layout
	pages  [256]struct {
		sync.RWMutex
		ticks map[int64]*page
	}
}

type page struct {
	tick int64
	bits []atomic.Uint64
}

func newSeenSet(l Layout) *seenSet {
	s := &seenSet{layout: l}
	for i := range s.pages {
		s.pages[i].ticks = map[int64]*page{}
	}
	return s
}

// add adds id, and returns its page and whether it is new. last is the page of the caller's
// previous ID, which is nearly always the right one.
func (s *seenSet) add(id types.Snowflake, last *page) (*page, bool) {
	tick := int64(id) >> s.layout.timeShift()
	if last == nil || last.tick != tick {
		last = s.page(tick)
	}
	bit := uint64(int64(id) & ones(s.layout.SequenceBits))
	old := last.bits[bit/64].Or(1 << (bit % 64))
	return last, old>>(bit%64)&1 == 0
}

func (s *seenSet) page(tick int64) *page {
	shard := &s.pages[uint64(tick)%uint64(len(s.pages))]
	shard.RLock()
	p := shard.ticks[tick]
	shard.RUnlock()
	if p != nil {
		return p
	}
	shard.Lock()
	defer shard.Unlock()
	if p = shard.ticks[tick]; p == nil {
		p = &page{tick, make([]atomic.Uint64, max(1, 1<<s.layout.SequenceBits/64))}
		shard.ticks[tick] = p
	}
	return p
}

// size returns how many IDs the set holds, by counting its bits.
func (s *seenSet) size() (n int) {
	for i := range s.pages {
		for _, p := range s.pages[i].ticks {
			for j := range p.bits {
				n += bits.OnesCount64(p.bits[j].Load())
			}
		}
	}
	return n
}

// requireDistinct fails the test if two of all IDs, of one worker, are equal.
func requireDistinct(t *testing.T, l Layout, runs ...[]types.Snowflake) {
	t.Helper()
	set := newSeenSet(l)
	all := 0
	for _, run := range runs {
		all += len(run)
		var p *page
		for _, id := range run {
			p, _ = set.add(id, p)
		}
	}
	if n := set.size(); n != all {
		t.Errorf("%d IDs, %d of them distinct; want all", all, n)
	}
}

func TestTheSetOfTheStressTestSeesARepeatedID(t *testing.T) {
	l := bubbleLayout(12)
	set := newSeenSet(l)
	var p *page
	for _, c := range []struct {
		id    types.Snowflake
		isNew bool
	}{{1 << 16, true}, {1<<16 | 1, true}, {2 << 16, true}, {1 << 16, false}, {1<<16 | 4095, true}, {2 << 16, false}} {
		var isNew bool
		if p, isNew = set.add(c.id, p); isNew != c.isNew {
			t.Errorf("add(%d) = %v; want %v", c.id, isNew, c.isNew)
		}
	}
	if n := set.size(); n != 4 {
		t.Errorf("size() = %d; want 4", n)
	}
}

// TestIDsAreUniqueAndOrderedUnderConcurrency takes IDs from 64 goroutines that mix Next
// and Fill. The wall clock steps by up to ±2 s, and ±1 h now and then. Every ID
// must be new to a set of all others. The IDs of a call must be above all that any
// goroutine had received before it began.
func TestIDsAreUniqueAndOrderedUnderConcurrency(t *testing.T) {
	total := *stressIDs
	switch {
	case total > 0:
	case *large:
		total = 100_000_000
	default:
		total = 2_000_000
	}
	wide := Layout{time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC), time.Millisecond, 41, 0, 4, 16, 0}
	small := wide
	small.SequenceBits = 12
	for _, c := range []struct {
		name    string
		config  Config
		ids     int
		ordered bool
	}{
		{"wide sequence", Config{Layout: wide}, total - total/8 - total/100 - total/50*2, true},
		{"overflowing sequence", Config{Layout: small}, total / 8, true},
		{"Continue, random start", Config{Layout: small, SequenceStart: Random}, total / 100, true},
		{"Wait", Config{Layout: small, Rollback: Wait}, total / 50, true},
		{"Backfill", Config{Layout: small, Rollback: Backfill}, total / 50, false},
	} {
		t.Run(c.name, func(t *testing.T) { stress(t, c.config, c.ids, c.ordered) })
	}
}

func stress(t *testing.T, config Config, ids int, ordered bool) {
	const goroutines = 64
	clock := new(stepper)
	g := newTest(t, config, clock)
	set, o := newSeenSet(config.Layout), new(order)
	var refused atomic.Int64
	var calls sync.WaitGroup
	for i := range goroutines {
		calls.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 8))
			buffer := make([]types.Snowflake, 64)
			var p *page
			for left := ids / goroutines; left > 0; {
				n := 1
				if random.IntN(32) == 0 {
					n = min(1+random.IntN(len(buffer)), left)
				}
				taken := buffer[:n]
				floor := o.seen()
				var err error
				if n == 1 {
					taken[0], err = g.Next(context.Background())
				} else {
					err = g.Fill(context.Background(), taken)
				}
				if errors.Is(err, ErrClockBack) && config.Rollback != Continue {
					refused.Add(1)
					time.Sleep(time.Millisecond)
					continue
				}
				if err != nil {
					t.Errorf("taking %d IDs: %v", n, err)
					return
				}
				for _, id := range taken {
					if ordered && id <= floor {
						t.Errorf("got %d in a call that began after %d was returned; want more", id, floor)
						return
					}
					floor = id
					var isNew bool
					if p, isNew = set.add(id, p); !isNew {
						t.Errorf("got %d, %+v, twice", id, config.Layout.Parts(id))
						return
					}
				}
				o.saw(floor)
				left -= n
			}
		})
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		random := rand.New(rand.NewPCG(9, 9))
		for {
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
			}
			span := 2 * time.Second
			if config.Rollback != Continue { // steps that are not refused until the end of the test
				span = 30 * time.Millisecond
			}
			switch {
			case config.Rollback == Continue && random.IntN(20) == 0:
				clock.by([]time.Duration{time.Hour, -time.Hour}[random.IntN(2)])
			case config.Rollback == Continue || random.IntN(20) == 0:
				clock.by(time.Duration(random.Int64N(int64(2*span))) - span)
			}
		}
	}()
	calls.Wait()
	close(stop)
	<-stopped
	want := ids / goroutines * goroutines
	if n := set.size(); n != want && !t.Failed() {
		t.Errorf("%d distinct IDs; want %d", n, want)
	}
	t.Logf("%d IDs, all distinct: %v; %d calls refused", want, !t.Failed(), refused.Load())
}

// An order knows the greatest ID that any goroutine has received.
type order struct{ max atomic.Int64 }

func (o *order) seen() types.Snowflake { return types.Snowflake(o.max.Load()) }

func (o *order) saw(id types.Snowflake) {
	for {
		old := o.max.Load()
		if int64(id) <= old || o.max.CompareAndSwap(old, int64(id)) {
			return
		}
	}
}
