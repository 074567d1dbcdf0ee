//go:build linux

package fire

import (
	"context"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/sqllease"
	"github.com/snowkey/snowkey/internal/leasechaos"
)

func init() {
	stores["Galera"] = func(addresses string) (lease.Store, error) {
		return sqllease.New(openGalera(nil, addresses), sqllease.Config{Dialect: sqllease.MySQL, Logger: quiet})
	}
}

// newGaleraLeases starts a cluster with the tables of leases.
func newGaleraLeases(t *testing.T, options ...string) (*galera, Fire) {
	t.Helper()
	Need(t, "mariadbd", "mariadb-install-db", "rsync")
	n := NewNetwork(t)
	g := newGalera(t, n, options...)
	store, err := sqllease.New(g.nodes[0].db, sqllease.Config{Dialect: sqllease.MySQL, Logger: quiet})
	if err == nil {
		err = store.CreateTables(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return g, Fire{Network: n, Chaos: leasechaos.Chaos{Store: "Galera", DSN: g.addresses(), Lister: store}}
}

// A strike is one kind of failure, with its repair.
type galeraStrike func(ctx context.Context, g *galera, node *galeraNode) error

// The node keeps the clients and loses its cluster. It serves reads of old rows until it
// notices that.
func cutGaleraNode(ctx context.Context, g *galera, node *galeraNode) error {
	defer g.network.Heal()
	g.network.Cut([]*Host{node.host}, g.others(node))
	Rest(ctx, 3*time.Second, 8*time.Second)
	return nil
}

// What the node sends arrives, and nothing comes back.
func deafenGaleraNode(ctx context.Context, g *galera, node *galeraNode) error {
	defer g.network.Heal()
	g.network.CutOneWay(g.others(node), []*Host{node.host})
	Rest(ctx, 3*time.Second, 8*time.Second)
	return nil
}

// The node is cut off together with half of the clients.
func isolateGaleraNode(ctx context.Context, g *galera, node *galeraNode) error {
	defer g.network.Heal()
	side := []*Host{node.host}
	for i, h := range g.network.Others(append(g.others(node), node.host)...) {
		if i%2 == 0 {
			side = append(side, h)
		}
	}
	g.network.Isolate(side...)
	Rest(ctx, 3*time.Second, 8*time.Second)
	return nil
}

func stopGaleraNode(ctx context.Context, _ *galera, node *galeraNode) error {
	defer node.server.Signal(syscall.SIGCONT)
	node.server.Signal(syscall.SIGSTOP)
	Rest(ctx, time.Second, 8*time.Second)
	return nil
}

func killGaleraNode(ctx context.Context, _ *galera, node *galeraNode) error {
	node.server.Kill()
	if !Rest(ctx, 0, 4*time.Second) {
		return nil
	}
	return node.rejoin(ctx)
}

func killAllGaleraNodes(ctx context.Context, g *galera, _ *galeraNode) error { return g.killAll(ctx) }

// others returns the hosts of the other nodes.
func (g *galera) others(node *galeraNode) (hosts []*Host) {
	for _, other := range g.nodes {
		if other != node {
			hosts = append(hosts, other.host)
		}
	}
	return hosts
}

// strikes returns a Fire.Strike of some failures in turn. Before each, the cluster is
// whole.
func (g *galera) strikes(kinds ...galeraStrike) func(ctx context.Context, strike int) error {
	return func(ctx context.Context, strike int) error {
		err := kinds[strike%len(kinds)](ctx, g, g.nodes[rand.IntN(len(g.nodes))])
		if ctx.Err() != nil {
			return nil
		}
		g.synced(ctx)
		return err
	}
}

func TestGaleraThatIsPartitionedRepeatsNoID(t *testing.T) {
	g, f := newGaleraLeases(t)
	f.Weather = true
	f.Strike = g.strikes(cutGaleraNode, deafenGaleraNode, isolateGaleraNode, stopGaleraNode)
	f.Run(t, leasechaos.Fence)
}

func TestGaleraThatIsKilledRepeatsNoID(t *testing.T) {
	g, f := newGaleraLeases(t)
	f.Strike = g.strikes(killGaleraNode, killAllGaleraNodes)
	f.Run(t, leasechaos.Fence)
}

// A minority that is told to be a cluster takes writes that the majority never sees.
// That is what the promise rests on: one cluster.
func TestGaleraOfWhichAMinorityIsMadeAClusterRepeatsIDs(t *testing.T) {
	g, f := newGaleraLeases(t)
	f.Strike = func(ctx context.Context, strike int) error {
		if strike > 0 {
			return nil // it stays so
		}
		node := g.nodes[rand.IntN(len(g.nodes))]
		g.network.Cut([]*Host{node.host}, g.others(node))
		node.wait(ctx, func(state string, size int) bool { return size == 1 })
		_, err := node.db.ExecContext(ctx, "SET GLOBAL wsrep_provider_options = 'pc.bootstrap=YES'")
		return err
	}
	f.Run(t, leasechaos.NoGuard)
}
