package servers

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
)

// Two regions, one on PostgreSQL and one on MariaDB, have their numbers from either, or from MySQL. Eight processes
// of each start at once, and start again when the common store cannot be reached.
func TestRegionsOnServersHaveTwoNumbers(t *testing.T) {
	eachServer(t, func(t *testing.T, w way) {
		g := w.target(t)
		db := g.open(t)
		common := g.store(t, db)
		layout := core.Default()
		layout.DatacenterBits, layout.WorkerBits = 3, layout.WorkerBits-3
		own := map[string]lease.Store{}
		for region, place := range map[string]leaseTarget{"eu-west-1": wayTo("pgx").target(t), "us-east-1": wayTo("MariaDB").target(t)} {
			own[region] = place.store(t, place.open(t))
		}
		start := func(region string, own lease.Store) (*lease.Lease, error) {
			return lease.Acquire(t.Context(), own, lease.Config{
				Namespace: "shop", Layout: layout, Logger: quiet,
				Region: &lease.Region{Name: region, Store: common},
			})
		}
		var mu sync.Mutex
		numbers := map[string]int64{}
		all := func(processes int) {
			var wg sync.WaitGroup
			for region, store := range own {
				for range processes {
					wg.Go(func() {
						l, err := start(region, store)
						if err != nil {
							t.Errorf("Acquire() in %s = %v", region, err)
							return
						}
						mu.Lock()
						defer mu.Unlock()
						n := l.Status().Datacenter
						if was, ok := numbers[region]; ok && was != n {
							t.Errorf("%s has the numbers %d and %d; want one", region, was, n)
						}
						numbers[region] = n
						if err := l.Close(context.Background()); err != nil {
							t.Errorf("Close() in %s = %v", region, err)
						}
					})
				}
			}
			wg.Wait()
		}
		all(8)
		if numbers["eu-west-1"] == numbers["us-east-1"] {
			t.Errorf("two regions have one number: %v", numbers)
		}
		if l, err := start("eu-west-1", own["us-east-1"]); !errors.Is(err, lease.ErrRegion) {
			t.Errorf("Acquire() of a region on the store of another = %v, %v; want ErrRegion", l, err)
		}
		must(t, db.Close())
		all(2)
	})
}
