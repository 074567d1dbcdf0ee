package coretest_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/coretest"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/leasetest"
)

var errAway = errors.New("connection refused")

// leased returns a generator with a lease on the store, in a bubble.
func leased(t *testing.T, store *coretest.Store, c lease.Config) (*core.Generator, *lease.Lease) {
	t.Helper()
	c.Namespace, c.Logger = store.Namespace(), slog.New(slog.DiscardHandler)
	l, err := lease.Acquire(t.Context(), store, c)
	if err != nil {
		t.Fatal(err)
	}
	gen, err := core.New(core.Config{Worker: l})
	if err != nil {
		t.Fatal(err)
	}
	return gen, l
}

// bubble runs a test in simulated time that begins at Start.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(coretest.Start()))
		test(t)
	})
}

func closeGenerator(t *testing.T, gen *core.Generator) {
	t.Helper()
	if err := gen.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Errorf("Close() = %v; want no error", err)
	}
}

func TestEachStoreHasANamespaceOfItsOwn(t *testing.T) {
	a, b := coretest.NewStore(nil).Namespace(), coretest.NewStore(nil).Namespace()
	if a == b {
		t.Errorf("two stores have the namespace %q; want two", a)
	}
	if err := (leasestore.Space{Namespace: a, Workers: 1}).Validate(); err != nil {
		t.Errorf("a space %q = %v; want it valid", a, err)
	}
}

func TestTheStoreConforms(t *testing.T) {
	leasetest.Run(t, func(t *testing.T) leasetest.Harness {
		store := coretest.NewStore(nil)
		coretest.AtRandom(store) // the least number first suits tests, not a store
		return leasetest.Harness{
			Seed: 1,
			Open: func(*testing.T) leasetest.Store { return store },
		}
	})
}

func TestAnUnreachableStoreEndsTheKeysAndTheyReturn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := coretest.NewStore(nil)
		gen, l := leased(t, store, lease.Config{})
		defer closeGenerator(t, gen)

		store.Fail(errAway)
		time.Sleep(40 * time.Second)
		if _, err := gen.Next(t.Context()); err != nil {
			t.Errorf("Next() 40 s after the store went away = %v; want a key", err)
		}
		time.Sleep(22 * time.Second) // MaxBehind is 1 s
		if id, err := gen.Next(t.Context()); id != 0 || !errors.Is(err, core.ErrReservationExhausted) {
			t.Errorf("Next() after the window = %d, %v; want 0 and ErrReservationExhausted", id, err)
		}
		if err := l.Status().Err; !errors.Is(err, errAway) {
			t.Errorf("Status().Err = %v; want %v", err, errAway)
		}

		store.Fail(nil)
		time.Sleep(time.Minute)
		if _, err := gen.Next(t.Context()); err != nil {
			t.Errorf("Next() after the store is back = %v; want a key", err)
		}
	})
}

func TestALostReplyIsOfARequestThatWasDone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := coretest.NewStore(nil)
		store.LoseReplies(errAway)
		_, err := lease.Acquire(t.Context(), store, lease.Config{Namespace: store.Namespace(), Logger: slog.New(slog.DiscardHandler)})
		if !errors.Is(err, errAway) {
			t.Errorf("Acquire() = %v; want %v", err, errAway)
		}
		if _, err := store.Renew(t.Context(), leasestore.Renewal{}); err == nil || errors.Is(err, errAway) {
			t.Errorf("Renew() of no lease = %v; want its own error, because there is no reply to lose", err)
		}
		store.LoseReplies(nil)
		gen, l := leased(t, store, lease.Config{})
		defer closeGenerator(t, gen)
		if got := l.Status().Worker; got != 4 {
			t.Errorf("worker after four claims whose replies were lost = %d; want 4", got)
		}
	})
}

func TestASlowStoreIsLateOrTooLate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := coretest.NewStore(nil)
		store.Delay(2 * time.Second)
		began := time.Now()
		gen, l := leased(t, store, lease.Config{})
		if got := time.Since(began); got != 2*time.Second {
			t.Errorf("Acquire() with a delay of 2 s took %v of simulated time; want 2 s", got)
		}

		store.Delay(time.Hour)
		time.Sleep(time.Minute)
		if err := l.Status().Err; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Status().Err with a delay of an hour = %v; want a deadline", err)
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Second)
		defer cancel()
		if err := gen.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close() with a delay of an hour = %v; want a deadline", err)
		}
	})
}

func TestAnEndedLeaseIsToldAndClaimsAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := coretest.NewStore(nil)
		lost := make(chan *leasestore.LostError, 1)
		gen, l := leased(t, store, lease.Config{OnLost: func(err *leasestore.LostError) { lost <- err }})
		defer closeGenerator(t, gen)
		if got := l.Status().Worker; got != 0 {
			t.Errorf("the first worker = %d; want 0", got)
		}
		before, err := gen.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}

		store.EndLeases()
		time.Sleep(16 * time.Second) // more than a quarter of the window
		select {
		case got := <-lost:
			if got.Worker != 0 {
				t.Errorf("OnLost got worker %d; want 0", got.Worker)
			}
		default:
			t.Error("OnLost was not called")
		}
		after, err := gen.Next(t.Context())
		if s := l.Status(); err != nil || after <= before || s.Worker != 1 || s.Losses != 1 {
			t.Errorf("Next() after the loss = %d, %v with %+v; want more than %d of worker 1", after, err, s, before)
		}
	})
}

// Two processes share the numbers of one store.
func TestLeasesOfOneStoreHaveDifferentWorkers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := coretest.NewStore(nil)
		for want := range int64(3) {
			gen, l := leased(t, store, lease.Config{})
			defer closeGenerator(t, gen)
			if got := l.Status().Worker; got != want {
				t.Errorf("worker of lease %d = %d; want %d", want, got, want)
			}
		}
	})
}

func TestAStoreHasTheClockThatItIsGiven(t *testing.T) {
	clock := coretest.NewClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	store := coretest.NewStore(clock.Now)
	_, now, err := store.Rows(t.Context(), leasestore.Space{Namespace: "test", Workers: 1})
	if err != nil || !now.Time().Equal(clock.Now()) {
		t.Errorf("Rows() = clock %v, %v; want %v", now.Time(), err, clock.Now())
	}
}
