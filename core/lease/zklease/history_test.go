package zklease

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// No call waits until old records are deleted, and it may fail.
func TestOldRecordsAreDeletedBesideTheClaim(t *testing.T) {
	p := newSite(t)
	sp := four
	sp.Workers = 1
	const before, row = leasestore.HistoryLength + spare, "/shop/3/0"
	if err := p.store().Register().Make(t.Context(), sp); err != nil {
		t.Fatal(err)
	}
	for epoch := 1; epoch < before; epoch++ {
		p.create(fmt.Sprintf("%s/%d", row, epoch), nil)
	}
	p.change(row, func(row *leasestore.Row) { row.Epoch = before - 1 })

	stall, pruned := make(chan struct{}), make(chan error)
	s := p.open(func(name string, call func() error) error {
		switch {
		case name == "list "+row:
			return zk.ErrNoServer
		case name == "list "+row+" (2)":
			<-stall
		case strings.HasPrefix(name, "list "):
			t.Errorf("%s: want two claims to delete records, and no release", name)
		case strings.HasPrefix(name, "prune "):
			err := call()
			pruned <- err
			return err
		}
		return call()
	})
	for _, want := range []int{before, before + 1, before + 2} {
		ctx, cancel := context.WithCancel(t.Context())
		c := claimOf(sp, "me")
		r, err := s.Claim(ctx, c)
		cancel()
		if err != nil {
			t.Fatalf("Claim = error %v; want a row", err)
		}
		if got := len(p.names(row)); got != want {
			t.Errorf("after a claim that deletes none, or not yet: %d records; want %d", got, want)
		}
		if err := s.Release(t.Context(), releaseOf(c, r, "n1")); err != nil {
			t.Fatalf("Release = error %v; want none", err)
		}
	}
	close(stall)
	if err := <-pruned; err != nil {
		t.Errorf("deletion of records = error %v; want none", err)
	}
	want := []string{strconv.Itoa(before + 2), strconv.Itoa(before + 4)} // a release has an epoch too
	for epoch := before; len(want) < leasestore.HistoryLength; epoch-- {
		want = append(want, strconv.Itoa(epoch))
	}
	slices.Sort(want)
	if got := p.names(row); !slices.Equal(got, want) {
		t.Errorf("records = %q; want the last %d, %q", got, leasestore.HistoryLength, want)
	}
}

// A claim whose record is in the way of another, or that may not make it, is granted without.
func TestAClaimGoesOnWithoutItsRecord(t *testing.T) {
	for name, test := range map[string]struct {
		before func(p site)
		hook   hook
	}{
		"a znode of the name": {
			func(p site) { p.create("/shop/3/0/1", []byte("of another")) },
			func(_ string, call func() error) error { return call() },
		},
		"no right": {
			func(site) {},
			at("swap /shop/3/0", unsent(zk.ErrNoAuth)),
		},
	} {
		p := newSite(t)
		sp := four
		sp.Workers = 1
		if err := p.store().Register().Make(t.Context(), sp); err != nil {
			t.Fatal(err)
		}
		test.before(p)
		s := p.open(test.hook)
		c := claimOf(sp, "me")
		c.Holder = "web"
		r := hold(t, s, c)
		want := []leasestore.Holder{{Epoch: 1, Holder: "web", Until: r.Row.Until}}
		if all, err := s.History(t.Context(), sp, 0); err != nil || !slices.Equal(all, want) {
			t.Errorf("%s: History() = %+v, %v; want what the row tells, %+v", name, all, err, want)
		}
	}
}
