package leasetest

import (
	"github.com/snowkey/snowkey/core/lease"
)

func releaseFreesTheRowAtOnce(s *suite) {
	s.space.Workers = 1
	// The end may be behind the clock if the holder has issued little. It may be ahead of
	// the clock if the holder has run ahead.
	for _, ahead := range []lease.Millis{-minute, 0, 20, minute / 2} {
		l := s.a.hold(s.newClaim())
		s.a.keep(l, s.renewal(l))
		before := s.row(s.space, l.worker)
		end := s.now() + ahead
		r := l.giveBack(end)
		if err := s.b.release(r); err != nil {
			s.Fatalf("Release(%+v) = error %v; want it released", r, err)
		}
		want := lease.Row{Worker: l.worker, Epoch: l.epoch + 1, Nonce: r.Nonce, Until: end, Renewals: before.Renewals + 1}
		if got := s.row(s.space, l.worker); got != want {
			s.Errorf("row after Release(%+v) of %+v = %+v; want %+v", r, before, got, want)
		}

		c := s.newClaim()
		reply, err := s.a.claim(c)
		if err != nil {
			s.Fatalf("Claim of a row released with an end %v from now = error %v; want the row", ahead.Duration(), err)
		}
		after := lease.Row{
			Worker: l.worker, Epoch: l.epoch + 2, Owner: c.Owner, Nonce: c.Nonce,
			Until: max(end, reply.Now) + c.Window, Renewals: want.Renewals + 1, Holder: c.Holder,
		}
		if reply.Row != after || reply.Before != end {
			s.Errorf("Claim(%+v) of %+v = %+v; want %+v, Before %d", c, want, reply, after, end)
		}
		if err := s.a.release(won(c, reply).giveBack(s.now())); err != nil {
			s.Fatalf("Release = error %v; want it released", err)
		}
	}

	// If it is further ahead than clocks may be apart, it waits like any other.
	l := s.a.hold(s.newClaim())
	if err := s.a.release(l.giveBack(s.now() + hour)); err != nil {
		s.Fatalf("Release = error %v; want it released", err)
	}
	_, err := s.b.claim(s.newClaim())
	_ = s.wantFull("Claim of a row released with an end an hour ahead", err, 1)
}

func releaseByAnotherIsRefused(s *suite) {
	l := s.a.hold(s.newClaim())
	old := l.known
	s.a.keep(l, s.renewal(l))
	l2 := s.a.hold(s.newClaim())
	check := s.unchanged(s.space)
	for _, c := range []struct {
		name   string
		edit   func(r *lease.Release)
		reason lease.Reason
	}{
		{"a later epoch", func(r *lease.Release) { r.Epoch++ }, lease.TakenOver},
		{"an earlier epoch", func(r *lease.Release) { r.Epoch-- }, lease.TakenOver},
		{"another owner", func(r *lease.Release) { r.Owner = token() }, lease.TakenOver},
		{"no owner", func(r *lease.Release) { r.Owner = "" }, lease.TakenOver},
		{"the row of another", func(r *lease.Release) { r.Worker = l2.worker }, lease.TakenOver},
		{"the nonce of the write before", func(r *lease.Release) { r.Known = old }, lease.Copied},
		{"another nonce", func(r *lease.Release) { r.Known = []string{token()} }, lease.Copied},
		{"no nonce", func(r *lease.Release) { r.Known = nil }, lease.Copied},
		{"a worker that is not there", func(r *lease.Release) { r.Worker = s.space.Workers }, lease.Gone},
		{"a datacenter that is not there", func(r *lease.Release) { r.Space.Datacenter++ }, lease.Gone},
		{"a namespace that is not there", func(r *lease.Release) { r.Space.Namespace += "-none" }, lease.Gone},
	} {
		r := l.giveBack(s.now())
		c.edit(&r)
		s.wantLost("Release with "+c.name, s.b.release(r), r.Worker, r.Epoch, c.reason)
		check("a release with " + c.name)
	}

	// A holder whose renewal was lost on the way knows more nonces than the row has.
	r := l.giveBack(s.now())
	r.Known = append([]string{token()}, append(r.Known, token())...)
	if err := s.b.release(r); err != nil {
		s.Errorf("Release that knows the row's nonce among others = error %v; want it released", err)
	}
}

func staleHolderHasNoEffect(s *suite) {
	s.space.Workers = 1
	takeovers := []struct {
		name string
		lose func(l *holder) // how the row becomes free
	}{
		{"expiry", func(l *holder) { s.await(l.until) }},
		{"release", func(l *holder) {
			if err := s.a.release(l.giveBack(s.now())); err != nil {
				s.Fatalf("Release = error %v; want it released", err)
			}
		}},
	}
	for _, takeover := range takeovers {
		c := s.newClaim()
		c.Window = 1
		l := s.a.hold(c)
		stale := s.renewal(l) // on its way all the time
		takeover.lose(l)

		free := s.unchanged(s.space)
		if takeover.name == "release" {
			_, err := s.a.renew(stale)
			s.wantLost("stale Renew of a released row", err, l.worker, l.epoch, lease.TakenOver)
			free("a stale renewal of a released row")
		}
		next := s.b.hold(s.newClaim())
		check := s.unchanged(s.space)
		_, err := s.a.renew(stale)
		s.wantLost("stale Renew after takeover by "+takeover.name, err, l.worker, l.epoch, lease.TakenOver)
		_, err = s.a.renew(s.renewal(l))
		s.wantLost("Renew after takeover by "+takeover.name, err, l.worker, l.epoch, lease.TakenOver)
		err = s.a.release(l.giveBack(0))
		s.wantLost("Release after takeover by "+takeover.name, err, l.worker, l.epoch, lease.TakenOver)
		check("the stale holder's requests")

		s.b.keep(next, s.renewal(next)) // the new holder has not noticed
		if err := s.b.release(next.giveBack(next.from)); err != nil {
			s.Fatalf("Release by the new holder = error %v; want it released", err)
		}
	}
}

// claimDeliveredTwiceHoldsOneRow: a second row would be nobody's for a window. Others
// would lack its number. An answer about that row would be taken for the first. Nor may
// the answer say that the claim was not done.
func claimDeliveredTwiceHoldsOneRow(s *suite) {
	for range 6 {
		c := s.newClaim()
		first, err := s.a.claim(c)
		if err != nil {
			s.Fatalf("Claim(%+v) = error %v; want a row", c, err)
		}
		again := func(when string) {
			s.Helper()
			check := s.unchanged(s.space)
			second, err := s.b.claim(c)
			switch {
			case err == nil && (second.Row != first.Row || c.From(second) < c.From(first)):
				s.Errorf("Claim delivered twice%s = %+v, then %+v; want the same row, and no earlier beginning", when, first, second)
			case err != nil && definite(err):
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

// requestDeliveredTwiceIsDoneOnce: a client may repeat a request whose reply was lost.
// The answer may be the first one again, or that the row is lost. There must be no second
// write.
func requestDeliveredTwiceIsDoneOnce(s *suite) {
	l := s.a.hold(s.newClaim())
	r := s.renewal(l)
	first := s.a.keep(l, r)
	check := s.unchanged(s.space)
	if second, err := s.b.renew(r); err != nil {
		s.wantLost("Renew delivered twice", err, r.Worker, r.Epoch, lease.Copied)
	} else if second.Row != first.Row {
		s.Errorf("Renew delivered twice = %+v, then %+v; want the same row", first, second)
	}
	check("a renewal that was delivered twice")

	release := l.giveBack(s.now())
	if err := s.a.release(release); err != nil {
		s.Fatalf("Release = error %v; want it released", err)
	}
	check = s.unchanged(s.space)
	if err := s.b.release(release); err != nil {
		s.wantLost("Release delivered twice", err, release.Worker, release.Epoch, lease.TakenOver)
	}
	check("a release that was delivered twice")
	_, err := s.b.renew(s.renewal(l))
	s.wantLost("Renew after Release", err, l.worker, l.epoch, lease.TakenOver)
	check("a renewal after the release")
}
