package leasetest

import (
	"context"
	crand "crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// callTimeout is how long one operation may take. None should come near to it, but a hundred
// concurrent ones on a slow disk take their time. Tests of this package change it.
var callTimeout = 30 * time.Second

const (
	minute = leasestore.Millis(60_000)
	hour   = 60 * minute

	// slack is how far apart two readings of the store's clock may be for reasons other than
	// time: they may come from different servers, or the clock may be slewed.
	slack = leasestore.Millis(5)

	layout      = "epoch 2020-01-01T00:00:00Z, unit 1ms, bits 41/5/5/12"
	otherLayout = "epoch 2021-01-01T00:00:00Z, unit 1ms, bits 41/5/5/12"
)

// A suite is the state of one subtest.
type suite struct {
	*testing.T
	h     Harness
	a, b  handle // two handles on one store
	all   []handle
	space leasestore.Space
	rng   *rand.Rand // for the goroutine of the subtest

	// What handle.do has seen.
	layouts map[string]string // by namespace
	made    map[spaceKey]bool
	last    []leasestore.Row // after the last operation

	mu    sync.Mutex // guards clock
	clock leasestore.Millis
}

func newSuite(t *testing.T, h Harness) *suite {
	t.Helper()
	if h.Open == nil {
		t.Fatal("leasetest: Harness.Open is nil: want a function that opens the store")
	}
	if h.Seed == 0 {
		h.Seed = rand.Uint64()
	}
	s := &suite{
		T:       t,
		h:       h,
		space:   leasestore.Space{Namespace: h.Namespace + "suite", Datacenter: 3, Workers: 8, Layout: layout},
		rng:     rand.New(rand.NewPCG(h.Seed, 0)),
		layouts: map[string]string{},
		made:    map[spaceKey]bool{},
	}
	if h.SetClock != nil {
		s.advance(leasestore.MillisOf(time.Now()))
	}
	s.a, s.b = s.open(), s.open()
	return s
}

// needs skips the subtest if the harness lacks a hook.
func (s *suite) needs(hook string, present bool) {
	s.Helper()
	if !present {
		s.Skipf("SKIPPED: Harness.%s is not set", hook)
	}
}

// A handle is a way to the store.
type handle struct {
	s     *suite
	store Store
}

func (s *suite) open() handle {
	s.Helper()
	return handle{s, s.h.Open(s.T)}
}

// handles returns n different handles. Later calls return the same ones, because each may be a
// pool of connections, and servers accept few.
func (s *suite) handles(n int) []handle {
	if len(s.all) == 0 {
		s.all = []handle{s.a, s.b}
	}
	for len(s.all) < n {
		s.all = append(s.all, s.open())
	}
	return s.all[:n]
}

// send performs one operation, and checks what must be true of every error. request is a
// leasestore.Claim, Renewal, Release or Fencing, or a leasestore.Space, which asks for its
// rows. Any goroutine may call send.
func (h handle) send(ctx context.Context, request any) (reply leasestore.Reply, err error) {
	switch r := request.(type) {
	case leasestore.Claim:
		r.Only = slices.Clone(r.Only)
		reply, err = h.store.Claim(ctx, r)
	case leasestore.Renewal:
		r.Known = slices.Clone(r.Known)
		reply, err = h.store.Renew(ctx, r)
	case leasestore.Release:
		r.Known = slices.Clone(r.Known)
		err = h.store.Release(ctx, r)
	case leasestore.Fencing:
		err = h.s.fencer(h).Fence(ctx, r)
	case leasestore.Space:
		_, _, err = h.store.Rows(ctx, r)
	}
	if err != nil && h.s.h.Secret != "" && strings.Contains(err.Error(), h.s.h.Secret) {
		h.s.Errorf("%T = an error with the password in it; want it left out", request)
	}
	return reply, err
}

// call performs one operation with the deadline of a patient caller.
func (h handle) call(request any) (leasestore.Reply, error) {
	ctx, cancel := context.WithTimeout(h.s.Context(), callTimeout)
	defer cancel()
	return h.send(ctx, request)
}

// must performs one operation by itself, which must succeed.
func (h handle) must(request any) leasestore.Reply {
	h.s.Helper()
	reply, err := h.do(request)
	if err != nil {
		h.s.Fatalf("%T%+v = error %v; want it done", request, request, err)
	}
	return reply
}

// lost performs one operation by itself, which must be refused for this reason.
func (h handle) lost(name string, request any, reason leasestore.Reason) {
	h.s.Helper()
	_, err := h.do(request)
	if lost := (*leasestore.LostError)(nil); !errors.As(err, &lost) || lost.Reason != reason {
		h.s.Errorf("%s = error %v; want the row lost because %s", name, err, reason)
	}
}

// wantLost fails unless err says that l has lost its row for this reason.
func (s *suite) wantLost(name string, err error, l *holder, reason leasestore.Reason) {
	s.Helper()
	want := &leasestore.LostError{Worker: l.worker, Epoch: l.epoch, Reason: reason}
	if !sameError(err, want) {
		s.Errorf("%s = error %v; want %v", name, err, want)
	}
}

// full sends a claim that must be refused because none of the space's rows, given their number,
// is free.
func (h handle) full(name string, c leasestore.Claim, rows int) {
	h.s.Helper()
	_, err := h.do(c)
	if full := (*leasestore.NoFreeWorkerError)(nil); !errors.As(err, &full) || full.Rows != rows {
		h.s.Errorf("%s = error %v; want a *lease.NoFreeWorkerError about %d rows", name, err, rows)
	}
}

// rows returns the rows of a space and the store's clock.
func (s *suite) rows(space leasestore.Space) ([]leasestore.Row, leasestore.Millis) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), callTimeout)
	defer cancel()
	rows, now, err := s.b.store.Rows(ctx, space)
	if err != nil {
		s.Fatalf("Rows(%+v) = error %v; want rows", space, err)
	}
	return rows, now
}

// row returns the stored row of a worker, which must exist.
func (s *suite) row(worker int64) leasestore.Row {
	s.Helper()
	rows, _ := s.rows(s.space)
	i := slices.IndexFunc(rows, func(r leasestore.Row) bool { return r.Worker == worker })
	if i < 0 {
		s.Fatalf("Rows(%+v) has no row of worker %d; want it", s.space, worker)
	}
	return rows[i]
}

// unchanged returns a function that fails if the rows of a space have changed since.
func (s *suite) unchanged(space leasestore.Space) (check func(after string)) {
	s.Helper()
	before, _ := s.rows(space)
	return func(after string) {
		s.Helper()
		if got, _ := s.rows(space); !slices.Equal(got, before) {
			s.Errorf("after %s, Rows = %+v; want as before, %+v", after, got, before)
		}
	}
}

// now returns the clock of a claimant or holder.
func (s *suite) now() leasestore.Millis {
	if s.h.SetClock == nil {
		return leasestore.MillisOf(time.Now())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clock
}

// advance sets the store's clock and that of claimants.
func (s *suite) advance(to leasestore.Millis) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock = max(s.clock, to)
	s.h.SetClock(s.T, s.clock.Time())
}

// await returns when the store's clock has reached at.
func (s *suite) await(at leasestore.Millis) {
	s.Helper()
	if s.h.SetClock != nil {
		s.advance(at)
		return
	}
	for range 100 {
		_, now := s.rows(s.space)
		if now >= at {
			return
		}
		if at-now > 2000 {
			s.Fatalf("the store's clock shows %d; want it to be near %d", now, at)
		}
		time.Sleep((at - now).Duration())
	}
	s.Fatalf("the store's clock does not reach %d", at)
}

// token returns a fresh token, for an owner or a nonce.
func token() string {
	var b [16]byte
	crand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// newClaim returns a claim on the suite's space that a correct store grants.
func (s *suite) newClaim() leasestore.Claim {
	return leasestore.Claim{
		Space: s.space, Owner: token(), Nonce: token(), Holder: "host-7",
		Window: minute, Now: s.now(), Skew: minute,
	}
}

// claimFor is newClaim with another window.
func (s *suite) claimFor(window leasestore.Millis) leasestore.Claim {
	c := s.newClaim()
	c.Window = window
	return c
}

// claimOf is newClaim of certain workers; nil: all.
func (s *suite) claimOf(workers ...int64) leasestore.Claim {
	c := s.newClaim()
	c.Only = workers
	return c
}

// A holder is a lease's side of a claimed row.
type holder struct {
	space  leasestore.Space
	worker int64
	epoch  int64
	owner  string
	known  []string
	from   leasestore.Millis
	until  leasestore.Millis // confirmed
}

// won returns the holder that results from a granted claim.
func won(c leasestore.Claim, r leasestore.Reply) *holder {
	return &holder{
		space: c.Space, worker: r.Row.Worker, epoch: r.Row.Epoch, owner: c.Owner, known: []string{c.Nonce},
		from: c.From(r), until: r.Row.Until,
	}
}

// hold sends a claim, which must succeed.
func (h handle) hold(c leasestore.Claim) *holder {
	h.s.Helper()
	return won(c, h.must(c))
}

// renewal returns a renewal that a correct store grants.
func (s *suite) renewal(l *holder) leasestore.Renewal {
	now := s.now()
	return leasestore.Renewal{
		Space: l.space, Worker: l.worker, Epoch: l.epoch, Owner: l.owner, Known: slices.Clone(l.known), Nonce: token(),
		Next: now, Until: l.until, Window: minute, Now: now, Skew: minute,
	}
}

// keep sends a renewal, which must succeed.
func (h handle) keep(l *holder, r leasestore.Renewal) leasestore.Reply {
	h.s.Helper()
	reply := h.must(r)
	l.confirmed(r, reply)
	return reply
}

func (l *holder) confirmed(r leasestore.Renewal, reply leasestore.Reply) {
	l.known = []string{r.Nonce}
	l.until = reply.Row.Until
}

// giveBack returns the release of l that ends at end.
func (l *holder) giveBack(end leasestore.Millis) leasestore.Release {
	return leasestore.Release{
		Space: l.space, Worker: l.worker, Epoch: l.epoch, Owner: l.owner, Known: slices.Clone(l.known), Nonce: token(),
		End: end,
	}
}

// requests returns one request of each kind, in the space of l, that a correct store grants.
func (s *suite) requests(l *holder) []any {
	c := s.newClaim()
	c.Space = l.space
	all := []any{c, s.renewal(l), l.giveBack(l.from), l.space}
	if _, ok := s.a.store.(leasestore.Fencer); ok {
		all = append(all, leasestore.Fencing{Space: l.space, Nonce: token(), Until: s.now()})
	}
	return all
}

// describe returns an operation and its answer as text.
func describe(request any, reply leasestore.Reply, err error) string {
	return fmt.Sprintf("%T%+v = %+v, error %v", request, request, reply, err)
}
