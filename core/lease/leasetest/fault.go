package leasetest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/snowkey/snowkey/core/lease"
)

func doneContextWritesNothing(s *suite) {
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	want := func(call string, err error) {
		s.Helper()
		if !errors.Is(err, context.Canceled) {
			s.Errorf("%s with a context that is done = error %v; want it to match context.Canceled", call, err)
		}
	}
	c := s.newClaim()
	c.Space.Layout = "another"
	_, err := s.a.claimCtx(ctx, c)
	want("the first Claim", err)
	if rows, _ := s.b.rows(s.space); len(rows) != 0 {
		s.Errorf("Rows after a first Claim with a context that is done = %+v; want none", rows)
	}

	l := s.a.hold(s.newClaim())
	check := s.unchanged(s.space)
	_, err = s.a.claimCtx(ctx, s.newClaim())
	want("Claim", err)
	check("a Claim with a context that is done")
	_, err = s.a.renewCtx(ctx, s.renewal(l))
	want("Renew", err)
	check("a Renew with a context that is done")
	want("Release", s.a.releaseCtx(ctx, l.giveBack(s.now())))
	check("a Release with a context that is done")
	_, _, err = s.a.store.Rows(ctx, s.space)
	s.look("Rows", err)
	want("Rows", err)

	s.a.keep(l, s.renewal(l)) // the handle is as good as before
}

// wantUnknown fails unless err leaves open whether the operation was done.
func (s *suite) wantUnknown(call string, err error) {
	s.Helper()
	if err == nil || definite(err) {
		s.Errorf("%s = error %v; want one that says nothing about whether it was done", call, err)
	}
}

func endingContextEndsTheCall(s *suite) {
	s.needs("Stall", s.h.Stall != nil)
	l := s.a.hold(s.newClaim())
	claim, renewal, release := s.newClaim(), s.renewal(l), l.giveBack(s.now())
	handles := s.handles(4)

	resume := s.h.Stall(s.T)
	stalled := true
	defer func() {
		if stalled {
			resume()
		}
	}()
	for i, call := range []struct {
		name string
		do   func(ctx context.Context, h handle) error
	}{
		{"Claim", func(ctx context.Context, h handle) error { _, err := h.claimCtx(ctx, claim); return err }},
		{"Renew", func(ctx context.Context, h handle) error { _, err := h.renewCtx(ctx, renewal); return err }},
		{"Release", func(ctx context.Context, h handle) error { return h.releaseCtx(ctx, release) }},
		{"Rows", func(ctx context.Context, h handle) error { _, _, err := h.store.Rows(ctx, s.space); return err }},
	} {
		ctx, cancel := context.WithTimeout(s.Context(), 20*time.Millisecond)
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- call.do(ctx, handles[i]) }()
		select {
		case err := <-done:
			s.wantUnknown(call.name+" whose context ended while the store stood still", err)
		case <-time.After(patience):
			s.Fatalf("%s whose context has ended does not return in %v", call.name, patience)
		}
	}
	resume()
	stalled = false

	// The requests sent meanwhile may have been done, in any order. Then the row is still
	// the holder's, with one of two nonces, or it is released.
	again := s.open()
	l.known = append(l.known, renewal.Nonce)
	if reply, err := again.renew(s.renewal(l)); err == nil {
		if reply.Row.Owner != l.owner {
			s.Errorf("Renew after the store stood still = %+v; want owner %q", reply, l.owner)
		}
	} else {
		s.wantLost("Renew after the store stood still", err, l.worker, l.epoch, lease.TakenOver)
	}
	again.hold(s.newClaim())
}

func lostReplyIsUnknown(s *suite) {
	s.needs("LosesReplies", s.h.LosesReplies != nil)
	deaf := handle{s, s.h.LosesReplies(s.T)}
	s.space.Workers = 3
	s.a.hold(s.newClaim())

	// A claim whose reply is lost uses up a row. The next claim takes another.
	c := s.newClaim()
	s.unheard("Claim whose reply is lost", func(ctx context.Context) error {
		_, err := deaf.claimCtx(ctx, c)
		return err
	}, func(r lease.Row) bool { return r.Owner == c.Owner })
	l := s.a.hold(s.newClaim())

	r := s.renewal(l)
	s.unheard("Renew whose reply is lost", func(ctx context.Context) error {
		_, err := deaf.renewCtx(ctx, r)
		return err
	}, func(row lease.Row) bool { return row.Nonce == r.Nonce })
	_, err := s.a.renew(s.renewal(l))
	s.wantLost("Renew that does not know the nonce of the lost one", err, l.worker, l.epoch, lease.Copied)
	l.known = append(l.known, r.Nonce)
	s.a.keep(l, s.renewal(l))

	release := l.giveBack(s.now())
	s.unheard("Release whose reply is lost", func(ctx context.Context) error {
		return deaf.releaseCtx(ctx, release)
	}, func(r lease.Row) bool { return r.Worker == l.worker && r.Owner == "" && r.Until == release.End })
}

// unheard does an operation whose reply never comes. It must be done, which is when there
// is such a row. The caller must not know. The context of the operation ends when it is
// done and no earlier, however long that takes.
func (s *suite) unheard(call string, do func(ctx context.Context) error, is func(lease.Row) bool) {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	defer cancel()
	returned := make(chan error, 1)
	go func() { returned <- do(ctx) }()
	giveUp := time.Now().Add(patience)
	for pause := time.Millisecond; ; pause = min(2*pause, time.Second) {
		rows, _ := s.b.rows(s.space)
		if slices.ContainsFunc(rows, is) {
			break
		}
		if time.Now().After(giveUp) {
			s.Fatalf("Rows %v after a %s = %+v; want it done", patience, call, rows)
		}
		time.Sleep(pause)
	}
	cancel()
	select {
	case err := <-returned:
		s.wantUnknown(call, err)
	case <-time.After(patience):
		s.Fatalf("%s and whose context has ended does not return in %v", call, patience)
	}
}

func deletedRowStaysGone(s *suite) {
	s.needs("Delete", s.h.Delete != nil)
	s.space.Workers = 4
	l := s.a.hold(s.newClaim())
	s.h.Delete(s.T, s.space, l.worker)

	gone := func() {
		s.Helper()
		_, err := s.a.renew(s.renewal(l))
		s.wantLost("Renew of a row that was deleted", err, l.worker, l.epoch, lease.Gone)
		s.wantLost("Release of a row that was deleted", s.b.release(l.giveBack(s.now())), l.worker, l.epoch, lease.Gone)
	}
	gone()
	for range 3 {
		if got := s.open().hold(s.newClaim()); got.worker == l.worker {
			s.Errorf("Claim won worker %d, whose row was deleted; want it not made anew", l.worker)
		}
	}
	_, err := s.b.claim(s.newClaim())
	_ = s.wantFull("Claim when three rows are held and one was deleted", err, 3)
	gone()
	rows, _ := s.a.rows(s.space)
	if len(rows) != 3 || slices.ContainsFunc(rows, func(r lease.Row) bool { return r.Worker == l.worker }) {
		s.Errorf("Rows after the row of worker %d was deleted = %+v; want the other 3", l.worker, rows)
	}

	// Not even when there is no row left.
	if lossy, ok := s.a.store.(lease.Lossy); ok && lossy.LosesWrites() {
		return // it cannot tell this from having lost all
	}
	for _, row := range rows {
		s.h.Delete(s.T, s.space, row.Worker)
	}
	_, err = s.a.claim(s.newClaim())
	_ = s.wantFull("Claim when all rows were deleted", err, 0)
	if rows, _ := s.a.rows(s.space); len(rows) != 0 {
		s.Errorf("Rows after all were deleted = %+v; want none", rows)
	}
}

func loweredLimitIsShownAndRaised(s *suite) {
	s.needs("SetUntil", s.h.SetUntil != nil)
	s.space.Workers = 1
	c := s.newClaim()
	c.Window = hour
	l := s.a.hold(c)
	for _, lowered := range []lease.Millis{s.now() - hour, 0} {
		s.h.SetUntil(s.T, s.space, l.worker, lowered)
		before := s.row(s.space, l.worker)
		r := s.renewal(l)
		r.Window = 1 // which alone would not raise it to where it was
		reply := s.a.keep(l, r)
		if reply.Before != lowered || reply.Row.Until < r.Until {
			s.Errorf("Renew(%+v) of a row lowered to %d = %+v; want Before %d, and Until %d again", r, lowered, reply, lowered, r.Until)
		}
		s.checkRenewed(before, r, reply)
	}
	s.h.SetUntil(s.T, s.space, l.worker, s.now()-1)
	s.b.hold(s.newClaim())
	_, err := s.a.renew(s.renewal(l))
	s.wantLost("Renew after the row was lowered and taken", err, l.worker, l.epoch, lease.TakenOver)
}

func rowsSurviveARestart(s *suite) {
	s.needs("Restart", s.h.Restart != nil)
	l := s.a.hold(s.newClaim())
	gone := s.a.hold(s.newClaim())
	r := s.renewal(l)
	r.Window = hour
	s.a.keep(l, r)
	if err := s.a.release(gone.giveBack(gone.from)); err != nil {
		s.Fatalf("Release = error %v; want it released", err)
	}
	before, _ := s.a.rows(s.space)
	s.h.Restart(s.T)
	s.a, s.b = s.open(), s.open()

	if got, _ := s.a.rows(s.space); !slices.Equal(got, before) {
		s.Fatalf("Rows after a restart = %+v; want %+v", got, before)
	}
	c := s.newClaim()
	c.Space.Layout = "another"
	if _, err := s.a.claim(c); !errors.Is(err, lease.ErrLayout) {
		s.Errorf("Claim with another layout after a restart = error %v; want a *lease.LayoutError", err)
	}
	if got := s.b.hold(s.newClaim()); got.worker == l.worker {
		s.Errorf("Claim after a restart won worker %d, which is held", l.worker)
	}
	s.a.keep(l, s.renewal(l))
}

func unreachableStoreKeepsItsSecret(s *suite) {
	s.needs("Unreachable", s.h.Unreachable != nil)
	l := s.a.hold(s.newClaim())
	check := s.unchanged(s.space)
	far := handle{s, s.h.Unreachable(s.T)}
	ctx := func() context.Context {
		ctx, cancel := context.WithTimeout(s.Context(), 2*time.Second)
		s.Cleanup(cancel)
		return ctx
	}
	_, err := far.claimCtx(ctx(), s.newClaim())
	s.wantUnknown("Claim without a store", err)
	_, err = far.renewCtx(ctx(), s.renewal(l))
	s.wantUnknown("Renew without a store", err)
	s.wantUnknown("Release without a store", far.releaseCtx(ctx(), l.giveBack(s.now())))
	_, _, err = far.store.Rows(ctx(), s.space)
	s.look("Rows", err)
	s.wantUnknown("Rows without a store", err)
	check("calls that did not reach the store")
}
