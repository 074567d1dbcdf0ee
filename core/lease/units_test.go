package lease_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/leasetest"
	"github.com/snowkey/snowkey/types"
)

// A process is a store as another process sees it. Package core remembers, by namespace, where
// the generators of this process stopped, so every such process has its own name for the shared
// namespace and knows of the others only by the rows.
type process struct{ lease.Store }

func elsewhere(s leasestore.Space) leasestore.Space { s.Namespace = "shared"; return s }

func (p process) Claim(ctx context.Context, c leasestore.Claim) (leasestore.Reply, error) {
	c.Space = elsewhere(c.Space)
	return p.Store.Claim(ctx, c)
}

func (p process) Renew(ctx context.Context, r leasestore.Renewal) (leasestore.Reply, error) {
	r.Space = elsewhere(r.Space)
	return p.Store.Renew(ctx, r)
}

func (p process) Release(ctx context.Context, r leasestore.Release) error {
	r.Space = elsewhere(r.Space)
	return p.Store.Release(ctx, r)
}

// anyLayout returns a layout that Validate accepts, for times from its epoch to a while
// after now.
func anyLayout(rng *rand.Rand, now time.Time) core.Layout {
	unit := time.Duration(1) << (10 + rng.IntN(20)) // from 1 µs to 1 s, each size alike
	unit += time.Duration(rng.Int64N(int64(unit)))
	switch rng.IntN(4) {
	case 0:
		unit = unit.Truncate(time.Microsecond)
	case 1:
		unit = []time.Duration{time.Microsecond, 100 * time.Microsecond, 999999, time.Millisecond, 1000001, 3500 * time.Microsecond, time.Second}[rng.IntN(7)]
	}
	unit = min(max(unit, time.Microsecond), time.Second)
	age := time.Duration(rng.Int64N(int64(100 * 365 * 24 * time.Hour)))
	l := core.Layout{Epoch: now.Add(-age), Unit: unit, WorkerBits: rng.IntN(3), SequenceBits: 1 + rng.IntN(8)}
	l.TimeBits = bits.Len64(uint64((age + 24*time.Hour) / unit))
	l.SequenceBits = min(l.SequenceBits, 63-l.TimeBits-l.WorkerBits)
	return l
}

// The law: whatever the unit and the epoch, a row that was given back begins right after
// the last tick that was issued, in whole milliseconds, and who claims it next repeats no
// ID. Stores keep milliseconds, so both sides have to round the right way.
func TestARowIsPassedOnWithoutARepeatedIDWhateverTheUnitAndEpoch(t *testing.T) {
	rng := rand.New(rand.NewPCG(lease.SeedLuck(t), 0))
	synctest.Test(t, func(t *testing.T) {
		for n := range 300 {
			layout, rollback := anyLayout(rng, now()), core.Rollback(rng.IntN(int(core.Backfill)+1))
			memory := leasetest.NewMemory(now)
			seen := map[types.Snowflake]bool{}
			for turn := range 4 {
				l, err := lease.Acquire(t.Context(), process{memory}, lease.Config{
					Namespace: fmt.Sprintf("%s-%d-%d", namespace(t), n, turn), Layout: layout, Workers: []int64{0}, Now: now, Logger: slog.New(slog.DiscardHandler),
					AcquireWait: -1, // a crash leaves the row reserved
				})
				if err != nil {
					t.Fatalf("Acquire() with %+v = %v; want a lease", layout, err)
				}
				g, err := core.New(core.Config{Layout: layout, Worker: l, Rollback: rollback})
				if err != nil {
					t.Fatalf("New() with %+v = %v; want a generator", layout, err)
				}
				ids := make([]types.Snowflake, 1+rng.IntN(40))
				if err := g.Fill(t.Context(), ids); err != nil {
					t.Fatalf("Fill() with %+v = %v; want IDs", layout, err)
				}
				limit := l.Status().Limit
				for _, id := range ids {
					p := layout.Parts(id)
					if back, err := layout.Compose(p); back != id || err != nil || p.Worker != 0 || p.Time.Add(layout.Unit).After(limit) {
						t.Errorf("%+v: ID %d has parts %+v, which make %d, %v; want the ID, worker 0 and a tick before %v", layout, id, p, back, err, limit)
					}
					if seen[id] {
						t.Fatalf("%+v: ID %d of turn %d is a repetition", layout, id, turn)
					}
					seen[id] = true
				}
				ctx, cancel := context.WithCancel(t.Context())
				crash := rng.IntN(4) == 0
				if crash {
					cancel() // nothing is sent
				}
				if err := g.Close(ctx); (err != nil) != crash {
					t.Fatalf("Close() = %v; crash %t", err, crash)
				}
				cancel()
				if !crash {
					s := leasestore.Space{Namespace: "shared", Workers: 1}
					rows, _, err := memory.Rows(t.Context(), s)
					if err != nil {
						t.Fatal(err)
					}
					end := layout.Parts(slices.Max(ids)).Time.Add(layout.Unit)
					if got := rows[0].Until.Time(); got.Before(end) || got.Sub(end) >= time.Millisecond {
						t.Fatalf("%+v: the row was given back at %v; want the end of the last tick, %v, rounded up to ms", layout, got, end)
					}
				}
				if rng.IntN(2) == 0 { // else the next begins where this one ended, maybe in the same millisecond
					time.Sleep(time.Duration(rng.Int64N(int64(2 * time.Second))))
				}
			}
		}
	})
}
