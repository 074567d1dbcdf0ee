package leasetest

import (
	"errors"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// fencer returns the store of h as a Fencer, or skips the subtest.
func (s *suite) fencer(h handle) leasestore.Fencer {
	s.Helper()
	f, ok := h.store.(leasestore.Fencer)
	if !ok {
		s.Skip("SKIPPED: the store is no leasestore.Fencer")
	}
	return f
}

func (s *suite) fencing(until leasestore.Millis) leasestore.Fencing {
	return leasestore.Fencing{Space: s.space, Nonce: token(), Until: until}
}

// fenceRaisesEveryRow fences four rows: one never claimed, one held, one given back, and one
// that reserves more than the fence.
func fenceRaisesEveryRow(s *suite) {
	s.fencer(s.a)
	s.a.hold(s.newClaim())
	given := s.b.hold(s.newClaim())
	s.b.must(given.giveBack(given.from))
	s.a.hold(s.claimFor(2 * hour))
	for _, ahead := range []leasestore.Millis{hour, 0, 3 * hour} {
		s.a.must(s.fencing(s.now() + ahead))
	}
}

// fenceEndsLeases fences a live holder, such as one from before a restore. It must not continue
// from its old limit to one beyond the fence.
func fenceEndsLeases(s *suite) {
	s.fencer(s.a)
	s.space.Workers = 2
	l := s.a.hold(s.newClaim())
	until := s.now() + minute/2
	s.b.must(s.fencing(until))
	s.a.lost("Renew after Fence", s.renewal(l), leasestore.TakenOver)
	s.a.lost("Release after Fence", l.giveBack(l.from), leasestore.TakenOver)
	for range s.space.Workers {
		if next := s.a.hold(s.newClaim()); next.from < until {
			s.Errorf("the lease after Fence(%d) begins at %d; want no earlier", until, next.from)
		}
	}
}

func fenceMakesTheRows(s *suite) {
	s.fencer(s.a)
	s.a.must(s.fencing(s.now() + hour))
	s.b.full("Claim after Fence, an hour ahead", s.newClaim(), int(s.space.Workers))
}

func fenceIsRefused(s *suite) {
	s.fencer(s.b)
	s.a.hold(s.newClaim())
	f := s.fencing(s.now() + hour)
	f.Space.Layout = otherLayout
	if _, err := s.b.do(f); !errors.Is(err, leasestore.ErrLayout) {
		s.Errorf("Fence with another layout = error %v; want a *lease.LayoutError", err)
	}
}
