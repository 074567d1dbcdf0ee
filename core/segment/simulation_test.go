package segment_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
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
	limitBeforeWord  mutant = "one word for all ranges, and the limit is raised first"
	wordBeforeLimit  mutant = "one word for all ranges, and the limit is raised last"
)

// A network is a store behind a network that loses requests and replies, delivers them
// late or twice, is slow, and stops. A mutant gets it wrong.
type network struct {
	mu     sync.Mutex
	rng    *rand.Rand
	mutant mutant
	down   bool
	row    segment.Row
	late   sync.WaitGroup
}

var errNetwork = errors.New("the network failed")

func (n *network) chance(percent int) bool { return n.rng.IntN(100) < percent }

// pause waits for less than a millisecond.
func (n *network) pause() {
	n.mu.Lock()
	d := time.Duration(n.rng.IntN(1000)) * time.Microsecond
	n.mu.Unlock()
	time.Sleep(d)
}

// current returns the row between two operations.
func (n *network) current() segment.Row {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.row
}

// do runs an operation on the row as the network likes it: now, later, twice or never.
// It returns an error if the caller does not learn the result.
func (n *network) do(ctx context.Context, op func()) error {
	n.mu.Lock()
	pause := time.Duration(n.rng.IntN(20)) * time.Millisecond
	if n.chance(1) {
		pause *= 300 // longer than anybody waits
	}
	lost, replyLost, late, twice, down := n.chance(5), n.chance(5), n.chance(5), n.chance(20), n.down
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
	var r segment.Range
	take := func() {
		row, got, err := n.row.Take(t)
		if err != nil {
			panic(err) // the row has enough for every Take
		}
		if n.mutant == beforeCommit && n.chance(5) {
			r = got // COMMIT fails
			return
		}
		n.row = row
		if r.Last == 0 {
			r = got
		}
	}
	if n.mutant == readThenWrite {
		n.mu.Lock()
		row, got, _ := n.row.Take(t)
		n.mu.Unlock()
		take = func() { n.row, r = row, got }
	}
	err := n.do(ctx, take)
	n.mu.Lock()
	defer n.mu.Unlock()
	if count := max(t.Count, 1); err != nil && n.mutant == readBack && n.row.Next > count {
		return segment.Range{First: n.row.Next - count, Last: n.row.Next - 1, Stride: 1, Version: n.row.Version, Step: 5}, nil
	}
	if err != nil {
		return segment.Range{}, err
	}
	return r, nil
}

func (n *network) GiveBack(ctx context.Context, g segment.GiveBack) error {
	return n.do(ctx, func() {
		g := g
		switch n.mutant {
		case backByMax:
			g.Version = n.row.Version
		case backByVersion:
			g.End = n.row.Next
		}
		n.row = n.row.GiveBack(g)
	})
}

// A taker is an Allocator, or a mutant of one.
type taker interface {
	Fill(ctx context.Context, ids []types.Snowflake) error
	Close(ctx context.Context) error
}

// An absolute is an allocator of another form: one absolute word for all ranges, and a
// limit. chain.go says why it is wrong.
type absolute struct {
	net         *network
	word, limit atomic.Int64
	turn        chan struct{} // held for a fetch
}

func (a *absolute) Fill(ctx context.Context, ids []types.Snowflake) error {
	for i := range ids {
		for {
			v := a.word.Add(1)
			a.net.pause()
			if v <= a.limit.Load() {
				ids[i] = types.Snowflake(v)
				break
			}
			if err := a.fetch(ctx); err != nil {
				clear(ids)
				return err
			}
		}
	}
	return nil
}

func (a *absolute) fetch(ctx context.Context) error {
	a.turn <- struct{}{}
	defer func() { <-a.turn }()
	if a.word.Load() < a.limit.Load() {
		return ctx.Err()
	}
	r, err := a.net.Take(ctx, segment.Take{Tag: "a", Count: 20})
	if err != nil {
		return err
	}
	if a.net.mutant == limitBeforeWord {
		a.limit.Store(r.Last)
		a.net.pause()
	}
	a.word.Store(r.First - 1)
	a.net.pause()
	a.limit.Store(r.Last)
	return nil
}

func (*absolute) Close(context.Context) error { return nil }

// closer is an Allocator that gives back before it seals.
type closer struct{ *segment.Allocator }

func (c closer) Close(ctx context.Context) error { return segment.CloseBeforeSeal(ctx, c.Allocator) }

const (
	processes  = 2
	goroutines = 64
	rounds     = 6   // of a busy phase; each is an Allocator of every process
	calmRounds = 150 // of a calm one
	phases     = 4   // a busy one first; a backup is restored at its end
)

// A simulation is processes that restart and crash, and others at the row: an operator, a
// client that knows no version, and a backup that is restored.
type simulation struct {
	t        *testing.T
	seed     uint64
	net      *network
	restores int

	mu       sync.Mutex
	seen     map[types.Snowflake]bool
	top      types.Snowflake // the greatest that was returned
	twice    types.Snowflake // one that was returned twice
	wentBack int             // Allocators that noticed a restored backup
	halted   bool            // nobody else is at the row
}

func (s *simulation) give(ids ...types.Snowflake) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if s.seen[id] {
			s.twice = id
		}
		s.seen[id] = true
		s.top = max(s.top, id)
	}
}

// repeated reports whether a number was returned twice so far.
func (s *simulation) repeated() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.twice != 0
}

// floor is SELECT max(id).
func (s *simulation) floor(context.Context) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(s.top), nil
}

// others raises the row, with and without a version, and stops the network.
func (s *simulation) others(stop <-chan struct{}) {
	rng := rand.New(rand.NewPCG(s.seed, 2))
	for {
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(rng.IntN(200)) * time.Millisecond):
		}
		s.net.mu.Lock()
		s.mu.Lock()
		halted := s.halted
		s.mu.Unlock()
		switch what := rng.IntN(4); {
		case what == 0:
			s.net.down = !s.net.down
		case halted:
		case what == 1: // by hand
			s.net.row = s.net.row.Raise(s.net.row.Next + int64(rng.IntN(100)))
		default: // a server of Leaf
			for range 1 + rng.IntN(20) {
				s.give(types.Snowflake(s.net.row.Next))
				s.net.row.Next++
			}
		}
		s.net.mu.Unlock()
	}
}

// open returns the Allocator of a process.
func (s *simulation) open(rng *rand.Rand, busy, last bool) taker {
	if m := s.net.mutant; m == limitBeforeWord || m == wordBeforeLimit {
		return &absolute{net: s.net, turn: make(chan struct{}, 1)}
	}
	c := segment.Config{
		Tag: "a", MaxStep: 200, Hold: time.Second, MaxWait: 300 * time.Millisecond,
		Logger: slog.New(slog.DiscardHandler),
	}
	if last { // a Floor would hide what a mutant does
		c.Floor = s.floor
	}
	switch n := rng.IntN(4); {
	case n == 0 || !busy:
		c.Hold = -1
	case n == 1:
		c.Hold, c.Step = -1, 1
	case n == 2:
		c.Rule = segment.Leaf
	}
	a, err := segment.New(s.net, c)
	if err != nil {
		panic(err)
	}
	switch s.net.mutant {
	case acceptBelow:
		segment.AcceptBelow(a)
	case backBeforeSeal:
		return closer{a}
	}
	return a
}

// call is a goroutine of a process. issued is the greatest number that the process has
// returned so far.
func (s *simulation) call(rng *rand.Rand, a taker, calls, most int, issued *atomic.Int64) {
	for range calls {
		ctx, cancel := context.WithTimeout(s.t.Context(), time.Duration(1+rng.IntN(1000))*time.Millisecond)
		ids := make([]types.Snowflake, 1+rng.IntN(most))
		before := issued.Load()
		err := a.Fill(ctx, ids)
		cancel()
		switch {
		case err != nil && slices.Max(ids) != 0:
			s.t.Errorf("%v beside the error %v", ids, err)
		case errors.Is(err, segment.ErrWentBack):
			s.mu.Lock()
			s.wentBack++
			s.mu.Unlock()
			return // the operator is called
		case err == nil:
			if s.net.mutant == none && (int64(ids[0]) <= before || !slices.IsSorted(ids)) {
				s.t.Errorf("a call that began after %d was returned returns %v", before, ids)
			}
			s.give(ids...)
			last := int64(ids[len(ids)-1])
			for v := issued.Load(); v < last && !issued.CompareAndSwap(v, last); v = issued.Load() {
			}
		}
		time.Sleep(time.Duration(rng.IntN(30)) * time.Millisecond)
	}
}

// round is the life of an Allocator. In a busy one there are many callers, and it ends
// among their calls, after them, or later. In a calm one there are few, so that now and
// then a row comes to a max_id again. last is called when the calls have begun, if a
// backup is restored then; else it is nil.
func (s *simulation) round(rng *rand.Rand, busy bool, last func()) {
	a := s.open(rng, busy, last != nil)
	var issued atomic.Int64
	var callers sync.WaitGroup
	n, calls, most, wait := 1+rng.IntN(2), 1+rng.IntN(2), 4, 40
	if busy {
		n, calls, most, wait = goroutines, 10, 8, 400
	}
	for range n {
		rng := rand.New(rand.NewPCG(rng.Uint64(), 0))
		callers.Go(func() { s.call(rng, a, calls, most, &issued) })
	}
	if last != nil {
		last()
	}
	how := rng.IntN(3)
	if how > 0 {
		callers.Wait()
	}
	if how < 2 {
		time.Sleep(time.Duration(rng.IntN(wait)) * time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Duration(rng.IntN(100))*time.Millisecond)
	_ = a.Close(ctx) // a Close that is cut short is a crash
	cancel()
	callers.Wait()
	if !busy {
		time.Sleep(time.Duration(rng.IntN(100)) * time.Millisecond) // the row rests
	}
}

// restore sets the row back to an earlier state while Allocators live, provided that all of them have
// seen numbers far above, because one that has not would repeat numbers of the others, as
// docs/segments.md says. For the same reason no Allocator without a Floor begins until the operator
// has raised the row.
func (s *simulation) restore(backup segment.Row, known types.Snowflake) {
	s.net.mu.Lock()
	defer s.net.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if far := types.Snowflake(backup.Next + 4000); known > far {
		s.net.row = backup
		s.halted = true
		s.restores++
	}
}

// phase plays rounds. At the end of a busy phase a backup is restored, and the operator
// comes.
func (s *simulation) phase(number uint64) {
	busy, rounds := number%2 == 0, rounds
	if !busy {
		rounds = calmRounds
	}
	backup := s.net.current()
	var (
		all, last sync.WaitGroup
		known     = make([]types.Snowflake, processes) // at the beginning of the last round
	)
	for p := range uint64(processes) {
		last.Add(1)
		all.Go(func() {
			rng := rand.New(rand.NewPCG(s.seed, 10+10*number+p))
			for i := range rounds {
				if i < rounds-1 {
					s.round(rng, busy, nil)
					continue
				}
				top, _ := s.floor(s.t.Context())
				known[p] = types.Snowflake(top)
				s.round(rng, busy, last.Done)
			}
		})
	}
	last.Wait()
	s.net.pause()
	if busy {
		s.restore(backup, slices.Min(known))
	}
	all.Wait()
	s.net.mu.Lock()
	defer s.net.mu.Unlock()
	top, _ := s.floor(s.t.Context())
	s.net.row = s.net.row.Raise(top + 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.halted = false
}

// simulate plays a simulation to its end.
func simulate(t *testing.T, seed uint64, mut mutant) *simulation {
	s := &simulation{t: t, seed: seed, seen: map[types.Snowflake]bool{}, net: &network{
		rng: rand.New(rand.NewPCG(seed, 1)), mutant: mut,
		row: segment.Row{Tag: "a", Next: 1, Step: 5, Stride: 1},
	}}
	stop := make(chan struct{})
	var others sync.WaitGroup
	others.Go(func() { s.others(stop) })
	for number := range uint64(phases) {
		if mut == backByMax && number%2 == 0 {
			continue // a row comes to a max_id again in calm phases
		}
		if s.phase(number); s.repeated() {
			break
		}
	}
	close(stop)
	others.Wait()
	s.net.late.Wait()
	return s
}

func TestNoSeedOfTheSimulationReturnsANumberTwice(t *testing.T) {
	seeds := uint64(3)
	if *large {
		seeds = 100
	}
	numbers, restores, wentBack := 0, 0, 0
	for seed := range seeds {
		bubble(t, fmt.Sprint(seed), func(t *testing.T) {
			s := simulate(t, seed, none)
			numbers, restores, wentBack = numbers+len(s.seen), restores+s.restores, wentBack+s.wentBack
			if s.twice != 0 {
				t.Errorf("with seed %d %d is returned twice", seed, s.twice)
			}
		})
	}
	t.Logf("%d numbers, each checked; %d backups restored, seen by %d calls", numbers, restores, wentBack)
	if restores == 0 || wentBack == 0 {
		t.Errorf("%d backups were restored, and %d calls saw it; want some", restores, wentBack)
	}
}

func TestTheSimulationFindsEveryMutant(t *testing.T) {
	for mut, first := range map[mutant]uint64{ // the seed from which the search goes on
		backBeforeSeal: 0, backByMax: 31, backByVersion: 0, beforeCommit: 0, readBack: 0, readThenWrite: 0, acceptBelow: 0, limitBeforeWord: 0, wordBeforeLimit: 0,
	} {
		t.Run(string(mut), func(t *testing.T) {
			t.Parallel()
			for seed := first; seed < first+200; seed++ {
				var s *simulation
				synctest.Test(t, func(t *testing.T) { s = simulate(t, seed, mut) })
				if s.twice != 0 {
					t.Logf("with seed %d %d is returned twice", seed, s.twice)
					return
				}
			}
			t.Error("200 seeds return no number twice; want one")
		})
	}
}
