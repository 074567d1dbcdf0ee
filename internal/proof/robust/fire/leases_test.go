//go:build linux

package fire

import (
	"testing"
	"time"

	"github.com/snowkey/snowkey/internal/proof/robust/chaos"
)

// on returns a fire of some failures in turn on a new cluster.
func on(newCluster func(t *testing.T) *cluster, kinds ...failure) func(t *testing.T) Fire {
	return func(t *testing.T) Fire { return newCluster(t).fire(kinds...) }
}

// within returns a fire with another window of the leases.
func within(window time.Duration, light func(t *testing.T) Fire) func(t *testing.T) Fire {
	return func(t *testing.T) Fire {
		f := light(t)
		f.Window = window
		return f
	}
}

func TestNoIDIsRepeated(t *testing.T) {
	etcdOf := func(store string) func(t *testing.T) *cluster {
		return func(t *testing.T) *cluster { return newEtcd(t, store) }
	}
	for _, test := range []struct {
		name    string
		night   bool // it takes long, or needs luck and time to show something
		light   func(t *testing.T) Fire
		rules   chaos.Rules
		mutants []Mutant
	}{
		{"by etcd that fails", false, on(etcdOf(etcdOtherClocks), survived...), chaos.Fence, []Mutant{{Rules: chaos.TTL}}},
		{"by ZooKeeper that fails", false, on(newZooKeeper, survived...), chaos.Fence, []Mutant{{Rules: chaos.TTL}}},
		// One server keeps all that it acknowledges, as long as nothing ends it.
		{"by Redis that is cut off", false, on(newRedis, severed, follower, minority), chaos.Fence, []Mutant{{Rules: chaos.TTL}}},
		{"by Galera that is partitioned", true, on(newGaleraLeases, detached, deafened, minority, stopped), chaos.Fence, []Mutant{{Rules: chaos.TTL}}},
		{"by Galera whose nodes are killed", true, on(newGaleraLeases, killed, allKilled), chaos.Fence, []Mutant{{Rules: chaos.TTL}}},

		// The server's default would not wait for the standby, and the store does.
		{"by PostgreSQL with a synchronous standby", false, synchronousStandby("local", synchronous, 0, 4*time.Second, false), chaos.Fence,
			[]Mutant{{Rules: chaos.NoGuard, Light: synchronousStandby("local", notRaised, lagging, lagging+time.Second, true)}}},

		// The loss guard needs clocks that agree. Without it the windows are so long that the holders outlive
		// the restart of the servers, on a slow machine as well.
		{"by etcd that forgets, under the guard", true, on(etcdOf(etcdRightClocks), allWiped, etcdRestored), chaos.Guard,
			[]Mutant{{Rules: chaos.NoGuard, Light: within(time.Minute, on(etcdOf(etcdRightClocks), allWiped))}}},
		{"by ZooKeeper that forgets, under the guard", true, on(newZooKeeper, allWiped, zooKeeperOvertaken), chaos.Guard,
			[]Mutant{{Rules: chaos.NoGuard, Light: within(time.Minute, on(newZooKeeper, allWiped))}}},
		{"by PostgreSQL whose standby lags, under the guard", false, laggingStandby(0, lagging), chaos.Guard,
			[]Mutant{{Rules: chaos.NoGuard, Light: laggingStandby(lagging, lagging+time.Second)}}},
		{"by Sentinel that loses writes, under the guard", true, sentinelForgets, chaos.Guard, []Mutant{{Rules: chaos.NoGuard}}},
		{"by Sentinel that forgets a namespace, under the guard", true, sentinelForgetsNamespaces, chaos.Guard,
			[]Mutant{{Rules: chaos.GuardShort}, {Rules: chaos.NoGuard}}},
		{"by two primaries of Redis, under the guard if one alone refuses writes", true, twoPrimaries, chaos.Guard,
			[]Mutant{{Rules: chaos.GuardTwice, Light: twoPrimariesThatWrite}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.night {
				Nightly(t)
			}
			Burn(t, test.light, test.rules, test.mutants...)
		})
	}
}
