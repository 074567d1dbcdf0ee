package leasetest

import (
	"errors"
	"slices"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// newRetirement returns a claim that retires a number.
func (s *suite) newRetirement(worker int64) leasestore.Claim {
	c := s.newClaim()
	c.Only, c.Retire, c.Holder = []int64{worker}, true, "retired: 'x', by host-7"
	return c
}

// retiredRowIsNeverClaimed retires the row of a new space, which makes the others too.
func retiredRowIsNeverClaimed(s *suite) {
	s.space.Workers = 4
	s.a.must(s.newRetirement(2))
	kept := s.row(2)
	if kept.Until < leasestore.Retired+s.now()-minute || !kept.Retired() {
		s.Errorf("row after a claim with Retire = %+v; want Until to be Retired and the time", kept)
	}
	s.b.full("Claim with Retire of a retired number", s.newRetirement(2), 0)
	var won []int64
	for range s.space.Workers - 1 {
		won = append(won, s.b.hold(s.newClaim()).worker)
	}
	if slices.Sort(won); !slices.Equal(won, []int64{0, 1, 3}) {
		s.Errorf("claims beside a retired row won %v; want [0 1 3]", won)
	}
	s.a.full("Claim when all rows but the retired one are held", s.newClaim(), 3)
	for _, guard := range []leasestore.Millis{0, 10} {
		only := s.newClaim()
		only.Only, only.Window, only.Guard = []int64{2}, 12*hour, guard
		s.a.full("Claim of a retired row alone", only, 0)
	}
	if _, ok := s.a.store.(leasestore.Fencer); ok {
		s.a.must(s.fencing(s.now()))
	}
	if got := s.row(2); got != kept {
		s.Errorf("retired row at the end = %+v; want as it was retired, %+v", got, kept)
	}
}

// usedRowIsNotRetired: a number that is held, was given back, has lapsed or was fenced may have
// IDs of any time.
func usedRowIsNotRetired(s *suite) {
	s.space.Workers = 3
	held := s.a.hold(s.newClaim())
	s.b.full("Claim with Retire of a held row", s.newRetirement(held.worker), 1)
	s.a.must(held.giveBack(held.from))
	s.b.full("Claim with Retire of a released row", s.newRetirement(held.worker), 1)
	c := s.newClaim()
	c.Window, c.Only = 1, []int64{held.worker}
	s.await(s.a.hold(c).until)
	s.b.full("Claim with Retire of a row that has lapsed", s.newRetirement(held.worker), 1)

	c = s.newRetirement(held.worker)
	c.Only = nil
	if r := s.a.must(c); r.Row.Worker == held.worker {
		s.Errorf("Claim with Retire of any row = %+v; want another than the one that was used", r)
	}
	if _, ok := s.a.store.(leasestore.Fencer); ok {
		s.a.must(s.fencing(s.now()))
		c = s.newRetirement(0)
		c.Only = nil
		s.b.full("Claim with Retire after Fence", c, 2)
	}
}

// oneOfClaimsAndRetirementsWins lets claims and retirements meet at a new row.
func oneOfClaimsAndRetirementsWins(s *suite) {
	const rounds = 8
	s.space.Workers = rounds
	for worker := range int64(rounds) {
		var requests []any
		for i := range 6 {
			c := s.newClaim()
			if (int64(i)+worker)%2 == 0 { // the last one tends to begin first
				c = s.newRetirement(worker)
			}
			c.Only = []int64{worker}
			requests = append(requests, c)
		}
		winner, reply := s.oneWins(requests, func(err error) {
			if !errors.Is(err, leasestore.ErrNoFreeWorker) {
				s.Errorf("Claim that came second = error %v; want a *lease.NoFreeWorkerError", err)
			}
		})
		if c := requests[winner].(leasestore.Claim); c.Retire != reply.Row.Retired() {
			s.Errorf("%+v has written %+v; want the row retired if Retire asks for it", c, reply.Row)
		}
	}
}

// retirementIsUndone: whoever has read a retired row can act as its owner.
func retirementIsUndone(s *suite) {
	s.space.Workers = 1
	end := s.a.must(s.newRetirement(0)).Now
	row := s.row(0)
	s.b.must(leasestore.Release{
		Space: s.space, Worker: 0, Epoch: row.Epoch, Owner: row.Owner, Known: []string{row.Nonce}, Nonce: token(), End: end,
	})
	s.a.hold(s.newClaim())
}
