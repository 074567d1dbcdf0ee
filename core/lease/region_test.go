package lease_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/leasetest"
)

// A site is a store whose lists of rows may go wrong too.
type site struct{ *store }

func newSite() site { return site{newStore()} }

func (s site) Rows(ctx context.Context, sp leasestore.Space) (rows []leasestore.Row, now leasestore.Millis, err error) {
	err = s.call(ctx, "rows", nil, func() error { rows, now, err = s.Memory.Rows(context.WithoutCancel(ctx), sp); return err })
	return rows, now, err
}

// copied returns a store with what s has now.
func (s site) copied() site {
	c := newSite()
	c.Restore(s.Snapshot())
	return c
}

// regional has eight datacenters.
func regional() core.Layout {
	l := core.Default()
	l.DatacenterBits, l.WorkerBits = 3, l.WorkerBits-3
	return l
}

// in returns the settings of a process of a region.
func in(t *testing.T, name string, common lease.Store) lease.Config {
	return quiet(t, lease.Config{Layout: regional(), Region: &lease.Region{Name: name, Store: common}})
}

// start acquires a lease, and closes it when the test ends.
func start(t *testing.T, own lease.Store, c lease.Config) *lease.Lease {
	t.Helper()
	l, err := lease.Acquire(t.Context(), own, c)
	if err != nil {
		t.Fatalf("Acquire() in region %s = %v; want a lease", c.Region.Name, err)
	}
	t.Cleanup(func() { _ = l.Close(context.Background()) })
	return l
}

// refused checks that a region gets no lease, and returns why.
func refused(t *testing.T, own lease.Store, c lease.Config, number int64, words string) {
	t.Helper()
	l, err := lease.Acquire(t.Context(), own, c)
	if err == nil {
		defer l.Close(t.Context())
	}
	var why *lease.RegionError
	if !errors.As(err, &why) || !errors.Is(err, lease.ErrRegion) || !errors.Is(err, lease.ErrPermanent) || why.Datacenter != number || why.Region != c.Region.Name || !strings.Contains(err.Error(), words) {
		t.Errorf("Acquire() in region %s = %v, %v; want it refused with number %d because of %q", c.Region.Name, l, err, number, words)
	}
}

// assigned returns the rows of the numbers that are taken.
func (s site) assigned(t *testing.T) (rows []leasestore.Row) {
	t.Helper()
	all, _, err := s.Memory.Rows(t.Context(), leasestore.Space{Namespace: namespace(t) + ".regions", Workers: 8})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range all {
		if row.Owner != "" {
			rows = append(rows, row)
		}
	}
	return rows
}

// free gives a row back as an operator does.
func free(t *testing.T, s site, space string, number int64, end time.Time) {
	t.Helper()
	sp := leasestore.Space{Namespace: namespace(t) + space, Workers: 8, Layout: lease.Fingerprint(regional()) + leasestore.RegionsMark}
	rows, _, err := s.Memory.Rows(t.Context(), sp)
	if err == nil {
		row := rows[number]
		err = s.Memory.Release(t.Context(), leasestore.Release{Space: sp, Worker: number, Epoch: row.Epoch, Owner: row.Owner, Known: []string{row.Nonce}, Nonce: strings.Repeat("f", 32), End: leasestore.MillisOf(end)})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestEachRegionHasANumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		common := newSite()
		var wg sync.WaitGroup
		var mu sync.Mutex
		numbers := map[string]map[int64]int{}
		for name := range 4 {
			own := newSite()
			name := fmt.Sprintf("region-%d", name)
			its := map[int64]int{}
			numbers[name] = its
			for range 8 { // all start at once
				wg.Go(func() {
					l := start(t, own, in(t, name, common))
					mu.Lock()
					defer mu.Unlock()
					its[l.Status().Datacenter]++
				})
			}
		}
		wg.Wait()
		all := map[int64]bool{}
		for name, its := range numbers {
			for number, processes := range its {
				if processes != 8 || all[number] {
					t.Errorf("region %s has numbers %v, of %v; want one of its own", name, its, numbers)
				}
				all[number] = true
			}
		}
		if rows := common.assigned(t); len(rows) != 4 {
			t.Errorf("the common store has assigned %+v; want 4 numbers", rows)
		}
	})
}

func TestAGeneratorHasTheNumberOfItsRegion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		common, layout := newSite(), regional()
		_ = start(t, newSite(), in(t, "first", common))
		c, own := in(t, "second", common), newSite()
		c.Region.Datacenters = []int64{5}
		l := start(t, own, c)
		if _, err := core.New(core.Config{Layout: layout, Worker: l}); err == nil || !strings.Contains(err.Error(), "core.Config.Datacenter is 0: want 5") {
			t.Errorf("New() without the number = %v; want it refused", err)
		}
		gen, err := core.New(core.Config{Layout: layout, Datacenter: l.Status().Datacenter, Worker: l})
		if err != nil {
			t.Fatal(err)
		}
		if id, err := gen.Next(t.Context()); err != nil || layout.Parts(id).Datacenter != 5 {
			t.Errorf("Next() = an ID of %+v, %v; want datacenter 5", layout.Parts(id), err)
		}
		c.Region.Datacenters = []int64{6}
		refused(t, own, c, 5, "Datacenters is [6]")
		refused(t, newSite(), c, 5, "a region of that name has it already")
	})
}

// The number is needed once from the common store, and never again.
func TestARegionThatIsCutOffGoesOn(t *testing.T) {
	for name, down := range map[string]fault{"away": away, "hangs": hangs} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				common, own := newSite(), newSite()
				common.set(down)
				if l, err := lease.Acquire(t.Context(), own, in(t, "west", common)); err == nil || errors.Is(err, lease.ErrRegion) || !strings.Contains(err.Error(), `region "west"`) {
					t.Fatalf("Acquire() at the first start = %v, %v; want the error of the common store", l, err)
				}
				common.set(nil)
				first := start(t, own, in(t, "west", common))
				common.set(down)
				time.Sleep(6 * time.Hour)
				if err := first.Check(t.Context()); err != nil {
					t.Errorf("Check() after six hours = %v; want nil", err)
				}
				var log logbook
				c := in(t, "west", common)
				c.Logger = slog.New(slog.NewTextHandler(&log, nil))
				second := start(t, own, c)
				if got, want := second.Status().Datacenter, first.Status().Datacenter; got != want || !second.Status().Held {
					t.Errorf("a process that started meanwhile has number %d; want %d", got, want)
				}
				time.Sleep(time.Hour)
				if n := log.count("the datacenter number of the region is not confirmed", "level=WARN"); n != 1 {
					t.Errorf("the log has %d warnings; want 1", n)
				}
				common.set(nil)
				time.Sleep(3 * time.Minute)
				if n := log.count("the datacenter number of the region is confirmed again"); n != 1 {
					t.Errorf("the log says %d times that it is confirmed; want 1", n)
				}
			})
		})
	}
}

func TestOneProcessOfARegionMarksItsNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		common, own := newSite(), newSite()
		for range 20 {
			start(t, own, in(t, "west", common))
		}
		time.Sleep(10 * time.Minute)
		before := common.assigned(t)[0].Renewals
		time.Sleep(time.Hour)
		// Who marks it has seen no mark since its last look, which was 30 to 90 s before.
		if n := common.assigned(t)[0].Renewals - before; n < 20 || n > 121 {
			t.Errorf("20 processes have marked the number %d times in an hour; want about 60", n)
		}
	})
}

// A database that is copied for another region brings the number along.
func TestACopyForAnotherRegionIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		common, own := newSite(), newSite()
		first := start(t, own, in(t, "west", common))
		second := own.copied()
		refused(t, second, in(t, "east", common), 0, `its own store is that of region "west"`)
		common.set(away) // it needs no other store to find out
		refused(t, second, in(t, "east", common), 0, `its own store is that of region "west"`)
		common.set(nil)
		free(t, second, ".home", 0, now())
		if l := start(t, second, in(t, "east", common)); l.Status().Datacenter == first.Status().Datacenter {
			t.Errorf("two regions have number %d", l.Status().Datacenter)
		}
	})
}

// A copy that has the name as well, as of a machine with all its settings.
func TestOfARegionAndItsCopyOneStops(t *testing.T) {
	for _, test := range []struct {
		name string
		wait time.Duration // until the copy starts
	}{{"at once", 0}, {"later", 10 * time.Minute}} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				common, own := newSite(), newSite()
				west := func(worker int64) (lease.Config, *logbook) {
					c, log := in(t, "west", common), new(logbook)
					c.Workers, c.Logger = []int64{worker}, slog.New(slog.NewTextHandler(log, nil))
					return c, log
				}
				c, log1 := west(1)
				original := start(t, own, c)
				generator, err := core.New(core.Config{Layout: regional(), Datacenter: original.Status().Datacenter, Worker: original, MaxLeaseWait: time.Second})
				if err != nil {
					t.Fatal(err)
				}
				second := own.copied()
				time.Sleep(test.wait)
				c, log2 := west(2)
				if test.wait > 0 {
					refused(t, second, c, 0, "it is a copy of the region's store")
					return
				}
				imitation := start(t, second, c)
				time.Sleep(5 * time.Minute)
				ended, goesOn, log := imitation, original, log2
				if imitation.Status().Held {
					ended, goesOn, log = original, imitation, log1
					if id, err := generator.Next(t.Context()); err == nil {
						t.Errorf("Next() of the region that is refused = %d; want an error", id)
					}
				}
				if err := goesOn.Check(t.Context()); err != nil {
					t.Errorf("Check() of one = %v; want nil", err)
				}
				if err := ended.Check(t.Context()); !errors.Is(err, lease.ErrRegion) {
					t.Errorf("Check() of the other = %v; want ErrRegion", err)
				}
				common.set(away)
				time.Sleep(5 * time.Minute)
				if err := ended.Check(t.Context()); !errors.Is(err, lease.ErrRegion) || goesOn.Check(t.Context()) != nil {
					t.Errorf("Check() when the common store is away = %v and %v; want nothing changed", err, goesOn.Check(t.Context()))
				}
				if log.count("lease: the region is refused", "level=ERROR") != 1 || log.count("lease: lost the worker number", "its region may not use") != 1 {
					t.Errorf("the log has %s; want the refusal and the loss", &log.buf)
				}
			})
		})
	}
}

func TestARestoredRegionIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		common, own := newSite(), newSite()
		l := start(t, own, in(t, "west", common))
		backup := own.Snapshot()
		time.Sleep(time.Hour)
		_ = l.Close(t.Context())
		own.Restore(backup)
		refused(t, own, in(t, "west", common), 0, "or it was restored")
		// With another number it needs no fence.
		free(t, own, ".home", 0, now())
		refused(t, own, in(t, "west", common), 0, "a region of that name has it already")
		free(t, common, ".regions", 0, now().Add(70*time.Minute))
		if l := start(t, own, in(t, "west", common)); l.Status().Datacenter == 0 {
			t.Error("the region has the number that was freed just now; want another")
		}
	})
}

// The next region may have a clock that is behind.
func TestAFreedNumberBeginsAfterItsIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		common, layout := newSite(), regional()
		c := in(t, "west", common)
		c.Region.Datacenters = []int64{3}
		first := start(t, newSite(), c)
		last, err := layout.Compose(core.Parts{Time: now().Add(time.Hour), Datacenter: 3})
		if err != nil {
			t.Fatal(err)
		}
		_ = first.Close(t.Context())
		freed := now().Add(70 * time.Minute)
		free(t, common, ".regions", 3, freed)
		c = in(t, "east", common)
		c.Region.Datacenters = []int64{3}
		refused(t, newSite(), c, -1, "taken")
		time.Sleep(70 * time.Minute)
		c.Now = func() time.Time { return now().Add(-5 * time.Second) }
		second := start(t, site{&store{Memory: leasetest.NewMemory(c.Now)}}, c)
		gen, err := core.New(core.Config{Layout: layout, Datacenter: 3, Worker: second, MaxLeaseWait: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if id, err := gen.Next(t.Context()); err != nil || id <= last || layout.Parts(id).Time.Before(freed) {
			t.Errorf("Next() = %d of %s, %v; want one after %s", id, layout.Parts(id).Time, err, freed)
		}
	})
}

func TestRegionsSurviveALossOfTheCommonStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		common := newSite()
		var all []*lease.Lease
		for name := range 3 {
			all = append(all, start(t, newSite(), in(t, fmt.Sprintf("region-%d", name), common)))
		}
		backup := common.Snapshot()
		for _, state := range []leasetest.Snapshot{backup, {}} {
			time.Sleep(time.Hour)
			common.Restore(state)
			time.Sleep(3 * time.Minute)
			if rows := common.assigned(t); len(rows) != 3 {
				t.Errorf("the common store has %+v; want 3 numbers", rows)
			}
			for _, l := range all {
				if err := l.Check(t.Context()); err != nil {
					t.Errorf("Check() of number %d = %v; want nil", l.Status().Datacenter, err)
				}
			}
		}
		if l := start(t, newSite(), in(t, "new", common)); l.Status().Datacenter != 3 {
			t.Errorf("the next region has number %d; want 3", l.Status().Datacenter)
		}
	})
}

// A home that was freed while processes run must not leave them with a number that another region
// may get.
func TestAFreedHomeEndsTheLeasesOfARegion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		common, own := newSite(), newSite()
		l := start(t, own, in(t, "west", common))
		free(t, own, ".home", 0, now())
		time.Sleep(3 * time.Minute)
		if err := l.Check(t.Context()); !errors.Is(err, lease.ErrRegion) || !strings.Contains(err.Error(), "restart the process") {
			t.Errorf("Check() = %v; want ErrRegion", err)
		}
	})
}

// Requests are lost, their replies are lost, or they hang; processes come and go.
func TestRegionsKeepTheirNumbersThroughFaults(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				random := rand.New(rand.NewPCG(seed, 0))
				chance := func(n int) int {
					mu.Lock()
					defer mu.Unlock()
					return random.IntN(n)
				}
				bad := func(ctx context.Context, op string, do func() error) error {
					switch chance(8) {
					case 0:
						return errAway
					case 1:
						return losesReplies(ctx, op, do)
					case 2:
						return hangs(ctx, op, do)
					}
					return do()
				}
				common := newSite()
				common.set(bad)
				owner := map[int64]string{}
				var wg sync.WaitGroup
				for r := range 3 {
					name, own := fmt.Sprintf("region-%d", r), newSite()
					own.set(bad)
					for range 3 {
						wg.Go(func() {
							for range 4 {
								c := in(t, name, common)
								c.AcquireWait = -1
								l, err := lease.Acquire(t.Context(), own, c)
								if err != nil {
									t.Errorf("Acquire() in %s = %v; want a lease", name, err)
									return
								}
								n := l.Status().Datacenter
								mu.Lock()
								if owner[n] == "" {
									owner[n] = name
								}
								if owner[n] != name {
									t.Errorf("%s has the number %d of %s", name, n, owner[n])
								}
								mu.Unlock()
								time.Sleep(time.Duration(chance(300)) * time.Second)
								if err := l.Status().Err; errors.Is(err, lease.ErrRegion) {
									t.Errorf("%s is refused: %v", name, err)
								}
								_ = l.Close(t.Context())
							}
						})
					}
				}
				wg.Wait()
				if len(owner) != 3 {
					t.Errorf("numbers of %v; want 3", owner)
				}
			})
		})
	}
}

// bareStore is a Store and nothing else.
type bareStore struct{ lease.Store }

func TestRegionSettingsAreRefused(t *testing.T) {
	common := newSite()
	lossy := newSite()
	lossy.lossy = true
	for _, test := range []struct {
		want   string
		own    lease.Store
		change func(c *lease.Config)
	}{
		{`Config.Region.Name is "": want 1..40`, newSite(), func(c *lease.Config) { c.Region.Name = "" }},
		{`Config.Region.Name is "eu west": want 1..40`, newSite(), func(c *lease.Config) { c.Region.Name = "eu west" }},
		{`: want 1..40`, newSite(), func(c *lease.Config) { c.Region.Name = strings.Repeat("a", 41) }},
		{`Config.Region.Store is nil: want the store`, newSite(), func(c *lease.Config) { c.Region.Store = nil }},
		{`Config.Region.Store is a lease_test.bareStore: want a store with a method Rows`, newSite(), func(c *lease.Config) { c.Region.Store = bareStore{common} }},
		{`Config.Region.Store is a lease_test.site: want a store that does not lose writes`, newSite(), func(c *lease.Config) { c.Region.Store = lossy }},
		{`Config.Datacenter is 3: want 0`, newSite(), func(c *lease.Config) { c.Datacenter = 3 }},
		{`Config.Layout.DatacenterBits is 0: want 1..16`, newSite(), func(c *lease.Config) { c.Layout = core.Layout{} }},
		{`: want at most 56 characters`, newSite(), func(c *lease.Config) { c.Namespace = strings.Repeat("n", 57) }},
		{`Config.Region.Datacenters is empty`, newSite(), func(c *lease.Config) { c.Region.Datacenters = []int64{} }},
		{`Config.Region.Datacenters[1] is 8: want 0..7`, newSite(), func(c *lease.Config) { c.Region.Datacenters = []int64{1, 8} }},
		{`Config.Region.Datacenters[0] is -1: want 0..7`, newSite(), func(c *lease.Config) { c.Region.Datacenters = []int64{-1} }},
		{`store is a lease_test.bareStore: want a store with the methods Rows and Fence`, bareStore{newSite()}, func(*lease.Config) {}},
		{`store is a lease_test.site: want a store that does not lose writes`, lossy, func(*lease.Config) {}},
	} {
		c := in(t, "west", common)
		test.change(&c)
		l, err := lease.Acquire(t.Context(), test.own, c)
		if v := (*core.ValueError)(nil); !errors.As(err, &v) || !errors.Is(err, lease.ErrPermanent) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("Acquire() = %v, %v; want %q", l, err, test.want)
		}
	}
	if rows := common.assigned(t); len(rows) > 0 {
		t.Errorf("settings that were refused have taken %+v", rows)
	}
	own := newSite()
	for name, err := range map[string]error{
		"Fence":     lease.Fence(t.Context(), own, in(t, "west", common), now()),
		"Retire":    lease.Retire(t.Context(), own, in(t, "west", common), 1, "test"),
		"Reinstate": lease.Reinstate(t.Context(), own, in(t, "west", common), 1),
	} {
		if err == nil || !strings.Contains(err.Error(), `Config.Region is "west": want none`) {
			t.Errorf("%s() with a region = %v; want it refused", name, err)
		}
	}
}

// The rows of the common store belong to a layout with more numbers.
func TestARegionWithFewerDatacenterBitsIsRefused(t *testing.T) {
	common, own := newSite(), newSite()
	for n := range 6 {
		start(t, newSite(), in(t, fmt.Sprint("region", n), common))
	}
	for _, bits := range []int{2, 4} {
		c := in(t, "another", common)
		c.Layout.DatacenterBits, c.Layout.WorkerBits = bits, c.Layout.WorkerBits+3-bits
		if l, err := lease.Acquire(t.Context(), own, c); !errors.Is(err, lease.ErrLayout) {
			t.Errorf("Acquire() in a region with %d datacenter bits = %v, %v; want ErrLayout", bits, l, err)
		}
	}
	// One that has a home.
	own = newSite()
	start(t, own, in(t, "another", common))
	c := in(t, "another", common)
	c.Layout.DatacenterBits, c.Layout.WorkerBits = 2, c.Layout.WorkerBits+1
	if l, err := lease.Acquire(t.Context(), own, c); err == nil {
		t.Errorf("Acquire() in a region whose home has more datacenter bits = %v; want an error", l)
	}
}
