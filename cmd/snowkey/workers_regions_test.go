package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/lease"
)

// The common store is the own store of the first region, as it often will be.
func TestNumbersOfRegionsAreShownAndFreed(t *testing.T) {
	onLeases(t, func(t *testing.T, p leasePlace) {
		own, other, shop := p.open(t), leasePlaces["SQLite"](t).open(t), namespace(t)
		region := func(name string) lease.Config {
			return lease.Config{Namespace: shop, Layout: eight, LossGuard: -1, Logger: silent, Region: &lease.Region{Name: name, Store: own.leaseStore}}
		}
		if own.LosesWrites() {
			if l, err := lease.Acquire(t.Context(), own.leaseStore, region("eu-west-1")); !errors.Is(err, lease.ErrPermanent) {
				t.Errorf("Acquire() on a store that loses writes = %v, %v; want it refused", l, err)
			}
			return
		}
		for range 2 { // and after a restart
			for number, store := range []lease.Store{own.leaseStore, other.leaseStore} {
				c := region([]string{"eu-west-1", "us-east-1"}[number])
				l, err := lease.Acquire(t.Context(), store, c)
				if err != nil {
					t.Fatalf("Acquire() in %s = %v", c.Region.Name, err)
				}
				if got := l.Status().Datacenter; got != int64(number) {
					t.Errorf("%s has datacenter %d; want %d", c.Region.Name, got, number)
				}
				if err := l.Close(t.Context()); err != nil {
					t.Error(err)
				}
			}
		}
		out, bad, code := p.on(t, "-namespace "+shop+".regions", "")
		for _, want := range []string{"namespace " + shop + ".regions, datacenter 0, 4 workers: 2 assigned 2 unused\n", "assigned", "eu-west-1\n", "us-east-1\n"} {
			if !strings.Contains(out, want) || code != 0 {
				t.Errorf("workers of the regions = %s%s, %d; want %q", out, bad, code, want)
			}
		}
		for _, line := range []string{"retire 3 -reason x", "reinstate 0", "-above 312345678901234567 free 0", "-above 312345678901234567 fence"} {
			if out, bad, code := p.on(t, "-yes -namespace "+shop+".regions "+line, ""); code != 2 || !strings.Contains(bad, "datacenter numbers of regions") {
				t.Errorf("workers %s = %s%s, %d; want it refused", line, out, bad, code)
			}
		}
		// Both have run just now.
		for _, line := range []string{".regions free 1", ".home free 0"} {
			list := "-namespace " + shop + strings.Fields(line)[0]
			before, _, _ := p.on(t, list, "")
			out, bad, code := p.on(t, "-yes -namespace "+shop+line, "")
			if after, _, _ := p.on(t, list, ""); code != 1 || !strings.Contains(bad, "processes of the region may live") || before != after {
				t.Errorf("%s = %s%s, %d, and %s; want it refused, and %s", line, out, bad, code, after, before)
			}
		}
		if out, bad, code := p.on(t, "-live -yes -namespace "+shop+".regions free 1", ""); code != 0 || !strings.HasSuffix(out, "free: done\n") {
			t.Errorf("free of a number = %s%s, %d", out, bad, code)
		}
		if out, _, _ := p.on(t, "-namespace "+shop+".regions 1", ""); !strings.Contains(out, "reserved") || !strings.Contains(out, "1h9m") && !strings.Contains(out, "1h10m") {
			t.Errorf("a number that was freed is shown as %s; want it reserved for 1h10m", out)
		}
		if l, err := lease.Acquire(t.Context(), other.leaseStore, region("us-east-1")); !errors.Is(err, lease.ErrRegion) || !strings.Contains(err.Error(), "freed the number") {
			t.Errorf("Acquire() after the number was freed = %v, %v; want ErrRegion", l, err)
		}
		if _, bad, code := p.on(t, "-live -namespace "+shop+".home free 0", "n\n"); code != 1 || !strings.Contains(bad, `from region "0 eu-west-1"`) {
			t.Errorf("free of a home with the answer no = %s, %d; want the question", bad, code)
		}
		if out, bad, code := p.on(t, "-live -yes -namespace "+shop+".home free 0", ""); code != 0 {
			t.Errorf("free of a home = %s%s, %d", out, bad, code)
		}
		if out, bad, code := p.on(t, "-live -yes -namespace "+shop+".regions free 0", ""); code != 0 {
			t.Errorf("free of a number = %s%s, %d", out, bad, code)
		}
		l, err := lease.Acquire(t.Context(), own.leaseStore, region("eu-west-1"))
		if err != nil {
			t.Fatalf("Acquire() after home and number were freed = %v", err)
		}
		out, bad, code = p.on(t, "-namespace "+shop+".home 0", "")
		if fields := strings.Fields(out[strings.LastIndex(out, shop+".home "):]); code != 0 || len(fields) < 5 || fields[3] != "assigned" || fields[4] > stamp(time.Now()) {
			t.Errorf("workers of a home that was freed before = %s%s, %d; want it assigned, and not from a time to come", out, bad, code)
		}
		if n := l.Status().Datacenter; n != 2 {
			t.Errorf("the region has number %d; want 2, the first that is neither taken nor reserved", n)
		}
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
