package lease

import (
	"context"
	"testing"
	"time"
)

// A mutant is one mistake in the protocol. It alters a request or a reply on its way. The
// simulation must find each of them, or its silence about the protocol means nothing.
type mutant int

const (
	none mutant = iota
	ownClock
	renewalWithoutCompare
	timeoutIsSuccess
	releaseBeforeSeal
	rowMadeAnew
	guardShortByOne
	ownWindow
	noLapseRule
	epochWithoutOwner
	noNonce
	noGuard
)

var mutants = []struct {
	mutant
	name string
	mode mode   // of the random schedules that find it
	seed uint64 // of one of these, from which the search goes on; 0: it takes a schedule of its own
}{
	{ownClock, "a lease begins at its own clock", fence, 1},
	{renewalWithoutCompare, "a renewal counts whoever has the row", fence, 1},
	{timeoutIsSuccess, "a timeout is taken as success", fence, 1},
	{releaseBeforeSeal, "a row is given back before the generator is sealed", fence, 1},
	{rowMadeAnew, "a row that is gone is made anew", fence, 1},
	{guardShortByOne, "the loss guard is a millisecond short", guarded, 0},
	{ownWindow, "each lease has a window of its own, and not the constant", guarded, 138},
	{noLapseRule, "there is no lapse rule", guarded, 820},
	{epochWithoutOwner, "the epoch alone identifies a holder", guarded, 1},
	{noNonce, "there is no nonce", cloned, 1},
	{noGuard, "there is no loss guard, and the store forgets", guarded, 1},
}

// loosen makes the store do a renewal that it should refuse.
func (m mutant) loosen(r *Renewal, row Row, now Millis) {
	switch m {
	case renewalWithoutCompare:
		r.Epoch, r.Owner = row.Epoch, row.Owner
		r.Known = append(r.Known[:len(r.Known):len(r.Known)], row.Nonce)
	case epochWithoutOwner:
		if row.Owner != "" {
			r.Owner = row.Owner
			r.Known = append(r.Known[:len(r.Known):len(r.Known)], row.Nonce)
		}
	case noNonce:
		r.Known = append(r.Known[:len(r.Known):len(r.Known)], row.Nonce)
	case noLapseRule:
		r.Until = max(r.Until, max(now, r.Now)+r.Guard)
	}
}

// blind keeps Lease.next from seeing that the lease has lapsed. undo reverts it.
func (m mutant) blind(p *process) (undo func(*action)) {
	protocol := p.lease.protocol
	if m != noLapseRule || !protocol.held {
		return func(*action) {}
	}
	guard := protocol.settings.Guard
	protocol.settings.Guard = 0
	return func(a *action) {
		protocol.settings.Guard = guard
		if a.renewal != nil {
			a.renewal.Guard = guard
		}
	}
}

// distort changes what a lease makes of a reply.
func (m mutant) distort(p *protocol, reply *Reply) {
	if r := p.renewing; r != nil && m == noLapseRule {
		blind := *r
		blind.Until += forever
		p.renewing = &blind
	}
	if p.claiming == nil {
		return
	}
	switch m {
	case ownClock:
		reply.Before, reply.Now = 0, p.claiming.Now
	case guardShortByOne:
		c := *p.claiming
		c.Guard--
		p.claiming = &c
	}
}

// forever is longer than any simulation.
const forever = Millis(100 * 365 * 24 * time.Hour / time.Millisecond)

// closeInTheWrongOrder gives the row back first and seals later.
func (p *process) closeInTheWrongOrder() bool {
	if p.gen == nil || p.lease.term == nil {
		return false
	}
	r, held := p.lease.protocol.release(MillisOf(p.lease.term.Next()))
	if !held {
		return false
	}
	p.flight = nil
	p.wake++ // no alarm rings any more
	p.s.send(p.host, &flight{release: &r})
	p.s.after(p.s.part(2), func() {
		_ = p.gen.Close(context.Background())
		p.up = false
	})
	return true
}

// tight plays the schedule in which the loss guard has nothing to spare. A holder renews
// by clocks that are ahead by all that the guard allows. It uses all that it has
// reserved. In the same moment it crashes, and the store forgets it. The store and the
// next holder go on by clocks that are right. The next holder begins where the first has
// ended.
func tight(s *simulation) {
	guard := s.guard.Duration()
	s.store.clock.set(guard, 0)
	h := s.addHost()
	h.clock.set(guard, 0)
	p := h.start()
	for range 3 {
		was := p.limit()
		s.until(s.part(1), func() bool { return p.limit() > was })
	}
	if p.take(1 << 20); p.lastEnd() != p.limit() {
		s.fatalf("the last ID ends at %d; want it at the limit, %d", p.lastEnd(), p.limit())
	}
	p.crash()
	s.store.wipe()
	s.store.clock.set(0, 0)
	q := s.addHost().start()
	s.until(2*s.part(1), func() bool { return q.take(1) == 1 })
	if begin := q.lastEnd() - 1; s.mutant == none && begin != p.limit() {
		s.fatalf("the second lease begins at %d; want it at the limit of the first, %d", begin, p.limit())
	}
}

// tightly runs tight.
func tightly(t *testing.T, m mutant) *simulation {
	t.Helper()
	x := setting{mutant: m, layout: newLayout(time.Millisecond, 2, 2), window: 64, guard: 16, skew: 12}
	single(&x)
	greedy(&x)
	return simulate(t, 1, x, true, tight)
}

func TestLossGuardIsEnoughAndNoMoreThanThat(t *testing.T) {
	if s := tightly(t, none); s.violated() != "" {
		t.Errorf("%s\n%s", s.violated(), s.tail())
	}
}

func TestSimulationFindsEveryMutant(t *testing.T) {
	t.Parallel()
	const most = 1000
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			if m.seed == 0 {
				s := tightly(t, m.mutant)
				if s.violations[duplicate] == "" {
					t.Errorf("no ID is repeated; want one\n%s", s.tail())
				}
				t.Log(s.violations[duplicate])
				return
			}
			for seed := m.seed; seed < m.seed+most; seed++ {
				s := chaos(t, seed, m.mode, m.mutant, false)
				if s.violations[duplicate] == "" {
					continue
				}
				t.Logf("seed %d, after %d IDs: %s", seed, s.counts[ids], s.violations[duplicate])
				if again := chaos(t, seed, m.mode, none, false); again.violated() != "" {
					t.Errorf("seed %d without the mistake: %s", seed, again.violated())
				}
				return
			}
			t.Errorf("%d schedules repeat no ID; want one that does", most)
		})
	}
}
