package leasetest

import (
	"context"
	"errors"
	"strings"

	"github.com/snowkey/snowkey/core/lease"
)

// fencer returns the store of h as one, or skips the subtest.
func (s *suite) fencer(h handle) lease.Fencer {
	s.Helper()
	f, ok := h.store.(lease.Fencer)
	if !ok {
		s.Skip("SKIPPED: the store is no lease.Fencer")
	}
	return f
}

// fence fences, which must succeed, and returns what was asked.
func (h handle) fence(until lease.Millis) lease.Fencing {
	h.s.Helper()
	f := lease.Fencing{Space: h.s.space, Nonce: token(), Until: until}
	ctx, cancel := context.WithTimeout(h.s.Context(), patience)
	defer cancel()
	if err := h.s.fencer(h).Fence(ctx, f); err != nil {
		h.s.look("Fence", err)
		h.s.Fatalf("Fence(%+v) = error %v; want it fenced", f, err)
	}
	return f
}

// fenceRaisesEveryRow fences four rows: one never claimed, one held, one given back, and
// one that reserves more than the fence.
func fenceRaisesEveryRow(s *suite) {
	s.fencer(s.a)
	s.a.hold(s.newClaim())
	given := s.b.hold(s.newClaim())
	if err := s.b.release(given.giveBack(given.from)); err != nil {
		s.Fatalf("Release = error %v; want it released", err)
	}
	c := s.newClaim()
	c.Window = 2 * hour
	s.a.hold(c)

	for _, ahead := range []lease.Millis{hour, 0, 3 * hour} {
		before, _ := s.a.rows(s.space)
		f := s.a.fence(s.now() + ahead)
		after, _ := s.b.rows(s.space)
		if len(after) != len(before) {
			s.Fatalf("Rows after Fence has %d rows; want %d", len(after), len(before))
		}
		for i, row := range after {
			if want := f.Apply(before[i]); row != want {
				s.Errorf("row after Fence(%+v) of %+v = %+v; want %+v", f, before[i], row, want)
			}
		}
	}
}

// fenceEndsLeases fences a holder that lives, as one from before a restore may. It must
// not go on from its old limit to one beyond the fence.
func fenceEndsLeases(s *suite) {
	s.fencer(s.a)
	s.space.Workers = 2
	l := s.a.hold(s.newClaim())
	until := s.now() + minute/2
	s.b.fence(until)
	check := s.unchanged(s.space)
	_, err := s.a.renew(s.renewal(l))
	s.wantLost("Renew after Fence", err, l.worker, l.epoch, lease.TakenOver)
	err = s.a.release(l.giveBack(l.from))
	s.wantLost("Release after Fence", err, l.worker, l.epoch, lease.TakenOver)
	check("requests of a holder from before the fence")

	for range s.space.Workers {
		if next := s.a.hold(s.newClaim()); next.from < until {
			s.Errorf("the lease after Fence(%d) begins at %d; want no earlier", until, next.from)
		}
	}
}

func fenceMakesTheRows(s *suite) {
	s.fencer(s.a)
	f := s.a.fence(s.now() + hour)
	rows, _ := s.b.rows(s.space)
	if int64(len(rows)) != s.space.Workers {
		s.Fatalf("Rows after Fence of a new space has %d rows; want %d", len(rows), s.space.Workers)
	}
	for i, row := range rows {
		if want := f.Apply(lease.Row{Worker: int64(i)}); row != want {
			s.Errorf("row after Fence(%+v) of a new space = %+v; want %+v", f, row, want)
		}
	}
	_, err := s.b.claim(s.newClaim())
	_ = s.wantFull("Claim after Fence, an hour ahead", err, len(rows))
}

func fenceIsRefused(s *suite) {
	fencer := s.fencer(s.b)
	s.a.hold(s.newClaim())
	check := s.unchanged(s.space)
	f := lease.Fencing{Space: s.space, Nonce: token(), Until: s.now() + hour}

	other := f
	other.Space.Layout = "another"
	err := fencer.Fence(s.Context(), other)
	var differs *lease.LayoutError
	if want := (lease.LayoutError{Namespace: s.space.Namespace, Stored: layout, Own: "another"}); !errors.As(err, &differs) || *differs != want {
		s.Errorf("Fence with another layout = error %v; want %v", err, &want)
	}
	check("a fencing with another layout")

	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	err = fencer.Fence(ctx, f)
	s.look("Fence", err)
	if !errors.Is(err, context.Canceled) {
		s.Errorf("Fence with a context that is done = error %v; want it to match context.Canceled", err)
	}
	check("a fencing with a context that is done")

	none := f
	none.Space.Namespace = strings.Repeat("x", 65)
	var value *lease.ValueError
	if err := fencer.Fence(s.Context(), none); !errors.As(err, &value) || value.Error() != none.Space.Check().Error() {
		s.Errorf("Fence in %+v = error %v; want %v", none.Space, err, none.Space.Check())
	}
}

// holdersAreListed checks that the row has the name of its holder as long as it is held.
func holdersAreListed(s *suite) {
	for _, name := range []string{"", "web-1.example", strings.Repeat("h", 64), ` 'a', "b"; %s \ {c} `} {
		c := s.newClaim()
		c.Holder = name
		l := s.a.hold(c)
		if got := s.row(s.space, l.worker).Holder; got != name {
			s.Errorf("row after Claim(Holder: %q) has holder %q", name, got)
		}
		s.b.keep(l, s.renewal(l))
		if got := s.row(s.space, l.worker).Holder; got != name {
			s.Errorf("row after a renewal of %q has holder %q", name, got)
		}
		if err := s.a.release(l.giveBack(l.from)); err != nil {
			s.Fatalf("Release = error %v; want it released", err)
		}
		if got := s.row(s.space, l.worker).Holder; got != "" {
			s.Errorf("row after its release has holder %q; want none", got)
		}
	}
	check := s.unchanged(s.space)
	for _, name := range []string{strings.Repeat("h", 65), "a\nb", "ä"} {
		c := s.newClaim()
		c.Holder = name
		var value *lease.ValueError
		if _, err := s.a.claim(c); !errors.As(err, &value) || value.Name != "Claim.Holder" {
			s.Errorf("Claim(Holder: %q) = error %v; want a *lease.ValueError", name, err)
		}
	}
	check("claims with a holder that is no name")
}
