//go:build linux

package fire

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/core/segment/sqlsegment"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/types"
)

// galeraSegments takes numbers of one tag on all nodes while nodes are cut off and killed.
// They hold few, so that they are mostly at the row, and often lose against each other
// when they commit.
func galeraSegments(t *testing.T, g *galera) {
	store := func() *sqlsegment.Store {
		db := openGalera(g.addresses(), "fire", nil)
		t.Cleanup(func() { _ = db.Close() })
		s, err := sqlsegment.New(db, sqlstore.Config{Dialect: sqlstore.MySQL, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	ctx, cancel := context.WithTimeout(t.Context(), *lasts)
	defer cancel()
	first := store()
	if err := errors.Join(first.CreateTables(ctx), first.Create(ctx, segment.Row{Tag: "orders", Next: 1, Step: 100, Stride: 1})); err != nil {
		t.Fatal(err)
	}
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
			Tag: "orders", Hold: 20 * time.Millisecond, MaxStep: 1000, MaxWait: time.Second, Logger: slog.New(slog.DiscardHandler), OnRefill: refilled,
		})
		if err != nil {
			t.Fatal(err)
		}
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
	strike := g.strikes(cutGaleraNode, killGaleraNode, deafenGaleraNode, killAllGaleraNodes)
	for i := 0; Rest(ctx, time.Second, 3*time.Second); i++ {
		if err := strike(ctx, i); err != nil {
			t.Error(err)
		}
	}
	takers.Wait()
	slices.Sort(all)
	if n := len(slices.Compact(slices.Clone(all))); n != len(all) || n < 1000 {
		t.Errorf("%d numbers, %d of them different; want no other, and 1,000 or more", len(all), n)
	}
	t.Logf("%d numbers from %d fetches, of which failed: %v", len(all), refills, failures)
}
