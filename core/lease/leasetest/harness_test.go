package leasetest_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/leasetest"
)

const secret = "hunter2"

// A world is a Memory that calls reach through handles, as if it were on a server. Calls may
// stall, lose their replies, or never arrive.
type world struct {
	mem atomic.Pointer[leasetest.Memory]

	mu      sync.Mutex // guards what follows
	clock   time.Time  // zero: the system's
	stalled chan struct{}
}

func newWorld() *world {
	w := &world{}
	w.mem.Store(leasetest.NewMemory(w.now))
	return w
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.clock.IsZero() {
		return time.Now()
	}
	return w.clock
}

func (w *world) setClock(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clock = now
}

// pass returns when the world continues or ctx ends.
func (w *world) pass(ctx context.Context) error {
	w.mu.Lock()
	gate := w.stalled
	w.mu.Unlock()
	if gate == nil {
		return nil
	}
	select {
	case <-gate:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *world) stall(*testing.T) (resume func()) {
	gate := make(chan struct{})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stalled = gate
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.stalled = nil
		close(gate)
	}
}

func (w *world) setUntil(t *testing.T, s leasestore.Space, worker int64, until leasestore.Millis) {
	rows, _, err := w.mem.Load().Rows(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	row := rows[worker]
	row.Until = until
	w.mem.Load().Set(s, row)
}

// harness returns a harness with every hook. wrap turns the correct store of a handle into the
// one to be tested.
func (w *world) harness(wrap func(w *world, right leasetest.Store) leasetest.Store) leasetest.Harness {
	open := func() leasetest.Store {
		if wrap == nil {
			return handle{w: w}
		}
		return wrap(w, handle{w: w})
	}
	return leasetest.Harness{
		Seed:     1, // the same in every run: a release must not depend on luck
		Open:     func(*testing.T) leasetest.Store { return open() },
		SetUntil: w.setUntil,
		Delete: func(_ *testing.T, s leasestore.Space, worker int64) {
			w.mem.Load().Delete(s, worker)
		},
		SetClock: func(_ *testing.T, now time.Time) { w.setClock(now) },
		Restart: func(*testing.T) {
			m := leasetest.NewMemory(w.now)
			m.Restore(w.mem.Load().Snapshot())
			w.mem.Store(m)
		},
		Stall:        w.stall,
		LosesReplies: func(*testing.T) leasetest.Store { return deaf{open()} },
		Unreachable:  func(*testing.T) leasetest.Store { return nowhere{} },
		Secret:       secret,
	}
}

// A handle reaches the memory of its world.
type handle struct{ w *world }

func (h handle) Claim(ctx context.Context, c leasestore.Claim) (leasestore.Reply, error) {
	if err := h.w.pass(ctx); err != nil {
		return leasestore.Reply{}, err
	}
	return h.w.mem.Load().Claim(ctx, c)
}

func (h handle) Renew(ctx context.Context, r leasestore.Renewal) (leasestore.Reply, error) {
	if err := h.w.pass(ctx); err != nil {
		return leasestore.Reply{}, err
	}
	return h.w.mem.Load().Renew(ctx, r)
}

func (h handle) Release(ctx context.Context, r leasestore.Release) error {
	if err := h.w.pass(ctx); err != nil {
		return err
	}
	return h.w.mem.Load().Release(ctx, r)
}

func (h handle) LosesWrites() bool { return h.w.mem.Load().LosesWrites() }

func (h handle) Fence(ctx context.Context, f leasestore.Fencing) error {
	if err := h.w.pass(ctx); err != nil {
		return err
	}
	return h.w.mem.Load().Fence(ctx, f)
}

func (h handle) Rows(ctx context.Context, s leasestore.Space) ([]leasestore.Row, leasestore.Millis, error) {
	if err := h.w.pass(ctx); err != nil {
		return nil, 0, err
	}
	return h.w.mem.Load().Rows(ctx, s)
}

func (h handle) History(ctx context.Context, s leasestore.Space, worker int64) ([]leasestore.Holder, error) {
	if err := h.w.pass(ctx); err != nil {
		return nil, err
	}
	return h.w.mem.Load().History(ctx, s, worker)
}

func (h handle) Register() leasestore.Register { return h.w.mem.Load() }

func (h handle) Spaces(ctx context.Context) ([]leasestore.Space, error) {
	return h.w.mem.Load().Spaces(ctx)
}

// errReply is the error of a call whose reply was lost.
var errReply = errors.New("connection lost")

// deaf performs each request and loses the reply.
type deaf struct{ leasetest.Store }

func (d deaf) Claim(ctx context.Context, c leasestore.Claim) (leasestore.Reply, error) {
	_, _ = d.Store.Claim(ctx, c)
	return leasestore.Reply{}, errReply
}

func (d deaf) Renew(ctx context.Context, r leasestore.Renewal) (leasestore.Reply, error) {
	_, _ = d.Store.Renew(ctx, r)
	return leasestore.Reply{}, errReply
}

func (d deaf) Release(ctx context.Context, r leasestore.Release) error {
	_ = d.Store.Release(ctx, r)
	return errReply
}

// nowhere never reaches the store.
type nowhere struct{}

func (nowhere) Claim(context.Context, leasestore.Claim) (leasestore.Reply, error) {
	return leasestore.Reply{}, errReply
}
func (nowhere) Renew(context.Context, leasestore.Renewal) (leasestore.Reply, error) {
	return leasestore.Reply{}, errReply
}
func (nowhere) Release(context.Context, leasestore.Release) error { return errReply }
func (nowhere) LosesWrites() bool                                 { return false }
func (nowhere) Rows(context.Context, leasestore.Space) ([]leasestore.Row, leasestore.Millis, error) {
	return nil, 0, errReply
}

// flaky fails calls with a near deadline in each way that a network can: the call is not
// performed, or performed later, or performed while its reply is lost.
type flaky struct{ leasetest.Store }

// near reports whether ctx ends soon, and chooses the fate of the call.
func near(ctx context.Context) (fate int, ok bool) {
	deadline, ok := ctx.Deadline()
	return rand.IntN(3), ok && time.Until(deadline) < time.Second
}

func lose(ctx context.Context, do func(ctx context.Context)) (lost bool) {
	fate, ok := near(ctx)
	if !ok {
		return false
	}
	ctx = context.WithoutCancel(ctx)
	switch fate {
	case 0:
		do(ctx)
	case 1:
		go func() {
			time.Sleep(rand.N(time.Millisecond))
			do(ctx)
		}()
	}
	return true
}

func (f flaky) Claim(ctx context.Context, c leasestore.Claim) (leasestore.Reply, error) {
	if lose(ctx, func(ctx context.Context) { _, _ = f.Store.Claim(ctx, c) }) {
		return leasestore.Reply{}, errReply
	}
	return f.Store.Claim(ctx, c)
}

func (f flaky) Renew(ctx context.Context, r leasestore.Renewal) (leasestore.Reply, error) {
	if lose(ctx, func(ctx context.Context) { _, _ = f.Store.Renew(ctx, r) }) {
		return leasestore.Reply{}, errReply
	}
	return f.Store.Renew(ctx, r)
}

func (f flaky) Release(ctx context.Context, r leasestore.Release) error {
	if lose(ctx, func(ctx context.Context) { _ = f.Store.Release(ctx, r) }) {
		return errReply
	}
	return f.Store.Release(ctx, r)
}
