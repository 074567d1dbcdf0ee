package lease_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/types"
)

// fixed returns a generator with a fixed worker number, in the layout of the leases. No other
// test may use that number: after a fixed generator, the IDs of its number begin above its last in
// every namespace, and each simulated test begins at the same time as the one before.
func fixed(t *testing.T, worker int64) *core.Generator {
	t.Helper()
	g, err := core.New(core.Config{Worker: shown{core.StaticWorker(worker)}})
	if err != nil {
		t.Fatalf("New(StaticWorker(%d)) = %v", worker, err)
	}
	return g
}

// shown is a Worker that shows the clock of the tests.
type shown struct{ core.Worker }

func (shown) WallClock() func() time.Time { return now }

// A number that a generator of this process has already, fixed or from another
// store, is given back. The lease claims another.
func TestAWorkerNumberInUseIsGivenBackForAnother(t *testing.T) {
	for _, other := range []string{"fixed", "of another store"} {
		synctest.Test(t, func(t *testing.T) {
			s := newStore()
			h := hold(t, s, lease.Config{Workers: []int64{701, 702, 703}})
			lost := h.Status().Worker
			used := 701 + (lost-701+1)%3
			free := 701 + (lost-701+2)%3
			h.id()
			for worker := int64(701); worker <= 703; worker++ {
				switch {
				case worker == lost:
					s.Set(space(t), leasestore.Row{Worker: worker, Epoch: 9, Owner: "another", Until: leasestore.MillisOf(now().Add(24 * time.Hour))})
				case worker == used && other == "fixed":
					g := fixed(t, worker)
					defer g.Close(t.Context())
				case worker == free: // when the lease has been refused the other
					s.Set(space(t), leasestore.Row{Worker: worker, Epoch: 9, Owner: "another", Until: leasestore.MillisOf(now().Add(time.Minute))})
				default:
					g := hold(t, newStore(), lease.Config{Workers: []int64{worker}, Window: 10 * time.Minute})
					defer g.close()
				}
			}
			time.Sleep(2 * time.Minute)
			h.id()
			if got := h.Status(); !got.Held || got.Worker != free {
				t.Errorf("%s: Status() = %+v; want worker %d, as %d is in use", other, got, free, used)
			}
			if row := s.row(t, used); row.Owner != "" {
				t.Errorf("%s: row %+v; want it given back", other, row)
			} else if row.Epoch < 2 {
				t.Errorf("%s: row %+v; want it claimed, and given back", other, row)
			}
			h.close()
		})
	}
}

// Processes whose layouts differ in their shards alone may have one number in turn, as those with
// one layout: the store knows their space by one name, and what it keeps apart is time.
func TestHoldersWithAndWithoutShardsHaveANumberInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		seen := map[types.Snowflake]bool{}
		var last types.Snowflake
		for i, bits := range []int{0, 4, 11, 0, 4} {
			l := core.Default()
			l.ShardBits = bits
			held, err := lease.Acquire(t.Context(), s, lease.Config{Namespace: namespace(t), Now: now, Layout: l, Workers: []int64{7}, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatalf("holder %d, %d ShardBits: Acquire = %v", i, bits, err)
			}
			l.ShardBits ^= 1 // nor need the generator's be those of the lease
			g, err := core.New(core.Config{Layout: l, Worker: held})
			if err != nil {
				t.Fatalf("holder %d, %d ShardBits: New = %v", i, bits, err)
			}
			for range 500 {
				id, err := g.Next(t.Context())
				if err != nil || id <= last || seen[id] {
					t.Fatalf("holder %d, %d ShardBits: Next = %d, %v after %d", i, bits, id, err, last)
				}
				last, seen[id] = id, true
			}
			if err := g.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A span is a Worker that has one worker number for some time to come, as a lease from
// another store may have, whose clock is ahead.
type span struct {
	core.Worker
	namespace   string
	worker      int64
	from, until time.Time
}

func (s span) Namespace() string { return s.namespace }

func (span) WallClock() func() time.Time { return now }

func (s span) Bind(b *core.Binding) error {
	_, err := b.Reserve(s.worker, s.from, s.until)
	return err
}

// A renewal that the generator refuses is given back. Once the row is free, anyone may use
// the rest of its time, so the generator must have ended before.
func TestARefusedRenewalIsGivenBackSealed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		h := hold(t, s, lease.Config{Workers: []int64{1, 2, 3, 4, 5, 6, 7, 8}, Window: 16 * time.Second})
		defer h.close()
		last, had := h.id(), h.Status().Worker
		other, err := core.New(core.Config{Worker: span{
			core.StaticWorker(0), namespace(t), had, now().Add(18 * time.Second), now().Add(40 * time.Second),
		}})
		if err != nil {
			t.Fatalf("New() = %v; want a generator of the time after the lease's limit", err)
		}
		defer other.Close(t.Context())
		var first *leasestore.Row // as it was given back; the lease may claim it again, and give it back again
		s.set(only("release", func(ctx context.Context, _ string, do func() error) error {
			soon, cancel := context.WithTimeout(ctx, time.Millisecond)
			defer cancel()
			if id, err := h.gen.Next(soon); !errors.Is(err, core.ErrReservationExhausted) {
				t.Errorf("Next() while the row is given back = %d, %v; want ErrReservationExhausted", id, err)
			}
			err := do()
			if first == nil {
				row := s.row(t, had)
				first = &row
			}
			return err
		}))
		time.Sleep(10 * time.Second)
		s.set(nil)
		if first == nil {
			t.Fatal("no row was given back; want that of the renewal which reaches into the time of the other")
		}
		end := core.Default().Parts(last).Time.Add(time.Millisecond)
		if first.Owner != "" || !first.Until.Time().Equal(end) {
			t.Errorf("row %+v; want it free from the end of the last ID, %v", *first, end)
		}
		if id := h.id(); core.Default().Parts(id).Worker == had {
			t.Errorf("Next() = an ID of worker %d; want one of the other number", had)
		}
	})
}

// There is no other number to claim. The lease tries until this one is free, with pauses.
func TestAWorkerNumberInUseIsTriedAgainNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		h := hold(t, s, lease.Config{Workers: []int64{704}, Window: 16 * time.Second})
		h.id()
		s.Set(space(t), leasestore.Row{Worker: 704, Epoch: 9, Owner: "another", Until: leasestore.MillisOf(now().Add(10 * time.Second))})
		time.Sleep(8 * time.Second) // the lease is lost
		g := fixed(t, 704)
		before := s.count("claim")
		time.Sleep(time.Minute)
		if claims := s.count("claim") - before; claims < 30 || claims > 601 {
			t.Errorf("%d claims in a minute; want a pause of 100 ms to 2 s after each", claims)
		}
		if st := h.Status(); st.Held || !errors.Is(st.Err, core.ErrWorkerInUse) {
			t.Errorf("Status() = %+v; want nothing held, and ErrWorkerInUse", st)
		}
		if n := h.log.count("level=ERROR", core.ErrWorkerInUse.Error()); n == 0 {
			t.Error("no record of it")
		}
		if err := g.Close(t.Context()); err != nil {
			t.Error(err)
		}
		h.id()
		h.close()
	})
}

// Two stores for one namespace are a mistake: they give two generators one number.
func TestTwoStoresOfOneNamespaceAreRefusedInOneProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hold(t, newStore(), lease.Config{Workers: []int64{6}})
		defer h.close()
		again := func(namespace string) (*core.Generator, error) {
			l, err := lease.Acquire(t.Context(), newStore(), lease.Config{Namespace: namespace, Workers: []int64{6}, Now: now, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = l.Close(t.Context()) })
			defer func() {
				if err := l.Close(context.Background()); err != nil {
					t.Error(err)
				}
			}()
			return core.New(core.Config{Worker: l})
		}
		if g, err := again(namespace(t)); g != nil || !errors.Is(err, core.ErrWorkerInUse) {
			t.Errorf("New(the same namespace) = %v, %v; want ErrWorkerInUse", g, err)
		}
		if _, err := again("elsewhere"); err != nil {
			t.Errorf("New(another namespace) = %v; want a generator: its IDs are another set", err)
		}
	})
}
