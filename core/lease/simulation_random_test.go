package lease

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease/leasestore"
)

var (
	simulationSeed      = flag.Uint64("simulation.seed", 0, "the first seed of the random schedules; alone, only that schedule is run, and its trace shown")
	simulationSchedules = flag.Int("simulation.schedules", 0, "how many random schedules are run; 0: 20, or one with -simulation.seed")
)

// A mode is what a random schedule may do.
type mode int

const (
	fence   mode = iota // the store forgets nothing, clocks show anything
	guarded             // the store forgets anything, clocks are no more than the guard apart
	cloned              // as fence, and processes are copied
	modes
)

func (m mode) String() string { return [...]string{"fence", "guarded", "cloned"}[m] }

// chaos runs the schedule of a seed.
func chaos(t *testing.T, seed uint64, m mode, mutant mutant, tracing bool) *simulation {
	t.Helper()
	x := setting{mutant: mutant, faithful: m != guarded}
	return simulate(t, seed, x, tracing, func(s *simulation) { s.chaos(m) })
}

// pick returns one of choices.
func pick[T any](s *simulation, choices ...T) T { return choices[s.rng.IntN(len(choices))] }

// chaos draws a world and lets everything go wrong in it for a while. Then it sets the
// world right, and checks that all processes have IDs again.
func (s *simulation) chaos(m mode) {
	s.draw(m)
	for range 2 + s.rng.IntN(3) {
		h := s.addHost()
		if m == guarded {
			h.clock.most = s.store.clock.most
		}
		s.misplace(&h.clock, m)
		h.link.delay = s.part(64)
		s.after(s.upTo(s.part(2)), func() { h.start() })
		s.consume(h)
	}
	s.tracef("%v, %d hosts, window %d, guard %d, skew %d, workers %v, unit %v, %v", m, len(s.hosts), s.window, s.guard, s.skew, s.only, s.layout.Unit, s.rollback)
	s.disturb(m)
	if (s.mutant == none || s.mutant == retirementIsAClaim) && m != guarded && s.chance(0.5) {
		s.after(s.upTo(s.part(1)), func() { s.retire(s.hosts[0], s.rng.Int64N(1<<s.layout.WorkerBits)) })
	}
	s.run(s.between(4*s.part(1), 20*s.part(1)))
	if !s.over() {
		s.recover(m)
	}
}

func (s *simulation) draw(m mode) {
	s.window = pick[leasestore.Millis](s, 64, 64, 160, 400)
	s.layout = newLayout(time.Millisecond, 2, 2)
	if s.window == 400 && s.chance(0.5) {
		s.layout = newLayout(20*time.Millisecond, 2, 5)
	}
	s.runAhead = pick(s, 0, 10*time.Millisecond, 10*time.Second)
	s.skew = pick[leasestore.Millis](s, s.window/8, s.window, 10*s.window, leasestore.MaxAhead)
	if m == guarded {
		s.guard = pick(s, s.window/32, s.window/8, s.window/4)
		s.skew = min(s.guard, s.window/2-s.guard-s.window/16)
		s.store.clock.most = s.guard.Duration()
		if s.mutant == noGuard {
			s.guard = 0
		}
	} else {
		s.rollback = pick(s, core.Continue, core.Continue, core.Continue, core.Continue, core.Refuse, core.Wait, core.Backfill)
	}
	if s.rollback == core.Backfill {
		s.runAhead = 0
	}
	switch {
	case m != guarded:
		s.windows = pick(s, nil, []leasestore.Millis{s.window, s.window / 2, s.window / 4})
	case s.mutant == ownWindow:
		// Guards are at most a quarter of each.
		s.windows = pick(s, nil, []leasestore.Millis{s.window, max(4*s.guard, s.window/2), max(4*s.guard, s.window/4)})
	}
	s.only = pick(s, nil, nil, nil, nil, []int64{0}, []int64{1, 3}, []int64{0, 1, 2})
}

// misplace sets a clock to some time that the mode allows.
func (s *simulation) misplace(c *simulatedClock, m mode) {
	w, guard := s.part(1), s.store.clock.most
	if m == guarded {
		c.set(pick(s, 0, guard, s.upTo(guard)), 0)
		return
	}
	const year = 365 * 24 * time.Hour
	far := pick(s, -year, -time.Hour, time.Hour, year)
	if c == &s.store.clock {
		// A host's clock may be wrong in the same way, which no one can detect. A later renewal
		// must be able to reserve as far ahead.
		far = pick(s, -time.Hour, -time.Hour/2, time.Hour/2)
	}
	offset := pick(s, s.between(-w/8, w/8), s.between(-w/8, w/8), s.between(-4*w, 4*w), s.between(-4*w, 4*w), far)
	if s.chance(0.4) {
		offset = 0
	}
	c.set(offset, 0)
}

// consume takes IDs on a host until the run ends.
func (s *simulation) consume(h *host) {
	s.after(s.upTo(s.part(5)), func() {
		if p := h.process; p != nil {
			switch n := s.rng.IntN(40); {
			case n < 12: // idle
			case n < 24:
				p.take(1)
			case n < 34:
				p.take(1 + s.rng.IntN(12))
			case n < 39:
				p.fill(1 + s.rng.IntN(60))
			default:
				p.take(500) // or to the limit
			}
		}
		s.consume(h)
	})
}

// A trouble is what may happen at random.
type trouble struct {
	weight int
	modes  []mode // nil: all
	do     func(s *simulation, m mode, h *host)
}

// for a while: as long as most faults last.
func (s *simulation) while() time.Duration {
	w := s.part(1)
	return pick(s, s.upTo(w/4), s.upTo(w), s.upTo(4*w))
}

// running calls do with the process of h, if it runs.
func running(do func(s *simulation, p *process)) func(*simulation, mode, *host) {
	return func(s *simulation, _ mode, h *host) {
		if p := h.process; p != nil && p.up && !p.paused {
			do(s, p)
		}
	}
}

// badLink makes the link of a host bad by change, for a while.
func badLink(change func(s *simulation, l *link)) func(*simulation, mode, *host) {
	return func(s *simulation, _ mode, h *host) {
		change(s, &h.link)
		h.link.writes = s.chance(0.4)
		s.after(s.while(), func() { h.link = link{delay: s.part(64)} })
	}
}

var troubles = []trouble{
	{8, nil, running(func(s *simulation, p *process) {
		p.pause()
		s.after(s.while(), p.resume)
	})},
	{2, nil, running(func(s *simulation, p *process) { p.suspend(s.while()) })},
	{8, nil, running(func(s *simulation, p *process) {
		p.crash()
		s.after(pick(s, 0, s.while()), func() { s.restart(p.host) })
	})},
	{6, nil, running(func(s *simulation, p *process) {
		p.close()
		s.after(pick(s, 0, s.while()), func() { s.restart(p.host) })
	})},
	{10, nil, func(s *simulation, m mode, h *host) {
		s.misplace(&h.clock, m)
		s.counts[steps]++
		s.tracef("the clock of host %d steps to %v", h.number, h.clock.offset)
		if s.chance(0.7) {
			s.after(s.while(), func() { h.clock.set(0, 0) })
		}
	}},
	{2, nil, func(s *simulation, m mode, h *host) {
		h.clock.set(h.clock.offset, pick[int64](s, -100_000, -500, 500, 100_000))
		s.counts[slews]++
	}},
	{3, nil, func(s *simulation, m mode, _ *host) {
		s.misplace(&s.store.clock, m)
		s.counts[storeSteps]++
		s.tracef("the clock of the store steps to %v", s.store.clock.offset)
		if m != guarded {
			s.after(s.while(), func() { s.store.clock.set(0, 0) })
		}
	}},
	{5, nil, badLink(func(s *simulation, l *link) { l.lose, l.loseReply = 0.3, 0.3 })},
	{3, nil, badLink(func(s *simulation, l *link) { l.delay = s.part(2) })},
	{4, nil, badLink(func(s *simulation, l *link) { l.zombie, l.duplicate = 0.5, 0.5 })},
	{4, nil, badLink(func(s *simulation, l *link) { l.cut = true; s.counts[partitions]++ })},
	{4, nil, badLink(func(s *simulation, l *link) { l.deaf = true; s.counts[partitions]++ })},
	{3, nil, func(s *simulation, _ mode, _ *host) {
		s.store.down, s.store.refuses = true, s.chance(0.5)
		s.counts[outages]++
		s.tracef("the store goes down")
		s.after(s.while(), func() { s.store.down = false })
	}},
	{3, nil, func(s *simulation, _ mode, _ *host) {
		s.store.slow = s.part(2)
		s.counts[slownesses]++
		s.after(s.while(), func() { s.store.slow = 0 })
	}},
	{2, []mode{fence}, func(s *simulation, _ mode, _ *host) {
		// All of them have one clock. It goes back further than time is reserved ahead of
		// it.
		set := func(by time.Duration) {
			s.store.clock.set(by, 0)
			for _, h := range s.hosts {
				h.clock.set(by, 0)
			}
		}
		set(-s.between(time.Hour, 3*time.Hour))
		s.counts[farSteps]++
		s.tracef("all clocks step to %v", s.store.clock.offset)
		s.after(s.while(), func() { set(0) })
	}},
	{1, nil, func(s *simulation, _ mode, _ *host) { s.store.remove(s.rng.Int64N(1 << s.layout.WorkerBits)) }},

	// What only the guard covers.
	{12, []mode{guarded}, func(s *simulation, _ mode, _ *host) {
		s.store.forget(pick(s, 1, 1+s.rng.IntN(4), 1+s.rng.IntN(200)))
	}},
	{2, []mode{guarded}, func(s *simulation, _ mode, _ *host) { s.store.wipe() }},
	{10, []mode{guarded}, func(s *simulation, _ mode, h *host) {
		// A host and a replica of the store are cut off from the rest together.
		// Afterwards the replica goes on.
		replica := s.store.state()
		h.link.cut = true
		s.counts[partitions]++
		s.after(s.between(s.part(1), 3*s.part(1)), func() {
			s.store.become(replica)
			h.link.cut = false
		})
	}},
	{3, []mode{guarded}, func(s *simulation, _ mode, _ *host) {
		s.store.lower(s.rng.Int64N(1<<s.layout.WorkerBits), leasestore.MillisOf(s.store.clock.now())-leasestore.Millis(s.rng.IntN(int(s.window))))
	}},

	{20, []mode{cloned}, running(func(s *simulation, p *process) {
		if q := p.clone(); q != nil {
			s.consume(q.host)
		}
	})},
}

// disturb lets trouble happen, for as long as the run lasts.
func (s *simulation) disturb(m mode) {
	s.after(s.upTo(s.part(2)), func() {
		s.trouble(m)
		s.disturb(m)
	})
}

func (s *simulation) trouble(m mode) {
	if s.calm {
		return
	}
	n := 0
	var chosen *trouble
	for i := range troubles {
		tr := &troubles[i]
		if tr.modes != nil && tr.modes[0] != m {
			continue
		}
		if n += tr.weight; s.rng.IntN(n) < tr.weight {
			chosen = tr
		}
	}
	chosen.do(s, m, s.hosts[s.rng.IntN(len(s.hosts))])
}

// restart starts a process on h, unless there is one.
func (s *simulation) restart(h *host) {
	if h.process == nil || !h.process.up {
		s.counts[restarts]++
		h.start()
	}
}

// recover sets everything right. Each process must have IDs again within a few
// windows, unless there is no row for it.
func (s *simulation) recover(m mode) {
	s.calm = true
	s.tracef("all is well again")
	s.store.clock.set(0, 0)
	s.store.down, s.store.slow = false, 0
	for _, h := range s.hosts {
		h.link = link{delay: s.part(64)}
		h.clock.set(0, 0)
		if h.process != nil && h.process.up {
			h.process.resume()
		}
		s.restart(h)
		h.process.before = h.process.taken
	}
	waiting := map[*process]bool{}
	for deadline := s.elapsed() + 6*s.part(1) + time.Second; s.elapsed() < deadline && !s.over(); {
		s.run(s.part(8))
		clear(waiting)
		for _, h := range s.hosts {
			if p := h.process; p.take(1) == 0 && p.taken == p.before {
				waiting[p] = true
			}
		}
		if len(waiting) == 0 {
			return
		}
	}
	if s.over() {
		return
	}
	for _, h := range s.hosts {
		p := h.process
		switch {
		case !waiting[p]:
		case errors.Is(p.lease.Status().Err, ErrNoFreeWorker) && s.noneFree(p):
			s.counts[unfree]++
		case s.rollback != core.Continue && (errors.Is(p.err, core.ErrClockBack) || errors.Is(p.err, context.Canceled)):
			// It waits for the clock, as it should. Some clock was ahead when its IDs or
			// its lease were made.
		default:
			s.violate(stuck, "process %d has no ID: %v, %+v, protocol %+v, rows %+v", p.id, p.err, p.lease.Status(), p.lease.protocol, s.store.rows)
		}
	}
}

// noneFree reports whether there is in fact no row that p may claim.
func (s *simulation) noneFree(p *process) bool {
	c := s.claim()
	for _, row := range s.store.rows {
		if c.Free(row, leasestore.MillisOf(s.store.clock.now())) {
			return false
		}
	}
	return true
}

func TestRandomSchedulesRepeatNoID(t *testing.T) {
	t.Parallel()
	first, n := *simulationSeed, *simulationSchedules
	switch {
	case n > 0:
	case first > 0:
		n = 1
	default:
		n = 20
	}
	if first == 0 {
		first = 1
	}
	var counts [kinds]int
	for i := range uint64(n) {
		seed := first + i
		m := mode(seed % uint64(modes))
		s := chaos(t, seed, m, none, n == 1)
		if n == 1 {
			t.Logf("seed %d, %v:\n%s", seed, m, strings.Join(s.trace, "\n"))
		}
		for k, c := range s.counts {
			counts[k] += c
		}
		if s.violated() == "" {
			continue
		}
		again := chaos(t, seed, m, none, true)
		t.Errorf("seed %d, %v, %s\nthe same again, in its last steps:\n%s\nreplay it with -simulation.seed=%d", seed, m, s.violated(), again.tail(), seed)
		if again.digest != s.digest {
			t.Errorf("seed %d: the second run differs from the first; want the same", seed)
		}
		return
	}
	var report strings.Builder
	for k, c := range counts {
		fmt.Fprintf(&report, "%10d %v\n", c, kind(k))
		if c == 0 && n >= 150 {
			t.Errorf("no %v in %d schedules; want some", kind(k), n)
		}
	}
	t.Logf("%d schedules from seed %d:\n%s", n, first, report.String())
}

func TestSimulationIsTheSameForTheSameSeed(t *testing.T) {
	t.Parallel()
	for seed := uint64(1); seed <= 6; seed++ {
		m := mode(seed % uint64(modes))
		a, b := chaos(t, seed, m, none, false), chaos(t, seed, m, none, true)
		if a.digest != b.digest || a.counts != b.counts {
			t.Errorf("seed %d: digests %x and %x, counts %v and %v; want the same", seed, a.digest, b.digest, a.counts, b.counts)
		}
	}
}
