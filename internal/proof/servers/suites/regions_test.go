package servers

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
)

// Two regions, one on PostgreSQL and one on MariaDB, have their numbers from either. Eight processes
// of each start at once, and start again when the common store cannot be reached.
func TestRegionsOnServersHaveTwoNumbers(t *testing.T) {
	places := map[string]func(t *testing.T) leaseTarget{
		"PostgreSQL": func(t *testing.T) leaseTarget { return leasePostgres(t, pgxConnector) },
		"MariaDB":    func(t *testing.T) leaseTarget { return leaseMariaDB(t, func(*mysql.Config) {}) },
	}
	for name, make := range places {
		t.Run(name, func(t *testing.T) {
			g := make(t)
			db := g.open(t)
			common := g.store(t, db)
			layout := core.Default()
			layout.DatacenterBits, layout.WorkerBits = 3, layout.WorkerBits-3
			start := func(t *testing.T, region string, own lease.Store) (l *lease.Lease, err error) {
				return lease.Acquire(t.Context(), own, lease.Config{
					Namespace: "shop", Layout: layout, Logger: slog.New(slog.DiscardHandler),
					Region: &lease.Region{Name: region, Store: common},
				})
			}
			numbers := map[string]int64{}
			var stores []lease.Store
			var handles []*sql.DB
			regions := []string{"eu-west-1", "us-east-1"}
			for _, make := range []func(t *testing.T) leaseTarget{places["PostgreSQL"], places["MariaDB"]} {
				g := make(t)
				handles = append(handles, g.open(t))
				stores = append(stores, g.store(t, handles[len(handles)-1]))
			}
			all := func(processes int) {
				var wg sync.WaitGroup
				var mu sync.Mutex
				for r, region := range regions {
					for range processes {
						wg.Go(func() {
							l, err := start(t, region, stores[r])
							if err != nil {
								t.Errorf("Acquire() in %s = %v", region, err)
								return
							}
							defer func() { must(t, l.Close(context.Background())) }()
							mu.Lock()
							defer mu.Unlock()
							n := l.Status().Datacenter
							if was, ok := numbers[region]; ok && was != n {
								t.Errorf("%s has the numbers %d and %d; want one", region, was, n)
							}
							numbers[region] = n
						})
					}
				}
				wg.Wait()
			}
			all(8)
			if numbers[regions[0]] == numbers[regions[1]] {
				t.Errorf("two regions have one number: %v", numbers)
			}
			if l, err := start(t, regions[0], stores[1]); !errors.Is(err, lease.ErrRegion) {
				t.Errorf("Acquire() of a region on the store of another = %v, %v; want ErrRegion", l, err)
			}
			must(t, db.Close())
			all(2)
		})
	}
}
