//go:build linux

package fire

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/core/segment/sqlsegment"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/proof/robust/chaos"
	"github.com/snowkey/snowkey/types"
)

// segments takes numbers of one tag on all nodes of a cluster that is struck again and again. The allocators
// hold few, so that they are mostly at the row, and often lose against each other when they commit.
func segments(t *testing.T, c *cluster, strike func(ctx context.Context, strike int) error) {
	t.Helper()
	store := func() *sqlsegment.Store {
		db := openInTurn(c.dsn, "fire", nil)
		t.Cleanup(func() { _ = db.Close() })
		s, err := sqlsegment.New(db, sqlstore.Config{Dialect: sqlstore.MySQL, Logger: quiet})
		must(t, err)
		return s
	}
	ctx, cancel := context.WithTimeout(t.Context(), *lasts)
	defer cancel()
	first := store()
	must(t, errors.Join(first.CreateTables(ctx), first.Create(ctx, segment.Row{Tag: "orders", Next: 1, Step: 100, Stride: 1})))
	var mu sync.Mutex // guards what follows
	var all []types.Snowflake
	refills, failures := 0, map[string]int{}
	refilled := func(r segment.Refill) {
		mu.Lock()
		defer mu.Unlock()
		refills++
		if r.Err != nil {
			failures[r.Err.Error()]++
		}
	}
	var takers sync.WaitGroup
	for range Holders {
		a, err := segment.New(store(), segment.Config{
			Tag: "orders", Hold: 20 * time.Millisecond, MaxStep: 1000, MaxWait: time.Second, Logger: quiet, OnRefill: refilled,
		})
		must(t, err)
		takers.Go(func() {
			var own []types.Snowflake
			numbers := make([]types.Snowflake, 100)
			for ctx.Err() == nil {
				switch err := a.Fill(ctx, numbers); {
				case err == nil:
					own = append(own, numbers...)
				case errors.Is(err, segment.ErrWentBack):
					t.Error(err)
					return
				}
				Rest(ctx, 0, 10*time.Millisecond)
			}
			_ = a.Close(context.WithoutCancel(ctx)) // gives back, if it can
			mu.Lock()
			defer mu.Unlock()
			all = append(all, own...)
		})
	}
	for i := 0; Rest(ctx, time.Second, 3*time.Second); i++ {
		if err := strike(ctx, i); err != nil && ctx.Err() == nil {
			t.Error(err)
		}
	}
	takers.Wait()
	if repeated := chaos.Repeated(all); len(repeated) > 0 || len(all) < 1000 {
		t.Errorf("of %d numbers %d were repeated, the first of them %v; want none, of 1,000 or more", len(all), len(repeated), repeated[:min(len(repeated), 10)])
	}
	t.Logf("%d numbers from %d fetches, of which failed: %v", len(all), refills, failures)
}
