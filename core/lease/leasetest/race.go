package leasetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/snowkey/snowkey/core/lease"
)

// oneOfSimultaneousRenewalsWins is the copied process. Each copy knows the same nonce,
// and one write changes it.
func oneOfSimultaneousRenewalsWins(s *suite) {
	const copies, rounds = 8, 4
	handles := s.handles(copies)
	l := s.a.hold(s.newClaim())
	for range rounds {
		before := s.row(s.space, l.worker)
		var (
			requests [copies]lease.Renewal
			replies  [copies]lease.Reply
			errs     [copies]error
		)
		for i := range copies {
			requests[i] = s.renewal(l)
		}
		atOnce(copies, func(i int) { replies[i], errs[i] = handles[i].renew(requests[i]) })

		winners := 0
		for i, err := range errs {
			if err != nil {
				s.wantLost("Renew by a copy that came second", err, l.worker, l.epoch, lease.Copied)
				continue
			}
			if winners++; winners == 1 {
				s.checkRenewed(before, requests[i], replies[i])
				l.confirmed(requests[i], replies[i])
			}
		}
		if winners != 1 {
			s.Fatalf("%d of %d simultaneous renewals that know the same nonce succeeded; want 1", winners, copies)
		}
	}
}

func oneOfSimultaneousClaimsWins(s *suite) {
	const claimants, rounds = 8, 4
	handles := s.handles(claimants)
	s.space.Workers = 2
	s.a.hold(s.newClaim()) // so that a claim that loses one row must not take the other
	var last *holder
	for round := range rounds {
		if last != nil {
			if err := s.a.release(last.giveBack(s.now())); err != nil {
				s.Fatalf("Release = error %v; want it released", err)
			}
		}
		var (
			requests [claimants]lease.Claim
			replies  [claimants]lease.Reply
			errs     [claimants]error
		)
		for i := range claimants {
			requests[i] = s.newClaim()
		}
		atOnce(claimants, func(i int) { replies[i], errs[i] = handles[i].claim(requests[i]) })

		winners := 0
		for i, err := range errs {
			if err != nil {
				_ = s.wantFull("Claim that came second", err, 2)
				continue
			}
			winners++
			last = won(requests[i], replies[i])
			if got := s.row(s.space, last.worker); got != replies[i].Row {
				s.Errorf("row after Claim = %+v is %+v", replies[i].Row, got)
			}
		}
		if winners != 1 {
			s.Fatalf("round %d: %d of %d simultaneous claims of one free row succeeded; want 1", round, winners, claimants)
		}
	}
}

// handles returns n of them, each another.
func (s *suite) handles(n int) []handle {
	all := []handle{s.a, s.b}
	for len(all) < n {
		all = append(all, s.open())
	}
	return all
}

// atOnce calls f(0) to f(n-1), each in a goroutine, and waits for them.
func atOnce(n int, f func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}

// concurrentOperationsAreLinearizable lets several processes claim, renew and release one
// row at the same time. They act as holder, old holder and copy. It gives up some of the
// calls at a random moment, so their outcome is unknown. One order of all the operations
// must explain every reply.
func concurrentOperationsAreLinearizable(s *suite) {
	const processes, each = 6, 25
	s.Logf("Harness.Seed = %d repeats the choices, though not the times", s.h.Seed)
	s.space.Workers = 1
	handles := s.handles(processes)
	h := &history{suite: s}

	// Nothing disturbs this claim. A call that is given up may leave it undone.
	c := s.newClaim()
	c.Window = 1
	_, h.from = s.a.rows(s.space)
	h.claim(s.a, c, patience)

	atOnce(processes, func(i int) {
		rng := rand.New(rand.NewPCG(s.h.Seed, uint64(i)+1))
		for range each {
			limit := patience
			if rng.IntN(10) == 0 {
				limit = time.Duration(rng.Int64N(int64(3 * time.Millisecond)))
			}
			l := h.holder(rng)
			switch n := rng.IntN(10); {
			case n < 3:
				c := s.newClaim()
				c.Window = lease.Millis(1 + rng.IntN(3))
				h.claim(handles[i], c, limit)
			case n < 8:
				r := s.renewal(l)
				r.Window = lease.Millis(1 + rng.IntN(10))
				r.Next = 0
				h.renew(handles[i], l, r, limit)
			default:
				h.release(handles[i], l.giveBack(s.now()), limit)
			}
			if i == 0 && s.h.SetClock != nil {
				s.advance(s.now() + 1)
			}
		}
	})
	rows, now := s.a.rows(s.space)
	h.to = now + slack
	if len(rows) != 1 {
		s.Fatalf("Rows = %+v; want 1 row", rows)
	}
	if h.known == 0 {
		s.Fatalf("none of %d operations had a known outcome; want most", len(h.ops))
	}
	h.read(rows[0])
	s.Logf("%d operations, %d of them done, %d unknown", len(h.ops), h.known, h.unknown)
	switch linearizable(h.ops) {
	case undecided:
		s.Logf("with so many unknown, there are too many orders to try: nothing is wrong that was seen")
	case disorder:
		for _, op := range h.ops {
			s.Logf("%4d..%-4d %s", op.call, min(op.ret, 9999), op.text)
		}
		s.Errorf("no order of these operations explains their replies; want them atomic")
	}
}

// A history records operations on one row.
type history struct {
	*suite
	from, to lease.Millis // the store's clock was within these all the time; to is set last

	events atomic.Int64

	mu             sync.Mutex // guards what follows
	ops            []op
	holders        []*holder
	known, unknown int
}

// holder returns a copy of one of the last holders. Others may act for it at the same
// time.
func (h *history) holder(rng *rand.Rand) *holder {
	h.mu.Lock()
	defer h.mu.Unlock()
	back := min(rng.IntN(3), rng.IntN(6), len(h.holders)-1)
	l := *h.holders[len(h.holders)-1-back]
	return &l
}

// add records an operation that began at call and has returned with err.
func (h *history) add(o op, err error) {
	o.ret = h.events.Add(1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil && !definite(err) {
		o.may, o.ret = true, math.MaxInt64
		h.unknown++
	} else if err == nil {
		h.known++
	}
	h.ops = append(h.ops, o)
}

func (h *history) claim(at handle, c lease.Claim, limit time.Duration) {
	ctx, cancel := context.WithTimeout(h.Context(), limit)
	defer cancel()
	o := op{call: h.events.Add(1)}
	r, err := at.claimCtx(ctx, c)
	o.left = r.Row
	o.text = fmt.Sprintf("Claim(%+v) = %+v, error %v", c, r, err)
	o.next = func(s state) (state, bool) {
		switch {
		case err == nil:
			if !s.sure {
				s.row.Until = r.Before
			}
			row, ok := c.Apply(s.row, r.Now)
			return state{row, true}, ok && row == r.Row && r.Before == s.row.Until
		case errors.Is(err, lease.ErrNoFreeWorker):
			return s, !s.sure && s.row.Owner != "" || s.sure && !c.Free(s.row, h.from)
		case definite(err):
			return s, false
		}
		row := s.row
		if !s.sure {
			row.Until = 0 // it may have expired
		}
		row, ok := c.Apply(row, h.to)
		row.Until = 0
		return state{row, false}, ok
	}
	if err == nil {
		h.mu.Lock()
		h.holders = append(h.holders, won(c, r))
		h.mu.Unlock()
	}
	h.add(o, err)
}

func (h *history) renew(at handle, l *holder, r lease.Renewal, limit time.Duration) {
	ctx, cancel := context.WithTimeout(h.Context(), limit)
	defer cancel()
	o := op{call: h.events.Add(1)}
	reply, err := at.renewCtx(ctx, r)
	o.left = reply.Row
	o.text = fmt.Sprintf("Renew(%+v) = %+v, error %v", r, reply, err)
	o.next = func(s state) (state, bool) {
		if err == nil {
			if !s.sure {
				s.row.Until = reply.Before
			}
			row, refused := r.Apply(s.row, reply.Now)
			return state{row, true}, refused == nil && row == reply.Row && reply.Before == s.row.Until
		}
		row, refused := r.Apply(s.row, 0) // without the guard, the clock does not decide
		if definite(err) {
			return s, sameLoss(err, refused)
		}
		row.Until = 0
		return state{row, false}, refused == nil
	}
	if err == nil || !definite(err) {
		// The holder as it is then, or as it may be by what it knows.
		after := *l
		if err == nil {
			after.confirmed(r, reply)
		} else {
			after.known = append(r.Known[:len(r.Known):len(r.Known)], r.Nonce)
		}
		h.mu.Lock()
		h.holders = append(h.holders, &after)
		h.mu.Unlock()
	}
	h.add(o, err)
}

func (h *history) release(at handle, r lease.Release, limit time.Duration) {
	ctx, cancel := context.WithTimeout(h.Context(), limit)
	defer cancel()
	o := op{call: h.events.Add(1)}
	err := at.releaseCtx(ctx, r)
	o.text = fmt.Sprintf("Release(%+v) = error %v", r, err)
	o.next = func(s state) (state, bool) {
		row, refused := r.Apply(s.row)
		if definite(err) {
			return s, sameLoss(err, refused)
		}
		return state{row, true}, refused == nil
	}
	h.add(o, err)
}

// read records that row was read when all was over.
func (h *history) read(row lease.Row) {
	h.add(op{
		call: h.events.Add(1),
		left: row,
		text: fmt.Sprintf("Rows = %+v", row),
		next: func(s state) (state, bool) {
			if !s.sure {
				s.row.Until = row.Until
			}
			return state{row, true}, s.row == row
		},
	}, nil)
}

// sameLoss reports whether both errors are the same LostError.
func sameLoss(got, want error) bool {
	var a, b *lease.LostError
	return errors.As(got, &a) && errors.As(want, &b) && *a == *b
}
