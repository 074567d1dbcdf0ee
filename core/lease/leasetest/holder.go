package leasetest

import (
	"strings"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// What may be asked of a row that is held: renewals and releases.

func renewalRaisesTheLimit(s *suite) {
	l := s.a.hold(s.newClaim())
	for _, c := range []struct {
		name string
		edit func(r *leasestore.Renewal)
	}{
		{"a longer window", func(r *leasestore.Renewal) { r.Window = 2 * minute }},
		{"IDs ahead of the clock", func(r *leasestore.Renewal) { r.Next = r.Now + 10*minute }},
		{"IDs further ahead than is permitted", func(r *leasestore.Renewal) { r.Next = r.Now + 5*hour }},
		{"a confirmed limit above the stored one", func(r *leasestore.Renewal) { r.Until += hour }},
		{"a window of hours", func(r *leasestore.Renewal) { r.Window = 12 * hour }},
		{"a clock that has stepped back", func(r *leasestore.Renewal) { r.Window, r.Now = 30*hour, r.Now-hour }},
		{"a clock that has stepped ahead", func(r *leasestore.Renewal) { r.Window, r.Now = 35*hour, r.Now+hour }},
		{"the guard", func(r *leasestore.Renewal) { r.Window, r.Guard = 40*hour, 10 }},
		{"several nonces known", func(r *leasestore.Renewal) {
			r.Known = []string{token(), token(), r.Known[0], token()}
			r.Window = 50 * hour
		}},
		{"twenty nonces known", func(r *leasestore.Renewal) {
			for range 19 {
				r.Known = append([]string{token()}, r.Known...)
			}
			r.Window = 60 * hour
		}},
	} {
		r := s.renewal(l)
		c.edit(&r)
		if reply := s.b.keep(l, r); reply.Row.Until <= reply.Before {
			s.Errorf("%s: Renew(%+v).Row.Until = %d; want more than %d", c.name, r, reply.Row.Until, reply.Before)
		}
	}
}

func renewalNeverLowersTheLimit(s *suite) {
	l := s.a.hold(s.claimFor(hour))
	until := l.until
	for _, guard := range []leasestore.Millis{0, 10} {
		r := s.renewal(l)
		r.Window, r.Guard = 1, guard
		s.b.keep(l, r)
		// The holder's own limit is lower if the reply that raised it was lost.
		r = s.renewal(l)
		r.Window, r.Guard, r.Until = 1, guard, r.Now+minute
		if reply := s.a.keep(l, r); reply.Before != until || reply.Row.Until != until {
			s.Errorf("Renew(%+v) = %+v; want the stored limit, %d", r, reply, until)
		}
	}
}

// unchangedRenewalSucceeds asks for the limit that is stored already, as a holder does that
// renews twice within a millisecond. Servers that count changed rows instead of matched ones
// answer 0 if nothing in the row changes.
func unchangedRenewalSucceeds(s *suite) {
	l := s.a.hold(s.claimFor(hour))
	for range 3 {
		if reply := s.a.keep(l, s.renewal(l)); reply.Row.Until != reply.Before {
			s.Errorf("Renew = %+v; want the same limit", reply)
		}
	}
}

// requestsByAnotherAreRefused returns a check that the store refuses one kind of request from
// anyone but the holder of the row.
func requestsByAnotherAreRefused(request func(s *suite, l *holder) any) func(s *suite) {
	return func(s *suite) {
		l := s.a.hold(s.newClaim())
		old := *l
		s.a.keep(l, s.renewal(l))
		l2 := s.a.hold(s.newClaim())
		s.a.hold(s.newClaim())
		for _, c := range []struct {
			name   string
			edit   func(l *holder)
			reason leasestore.Reason
		}{
			{"a later epoch", func(l *holder) { l.epoch++ }, leasestore.TakenOver},
			{"an earlier epoch", func(l *holder) { l.epoch-- }, leasestore.TakenOver},
			{"another owner", func(l *holder) { l.owner = token() }, leasestore.TakenOver},
			{"no owner", func(l *holder) { l.owner = "" }, leasestore.TakenOver},
			{"an owner in capitals", func(l *holder) { l.owner = strings.ToUpper(l.owner) }, leasestore.TakenOver},
			{"the owner of another row", func(l *holder) { l.owner = l2.owner }, leasestore.TakenOver},
			{"the row of another", func(l *holder) { l.worker = l2.worker }, leasestore.TakenOver},
			{"the nonce of the write before", func(l *holder) { l.known = old.known }, leasestore.Copied},
			{"another nonce", func(l *holder) { l.known = []string{token()} }, leasestore.Copied},
			{"a nonce in capitals", func(l *holder) { l.known = []string{strings.ToUpper(l.known[0])} }, leasestore.Copied},
			{"the nonce of another row", func(l *holder) { l.known = l2.known }, leasestore.Copied},
			{"an empty nonce", func(l *holder) { l.known = []string{""} }, leasestore.Copied},
			{"no nonce", func(l *holder) { l.known = nil }, leasestore.Copied},
			{"a worker that is not there", func(l *holder) { l.worker = s.space.Workers }, leasestore.Gone},
			{"a datacenter that is not there", func(l *holder) { l.space.Datacenter++ }, leasestore.Gone},
			{"a namespace that is not there", func(l *holder) { l.space.Namespace += "-none" }, leasestore.Gone},
		} {
			other := *l
			c.edit(&other)
			s.b.lost("a request with "+c.name, request(s, &other), c.reason)
		}
		// The row is still its holder's. A holder whose renewal was lost on the way knows more
		// nonces than the row has had.
		l.known = []string{token(), l.known[0], token()}
		s.b.must(request(s, l))
	}
}

func askRenewal(s *suite, l *holder) any { return s.renewal(l) }

func askRelease(s *suite, l *holder) any { return l.giveBack(s.now()) }

func lapsedRenewalIsRefused(s *suite) {
	c := s.newClaim()
	c.Guard = 10
	l := s.a.hold(c)
	refused := func(name string, reason leasestore.Reason, edit func(r *leasestore.Renewal)) {
		s.Helper()
		r := s.renewal(l)
		edit(&r)
		s.b.lost("Renew with "+name, r, reason)
	}
	refused("a guard longer than what is left", leasestore.Lapsed, func(r *leasestore.Renewal) { r.Guard = r.Window + minute })
	refused("a limit that has passed", leasestore.Lapsed, func(r *leasestore.Renewal) { r.Guard, r.Until = 1, r.Now-minute })
	refused("the holder's clock past the limit", leasestore.Lapsed, func(r *leasestore.Renewal) { r.Guard, r.Now = 1, r.Until+minute })
	refused("the store's clock past the limit", leasestore.Lapsed, func(r *leasestore.Renewal) {
		r.Guard, r.Until, r.Now, r.Next = 1, r.Now-minute, r.Now-hour, r.Now-hour
	})
	refused("another nonce and the guard lapsed", leasestore.Copied, func(r *leasestore.Renewal) { r.Known, r.Guard = nil, hour })

	// Without the guard a holder may be late, as long as it still has its row.
	r := s.renewal(l)
	r.Until = r.Now - hour
	s.a.keep(l, r)
}

func releaseFreesTheRowAtOnce(s *suite) {
	s.space.Workers = 1
	// The end may be behind the clock if the holder has issued little, and ahead of it if the
	// holder has run ahead.
	for _, ahead := range []leasestore.Millis{-minute, 0, 20, minute / 2} {
		l := s.a.hold(s.newClaim())
		s.a.keep(l, s.renewal(l))
		end := s.now() + ahead
		s.b.must(l.giveBack(end))
		c := s.newClaim()
		next := s.a.must(c)
		if want := max(end, next.Now) + c.Window; next.Before != end || next.Row.Until != want {
			s.Errorf("Claim(%+v) of a row released with the end %d = %+v; want Until %d", c, end, next, want)
		}
		s.a.must(won(c, next).giveBack(s.now()))
	}

	// If it is further ahead than clocks may be apart, it waits like any other.
	l := s.a.hold(s.newClaim())
	s.a.must(l.giveBack(s.now() + hour))
	s.b.full("Claim of a row released with an end an hour ahead", s.newClaim(), 1)
}

func staleHolderHasNoEffect(s *suite) {
	s.space.Workers = 1
	for _, name := range []string{"expiry", "release"} {
		l := s.a.hold(s.claimFor(1))
		stale := s.renewal(l) // under way all the time
		if name == "release" {
			s.a.must(l.giveBack(s.now()))
			s.a.lost("stale Renew of a released row", stale, leasestore.TakenOver)
		} else {
			s.await(l.until)
		}
		next := s.b.hold(s.newClaim())
		s.a.lost("stale Renew after takeover by "+name, stale, leasestore.TakenOver)
		s.a.lost("Renew after takeover by "+name, s.renewal(l), leasestore.TakenOver)
		s.a.lost("Release after takeover by "+name, l.giveBack(0), leasestore.TakenOver)

		s.b.keep(next, s.renewal(next)) // the new holder is unaffected
		s.b.must(next.giveBack(next.from))
	}
}

// requestDeliveredTwiceIsDoneOnce: a request may arrive again by another way, and nothing
// distinguishes a repetition from a copy of the process that has drawn the same nonce. The
// second delivery must therefore be refused or have an unknown outcome, and must not write.
func requestDeliveredTwiceIsDoneOnce(s *suite) {
	l := s.a.hold(s.newClaim())
	r := s.renewal(l)
	first := s.a.keep(l, r)
	check := s.unchanged(s.space)
	if second, err := s.b.call(r); err == nil {
		s.Errorf("Renew delivered twice = %+v, then %+v; want an error: a copy may send the same", first, second)
	} else if definite(err) {
		s.wantLost("Renew delivered twice", err, l, leasestore.Copied)
	}
	check("a renewal that was delivered twice")

	release := l.giveBack(s.now())
	s.a.must(release)
	check = s.unchanged(s.space)
	if _, err := s.b.call(release); err == nil {
		s.Error("Release delivered twice = nil; want an error: a copy may send the same")
	} else if definite(err) {
		s.wantLost("Release delivered twice", err, l, leasestore.TakenOver)
	}
	check("a release that was delivered twice")
	s.b.lost("Renew after Release", s.renewal(l), leasestore.TakenOver)
}
