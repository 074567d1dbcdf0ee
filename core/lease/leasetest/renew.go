package leasetest

import (
	"strings"

	"github.com/snowkey/snowkey/core/lease"
)

// checkRenewed fails unless reply and the stored row are what the pure function makes of
// before.
func (s *suite) checkRenewed(before lease.Row, r lease.Renewal, reply lease.Reply) {
	s.Helper()
	want, err := r.Apply(before, reply.Now)
	if err != nil {
		s.Errorf("Renew(%+v) of %+v = %+v; want error %v", r, before, reply, err)
		return
	}
	if reply.Row != want || reply.Before != before.Until {
		s.Errorf("Renew(%+v) of %+v = %+v; want %+v, Before %d", r, before, reply, want, before.Until)
	}
	if got := s.row(r.Space, r.Worker); got != want {
		s.Errorf("row after Renew(%+v) of %+v = %+v; want %+v", r, before, got, want)
	}
}

func renewalRaisesTheLimit(s *suite) {
	l := s.a.hold(s.newClaim())
	for _, c := range []struct {
		name string
		edit func(r *lease.Renewal)
	}{
		{"a longer window", func(r *lease.Renewal) { r.Window = 2 * minute }},
		{"IDs ahead of the clock", func(r *lease.Renewal) { r.Next = r.Now + 10*minute }},
		{"IDs further ahead than is permitted", func(r *lease.Renewal) { r.Next = r.Now + 5*hour }},
		{"a confirmed limit above the stored one", func(r *lease.Renewal) { r.Until += hour }},
		{"a window of hours", func(r *lease.Renewal) { r.Window = 12 * hour }},
		{"a clock that has stepped back", func(r *lease.Renewal) { r.Window, r.Now = 30*hour, r.Now-hour }},
		{"a clock that has stepped ahead", func(r *lease.Renewal) { r.Window, r.Now = 35*hour, r.Now+hour }},
		{"the guard", func(r *lease.Renewal) { r.Window, r.Guard = 40*hour, 10 }},
		{"several nonces known", func(r *lease.Renewal) {
			r.Known = []string{token(), token(), r.Known[0], token()}
			r.Window = 50 * hour
		}},
		{"twenty nonces known", func(r *lease.Renewal) {
			for range 19 {
				r.Known = append([]string{token()}, r.Known...)
			}
			r.Window = 60 * hour
		}},
	} {
		before := s.row(s.space, l.worker)
		r := s.renewal(l)
		c.edit(&r)
		reply := s.b.keep(l, r)
		s.checkRenewed(before, r, reply)
		if reply.Row.Until <= before.Until {
			s.Errorf("%s: Renew(%+v).Row.Until = %d; want more than %d", c.name, r, reply.Row.Until, before.Until)
		}
	}
}

func renewalNeverLowersTheLimit(s *suite) {
	c := s.newClaim()
	c.Window = hour
	l := s.a.hold(c)
	for _, guard := range []lease.Millis{0, 10} {
		before := s.row(s.space, l.worker)
		r := s.renewal(l)
		r.Window, r.Guard = 1, guard
		reply := s.b.keep(l, r)
		s.checkRenewed(before, r, reply)
		if reply.Row.Until != before.Until {
			s.Errorf("Renew(%+v).Row.Until = %d; want the stored limit, %d", r, reply.Row.Until, before.Until)
		}
		// The holder's own limit is lower if the reply that raised it was lost.
		before = s.row(s.space, l.worker)
		r = s.renewal(l)
		r.Window, r.Guard, r.Until = 1, guard, r.Now+minute
		s.checkRenewed(before, r, s.a.keep(l, r))
	}
}

// unchangedRenewalSucceeds asks for the limit that is stored already. A holder does that
// if it renews twice in a millisecond. A server that counts changed rows instead of found
// ones answers 0 if nothing of the row changes.
func unchangedRenewalSucceeds(s *suite) {
	c := s.newClaim()
	c.Window = hour
	l := s.a.hold(c)
	for range 3 {
		before := s.row(s.space, l.worker)
		r := s.renewal(l)
		reply := s.a.keep(l, r)
		if reply.Row.Until != before.Until || reply.Row.Nonce != r.Nonce || reply.Row.Renewals != before.Renewals+1 {
			s.Errorf("Renew(%+v) of %+v = %+v; want the same limit, the new nonce, one write more", r, before, reply)
		}
		s.checkRenewed(before, r, reply)
	}
}

func renewalByAnotherIsRefused(s *suite) {
	l := s.a.hold(s.newClaim())
	old := s.renewal(l)
	s.a.keep(l, s.renewal(l))
	l2 := s.a.hold(s.newClaim())
	s.a.hold(s.newClaim())
	check := s.unchanged(s.space)

	for _, c := range []struct {
		name   string
		edit   func(r *lease.Renewal)
		reason lease.Reason
	}{
		{"a later epoch", func(r *lease.Renewal) { r.Epoch++ }, lease.TakenOver},
		{"an earlier epoch", func(r *lease.Renewal) { r.Epoch-- }, lease.TakenOver},
		{"another owner", func(r *lease.Renewal) { r.Owner = token() }, lease.TakenOver},
		{"no owner", func(r *lease.Renewal) { r.Owner = "" }, lease.TakenOver},
		{"an owner in capitals", func(r *lease.Renewal) { r.Owner = strings.ToUpper(r.Owner) }, lease.TakenOver},
		{"the owner of another row", func(r *lease.Renewal) { r.Owner = l2.owner }, lease.TakenOver},
		{"the row of another", func(r *lease.Renewal) { r.Worker = l2.worker }, lease.TakenOver},
		{"the nonce of the write before", func(r *lease.Renewal) { r.Known = old.Known }, lease.Copied},
		{"another nonce", func(r *lease.Renewal) { r.Known = []string{token()} }, lease.Copied},
		{"a nonce in capitals", func(r *lease.Renewal) { r.Known = []string{strings.ToUpper(r.Known[0])} }, lease.Copied},
		{"the nonce of another row", func(r *lease.Renewal) { r.Known = l2.known }, lease.Copied},
		{"an empty nonce", func(r *lease.Renewal) { r.Known = []string{""} }, lease.Copied},
		{"no nonce", func(r *lease.Renewal) { r.Known = nil }, lease.Copied},
		{"another nonce and the guard lapsed", func(r *lease.Renewal) { r.Known, r.Guard = nil, hour }, lease.Copied},
		{"a worker that is not there", func(r *lease.Renewal) { r.Worker = s.space.Workers }, lease.Gone},
		{"a datacenter that is not there", func(r *lease.Renewal) { r.Space.Datacenter++ }, lease.Gone},
		{"a namespace that is not there", func(r *lease.Renewal) { r.Space.Namespace += "-none" }, lease.Gone},
	} {
		r := s.renewal(l)
		c.edit(&r)
		_, err := s.b.renew(r)
		s.wantLost("Renew with "+c.name, err, r.Worker, r.Epoch, c.reason)
		check("a renewal with " + c.name)
	}
	s.a.keep(l, s.renewal(l)) // the row is still its holder's
}

func lapsedRenewalIsRefused(s *suite) {
	c := s.newClaim()
	c.Guard = 10
	l := s.a.hold(c)
	check := s.unchanged(s.space)
	refused := func(name string, edit func(r *lease.Renewal)) {
		s.Helper()
		r := s.renewal(l)
		edit(&r)
		_, err := s.b.renew(r)
		s.wantLost("Renew with "+name, err, r.Worker, r.Epoch, lease.Lapsed)
		check("a renewal with " + name)
	}
	refused("a guard longer than what is left", func(r *lease.Renewal) { r.Guard = r.Window + minute })
	refused("a limit that has passed", func(r *lease.Renewal) { r.Guard, r.Until = 1, r.Now-minute })
	refused("the holder's clock past the limit", func(r *lease.Renewal) { r.Guard, r.Now = 1, r.Until+minute })
	refused("the store's clock past the limit", func(r *lease.Renewal) {
		r.Guard, r.Until, r.Now, r.Next = 1, r.Now-minute, r.Now-hour, r.Now-hour
	})

	// Without the guard a holder may be late, if it still has its row.
	before := s.row(s.space, l.worker)
	r := s.renewal(l)
	r.Until = r.Now - hour
	s.checkRenewed(before, r, s.a.keep(l, r))
}
