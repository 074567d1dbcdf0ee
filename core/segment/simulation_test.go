package segment_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/types"
)

// A mutant is a mistake, which the search or the simulation has to find.
type mutant string

const (
	none             mutant = ""
	backBeforeSeal   mutant = "GiveBack before the seal"
	backByMax        mutant = "GiveBack compares max_id alone"
	backByVersion    mutant = "GiveBack compares the version alone"
	beforeCommit     mutant = "a range is used before COMMIT"
	readBack         mutant = "a range is read back after an unknown outcome"
	readThenWrite    mutant = "read, then write"
	acceptBelow      mutant = "a range below what was seen is accepted"
	positionOfOthers mutant = "one position for all ranges, compared with a limit"
)

// A network is a store behind a network that loses requests and replies, delivers them
// late or twice, is slow, and stops. Its row can be moved by others, with and without a
// version. A mutant gets it wrong.
type network struct {
	mu     sync.Mutex
	rng    *rand.Rand
	mutant mutant
	down   bool
	next   int64
	ver    int64
	late   sync.WaitGroup
}

var errNetwork = errors.New("the network failed")

func (n *network) chance(percent int) bool { return n.rng.IntN(100) < percent }

// do runs an operation on the row as the network likes it: now, later, twice or never.
// It returns an error if the caller does not learn the result.
func (n *network) do(ctx context.Context, op func()) error {
	n.mu.Lock()
	pause := time.Duration(n.rng.IntN(20)) * time.Millisecond
	lost, replyLost, late, twice, down := n.chance(5), n.chance(5), n.chance(5), n.chance(5), n.down
	n.mu.Unlock()
	again := func(d time.Duration) {
		n.late.Go(func() {
			time.Sleep(d)
			n.mu.Lock()
			defer n.mu.Unlock()
			op()
		})
	}
	select {
	case <-time.After(pause):
	case <-ctx.Done():
		again(pause)
		return ctx.Err()
	}
	switch {
	case lost || down:
		return errNetwork
	case late:
		again(pause * 20)
		return errNetwork
	case twice:
		again(pause * 10)
	}
	n.mu.Lock()
	op()
	n.mu.Unlock()
	if replyLost {
		return errNetwork
	}
	return nil
}

func (n *network) Take(ctx context.Context, t segment.Take) (segment.Range, error) {
	count := max(t.Count, 1)
	var r segment.Range
	take := func() {
		got := segment.Range{First: n.next, Last: n.next + count - 1, Stride: 1, Version: n.ver + 1, Step: 5}
		if n.mutant == beforeCommit && n.chance(5) {
			r = got // COMMIT fails
			return
		}
		n.next += count
		n.ver++
		if r.Last == 0 {
			r = got
		}
	}
	if n.mutant == readThenWrite {
		n.mu.Lock()
		next, ver := n.next, n.ver
		n.mu.Unlock()
		take = func() {
			n.next, n.ver = next+count, ver+1
			r = segment.Range{First: next, Last: next + count - 1, Stride: 1, Version: ver + 1, Step: 5}
		}
	}
	err := n.do(ctx, take)
	n.mu.Lock()
	defer n.mu.Unlock()
	if err != nil && n.mutant == readBack && n.next > count {
		return segment.Range{First: n.next - count, Last: n.next - 1, Stride: 1, Version: n.ver, Step: 5}, nil
	}
	if err != nil {
		return segment.Range{}, err
	}
	return r, nil
}

func (n *network) GiveBack(ctx context.Context, g segment.GiveBack) error {
	return n.do(ctx, func() {
		if n.next == g.End && n.ver == g.Version {
			n.next = g.First
			n.ver++
		}
	})
}

// simulate plays two processes of several goroutines each, which restart and crash, and
// others at the row. It returns the numbers that were returned, and one that was returned
// twice, if there is one.
func simulate(t *testing.T, seed uint64, mut mutant) (numbers int, twice types.Snowflake) {
	const processes, goroutines, rounds = 2, 64, 8
	n := &network{rng: rand.New(rand.NewPCG(seed, 1)), mutant: mut, next: 1}
	var (
		mu   sync.Mutex
		seen = map[types.Snowflake]bool{}
	)
	give := func(id types.Snowflake) {
		mu.Lock()
		defer mu.Unlock()
		if seen[id] {
			twice = id
		}
		seen[id] = true
	}
	stop := make(chan struct{})
	var others sync.WaitGroup
	others.Go(func() { // the operator, a server of Leaf, and a network that stops
		rng := rand.New(rand.NewPCG(seed, 2))
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(rng.IntN(200)) * time.Millisecond):
			}
			n.mu.Lock()
			switch rng.IntN(4) {
			case 0:
				n.down = !n.down
			case 1: // raised by hand
				n.next += int64(rng.IntN(100))
				n.ver++
			default: // a client that knows no version
				first, count := n.next, int64(1+rng.IntN(20))
				n.next += count
				for k := first; k < first+count; k++ {
					give(types.Snowflake(k))
				}
			}
			n.mu.Unlock()
		}
	})
	var all sync.WaitGroup
	for p := range processes {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(10+p)))
			for range rounds {
				rule := segment.Config{Tag: "a", MaxStep: 200, Hold: time.Second, MaxWait: 300 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)}
				switch rng.IntN(3) {
				case 0:
					rule.Rule = segment.Leaf
				case 1:
					rule.Hold = -1
				}
				a, err := segment.New(n, rule)
				if err != nil {
					t.Error(err)
					return
				}
				var callers sync.WaitGroup
				for g := range goroutines {
					callers.Go(func() {
						rng := rand.New(rand.NewPCG(seed, uint64(100+p*goroutines+g)))
						for range 10 {
							ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+rng.IntN(1000))*time.Millisecond)
							ids := make([]types.Snowflake, 1+rng.IntN(8))
							err := a.Fill(ctx, ids)
							cancel()
							if errors.Is(err, segment.ErrWentBack) {
								return // the operator is called
							}
							for _, id := range ids {
								if err == nil {
									give(id)
								} else if id != 0 {
									t.Errorf("%d beside the error %v", id, err)
								}
							}
							time.Sleep(time.Duration(rng.IntN(30)) * time.Millisecond)
						}
					})
				}
				if rng.IntN(2) == 0 {
					callers.Wait()
				} else {
					time.Sleep(time.Duration(rng.IntN(400)) * time.Millisecond) // Close among calls
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rng.IntN(100))*time.Millisecond)
				_ = a.Close(ctx) // a Close that is cut short is a crash
				cancel()
				callers.Wait()
			}
		})
	}
	all.Wait()
	close(stop)
	others.Wait()
	n.late.Wait()
	return len(seen), twice
}

func TestNoSeedOfTheSimulationReturnsANumberTwice(t *testing.T) {
	seeds := uint64(3)
	if *large {
		seeds = 100
	}
	total := 0
	for seed := range seeds {
		bubble(t, fmt.Sprint(seed), func(t *testing.T) {
			numbers, twice := simulate(t, seed, none)
			if total += numbers; twice != 0 {
				t.Errorf("with seed %d %d is returned twice", seed, twice)
			}
		})
	}
	t.Logf("%d numbers, each checked", total)
}

func TestTheSimulationFindsTheMutantsOfTheStore(t *testing.T) {
	// The mutants of GiveBack need rare schedules. TestEachMutantReturnsANumberTwice finds
	// them.
	for _, mut := range []mutant{beforeCommit, readBack, readThenWrite} {
		t.Run(string(mut), func(t *testing.T) {
			for seed := range uint64(20) {
				var twice types.Snowflake
				synctest.Test(t, func(t *testing.T) { _, twice = simulate(t, seed, mut) })
				if twice != 0 {
					t.Logf("with seed %d %d is returned twice", seed, twice)
					return
				}
			}
			t.Error("20 seeds return no number twice; want one")
		})
	}
}
