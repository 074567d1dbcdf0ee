package lease

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/lease/leasestore"
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
	noAnswerCheck
	noLateStart
	swapComparesTheEpoch
	swapComparesTheCount
	copiesDrawTheSame
	retirementIsAClaim
	releaseWithoutCompare
	renewalLowersTheLimit
	claimLowersTheLimit
)

var mutants = []struct {
	mutant
	name string
	mode mode   // of the random schedules that find it
	seed uint64 // of one of these, from which the search goes on; 0: it takes a schedule of its own
}{
	{ownClock, "a lease begins at its own clock", fence, 553},
	{renewalWithoutCompare, "a renewal counts whoever has the row", fence, 55},
	{timeoutIsSuccess, "a timeout is taken as success", fence, 656},
	{releaseBeforeSeal, "a row is given back before the generator is sealed", fence, 419},
	{rowMadeAnew, "a row that is gone is made anew", fence, 186},
	{guardShortByOne, "the loss guard is a millisecond short", guarded, 0},
	{ownWindow, "each lease has a window of its own, and not the constant", guarded, 68},
	{noLapseRule, "there is no lapse rule", guarded, 415},
	{epochWithoutOwner, "the epoch alone identifies a holder", guarded, 5},
	{noNonce, "there is no nonce", cloned, 1},
	{noGuard, "there is no loss guard, and the store forgets", guarded, 1},
	{noAnswerCheck, "a renewal counts however late its answer comes", guarded, 0},
	{noLateStart, "a lease begins after the answer to its read, and not after that to its swap", guarded, 0},
	{swapComparesTheEpoch, "a swap compares the epoch alone", fence, 298},
	{swapComparesTheCount, "a swap compares a count of writes, which a loss makes come twice", guarded, 0},
	{copiesDrawTheSame, "a copy draws the same tokens as its original", cloned, 21},
	{retirementIsAClaim, "a retired number is free after a window", fence, 30},
	{releaseWithoutCompare, "a release counts whoever has the row", fence, 0},
	{renewalLowersTheLimit, "a renewal lowers the limit when its clock has gone back", fence, 20},
	{claimLowersTheLimit, "a claim begins and ends by the clock of the store", fence, 61},
}

// doctor shows a row to a renewal as if it were its own. The tag is what it is.
func (m mutant) doctor(f *flight, v *leasestore.View) {
	r := f.renewal
	if r == nil {
		return
	}
	for i := range v.Rows {
		seen := &v.Rows[i]
		row := seen.Row
		switch {
		case m == renewalWithoutCompare,
			m == epochWithoutOwner && row.Epoch == r.Epoch && row.Owner != "",
			m == noNonce && row.Epoch == r.Epoch && row.Owner == r.Owner:
			seen.Tag = row
			seen.Row.Epoch, seen.Row.Owner, seen.Row.Nonce = r.Epoch, r.Owner, r.Known[0]
		}
	}
}

// lower changes what a claim or a renewal writes, at a moment by the store's clock.
func (m mutant) lower(f *flight, row *leasestore.Row, now leasestore.Millis) {
	switch {
	case m == claimLowersTheLimit && f.claim != nil:
		row.Until = now + f.claim.Window
	case m == renewalLowersTheLimit && f.renewal != nil:
		row.Until = f.renewal.Clock(now) + f.renewal.Window
	}
}

// same reports whether a swap that should compare all of a row takes it for another.
func (m mutant) same(row, from, to leasestore.Row) bool {
	return m == swapComparesTheEpoch && row.Epoch == from.Epoch ||
		m == swapComparesTheCount && row.Renewals == from.Renewals ||
		m == releaseWithoutCompare && to.Owner == ""
}

// twin makes two copies draw the same tokens from now on.
func (m mutant) twin(s *simulation, protocols ...*protocol) {
	if m != copiesDrawTheSame {
		return
	}
	s.tokens++
	drawn := s.tokens
	for _, p := range protocols {
		n := 0
		p.token = func() string {
			n++
			return fmt.Sprintf("%016x%016x", drawn, n) // where no other token has a drawn
		}
	}
}

// blindfold lets a renewal pass the lapse rule where the row is read.
func (m mutant) blindfold(p *process, f *flight) {
	if r := f.renewal; r != nil && m == noLapseRule {
		blind := *r
		blind.Until = max(r.Until, max(leasestore.MillisOf(p.s.store.clock.now()), r.Now)+r.Window/2+r.Guard)
		f.renewal = &blind
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
func (m mutant) distort(p *protocol, reply *leasestore.Reply, now *leasestore.Millis) {
	if r := p.renewing; r != nil && (m == noLapseRule || m == noAnswerCheck) {
		blind := *r
		blind.Until += forever
		p.renewing = &blind
	}
	c := p.claiming
	if c == nil {
		return
	}
	switch m {
	case ownClock:
		reply.Before, reply.Now = 0, c.Now
	case claimLowersTheLimit:
		reply.Before = 0
	case guardShortByOne:
		short := *c
		short.Guard--
		p.claiming = &short
	case noLateStart:
		if (*now - c.Now).Duration() <= p.deadline() { // later than that it does not count
			*now = c.Now
		}
	}
}

// forever is longer than any simulation.
const forever = leasestore.Millis(100 * 365 * 24 * time.Hour / time.Millisecond)

// closeInTheWrongOrder gives the row back first and seals later.
func (p *process) closeInTheWrongOrder() bool {
	if p.gen == nil || p.lease.term == nil {
		return false
	}
	r, held := p.lease.protocol.release(leasestore.MillisOf(p.lease.term.Next()))
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

// lateClaim plays the schedule in which a claim is written long after it was read. Between
// the two another process has claimed the row, has renewed, and has used what it reserved.
// The store forgets that, so the row is what the claim has read.
func lateClaim(s *simulation) {
	h := s.addHost()
	h.link.late, h.link.writes = s.part(4)-s.part(32), true
	q := h.start()
	p := s.addHost().start()
	for range 3 {
		was := p.limit()
		s.until(s.part(8), func() bool { return p.limit() > was })
		p.take(1 << 20)
	}
	p.crash()
	s.store.forget(len(s.store.history))
	s.until(2*s.part(1), func() bool { return q.take(1) == 1 })
	if begin := q.lastEnd() - 1; s.mutant == none && begin < p.limit() {
		s.fatalf("the lease of the late claim begins at %d; want no earlier than the limit of the other, %d", begin, p.limit())
	}
}

// lateAnswer plays the same for a renewal. It is read before the lease lapses, and written
// after another process has claimed the row, has renewed, and was forgotten.
func lateAnswer(s *simulation) {
	p := s.begin()
	s.store.down, s.store.refuses = true, true
	limit := p.limit()
	at := func(m leasestore.Millis) time.Duration {
		return (m - leasestore.MillisOf(s.store.clock.now())).Duration()
	}
	s.run(at(limit) - 65*time.Millisecond - s.guard.Duration())
	s.store.down = false
	p.link.late, p.link.writes = s.part(4)-s.part(64), true
	s.run(at(limit) + s.guard.Duration())
	if s.mutant == none && (p.flight == nil || !p.lease.protocol.held) {
		s.fatalf("no renewal is under way; want one that was read before the lease has lapsed")
	}
	writes := len(s.store.history)
	q := s.addHost().start()
	was := q.limit()
	s.until(s.part(4), func() bool { return q.limit() > was && q.take(1<<20) > 0 })
	q.crash()
	s.store.forget(len(s.store.history) - writes)
	s.until(4*s.part(1), func() bool { return p.take(1<<20) > 0 && p.lastEnd() > q.limit() })
}

// sameCount plays the schedule in which a renewal is read, and written long after. Between the two the
// store forgets everything, and another process claims the row, so that it was written as often as when
// it was read. That process is cut off, and does not learn that it has lost the row.
func sameCount(s *simulation) {
	renewed := func() *process {
		p := s.addHost().start()
		s.until(s.part(8), func() bool { return p.limit() > 0 })
		was := p.limit()
		s.until(s.part(8), func() bool { return p.limit() > was })
		return p
	}
	p := renewed()
	p.link.late, p.link.writes = s.part(4)-s.part(64), true
	s.until(s.part(2), func() bool { return p.flight != nil && p.flight.renewal != nil })
	s.run(s.part(64))
	s.store.wipe()
	q := renewed()
	q.link.cut = true
	s.run(s.part(4))
	p.link.late = 0
	s.until(2*s.part(1), func() bool { return q.take(1<<20) > 0 })
	s.until(4*s.part(1), func() bool { return p.take(1<<20) > 0 && p.lastEnd() > q.limit() })
}

// lateRelease plays the schedule in which a row is given back long after its holder has ended. By then another process has claimed the row, and has used what it reserved.
func lateRelease(s *simulation) {
	p := s.begin()
	p.link.late, p.link.writes = 3*s.part(2), true
	p.close()
	q := s.addHost().start()
	s.until(2*s.part(1), func() bool { return q.take(1<<20) > 0 })
	s.run(s.part(2)) // until just after it is written
	r := s.addHost().start()
	s.run(s.part(8))
	r.take(1 << 20)
}

// playing returns a schedule in which one row and clocks that are right will do.
func playing(play func(s *simulation), window, guard leasestore.Millis) func(t *testing.T, m mutant) *simulation {
	return func(t *testing.T, m mutant) *simulation {
		t.Helper()
		x := setting{mutant: m, layout: newLayout(time.Millisecond, 2, 2), window: window, guard: guard, skew: min(12, guard), oneGuard: true}
		single(&x)
		greedy(&x)
		return simulate(t, 1, x, true, play)
	}
}

// schedules has the schedules of mistakes that need a special one.
var schedules = map[mutant]func(t *testing.T, m mutant) *simulation{
	guardShortByOne: playing(tight, 64, 16),
	noLateStart:     playing(lateClaim, 640, 20),
	noAnswerCheck:   playing(lateAnswer, 640, 20),

	swapComparesTheCount: playing(sameCount, 640, 20),

	releaseWithoutCompare: playing(lateRelease, 640, 0),
}

func TestLossGuardIsEnoughAndNoMoreThanThat(t *testing.T) {
	for mistake, play := range schedules {
		if s := play(t, none); s.violated() != "" {
			t.Errorf("the schedule of mutant %d, without it: %s\n%s", mistake, s.violated(), s.tail())
		}
	}
}

func TestSimulationFindsEveryMutant(t *testing.T) {
	t.Parallel()
	const most = 1000
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			if m.seed == 0 {
				s := schedules[m.mutant](t, m.mutant)
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
