package leasestore_test

import (
	"context"
	"errors"
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
			_, err := leasestore.Over(r).Claim(t.Context(), leasestore.Claim{
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
	s := leasestore.Over(changingRegister{leasetest.NewMemory(nil)})
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
