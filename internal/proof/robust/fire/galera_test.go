//go:build linux

package fire

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/sqllease"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/proof/robust/chaos"
)

func init() {
	stores["Galera"] = func(addresses string) (lease.Store, error) {
		return sqllease.New(openGalera(addresses, "fire", nil), sqlstore.Config{Dialect: sqlstore.MySQL, Logger: quiet})
	}
}

// newGaleraLeases starts a cluster with the tables of leases.
func newGaleraLeases(t *testing.T, options ...string) (*galera, Fire) {
	t.Helper()
	Need(t, "mariadbd", "mariadb-install-db", "rsync")
	n := NewNetwork(t)
	g := newGalera(t, n, options...)
	db := openGalera(g.addresses(), "fire", nil)
	t.Cleanup(func() { _ = db.Close() })
	store, err := sqllease.New(db, sqlstore.Config{Dialect: sqlstore.MySQL, Logger: quiet})
	if err == nil {
		err = store.CreateTables(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return g, Fire{Network: n, Leases: chaos.Leases{Store: "Galera", DSN: g.addresses(), Lister: store}}
}

// waits makes a session see all that any node has acknowledged.
var waits = map[string]string{"wsrep_sync_wait": "1"}

// A galeraStrike is one kind of failure, with its repair.
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
	Rest(ctx, 0, 4*time.Second)
	return node.rejoin(context.WithoutCancel(ctx))
}

func killAllGaleraNodes(ctx context.Context, g *galera, _ *galeraNode) error {
	return g.killAll(context.WithoutCancel(ctx))
}

// others returns the hosts of the other nodes.
func (g *galera) others(node *galeraNode) (hosts []*Host) {
	for _, other := range g.nodes {
		if other != node {
			hosts = append(hosts, other.host)
		}
	}
	return hosts
}

// strikes returns a Fire.Strike of some failures in turn. After each, the cluster is
// whole.
func (g *galera) strikes(kinds ...galeraStrike) func(ctx context.Context, strike int) error {
	return func(ctx context.Context, strike int) error {
		err := kinds[strike%len(kinds)](ctx, g, g.nodes[rand.IntN(len(g.nodes))])
		g.synced(context.WithoutCancel(ctx))
		return err
	}
}

// The runs share a cluster, since to make one takes longer than to use it. Each leaves it
// whole, but for the last.
func TestGalera(t *testing.T) {
	Nightly(t)
	g, f := newGaleraLeases(t)
	t.Run("says that a commit was rolled back only if it was", func(t *testing.T) {
		galeraCommits(t, g)
	})
	t.Run("takes children of one parent side by side", func(t *testing.T) {
		var dbs []*sql.DB
		for _, node := range g.nodes {
			dbs = append(dbs, node.db)
		}
		childrenOfOne(t, dbs, false)
	})
	t.Run("has every order whole or not at all", func(t *testing.T) {
		strike := g.strikes(isolateGaleraNode, killGaleraNode, deafenGaleraNode, killAllGaleraNodes)
		Orders{Shop: "Galera", DSN: g.addresses(), Network: g.network, Strike: strike}.Run(t).Whole(t)
	})
	t.Run("repeats no number of a segment", func(t *testing.T) {
		galeraSegments(t, g)
	})
	t.Run("repeats no ID if it is partitioned", func(t *testing.T) {
		f.Weather = true
		f.Strike = g.strikes(cutGaleraNode, deafenGaleraNode, isolateGaleraNode, stopGaleraNode)
		Burn(t, func(*testing.T) Fire { return f }, chaos.Fence, Mutant{Rules: chaos.TTL})
	})
	t.Run("repeats no ID if nodes are killed", func(t *testing.T) {
		f.Weather = false
		f.Strike = g.strikes(killGaleraNode, killAllGaleraNodes)
		Burn(t, func(*testing.T) Fire { return f }, chaos.Fence, Mutant{Rules: chaos.TTL})
	})
	t.Run("repeats IDs if a minority is made a cluster", func(t *testing.T) {
		f.Weather = false
		f.Strike = g.bootstrapMinority
		f.Run(t, chaos.NoGuard)
	})
}

// bootstrapMinority tells a minority that it is the cluster, which no operator should do.
// It then takes writes that the majority never sees.
func (g *galera) bootstrapMinority(ctx context.Context, strike int) error {
	if strike > 0 {
		return nil // it stays so
	}
	node := g.nodes[rand.IntN(len(g.nodes))]
	g.network.Cut([]*Host{node.host}, g.others(node))
	node.wait(ctx, func(_ string, size int) bool { return size == 1 })
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the end of the run is no failure
	}
	_, err := node.db.ExecContext(ctx, "SET GLOBAL wsrep_provider_options = 'pc.bootstrap=YES'")
	return err
}

// galeraCommits asks each COMMIT while a node loses its cluster in the ways that strikes do.
func galeraCommits(t *testing.T, g *galera) {
	var dbs []*sql.DB
	for _, node := range g.nodes {
		dbs = append(dbs, node.db)
	}
	db := openGalera(g.addresses(), "fire", waits)
	defer func() { _ = db.Close() }()
	askCommits(t, dbs, db, func(ctx context.Context, i int) {
		strike := deafenGaleraNode
		if i%2 == 1 {
			strike = cutGaleraNode
		}
		if err := strike(ctx, g, g.nodes[0]); err != nil {
			t.Error(err)
		}
		g.synced(ctx)
	})
}

// askCommits commits on all servers of a cluster while the first one is struck twice, and
// looks at each row that was said not to be committed. Half of the transactions change one
// hot row, which another server may have changed: these lose when they commit. look sees
// what any server has acknowledged, once the second strike is over. It returns what was
// said, and how often.
func askCommits(t *testing.T, dbs []*sql.DB, look *sql.DB, strike func(ctx context.Context, i int)) map[string]int {
	t.Helper()
	for _, text := range []string{
		"CREATE TABLE fire.commits (id BIGINT PRIMARY KEY) ENGINE=InnoDB",
		"CREATE TABLE fire.hot (id BIGINT PRIMARY KEY, n BIGINT NOT NULL) ENGINE=InnoDB",
		"INSERT INTO fire.hot VALUES (1, 0)",
	} {
		if _, err := dbs[0].ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	Rest(t.Context(), time.Second, time.Second) // until all servers have them
	type outcome struct {
		id  int64
		err error
	}
	outcomes := make(chan []outcome)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const writers = 16 // half of them on the first server
	for w := range int64(writers) {
		db := dbs[0]
		if w%2 == 1 {
			db = dbs[w/2%int64(len(dbs))]
		}
		hot := w/2%2 == 1
		go func() {
			var all []outcome
			for id := w; ctx.Err() == nil; id += writers {
				tx, err := db.BeginTx(ctx, nil)
				if err == nil {
					if _, err = tx.Exec("INSERT INTO fire.commits VALUES (?)", id); err == nil && hot {
						_, err = tx.Exec("UPDATE fire.hot SET n = n + 1 WHERE id = 1")
					}
					if err == nil {
						all = append(all, outcome{id, tx.Commit()})
						continue
					}
					_ = tx.Rollback()
				}
				Rest(ctx, 10*time.Millisecond, 50*time.Millisecond)
			}
			outcomes <- all
		}()
	}
	for i := range 2 {
		Rest(ctx, time.Second, 2*time.Second)
		strike(ctx, i)
	}
	cancel()
	var all []outcome
	for range writers {
		all = append(all, <-outcomes...)
	}
	there := map[int64]bool{}
	if err := query(t.Context(), look, "SELECT id FROM fire.commits", func(scan func(...any) error) error {
		var id int64
		err := scan(&id)
		there[id] = true
		return err
	}); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, o := range all {
		text := "done"
		if o.err != nil {
			text = o.err.Error()
		}
		kinds[fmt.Sprintf("%s; there: %t", text, there[o.id])]++
		if o.err != nil && dialect.NotCommitted(o.err) && there[o.id] {
			t.Errorf("COMMIT of %d = %v; it is there", o.id, o.err)
		}
		if o.err == nil && !there[o.id] {
			t.Errorf("COMMIT of %d = nil; it is not there", o.id)
		}
	}
	for kind, n := range kinds {
		t.Log(n, kind)
	}
	return kinds
}

// childrenOfOne inserts two rows on two members of a cluster at the same moment, and again.
//
// In a group of MySQL the write set of a row has the keys of its parents, so two children of one
// parent conflict, though neither transaction writes the parent. NULL counts as a parent too: it is
// the one that all rows share that have none. Galera locks the parent's key in share mode.
func childrenOfOne(t *testing.T, dbs []*sql.DB, conflict bool) {
	t.Helper()
	for _, text := range []string{
		"CREATE TABLE fire.parents (id BIGINT PRIMARY KEY)",
		"CREATE TABLE fire.children (id BIGINT PRIMARY KEY, parent_id BIGINT, FOREIGN KEY (parent_id) REFERENCES fire.parents (id))",
		"CREATE TABLE fire.orphans (id BIGINT PRIMARY KEY, parent_id BIGINT)",
		"INSERT INTO fire.parents VALUES (1), (2)",
	} {
		if _, err := dbs[0].ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	Rest(t.Context(), time.Second, time.Second) // until all members have them
	id := 0
	for _, c := range []struct {
		name, table string
		parents     [2]any
		conflicts   bool
	}{
		{"two parents", "children", [2]any{1, 2}, false},
		{"one parent", "children", [2]any{1, 1}, conflict},
		{"NULL", "children", [2]any{nil, nil}, conflict},
		{"NULL in a column without a foreign key", "orphans", [2]any{nil, nil}, false},
	} {
		const pairs = 200
		lost := 0
		for range pairs {
			outcomes := make(chan error, 2)
			for m, parent := range c.parents {
				id++
				key := id
				go func() {
					_, err := dbs[m].ExecContext(t.Context(), "INSERT INTO fire."+c.table+" VALUES (?, ?)", key, parent)
					outcomes <- err
				}()
			}
			for range 2 {
				switch err := <-outcomes; {
				case err == nil:
				case dialect.Retryable(err):
					lost++
				default:
					t.Fatal(err)
				}
			}
		}
		t.Logf("%s: %d of %d pairs conflict", c.name, lost, pairs)
		if (lost > 0) != c.conflicts {
			t.Errorf("%s: %d of %d pairs conflict; want some: %t", c.name, lost, pairs, c.conflicts)
		}
	}
}
