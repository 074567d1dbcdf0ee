package leasetest

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease/leasestore"
)

func claimsTakeEachFreeRowOnce(s *suite) {
	for range s.space.Workers / 2 {
		s.a.hold(s.newClaim()) // each handle sees what the other one has taken
		s.b.hold(s.newClaim())
	}
	s.a.full("Claim when all rows are held", s.newClaim(), int(s.space.Workers))
}

// claimsChooseAtRandom catches a fixed order, an order that continues from the last row, and a
// fixed seed; other orders that are not random may escape it. Two handles that choose at random
// agree once in 16^12 runs.
func claimsChooseAtRandom(s *suite) {
	const rounds = 12
	s.space.Workers = 16
	made := s.open()
	made.must(made.hold(s.newClaim()).giveBack(s.now()))
	orders := [2][]int64{}
	for i, h := range []handle{s.a, s.b} {
		for range rounds {
			l := h.hold(s.newClaim())
			h.must(l.giveBack(l.from))
			orders[i] = append(orders[i], l.worker)
		}
		distinct := slices.Compact(slices.Sorted(slices.Values(orders[i])))
		if len(distinct) < 3 { // of 12 choices among 16: less than once in 10^8 runs
			s.Errorf("%d claims, all rows free: workers %v; want them chosen at random", rounds, orders[i])
		}
	}
	if slices.Equal(orders[0], orders[1]) {
		s.Errorf("claims by two processes: workers %v, twice; want another order each", orders[0])
	}
}

func claimTakesOnlyWhatItMay(s *suite) {
	taken := []int64{s.a.hold(s.claimOf(2, 5)).worker, s.b.hold(s.claimOf(2, 5)).worker}
	slices.Sort(taken)
	if !slices.Equal(taken, []int64{2, 5}) {
		s.Errorf("two claims with Only [2 5] won %v; want [2 5]", taken)
	}
	// The numbers need not be in order, and some may be held or outside of the space.
	if l := s.b.hold(s.claimOf(7, 99, 5, -1, 2)); l.worker != 7 {
		s.Errorf("Claim(Only [7 99 5 -1 2]) won %d; want 7, the only free one", l.worker)
	}
	s.a.full("Claim(Only [2 5])", s.claimOf(2, 5), 2)
	s.a.full("Claim(Only [5])", s.claimOf(5), 1)
	s.a.full("Claim(Only [5 5])", s.claimOf(5, 5), 1)
	s.a.full("Claim(Only [8]), of 8 rows", s.claimOf(s.space.Workers), 0)
	s.a.full("Claim(Only [-1])", s.claimOf(-1), 0)
	s.a.full("Claim(Only []), for which none will do", s.claimOf([]int64{}...), 0)
}

func claimTakesOverAnExpiredRow(s *suite) {
	s.space.Workers = 1
	l := s.a.hold(s.claimFor(1))
	s.await(l.until)
	c := s.newClaim()
	if r := s.b.must(c); r.Row.Epoch != l.epoch+1 || r.Row.Until != r.Now+c.Window {
		s.Errorf("Claim(%+v) = %+v; want the next epoch, and a limit of now and a window", c, r)
	}
}

func guardDelaysTakeover(s *suite) {
	s.space.Workers = 1
	c := s.newClaim()
	c.Guard, c.Window = 10, 1
	l := s.a.hold(c)
	s.await(l.until)
	c = s.newClaim()
	c.Guard = hour
	s.a.full("Claim of a row whose limit has passed less than Guard ago", c, 1)

	l = s.b.hold(s.newClaim())
	// A released row is free at once even so.
	s.b.must(l.giveBack(l.from))
	c = s.newClaim()
	c.Guard = hour
	s.a.hold(c)
}

// holdersAreListed checks that a row shows the name of its holder while it is held.
func holdersAreListed(s *suite) {
	for _, name := range []string{"", "web-1.example", strings.Repeat("h", 64), ` 'a', "b"; %s \ {c} `} {
		c := s.newClaim()
		c.Holder = name
		l := s.a.hold(c)
		if got := s.b.keep(l, s.renewal(l)).Row.Holder; got != name {
			s.Errorf("row after a renewal of %q has holder %q", name, got)
		}
		s.a.must(l.giveBack(l.from))
		if got := s.row(l.worker).Holder; got != "" {
			s.Errorf("row after its release has holder %q; want none", got)
		}
	}
	for _, name := range []string{strings.Repeat("h", 65), "a\nb", "ä"} {
		c := s.newClaim()
		c.Holder = name
		_, err := s.a.do(c)
		if value := (*core.ValueError)(nil); !errors.As(err, &value) || value.Name != "Claim.Holder" {
			s.Errorf("Claim(Holder: %q) = error %v; want a *core.ValueError", name, err)
		}
	}
}

func claimIsRefusedWhenClocksAreApart(s *suite) {
	refused := func(layout string) {
		s.Helper()
		for _, off := range []leasestore.Millis{+hour, -hour} {
			c := s.newClaim()
			c.Space.Layout = layout
			c.Now += off
			if _, err := s.a.do(c); !errors.Is(err, leasestore.ErrClockSkew) {
				s.Errorf("Claim with a clock that is off by %v = error %v; want a *lease.ClockSkewError", off.Duration(), err)
			}
		}
	}
	refused(otherLayout)
	none := s.newClaim()
	none.Space.Layout = otherLayout
	none.Only = []int64{-1, none.Space.Workers}
	s.a.full("Claim of workers outside the space", none, 0)
	l := s.b.hold(s.newClaim()) // refused if the layout had been kept
	s.b.must(l.giveBack(l.from))
	refused(layout)

	// Within the permitted skew, the store's clock counts.
	c := s.newClaim()
	c.Now, c.Skew = c.Now+hour, 2*hour
	if r := s.a.must(c); r.Now > c.Now-hour/2 {
		s.Errorf("Claim(%+v) = %+v; want Now by the store's clock", c, r)
	}
}

func noFreeWorkerErrorNamesTheEarliest(s *suite) {
	s.space.Workers = 3
	for _, window := range []leasestore.Millis{30 * minute, 20 * minute, 40 * minute} {
		s.a.hold(s.claimFor(window))
	}
	for _, only := range [][]int64{nil, {0, 1, 2}, {0, 1}, {1, 2}, {0}, {1}, {2}} {
		rows := len(only)
		if only == nil {
			rows = 3
		}
		s.b.full("Claim when all rows are held", s.claimOf(only...), rows) // which compares the times
	}
}

func noFreeWorkerErrorNamesRowsFarAhead(s *suite) {
	s.space.Workers = 3
	s.a.hold(s.newClaim())
	for range 2 {
		l := s.a.hold(s.newClaim())
		r := s.renewal(l)
		r.Until = r.Now + 3*hour // confirmed by a holder while a clock was wrong
		s.a.keep(l, r)
	}
	_, err := s.b.do(s.newClaim())
	var full *leasestore.NoFreeWorkerError
	if !errors.As(err, &full) || len(full.Ahead) != 2 || full.Wait > time.Minute {
		s.Errorf("Claim when all rows are held, two far ahead = error %v; want these two named, and the wait for the third", err)
	}
}

// claimDeliveredTwiceHoldsOneRow: a second row would be reserved for a window without a holder,
// while others lack its number. The second claim must not get the answer of the first, since a
// copy of the process may have sent it. Nor may its answer say that the claim was not
// performed.
func claimDeliveredTwiceHoldsOneRow(s *suite) {
	for range 6 {
		c := s.newClaim()
		first := s.a.must(c)
		again := func(when string) {
			s.Helper()
			check := s.unchanged(s.space)
			second, err := s.b.call(c)
			switch {
			case err == nil:
				s.Errorf("Claim delivered twice%s = %+v, then %+v; want an error: a copy of the process may send the same", when, first, second)
			case definite(err):
				s.Errorf("Claim delivered twice%s = %+v, then error %v; want none of those that say that it was not done", when, first, err)
			}
			check("a claim that was delivered twice" + when)
		}
		again("")
		l := won(c, first)
		first.Row = s.a.keep(l, s.renewal(l)).Row
		again(", the second time after a renewal")
	}
}
