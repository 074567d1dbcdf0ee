package leasetest

import (
	"context"
	crand "crypto/rand"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/lease"
)

// patience is how long one operation may take. None should come near to it, but a
// hundred at once on a slow disk take their time. Tests of this package change it.
var patience = 30 * time.Second

const (
	minute = lease.Millis(60_000)
	hour   = 60 * minute

	// slack is how far apart two readings of the store's clock may be for other reasons
	// than time. Another server may have read it, or it may be slewed.
	slack = lease.Millis(5)

	layout = "epoch 2020-01-01T00:00:00Z, unit 1ms, bits 41/5/5/12"
)

// A suite is the state of one subtest.
type suite struct {
	*testing.T
	h     Harness
	a, b  handle // two handles on the same store
	space lease.Space
	rng   *rand.Rand // for the goroutine of the subtest

	mu    sync.Mutex // guards clock
	clock lease.Millis
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
		T:     t,
		h:     h,
		space: lease.Space{Namespace: h.Namespace + "suite", Datacenter: 3, Workers: 8, Layout: layout},
		rng:   rand.New(rand.NewPCG(h.Seed, 0)),
	}
	if h.SetClock != nil {
		s.advance(lease.MillisOf(time.Now()))
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

// A handle is a way to the store. Its methods have the deadline of a patient
// caller and look at every error.
type handle struct {
	s     *suite
	store Store
}

func (s *suite) open() handle {
	s.Helper()
	return handle{s, s.h.Open(s.T)}
}

func (h handle) claim(c lease.Claim) (lease.Reply, error) {
	ctx, cancel := context.WithTimeout(h.s.Context(), patience)
	defer cancel()
	return h.claimCtx(ctx, c)
}

func (h handle) claimCtx(ctx context.Context, c lease.Claim) (lease.Reply, error) {
	c.Only = slices.Clone(c.Only)
	r, err := h.store.Claim(ctx, c)
	h.s.look("Claim", err)
	return r, err
}

func (h handle) renew(r lease.Renewal) (lease.Reply, error) {
	ctx, cancel := context.WithTimeout(h.s.Context(), patience)
	defer cancel()
	return h.renewCtx(ctx, r)
}

func (h handle) renewCtx(ctx context.Context, r lease.Renewal) (lease.Reply, error) {
	reply, err := h.store.Renew(ctx, r)
	h.s.look("Renew", err)
	return reply, err
}

func (h handle) release(r lease.Release) error {
	ctx, cancel := context.WithTimeout(h.s.Context(), patience)
	defer cancel()
	return h.releaseCtx(ctx, r)
}

func (h handle) releaseCtx(ctx context.Context, r lease.Release) error {
	err := h.store.Release(ctx, r)
	h.s.look("Release", err)
	return err
}

func (h handle) rows(space lease.Space) ([]lease.Row, lease.Millis) {
	h.s.Helper()
	ctx, cancel := context.WithTimeout(h.s.Context(), patience)
	defer cancel()
	rows, now, err := h.store.Rows(ctx, space)
	h.s.look("Rows", err)
	if err != nil {
		h.s.Fatalf("Rows(%+v) = error %v; want rows", space, err)
	}
	return rows, now
}

// look checks what must be true of every error. It may be called by any
// goroutine.
func (s *suite) look(call string, err error) {
	if err != nil && s.h.Secret != "" && strings.Contains(err.Error(), s.h.Secret) {
		s.Errorf("%s(…) = an error with the password in it; want it left out", call)
	}
}

// definite reports whether err says that the operation was not done.
func definite(err error) bool {
	return errors.Is(err, lease.ErrNoFreeWorker) || errors.Is(err, lease.ErrLost) ||
		errors.Is(err, lease.ErrLayout) || errors.Is(err, lease.ErrClockSkew)
}

// now returns the clock of a claimant or holder.
func (s *suite) now() lease.Millis {
	if s.h.SetClock == nil {
		return lease.MillisOf(time.Now())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clock
}

// advance sets the store's clock, and with it that of claimants.
func (s *suite) advance(to lease.Millis) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock = max(s.clock, to)
	s.h.SetClock(s.T, s.clock.Time())
}

// await returns when the store's clock has reached at.
func (s *suite) await(at lease.Millis) {
	s.Helper()
	if s.h.SetClock != nil {
		s.advance(at)
		return
	}
	for range 100 {
		_, now := s.a.rows(s.space)
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

// token returns a fresh one for an owner or a nonce.
func token() string {
	var b [16]byte
	crand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// newClaim returns a claim on the suite's space that a correct store grants.
func (s *suite) newClaim() lease.Claim {
	return lease.Claim{
		Space:  s.space,
		Owner:  token(),
		Nonce:  token(),
		Holder: "host-7",
		Window: minute,
		Now:    s.now(),
		Skew:   minute,
	}
}

// A holder is a lease's side of a claimed row.
type holder struct {
	space  lease.Space
	worker int64
	epoch  int64
	owner  string
	known  []string
	from   lease.Millis
	until  lease.Millis // confirmed
}

// won returns the holder that a granted claim makes.
func won(c lease.Claim, r lease.Reply) *holder {
	return &holder{
		space:  c.Space,
		worker: r.Row.Worker,
		epoch:  r.Row.Epoch,
		owner:  c.Owner,
		known:  []string{c.Nonce},
		from:   c.From(r),
		until:  r.Row.Until,
	}
}

// hold claims, which must succeed.
func (h handle) hold(c lease.Claim) *holder {
	h.s.Helper()
	r, err := h.claim(c)
	if err != nil {
		h.s.Fatalf("Claim(%+v) = error %v; want a row", c, err)
	}
	return won(c, r)
}

// renewal returns one that a correct store grants.
func (s *suite) renewal(l *holder) lease.Renewal {
	now := s.now()
	return lease.Renewal{
		Space:  l.space,
		Worker: l.worker,
		Epoch:  l.epoch,
		Owner:  l.owner,
		Known:  slices.Clone(l.known),
		Nonce:  token(),
		Next:   now,
		Until:  l.until,
		Window: minute,
		Now:    now,
		Skew:   minute,
	}
}

// keep renews, which must succeed.
func (h handle) keep(l *holder, r lease.Renewal) lease.Reply {
	h.s.Helper()
	reply, err := h.renew(r)
	if err != nil {
		h.s.Fatalf("Renew(%+v) = error %v; want it renewed", r, err)
	}
	l.confirmed(r, reply)
	return reply
}

func (l *holder) confirmed(r lease.Renewal, reply lease.Reply) {
	l.known = []string{r.Nonce}
	l.until = reply.Row.Until
}

// giveBack returns the release of l that ends at end.
func (l *holder) giveBack(end lease.Millis) lease.Release {
	return lease.Release{
		Space:  l.space,
		Worker: l.worker,
		Epoch:  l.epoch,
		Owner:  l.owner,
		Known:  slices.Clone(l.known),
		Nonce:  token(),
		End:    end,
	}
}

// row returns the stored row of a worker. It must be there.
func (s *suite) row(space lease.Space, worker int64) lease.Row {
	s.Helper()
	rows, _ := s.b.rows(space)
	for _, row := range rows {
		if row.Worker == worker {
			return row
		}
	}
	s.Fatalf("Rows(%+v) has no row of worker %d; want it", space, worker)
	return lease.Row{}
}

// unchanged returns a function that fails if the space's rows differ from now.
func (s *suite) unchanged(space lease.Space) (check func(after string)) {
	s.Helper()
	before, _ := s.b.rows(space)
	return func(after string) {
		s.Helper()
		if got, _ := s.b.rows(space); !slices.Equal(got, before) {
			s.Errorf("after %s, Rows = %+v; want as before, %+v", after, got, before)
		}
	}
}

// wantLost fails unless err is the LostError with these facts.
func (s *suite) wantLost(call string, err error, worker, epoch int64, reason lease.Reason) {
	s.Helper()
	want := lease.LostError{Worker: worker, Epoch: epoch, Reason: reason}
	var lost *lease.LostError
	if !errors.As(err, &lost) || *lost != want {
		s.Errorf("%s = error %v; want %v", call, err, &want)
	}
}

// wantFull fails unless err is a NoFreeWorkerError about this many rows.
func (s *suite) wantFull(call string, err error, rows int) *lease.NoFreeWorkerError {
	s.Helper()
	var full *lease.NoFreeWorkerError
	if !errors.As(err, &full) {
		s.Fatalf("%s = error %v; want a *lease.NoFreeWorkerError", call, err)
	}
	if full.Rows != rows {
		s.Errorf("%s: NoFreeWorkerError.Rows = %d; want %d", call, full.Rows, rows)
	}
	return full
}
