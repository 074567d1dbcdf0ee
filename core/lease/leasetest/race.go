package leasetest

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

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

// oneWins sends the requests at the same time, each by its own handle. One must succeed, and
// the others must be refused with an error that refused accepts. It returns the index of the
// winner.
func (s *suite) oneWins(requests []any, refused func(err error)) (winner int, reply leasestore.Reply) {
	s.Helper()
	handles := s.handles(len(requests))
	replies, errs := make([]leasestore.Reply, len(requests)), make([]error, len(requests))
	atOnce(len(requests), func(i int) { replies[i], errs[i] = handles[i].call(requests[i]) })
	winners := 0
	for i, err := range errs {
		if err != nil {
			refused(err)
			continue
		}
		winners++
		winner, reply = i, replies[i]
	}
	if winners != 1 {
		s.Fatalf("%d of %d simultaneous %T of one row succeeded; want 1", winners, len(requests), requests[0])
	}
	if got := s.row(reply.Row.Worker); got != reply.Row {
		s.Errorf("row after %+v = %+v is %+v", requests[winner], reply, got)
	}
	return winner, reply
}

// oneOfSimultaneousRenewalsWins simulates a copied process: every copy knows the same nonce,
// which the first write changes.
func oneOfSimultaneousRenewalsWins(s *suite) {
	const copies, rounds = 8, 4
	l := s.a.hold(s.newClaim())
	for range rounds {
		before := s.row(l.worker)
		var requests []any
		for range copies {
			requests = append(requests, s.renewal(l))
		}
		winner, reply := s.oneWins(requests, func(err error) {
			s.wantLost("Renew by a copy that came second", err, l, leasestore.Copied)
		})
		if want, err := apply(requests[winner], before, reply.Now); reply.Row != want || err != nil {
			s.Errorf("Renew of %+v = %+v; want %+v, error %v", before, reply, want, err)
		}
		l.confirmed(requests[winner].(leasestore.Renewal), reply)
	}
}

// oneOfIdenticalRequestsWins simulates a copied process as well. A copy shares the state of the
// random numbers, so the requests may be identical to the last bit. If a store took the second
// for a repetition of the first, both copies would continue.
func oneOfIdenticalRequestsWins(s *suite) {
	const copies, rounds = 8, 4
	identical := func(request any) (all []any) {
		for range copies {
			all = append(all, request)
		}
		return all
	}
	s.space.Workers = 1
	s.a.must(s.a.hold(s.newClaim()).giveBack(s.now()))
	for range rounds {
		c := s.newClaim()
		_, reply := s.oneWins(identical(c), func(err error) {
			if definite(err) {
				s.Errorf("Claim by a copy that came second = error %v; want none of those that say that it was not done", err)
			}
		})
		l := won(c, reply)
		for range rounds {
			r := s.renewal(l)
			_, reply := s.oneWins(identical(r), func(err error) {
				if definite(err) {
					s.wantLost("Renew by a copy that came second", err, l, leasestore.Copied)
				}
			})
			l.confirmed(r, reply)
		}
		s.a.must(l.giveBack(s.now()))
	}
}

func oneOfSimultaneousClaimsWins(s *suite) {
	const claimants, rounds = 8, 4
	s.space.Workers = 2
	s.a.hold(s.newClaim()) // so that a claim that loses the race cannot take another row
	for range rounds {
		var requests []any
		for range claimants {
			requests = append(requests, s.newClaim())
		}
		winner, reply := s.oneWins(requests, func(err error) {
			if full := (*leasestore.NoFreeWorkerError)(nil); !errors.As(err, &full) || full.Rows != 2 {
				s.Errorf("Claim that came second = error %v; want a *lease.NoFreeWorkerError about 2 rows", err)
			}
		})
		s.a.must(won(requests[winner].(leasestore.Claim), reply).giveBack(s.now()))
	}
}

// concurrentOperationsAreLinearizable lets several processes claim, renew and release one row
// at the same time, as its holder, an old holder and a copy. Some of the calls are abandoned at
// a random moment, so their outcome is unknown. One order of all operations must explain every
// reply.
func concurrentOperationsAreLinearizable(s *suite) {
	const processes, each = 6, 25
	s.Logf("Harness.Seed = %d repeats the choices, though not the times", s.h.Seed)
	s.space.Workers = 1
	handles := s.handles(processes)
	h := &history{suite: s}

	// Nothing disturbs this claim, because an abandoned call might leave no row to start from.
	_, h.from = s.rows(s.space)
	h.do(s.a, s.claimFor(1), nil, callTimeout)

	atOnce(processes, func(i int) {
		rng := rand.New(rand.NewPCG(s.h.Seed, uint64(i)+1))
		for range each {
			limit := callTimeout
			if rng.IntN(10) == 0 {
				limit = time.Duration(rng.Int64N(int64(3 * time.Millisecond)))
			}
			l := h.holder(rng)
			switch n := rng.IntN(10); {
			case n < 3:
				h.do(handles[i], s.claimFor(leasestore.Millis(1+rng.IntN(3))), nil, limit)
			case n < 8:
				r := s.renewal(l)
				r.Window = leasestore.Millis(1 + rng.IntN(10))
				r.Next = 0
				h.do(handles[i], r, l, limit)
			default:
				h.do(handles[i], l.giveBack(s.now()), nil, limit)
			}
			if i == 0 && s.h.SetClock != nil {
				s.advance(s.now() + 1)
			}
		}
	})
	rows, now := s.rows(s.space)
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
	from, to leasestore.Millis // bounds of the store's clock throughout; to is set last

	events atomic.Int64

	mu             sync.Mutex // guards what follows
	ops            []op
	holders        []*holder
	known, unknown int
}

// holder returns a copy of one of the last holders, for which others may act at the same time.
func (h *history) holder(rng *rand.Rand) *holder {
	h.mu.Lock()
	defer h.mu.Unlock()
	back := min(rng.IntN(3), rng.IntN(6), len(h.holders)-1)
	l := *h.holders[len(h.holders)-1-back]
	return &l
}

// do performs an operation and records it. l is the holder that asks for a renewal.
func (h *history) do(at handle, request any, l *holder, limit time.Duration) {
	ctx, cancel := context.WithTimeout(h.Context(), limit)
	defer cancel()
	o := op{call: h.events.Add(1)}
	reply, err := at.send(ctx, request)
	o.ret = h.events.Add(1)
	o.left = reply.Row
	o.text = describe(request, reply, err)
	o.next = func(s state) (state, bool) { return h.next(s, request, reply, err) }
	o.may = err != nil && !definite(err)

	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case o.may:
		o.ret = math.MaxInt64
		h.unknown++
	case err == nil:
		h.known++
	}
	h.ops = append(h.ops, o)
	switch r := request.(type) {
	case leasestore.Claim:
		if err == nil {
			h.holders = append(h.holders, won(r, reply))
		}
	case leasestore.Renewal: // the holder afterwards, or a possible one given what it knows
		if err == nil {
			l.confirmed(r, reply)
		} else {
			l.known = append(slices.Clip(l.known), r.Nonce)
		}
		if err == nil || o.may {
			h.holders = append(h.holders, l)
		}
	}
}

// next returns the state after an operation in the state s, and false if the operation cannot
// have had this outcome there.
func (h *history) next(s state, request any, reply leasestore.Reply, err error) (state, bool) {
	if err != nil && definite(err) {
		return s, h.mayRefuse(s, request, err)
	}
	_, claims := request.(leasestore.Claim)
	_, releases := request.(leasestore.Release)
	at := reply.Now
	switch {
	case err != nil: // at an unknown time
		at = h.to
		if claims && !s.sure {
			s.row.Until = 0 // it may have expired
		}
	case !releases && !s.sure:
		s.row.Until = reply.Before
	}
	row, refused := apply(request, s.row, at)
	switch {
	case refused != nil:
		return s, false
	case releases:
		return state{row, true}, true
	case err != nil:
		row.Until = 0
		return state{row, false}, true
	}
	return state{row, true}, row == reply.Row && reply.Before == s.row.Until
}

// mayRefuse reports whether err, which is definite, may be the answer in the state s.
func (h *history) mayRefuse(s state, request any, err error) bool {
	if c, ok := request.(leasestore.Claim); ok {
		free := c.Free(s.row, h.from)
		if !s.sure {
			free = s.row.Owner == ""
		}
		return !free && errors.Is(err, leasestore.ErrNoFreeWorker)
	}
	_, refused := apply(request, s.row, 0) // without the guard the clock does not matter
	return sameError(err, refused)
}

// read records the row that was read at the end.
func (h *history) read(row leasestore.Row) {
	call := h.events.Add(1)
	h.ops = append(h.ops, op{
		call: call,
		ret:  h.events.Add(1),
		left: row,
		text: describe(h.space, leasestore.Reply{Row: row}, nil),
		next: func(s state) (state, bool) {
			if !s.sure {
				s.row.Until = row.Until
			}
			return state{row, true}, s.row == row
		},
	})
}
