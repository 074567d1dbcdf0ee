package lease_test

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/leasetest"
)

// The steps of docs/operations.md, "A row far ahead". The clock of the host was a year
// ahead, and so was that of the store. Three processes had a number, and one of them has
// made a key that was stored.
func TestAnEmptyStoreThatIsFencedIsTheWayOutOfRowsFarAhead(t *testing.T) {
	var right atomic.Bool
	clock := func() time.Time {
		if right.Load() {
			return now()
		}
		return now().AddDate(1, 0, 0)
	}
	// A layout of its own: package core remembers the numbers of a layout that are ahead, and
	// fixed worker numbers of other tests begin above those of all namespaces.
	layout := core.Default()
	layout.Epoch = layout.Epoch.Add(-time.Hour)
	c := quiet(t, lease.Config{Layout: layout, Workers: []int64{0, 1, 2}})
	then := c
	then.Now = clock
	old := leasetest.NewMemory(clock)
	var stored core.Parts
	for i := range 3 {
		l, err := lease.Acquire(t.Context(), old, then)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close(t.Context()) }()
		if i == 0 {
			gen, err := core.New(core.Config{Layout: layout, Worker: l})
			if err != nil {
				t.Fatal(err)
			}
			id, err := gen.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			stored = gen.Layout().Parts(id)
		}
	}
	// They are killed, and the clock is set right.
	right.Store(true)
	var none *lease.NoFreeWorkerError
	if _, err := lease.Acquire(t.Context(), old, c); !errors.As(err, &none) || len(none.Ahead) != 3 {
		t.Fatalf("Acquire() = %v; want that all three rows are far ahead", err)
	}

	// An empty store begins at the time of the fence, and leaves out the number that has
	// made a key ahead of the clock. In a year another would make that key again.
	fresh := leasetest.NewMemory(now)
	until := now()
	if err := lease.Fence(t.Context(), fresh, c, until); err != nil {
		t.Fatal(err)
	}
	c.Workers = slices.DeleteFunc(c.Workers, func(worker int64) bool { return worker == stored.Worker })
	for range 2 {
		l, err := lease.Acquire(t.Context(), fresh, c)
		if err != nil {
			t.Fatalf("Acquire() in the new store = %v; want a number", err)
		}
		defer func() { _ = l.Close(t.Context()) }()
		gen, err := core.New(core.Config{Layout: layout, Worker: l})
		if err != nil {
			t.Fatal(err)
		}
		id, err := gen.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if p := gen.Layout().Parts(id); p.Worker == stored.Worker || p.Time.Before(until.Truncate(time.Millisecond)) || p.Time.After(now().Add(time.Second)) {
			t.Errorf("key of worker %d at %v; want none of worker %d, and from %v to now", p.Worker, p.Time, stored.Worker, until)
		}
	}
	if _, err := lease.Acquire(t.Context(), fresh, c); !errors.Is(err, lease.ErrNoFreeWorker) {
		t.Errorf("a third Acquire() = %v; want ErrNoFreeWorker", err)
	}
}
