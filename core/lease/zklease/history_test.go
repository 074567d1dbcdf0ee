package zklease

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// records returns the names of the records of a row.
func (sv *server) records(row string) (names []string) {
	sv.poke(func(nodes map[string]znode) {
		for name := range nodes {
			if path.Dir(name) == row {
				names = append(names, path.Base(name))
			}
		}
	})
	return names
}

// No call waits until old records are deleted, and it may fail.
func TestOldRecordsAreDeletedBesideTheClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const row = "/s/shop/3/0"
		sv := newServer()
		s, conn := sv.open(t)
		sp := four
		sp.Workers = 1
		take := func() {
			c := claimOf(sp, fmt.Sprint(len(sv.records(row))))
			r := hold(t, s, c)
			if err := s.Release(t.Context(), releaseOf(c, r, c.Nonce+"2")); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		for range leasestore.HistoryLength + spare {
			take()
		}
		if n := len(sv.records(row)); n != leasestore.HistoryLength+spare {
			t.Fatalf("%d claims have left %d records; want all", leasestore.HistoryLength+spare, n)
		}
		conn.inject(once("list", row, fault{lost: zk.ErrNoServer}))
		take()
		if n := len(sv.records(row)); n != leasestore.HistoryLength+spare+1 {
			t.Errorf("the claim that cannot list the records has left %d; want one more", n)
		}
		stall := make(chan struct{})
		conn.inject(once("list", row, fault{until: stall}))
		take() // which does not wait for it
		close(stall)
		synctest.Wait()
		names := sv.records(row)
		slices.SortFunc(names, func(a, b string) int { return len(a)*1000 + strings.Compare(a, b) - len(b)*1000 })
		if last := fmt.Sprint(2*(leasestore.HistoryLength+spare) + 3); len(names) != leasestore.HistoryLength || names[len(names)-1] != last {
			t.Errorf("records = %q; want the last %d, up to %s", names, leasestore.HistoryLength, last)
		}
	})
}

// A claim whose record is in the way of another, or that may not make it, is granted without.
func TestAClaimGoesOnWithoutItsRecord(t *testing.T) {
	for name, hinder := range map[string]func(sv *server, conn *session){
		"a znode of the name": func(sv *server, _ *session) {
			sv.poke(func(nodes map[string]znode) { nodes["/s/shop/3/0/1"] = znode{data: "of another"} })
		},
		"no right": func(_ *server, conn *session) { conn.inject(once("multi", "/0", fault{lost: zk.ErrNoAuth})) },
	} {
		synctest.Test(t, func(t *testing.T) {
			sv := newServer()
			s, conn := sv.open(t)
			sp := four
			sp.Workers = 1
			if err := s.Register().Make(t.Context(), sp); err != nil {
				t.Fatal(err)
			}
			hinder(sv, conn)
			c := claimOf(sp, "me")
			c.Holder = "web"
			r := hold(t, s, c)
			want := []leasestore.Holder{{Epoch: 1, Holder: "web", Until: r.Row.Until}}
			if all, err := s.History(t.Context(), sp, 0); err != nil || !slices.Equal(all, want) {
				t.Errorf("%s: History() = %+v, %v; want what the row tells, %+v", name, all, err, want)
			}
		})
	}
}
