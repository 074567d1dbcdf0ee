package leasestore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/leasetest"
)

// A slowRegister takes some time until it has made the rows, and for each search after that.
type slowRegister struct {
	leasestore.Register
	making, finding time.Duration
	now             leasestore.Millis
}

func (r *slowRegister) Make(ctx context.Context, s leasestore.Space) error {
	time.Sleep(r.making)
	return r.Register.Make(ctx, s)
}

func (r *slowRegister) Find(ctx context.Context, s leasestore.Space, h leasestore.Hint) (leasestore.View, error) {
	v, err := r.Register.Find(ctx, s, h)
	if v.Now = leasestore.MillisOf(time.Now()); v.Made {
		time.Sleep(r.finding)
		v.Now = r.now
	}
	return v, err
}

// The clocks are compared at the moment when the register's was read.
func TestWaitingIsNoClockSkew(t *testing.T) {
	for _, test := range []struct {
		asked, answered time.Duration
		store           leasestore.Millis // relative to the claimant's
		refused         bool
	}{
		{0, 0, 0, false},
		{0, 0, 5_000, false},
		{0, 0, 5_002, true},
		{0, 0, -5_001, true},
		{20 * time.Second, 20 * time.Second, 20_000, false},
		{20 * time.Second, 20 * time.Second, 0, true},
		{20 * time.Second, 30 * time.Second, 20_000, false},
		{20 * time.Second, 30 * time.Second, 35_000, false},
		{20 * time.Second, 30 * time.Second, 35_002, true},
		{20 * time.Second, 30 * time.Second, 14_999, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			now := leasestore.MillisOf(time.Now())
			r := &slowRegister{Register: leasetest.NewMemory(time.Now), making: test.asked, finding: test.answered - test.asked, now: now + test.store}
			_, err := leasestore.FromRegister(r).Claim(t.Context(), leasestore.Claim{
				Space: leasestore.Space{Namespace: "shop", Workers: 4, Layout: "41/5/5/12"},
				Owner: "a", Nonce: "b", Window: 60_000, Now: now, Skew: 5_000,
			})
			if refused := errors.Is(err, leasestore.ErrClockSkew); refused != test.refused || !refused && err != nil {
				t.Errorf("Claim(asked after %v, answered after %v, store %+d ms) = error %v; want refused %v", test.asked, test.answered, test.store, err, test.refused)
			}
		})
	}
}

// A changingRegister reports what databases do that count changed rows, not found ones.
type changingRegister struct{ leasestore.Register }

func (r changingRegister) Swap(ctx context.Context, s leasestore.Space, from leasestore.Seen, to leasestore.Row) (bool, error) {
	if from.Row == to {
		return false, nil
	}
	return r.Register.Swap(ctx, s, from, to)
}

func TestFenceSwapsNoRetiredRow(t *testing.T) {
	s := leasestore.FromRegister(changingRegister{leasetest.NewMemory(nil)})
	c := plainClaim()
	c.Now, c.Retire = leasestore.MillisOf(time.Now()), true
	if _, err := s.Claim(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.Fence(ctx, leasestore.Fencing{Space: c.Space, Nonce: "f", Until: c.Now}); err != nil {
		t.Errorf("Fence() = %v; want no error", err)
	}
}

// A refusingRegister fails to write the row of one worker.
type refusingRegister struct {
	leasestore.Register
	worker int64
}

var errRefused = errors.New("refused")

func (r refusingRegister) Swap(ctx context.Context, s leasestore.Space, from leasestore.Seen, to leasestore.Row) (bool, error) {
	if to.Worker == r.worker {
		return false, errRefused
	}
	return r.Register.Swap(ctx, s, from, to)
}

func TestFenceTellsOfEachRowThatItCouldNotRaise(t *testing.T) {
	mem := leasetest.NewMemory(nil)
	f := leasestore.Fencing{Space: leasestore.Space{Namespace: "n", Workers: 64}, Nonce: "f", Until: 1}
	for worker := range f.Space.Workers {
		if err := leasestore.FromRegister(refusingRegister{mem, worker}).Fence(t.Context(), f); !errors.Is(err, errRefused) {
			t.Errorf("Fence() where worker %d is refused = %v; want %v", worker, err, errRefused)
		}
	}
}

// A crowdedRegister counts the claims that have read and not yet written.
type crowdedRegister struct {
	leasestore.Register
	mu        sync.Mutex
	now, most int
}

func (r *crowdedRegister) Find(ctx context.Context, s leasestore.Space, h leasestore.Hint) (leasestore.View, error) {
	r.mu.Lock()
	r.now++
	r.most = max(r.most, r.now)
	r.mu.Unlock()
	time.Sleep(time.Second)
	return r.Register.Find(ctx, s, h)
}

func (r *crowdedRegister) Swap(ctx context.Context, s leasestore.Space, from leasestore.Seen, to leasestore.Row) (bool, error) {
	done, err := r.Register.Swap(ctx, s, from, to)
	if done {
		r.mu.Lock()
		r.now--
		r.mu.Unlock()
	}
	return done, err
}

// A claim that waits for others is not late by the clock, and gives up when its context ends.
func TestAThousandClaimsDoNotAllReadBeforeTheFirstWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const claims = 1000
		r := &crowdedRegister{Register: leasetest.NewMemory(time.Now)}
		s := leasestore.FromRegister(r)
		claim := func(ctx context.Context, n int) (leasestore.Reply, error) {
			return s.Claim(ctx, leasestore.Claim{
				Space: leasestore.Space{Namespace: "shop", Workers: claims, Layout: "41/5/5/12"},
				Owner: fmt.Sprint("o", n), Nonce: fmt.Sprint("n", n), Window: 600_000, Now: leasestore.MillisOf(time.Now()), Skew: 5_000,
			})
		}
		if _, err := claim(t.Context(), 0); err != nil { // makes the rows
			t.Fatalf("Claim() = error %v", err)
		}
		var wg sync.WaitGroup
		for n := range claims - 1 {
			wg.Go(func() {
				if _, err := claim(t.Context(), n+1); err != nil {
					t.Errorf("Claim() among %d = error %v; want a row", claims, err)
				}
			})
		}
		time.Sleep(time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := claim(ctx, claims); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Claim() behind the others, for 10 s = error %v; want DeadlineExceeded", err)
		}
		wg.Wait()
		if r.most < 2 || r.most > 100 {
			t.Errorf("%d claims have read before they wrote; want some, not all", r.most)
		}
	})
}

// An overtakenRegister lets another process write before each of its swaps.
type overtakenRegister struct {
	*leasetest.Memory
	change func(row *leasestore.Row)
}

func (r overtakenRegister) Swap(ctx context.Context, s leasestore.Space, from leasestore.Seen, to leasestore.Row) (bool, error) {
	row := from.Row
	r.change(&row)
	r.Set(s, row)
	return r.Memory.Swap(ctx, s, from, to)
}

func newOvertaken(change func(row *leasestore.Row)) overtakenRegister {
	return overtakenRegister{leasetest.NewMemory(storeT.Time), change}
}

func TestOvertakenHolderIsToldWhatIsThere(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(row *leasestore.Row)
		want   leasestore.Reason
	}{
		{"another has claimed the row", func(row *leasestore.Row) { row.Epoch, row.Owner, row.Nonce = 8, "thief", "t" }, leasestore.TakenOver},
		{"a copy has renewed it", func(row *leasestore.Row) { row.Nonce = "copy" }, leasestore.Copied},
		{"an earlier renewal of its own has come late", func(row *leasestore.Row) { row.Nonce = "n0" }, ""},
	} {
		row, renewal := plainRenewal()
		renewal.Known = []string{"n0", "n1"}
		release := leasestore.Release{Space: renewal.Space, Worker: 3, Epoch: 7, Owner: "holder", Known: renewal.Known, Nonce: "n2", End: storeT}
		for call, do := range map[string]func(s *leasestore.RegisterStore) error{
			"Renew":   func(s *leasestore.RegisterStore) error { _, err := s.Renew(t.Context(), renewal); return err },
			"Release": func(s *leasestore.RegisterStore) error { return s.Release(t.Context(), release) },
		} {
			r := newOvertaken(test.change)
			r.Set(renewal.Space, row)
			err := do(leasestore.FromRegister(r))
			var lost *leasestore.LostError
			if errors.As(err, &lost) && lost.Reason != test.want || lost == nil && (err != nil || test.want != "") {
				t.Errorf("%s when %s = error %v; want reason %q", call, test.name, err, test.want)
			}
		}
	}
}

// Each row that the claim would take is taken by another process first.
func TestOvertakenClaimEnds(t *testing.T) {
	r := newOvertaken(func(row *leasestore.Row) { row.Owner, row.Until = "thief", storeT+hourMS })
	_, err := leasestore.FromRegister(r).Claim(t.Context(), plainClaim())
	if full := (*leasestore.NoFreeWorkerError)(nil); !errors.As(err, &full) || full.Rows != 8 {
		t.Errorf("Claim() = error %v; want a *lease.NoFreeWorkerError about 8 rows", err)
	}
}
