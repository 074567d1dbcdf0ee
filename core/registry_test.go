package core

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/snowkey/snowkey/types"
)

// tenantOf returns a generator without a number, whose IDs are of a namespace.
func tenantOf(t *testing.T, l Layout, namespace string) (*Generator, *tenant) {
	t.Helper()
	w := &tenant{space: namespace}
	return newTest(t, Config{Layout: l, Worker: w}, nil), w
}

func TestAFixedAndALeasedNumberAreNotOneNumber(t *testing.T) {
	for _, rollback := range []Rollback{Continue, Backfill} {
		synctest.Test(t, func(t *testing.T) {
			l := bubbleLayout(12)
			now := time.Now()
			_, lease := tenantOf(t, l, "orders")
			lease.mustReserve(t, 3, now, now.Add(time.Minute))
			config := Config{Layout: l, Worker: StaticWorker(3), Rollback: rollback}
			if g, err := New(config); g != nil || !errors.Is(err, ErrWorkerInUse) || !strings.Contains(err.Error(), "worker 3") {
				t.Fatalf("%v: New(fixed, as a lease has) = %v, %v; want ErrWorkerInUse that names it", rollback, g, err)
			}

			config.Worker = StaticWorker(4)
			g := newTest(t, config, nil)
			if r, err := lease.binding.Reserve(4, now.Add(time.Hour), now.Add(2*time.Hour)); r != nil || !errors.Is(err, ErrWorkerInUse) {
				t.Fatalf("%v: Reserve(a fixed one) = %v, %v; want ErrWorkerInUse", rollback, r, err)
			}
			if id, err := lease.binding.g.Next(context.Background()); id != 0 || !errors.Is(err, ErrReservationExhausted) {
				t.Errorf("%v: Next() after a refused Reserve = %d, %v; want ErrReservationExhausted", rollback, id, err)
			}

			// The other one has both numbers once they are free, and starts above.
			last := mustNext(t, g)
			_ = g.Close(t.Context())
			lease.mustReserve(t, 4, now, now.Add(time.Minute))
			if id := mustNext(t, lease.binding.g); id <= last {
				t.Errorf("%v: Next(leased, was fixed) = %d; want more than %d", rollback, id, last)
			}
			for range 1 << 15 { // beyond what a restart leaves free
				last = mustNext(t, lease.binding.g)
			}
			_ = lease.binding.g.Close(t.Context())
			if id := mustNext(t, newTest(t, config, nil)); id <= last {
				t.Errorf("%v: Next(fixed, was leased) = %d; want more than %d", rollback, id, last)
			}
		})
	}
}

func TestNoTwoReservationsShareATimeOfAWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		at := func(s int) time.Time { return now.Add(time.Duration(s) * time.Second) }
		for _, test := range []struct {
			namespace   string
			worker      int64
			from, until int
			want        error
		}{
			{"orders", 2, 60, 120, ErrWorkerInUse}, // the same
			{"orders", 2, 0, 61, ErrWorkerInUse},
			{"orders", 2, 119, 200, ErrWorkerInUse},
			{"", 2, 70, 80, ErrWorkerInUse}, // of any namespace
			{"orders", 2, 0, 60, nil},       // taken over, before or after
			{"orders", 2, 120, 180, nil},
			{"orders", 2, 130, 80, nil}, // under the loss guard
			{"orders", 3, 60, 120, nil},
			{"invoices", 2, 60, 120, nil},
		} {
			l := bubbleLayout(4)
			_, one := tenantOf(t, l, "orders")
			g, other := tenantOf(t, l, test.namespace)
			r := one.mustReserve(t, 2, at(60), at(90))
			if err := r.Extend(at(120)); err != nil {
				t.Fatalf("Extend() = %v", err)
			}
			if _, err := other.binding.Reserve(test.worker, at(test.from), at(test.until)); !errors.Is(err, test.want) {
				t.Errorf("Reserve(%q, %d, %d s, %d s) beside worker 2 of orders, 60..120 s = %v; want %v", test.namespace, test.worker, test.from, test.until, err, test.want)
			}
			// Once it is sealed nothing is in the way.
			r.Seal()
			if _, err := other.binding.Reserve(test.worker, at(test.from), at(test.until)); err != nil {
				t.Errorf("Reserve(%+v) when the other one is sealed = %v; want nil", test, err)
			}
			forget(g)
			forget(one.binding.g)
		}
	})
}

func TestExtendStopsAtTheTimeOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := bubbleLayout(4)
		now := time.Now()
		g, one := tenantOf(t, l, "orders")
		_, other := tenantOf(t, l, "orders")
		r := one.mustReserve(t, 2, now, now.Add(time.Minute))
		taken := other.mustReserve(t, 2, now.Add(time.Minute), now.Add(2*time.Minute))
		if err := r.Extend(now.Add(time.Minute + ms)); !errors.Is(err, ErrWorkerInUse) {
			t.Errorf("Extend(into another's time) = %v; want ErrWorkerInUse", err)
		}
		if got := g.Stats().Reserved; !got.Equal(now.Add(time.Minute)) {
			t.Errorf("Stats().Reserved = %v after a refused Extend; want what it was, %v", got, now.Add(time.Minute))
		}
		taken.Seal()
		if err := r.Extend(now.Add(time.Hour)); err != nil {
			t.Errorf("Extend() when the other one is sealed = %v; want nil", err)
		}
		r.Seal()
		if err := r.Extend(now.Add(2 * time.Hour)); err != nil {
			t.Errorf("Extend(sealed) = %v; want nil", err)
		}
	})
}

// Two stores, one after the other, know nothing of each other's times.
func TestAReservationStartsAboveThoseBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := bubbleLayout(4)
		now := time.Now()
		_, one := tenantOf(t, l, "orders")
		one.mustReserve(t, 2, now, now.Add(time.Minute))
		var last types.Snowflake
		for range 100 {
			last = mustNext(t, one.binding.g)
		}
		_ = one.binding.g.Close(t.Context())
		for namespace, above := range map[string]bool{"orders": true, "invoices": false} {
			g, other := tenantOf(t, l, namespace)
			other.mustReserve(t, 2, now, now.Add(time.Minute))
			if id := mustNext(t, g); id > last != above {
				t.Errorf("Next(%s) = %d after %d of orders; want more: %v", namespace, id, last, above)
			}
		}
	})
}
