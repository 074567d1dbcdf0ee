package etcdlease

import (
	"errors"
	"slices"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// A hundred leases that each took three epochs are kept.
func TestRecordsOfManyEpochsAgoAreDeleted(t *testing.T) {
	p := shared(t)
	s := p.store(t)
	for _, epoch := range []int64{1, 2, 301, 302, 700} {
		if epoch > 1 { // the row as it was given back
			p.put(t, p.keys().rowKey(four, 2), encodeRow(leasestore.Row{Worker: 2, Epoch: epoch - 1, Nonce: "n", Renewals: epoch}, 0))
		}
		if r := hold(t, s, claimOf(four, 2)); r.Row.Epoch != epoch {
			t.Fatalf("Claim() = %+v; want epoch %d", r, epoch)
		}
		records, err := p.client(t).Get(t.Context(), p.keys().historyPrefix(four, 2), clientv3.WithPrefix(), clientv3.WithCountOnly())
		if want := map[int64]int64{1: 1, 2: 2, 301: 3, 302: 3, 700: 1}[epoch]; err != nil || records.Count != want {
			t.Errorf("records after epoch %d = %+v, %v; want %d", epoch, records, err, want)
		}
	}
}

// A user who may not write the records claims without.
func TestAClaimGoesOnWithoutItsRecord(t *testing.T) {
	server := ownServer(t)
	server.protect(t, "secret")
	root := server.client(t)
	_, err := root.RoleAdd(t.Context(), "poor")
	for _, key := range []string{server.keys().base(four), server.prefix + "/shop/layout"} {
		if err == nil {
			_, err = root.RoleGrantPermission(t.Context(), "poor", key, clientv3.GetPrefixRangeEnd(key), clientv3.PermissionType(clientv3.PermReadWrite))
		}
	}
	if err == nil {
		_, err = root.UserAdd(t.Context(), "joe", "secret")
	}
	if err == nil {
		_, err = root.UserGrantRole(t.Context(), "joe", "poor")
	}
	if err != nil {
		t.Fatal(err)
	}
	joe := server.place
	joe.Username = "joe"
	r := hold(t, joe.store(t), claimOf(four, 2))
	want := []leasestore.Holder{{Worker: 2, Epoch: 1, Holder: "web-1", Until: r.Row.Until}}
	if all, err := server.store(t).History(t.Context(), four, 2); err != nil || !slices.Equal(all, want) {
		t.Errorf("History() = %+v, %v; want what the row tells, %+v", all, err, want)
	}
	if all, err := joe.store(t).History(t.Context(), four, 2); !errors.Is(err, leasestore.ErrPermanent) {
		t.Errorf("History() without the right to read = %+v, %v; want a permanent error", all, err)
	}
}
