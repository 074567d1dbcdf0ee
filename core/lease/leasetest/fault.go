package leasetest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

func doneContextWritesNothing(s *suite) {
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	canceled := func(request any) {
		s.Helper()
		if _, err := s.a.send(ctx, request); !errors.Is(err, context.Canceled) {
			s.Errorf("%T with a context that is done = error %v; want it to match context.Canceled", request, err)
		}
	}
	c := s.newClaim()
	c.Space.Layout = otherLayout
	canceled(c)
	l := s.a.hold(s.newClaim()) // the canceled claims have left neither rows nor a layout
	check := s.unchanged(s.space)
	for _, request := range s.requests(l) {
		canceled(request)
	}
	check("requests with a context that is done")
	s.a.keep(l, s.renewal(l)) // the handle still works
}

// wantUnknown fails unless err leaves open whether the operation was performed.
func (s *suite) wantUnknown(name string, err error) {
	s.Helper()
	if err == nil || definite(err) {
		s.Errorf("%s = error %v; want one that says nothing about whether it was done", name, err)
	}
}

// sendAside sends a request in a goroutine and returns a channel for its error, so that the
// caller need not wait for a store that ignores ctx.
func (h handle) sendAside(ctx context.Context, request any) <-chan error {
	returned := make(chan error, 1)
	go func() {
		_, err := h.send(ctx, request)
		returned <- err
	}()
	return returned
}

// wantUnknownSoon fails unless an error as for wantUnknown arrives. A request that only reads
// may succeed.
func (s *suite) wantUnknownSoon(request any, returned <-chan error) {
	s.Helper()
	name := describe(request, leasestore.Reply{}, nil)
	select {
	case err := <-returned:
		if _, reads := request.(leasestore.Space); !reads || err != nil {
			s.wantUnknown(name, err)
		}
	case <-time.After(callTimeout):
		s.Fatalf("%s, whose context has ended, does not return in %v", name, callTimeout)
	}
}

func endingContextEndsTheCall(s *suite) {
	s.needs("Stall", s.h.Stall != nil)
	l := s.a.hold(s.newClaim())
	renewal := s.renewal(l)
	requests := []any{s.newClaim(), renewal, l.giveBack(s.now()), s.space}
	handles := s.handles(len(requests))

	resume := sync.OnceFunc(s.h.Stall(s.T))
	defer resume()
	for i, request := range requests {
		ctx, cancel := context.WithTimeout(s.Context(), 20*time.Millisecond)
		defer cancel()
		s.wantUnknownSoon(request, handles[i].sendAside(ctx, request))
	}
	resume()

	// The requests sent meanwhile may have been performed, in any order. The row is then either
	// still the holder's, with one of two nonces, or released.
	again := s.open()
	l.known = append(l.known, renewal.Nonce)
	if reply, err := again.call(s.renewal(l)); err != nil {
		s.wantLost("Renew after the store stood still", err, l, leasestore.TakenOver)
	} else if reply.Row.Owner != l.owner {
		s.Errorf("Renew after the store stood still = %+v; want owner %q", reply, l.owner)
	}
	if _, err := again.call(s.newClaim()); err != nil {
		s.Errorf("Claim after the store stood still = error %v; want a row", err)
	}
}

func lostReplyIsUnknown(s *suite) {
	s.needs("LosesReplies", s.h.LosesReplies != nil)
	deaf := handle{s, s.h.LosesReplies(s.T)}
	s.space.Workers = 3
	s.a.hold(s.newClaim())

	// A claim whose reply is lost uses up a row. The next claim takes another.
	c := s.newClaim()
	s.unheard(deaf, c, func(r leasestore.Row) bool { return r.Owner == c.Owner })
	l := s.a.hold(s.newClaim())

	r := s.renewal(l)
	s.unheard(deaf, r, func(row leasestore.Row) bool { return row.Nonce == r.Nonce })
	s.a.lost("Renew that does not know the nonce of the lost one", s.renewal(l), leasestore.Copied)
	l.known = append(l.known, r.Nonce)
	s.a.keep(l, s.renewal(l))

	release := l.giveBack(s.now())
	s.unheard(deaf, release, func(r leasestore.Row) bool {
		return r.Worker == l.worker && r.Owner == "" && r.Until == release.End
	})
}

// unheard performs an operation whose reply never comes. It must take effect, so that is
// reports true of a row, and its caller must not learn of it. The context of the operation ends
// once it has taken effect and no earlier, however long that takes.
func (s *suite) unheard(deaf handle, request any, is func(leasestore.Row) bool) {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	defer cancel()
	returned := deaf.sendAside(ctx, request)
	giveUp := time.Now().Add(callTimeout)
	for pause := time.Millisecond; ; pause = min(2*pause, time.Second) {
		rows, _ := s.rows(s.space)
		if slices.ContainsFunc(rows, is) {
			break
		}
		if time.Now().After(giveUp) {
			s.Fatalf("Rows %v after a %T whose reply is lost = %+v; want it done", callTimeout, request, rows)
		}
		time.Sleep(pause)
	}
	cancel()
	s.wantUnknownSoon(request, returned)
	s.settle()
}

// settle waits until the rows stop changing. A store that has lost an answer looks for its row,
// and may write; its call returns when its context ends, but what it has sent may arrive later.
func (s *suite) settle() {
	s.Helper()
	giveUp := time.Now().Add(callTimeout)
	before, _ := s.rows(s.space)
	for {
		time.Sleep(50 * time.Millisecond)
		after, _ := s.rows(s.space)
		if slices.Equal(before, after) {
			return
		}
		if before = after; time.Now().After(giveUp) {
			s.Fatalf("Rows %v after a reply was lost still change: %+v", callTimeout, after)
		}
	}
}

func deletedRowStaysGone(s *suite) {
	s.needs("Delete", s.h.Delete != nil)
	s.space.Workers = 4
	l := s.a.hold(s.newClaim())
	s.h.Delete(s.T, s.space, l.worker)

	gone := func() {
		s.Helper()
		s.a.lost("Renew of a row that was deleted", s.renewal(l), leasestore.Gone)
		s.b.lost("Release of a row that was deleted", l.giveBack(s.now()), leasestore.Gone)
	}
	gone()
	for range 3 {
		s.open().hold(s.newClaim()) // not the same row, which do does not know
	}
	s.b.full("Claim when three rows are held and one was deleted", s.newClaim(), 3)
	gone()

	// Not even if no row is left.
	if s.a.store.LosesWrites() {
		return // to such a store this looks like the loss of everything
	}
	rows, _ := s.rows(s.space)
	for _, row := range rows {
		s.h.Delete(s.T, s.space, row.Worker)
	}
	s.a.full("Claim when all rows were deleted", s.newClaim(), 0)
}

func loweredLimitIsShownAndRaised(s *suite) {
	s.needs("SetUntil", s.h.SetUntil != nil)
	s.space.Workers = 1
	l := s.a.hold(s.claimFor(hour))
	for _, lowered := range []leasestore.Millis{s.now() - hour, 0} {
		s.h.SetUntil(s.T, s.space, l.worker, lowered)
		r := s.renewal(l)
		r.Window = 1 // too short to raise the limit to its old value
		reply := s.a.keep(l, r)
		if reply.Before != lowered || reply.Row.Until < r.Until {
			s.Errorf("Renew(%+v) of a row lowered to %d = %+v; want Before %d, and Until %d again", r, lowered, reply, lowered, r.Until)
		}
	}
	s.h.SetUntil(s.T, s.space, l.worker, s.now()-1)
	s.b.hold(s.newClaim())
	s.a.lost("Renew after the row was lowered and taken", s.renewal(l), leasestore.TakenOver)
}

func rowsSurviveARestart(s *suite) {
	s.needs("Restart", s.h.Restart != nil)
	l := s.a.hold(s.newClaim())
	gone := s.a.hold(s.newClaim())
	r := s.renewal(l)
	r.Window = hour
	s.a.keep(l, r)
	s.a.must(gone.giveBack(gone.from))
	before, _ := s.rows(s.space)
	kept, _ := s.history(gone.worker)
	s.h.Restart(s.T)
	s.a, s.b = s.open(), s.open()

	if got, _ := s.history(gone.worker); !slices.Equal(got, kept) {
		s.Errorf("History after a restart = %+v; want %+v", got, kept)
	}
	if got, _ := s.rows(s.space); !slices.Equal(got, before) {
		s.Fatalf("Rows after a restart = %+v; want %+v", got, before)
	}
	c := s.newClaim()
	c.Space.Layout = otherLayout
	if _, err := s.a.do(c); !errors.Is(err, leasestore.ErrLayout) {
		s.Errorf("Claim with another layout after a restart = error %v; want a *lease.LayoutError", err)
	}
	s.b.hold(s.newClaim())
	s.a.keep(l, s.renewal(l))
}

func unreachableStoreKeepsItsSecret(s *suite) {
	s.needs("Unreachable", s.h.Unreachable != nil)
	l := s.a.hold(s.newClaim())
	check := s.unchanged(s.space)
	far := handle{s, s.h.Unreachable(s.T)}
	requests := s.requests(l)
	atOnce(len(requests), func(i int) {
		ctx, cancel := context.WithTimeout(s.Context(), 2*time.Second)
		defer cancel()
		if _, ok := requests[i].(leasestore.Fencing); ok {
			if _, ok := far.store.(leasestore.Fencer); !ok {
				return
			}
		}
		_, err := far.send(ctx, requests[i])
		s.wantUnknown(describe(requests[i], leasestore.Reply{}, nil), err)
	})
	check("calls that did not reach the store")
}
