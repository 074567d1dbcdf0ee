package leasetest

import (
	"slices"
	"strings"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// randomOperations performs what holders, old holders and claimants may do, in random order,
// through several handles, one operation at a time. No row may change in between.
func randomOperations(s *suite) {
	const steps = 250
	s.space.Workers = 4
	s.Logf("Harness.Seed = %d repeats these operations", s.h.Seed)
	handles := []handle{s.a, s.b, s.open()}
	g := &random{suite: s, holders: []*holder{s.a.hold(s.newClaim())}}
	var log []string
	for range steps {
		if s.h.SetClock != nil && s.rng.IntN(2) == 0 {
			s.advance(s.now() + leasestore.Millis(s.rng.IntN(60)))
		}
		request, l := g.request()
		if rows, _ := s.rows(s.space); !slices.Equal(rows, s.last) {
			s.Errorf("Rows while nothing is done = %+v; were %+v", rows, s.last)
		}
		reply, err := handles[s.rng.IntN(len(handles))].do(request)
		if err == nil {
			switch r := request.(type) {
			case leasestore.Claim:
				g.holders = append(g.holders, won(r, reply))
			case leasestore.Renewal:
				l.confirmed(r, reply)
			}
		}
		log = append(log, describe(request, reply, err))
		if s.Failed() {
			s.Fatalf("the operations up to then:\n%s", strings.Join(log, "\n"))
		}
	}
}

// A random makes requests.
type random struct {
	*suite
	holders []*holder
}

// request returns a request, and the holder that sends it.
func (g *random) request() (any, *holder) {
	// One of the last holders, most often the newest.
	back := min(g.rng.IntN(4), g.rng.IntN(12), len(g.holders)-1)
	l := g.holders[len(g.holders)-1-back]
	switch n := g.rng.IntN(100); {
	case n < 35:
		return g.claim(), nil
	case n < 80:
		return g.renewal(l), l
	default:
		return g.release(l), l
	}
}

func (g *random) claim() leasestore.Claim {
	c := g.newClaim()
	c.Window = g.pick(1, 2, 20, minute)
	c.Guard = g.pick(0, 0, 1, 10)
	switch g.rng.IntN(4) {
	case 0:
		c.Only = []int64{g.rng.Int64N(4)}
	case 1:
		c.Only = []int64{3, g.rng.Int64N(6), 1}
	}
	switch g.rng.IntN(20) {
	case 0:
		c.Now += 2 * minute
	case 1:
		c.Now -= 2 * minute
	case 2, 3:
		c.Retire = true
	}
	return c
}

func (g *random) renewal(l *holder) leasestore.Renewal {
	r := g.suite.renewal(l)
	r.Window = g.pick(1, 20, minute, hour)
	r.Guard = g.pick(0, 0, 1, 10)
	r.Next += g.pick(-hour, 0, 15, 2*hour)
	switch g.rng.IntN(12) {
	case 0:
		r.Now += 2 * minute
	case 1:
		r.Now -= 2 * minute
	case 2:
		r.Until -= minute // the holder's last replies were lost
	}
	r.Known = g.known(r.Known)
	switch g.rng.IntN(20) {
	case 0:
		r.Epoch += g.rng.Int64N(3) - 1
	case 1:
		r.Worker = (r.Worker + 1) % g.space.Workers
	case 2:
		r.Owner = token()
	}
	return r
}

func (g *random) release(l *holder) leasestore.Release {
	r := l.giveBack(l.from + leasestore.Millis(g.rng.IntN(20)))
	r.Known = g.known(r.Known)
	if g.rng.IntN(20) == 0 {
		r.Epoch += g.rng.Int64N(3) - 1
	}
	return r
}

func (g *random) pick(from ...leasestore.Millis) leasestore.Millis {
	return from[g.rng.IntN(len(from))]
}

// known returns the nonces that a holder knows, possibly among others, or less often only
// others.
func (g *random) known(right []string) []string {
	switch g.rng.IntN(10) {
	case 0:
		return []string{token()}
	case 1, 2:
		return []string{token(), right[0], token()}
	}
	return right
}
