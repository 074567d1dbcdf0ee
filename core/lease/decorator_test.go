package lease_test

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/leasetest"
	"github.com/snowkey/snowkey/types"
)

// The usual wrappers, as for metrics or a trace. They have the methods of the interface
// that they embed, and no other of what is inside.
type (
	timedStore  struct{ lease.Store }
	timedWorker struct{ core.Worker }
)

// A store that has lost a failover's writes gives the same row to a second process. If the
// guard is off, that one repeats the IDs of the first.
func TestAStoreInADecoratorKeepsTheLossGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{Memory: leasetest.NewMemory(now), lossy: true}
		before := s.Snapshot()
		seen := map[types.Snowflake]bool{}
		for i := range 2 {
			l, err := lease.Acquire(t.Context(), timedStore{process{s}}, lease.Config{
				Namespace: namespace(t) + string(rune('a'+i)), Workers: []int64{3}, Now: now, Logger: slog.New(slog.DiscardHandler),
			})
			if err != nil {
				t.Fatalf("Acquire() = %v; want a lease", err)
			}
			g, err := core.New(core.Config{Worker: l, MaxLeaseWait: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			defer g.Close(t.Context())
			ids := make([]types.Snowflake, 1000)
			if err := g.Fill(t.Context(), ids); err != nil {
				t.Fatalf("Fill() = %v; want IDs", err)
			}
			for _, id := range ids {
				if seen[id] {
					t.Fatalf("process %d repeats the ID %d", i, id)
				}
				seen[id] = true
			}
			s.Restore(before)
		}
	})
}

func TestAWorkerInADecoratorKeepsItsClockAndNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, namespace := range []string{namespace(t) + "-one", namespace(t) + "-two"} {
			l, err := lease.Acquire(t.Context(), newStore(), lease.Config{
				Namespace: namespace, Workers: []int64{3}, Now: now, Logger: slog.New(slog.DiscardHandler),
			})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close(t.Context())
			g, err := core.New(core.Config{Worker: timedWorker{l}})
			if err != nil {
				t.Fatalf("New() in namespace %s = %v; want a generator with the clock of its lease, beside that of another namespace", namespace, err)
			}
			defer g.Close(t.Context())
			id, err := g.Next(t.Context())
			if err != nil {
				t.Fatalf("Next() in namespace %s = %v; want an ID", namespace, err)
			}
			if p := core.Default().Parts(id); p.Worker != 3 || !p.Time.Equal(now().Truncate(time.Millisecond)) {
				t.Errorf("Next() = an ID of %+v; want worker 3 and the lease's time, %v", p, now())
			}
		}
	})
}
