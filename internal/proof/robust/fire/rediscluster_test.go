//go:build linux

package fire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/redislease"
	"github.com/snowkey/snowkey/internal/proof/robust/chaos"
)

func init() { stores["Redis Cluster"] = openCluster }

func openCluster(addresses string) (lease.Store, error) {
	return redislease.New(redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: strings.Split(addresses, ","), DialTimeout: time.Second, ReadTimeout: 2 * time.Second,
	}), redislease.Config{Logger: quiet})
}

// A redisCluster is three primaries and a replica of each.
type redisCluster struct {
	t       *testing.T
	network *Network
	nodes   []*redisNode
	args    []string
	ids     map[string]*redisNode
	hasty   bool // do not wait until a primary that is cut off knows it

	moves, failovers int
	lost             int64 // acknowledged writes that were not there after a failover
}

func newRedisCluster(t *testing.T, args ...string) *redisCluster {
	t.Helper()
	const nodes, primaries, slots = 6, 3, 16384
	c := &redisCluster{t: t, network: NewNetwork(t), ids: map[string]*redisNode{}}
	c.args = append([]string{"--cluster-enabled", "yes", "--cluster-node-timeout", strconv.FormatInt(nodeTimeout.Milliseconds(), 10)}, args...)
	ctx := t.Context()
	for i, h := range c.network.Hosts("node", nodes) {
		n := newRedisNode(t, h, "6379")
		c.nodes = append(c.nodes, n)
		n.start(t, c.args...)
		Until(ctx, t, h.Name, func() error { return n.Do(ctx, "cluster", "set-config-epoch", i+1).Err() })
		id, err := n.Do(ctx, "cluster", "myid").Text()
		if err != nil {
			t.Fatal(err)
		}
		c.ids[id] = n
		if i < primaries {
			err = n.ClusterAddSlotsRange(ctx, i*slots/primaries, (i+1)*slots/primaries-1).Err()
		}
		if err = errors.Join(err, n.ClusterMeet(ctx, c.nodes[0].host.IP, "6379").Err()); err != nil {
			t.Fatal(err)
		}
	}
	for i, n := range c.nodes[primaries:] {
		Until(ctx, t, "replica", func() error { return n.ClusterReplicate(ctx, c.id(c.nodes[i])).Err() })
	}
	if _, err := c.settled(ctx); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *redisCluster) chaos() chaos.Leases {
	var addresses []string
	for _, n := range c.nodes {
		addresses = append(addresses, net.JoinHostPort(n.host.IP, "6379"))
	}
	return chaos.Leases{Store: "Redis Cluster", DSN: strings.Join(addresses, ",")}
}

func (c *redisCluster) id(n *redisNode) string {
	for id, of := range c.ids {
		if of == n {
			return id
		}
	}
	return ""
}

// view returns the replica of each primary, as a node sees it.
func (c *redisCluster) view(ctx context.Context, n *redisNode) (map[*redisNode]*redisNode, error) {
	text, err := n.ClusterNodes(ctx).Result()
	if err != nil {
		return nil, err
	}
	view := map[*redisNode]*redisNode{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line) // id, address, flags, primary, ping, pong, epoch, link, slots
		if len(f) < 8 || f[7] != "connected" || strings.Contains(f[2], "fail") || strings.Contains(f[2], "handshake") {
			return nil, fmt.Errorf("%s sees %q", n.host.Name, line)
		}
		if strings.Contains(f[2], "slave") {
			view[c.ids[f[3]]] = c.ids[f[0]]
		}
	}
	if len(view) != len(c.nodes)/2 || !strings.Contains(text, "master") {
		return nil, fmt.Errorf("%s sees %q", n.host.Name, text)
	}
	return view, nil
}

// settled waits until all nodes see the same, and returns the replica of each primary.
// Each has all that its primary has.
func (c *redisCluster) settled(ctx context.Context) (replicas map[*redisNode]*redisNode, err error) {
	return replicas, until(ctx, "cluster", func() error {
		for i, n := range c.nodes {
			view, err := c.view(ctx, n)
			if err != nil {
				return err
			}
			if i == 0 {
				replicas = view
			}
			for primary, replica := range view {
				if replicas[primary] != replica {
					return fmt.Errorf("%s and %s do not agree", n.host.Name, c.nodes[0].host.Name)
				}
			}
			if info, err := n.ClusterInfo(ctx).Result(); err != nil || !strings.Contains(info, "cluster_state:ok") {
				return fmt.Errorf("%s says %q, %v", n.host.Name, info, err)
			}
		}
		for primary, replica := range replicas {
			if err := replica.inSync(ctx, primary); err != nil {
				return err
			}
		}
		return nil
	})
}

// A place is where the keys of the namespace are.
type place struct {
	slot           int64
	keys           []string
	owner, replica *redisNode
}

// where waits until the processes have made the keys of their namespace, and returns where
// they are. They must be in one slot.
func (c *redisCluster) where(ctx context.Context) (p place, err error) {
	replicas, err := c.settled(ctx)
	if err != nil {
		return place{}, err
	}
	return p, until(ctx, "namespace", func() error {
		for primary, replica := range replicas {
			keys, err := primary.Keys(ctx, "snowkey:*").Result()
			if err != nil || len(keys) == 0 {
				continue
			}
			p = place{keys: keys, owner: primary, replica: replica}
			if len(keys) != 2 {
				return fmt.Errorf("%s has the keys %q; want two", primary.host.Name, keys)
			}
			for i, key := range keys {
				slot, err := primary.ClusterKeySlot(ctx, key).Result()
				if err != nil || i > 0 && slot != p.slot {
					return fmt.Errorf("%q is in slot %d, %v; want that of %q", key, slot, err, keys[0])
				}
				p.slot = slot
			}
			return nil
		}
		return errors.New("no primary has a key")
	})
}

// moves the slot of the namespace to another primary, key by key, as redis-cli does.
func (c *redisCluster) move(ctx context.Context, strike int) error {
	p, err := c.where(ctx)
	if err == nil {
		err = p.owner.held(ctx)
	}
	if err != nil {
		return err
	}
	to := c.nodes[(slices.Index(c.nodes, p.owner)+1+strike%2)%3] // nobody fails over here: they are the primaries
	// A move that has begun is done to its end, or the test could not read the rows.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	set := func(n *redisNode, args ...any) error {
		return n.Do(ctx, append([]any{"cluster", "setslot", p.slot}, args...)...).Err()
	}
	if err := errors.Join(set(to, "importing", c.id(p.owner)), set(p.owner, "migrating", c.id(to))); err != nil {
		return errors.Join(ctx.Err(), err)
	}
	for _, key := range p.keys { // between the two: TRYAGAIN
		if err := p.owner.Migrate(ctx, to.host.IP, "6379", key, 0, 5*time.Second).Err(); err != nil {
			return errors.Join(ctx.Err(), err)
		}
		Rest(ctx, 200*time.Millisecond, time.Second)
	}
	if err := c.answers(ctx, "ASK", c.errors(ctx, "ASK")); err != nil { // and now this
		return err
	}
	moved := c.errors(ctx, "MOVED")
	for _, n := range []*redisNode{to, p.owner} {
		if err := set(n, "node", c.id(to)); err != nil {
			return errors.Join(ctx.Err(), err)
		}
	}
	if err := c.answers(ctx, "MOVED", moved); err != nil {
		return err
	}
	for n, want := range map[*redisNode]int64{to: 2, p.owner: 0} {
		if got, err := n.ClusterCountKeysInSlot(ctx, int(p.slot)).Result(); err != nil || got != want {
			return errors.Join(ctx.Err(), fmt.Errorf("after a move %s has %d keys of the namespace, %v; want %d", n.host.Name, got, err, want))
		}
	}
	c.moves++
	return nil
}

// fail lets the replica of the namespace's primary take over.
func (c *redisCluster) fail(ctx context.Context, strike int) error {
	p, err := c.where(ctx)
	if err == nil {
		err = p.owner.held(ctx)
	}
	if err != nil {
		return err
	}
	// In the slot of the namespace.
	tag, _, _ := strings.Cut(strings.TrimPrefix(p.keys[0], "snowkey:"), "}")
	witness := tag + "}witness"
	half := halfOf(c.network, strike)
	defer c.network.Heal()
	var acknowledged int64
	switch strike % 4 {
	case 0, 3: // the replica lags, and the primary dies
		c.network.Cut(hostsOf(p.owner), hostsOf(p.replica))
		lag, cancel := context.WithTimeout(ctx, nodeTimeout)
		acknowledged = p.owner.count(lag, witness)
		cancel()
		p.owner.server.Kill()
		c.network.Cut(half, hostsOf(p.replica))
	case 1: // the primary and half of the holders are cut off
		c.network.Isolate(append(half, p.owner.host)...)
	case 2: // both are well
	}
	how := [...]string{"takeover", "", "force", ""}[strike%4] // "": the others notice
	if strike%4 == 1 && c.hasty {
		how = "takeover"
	}
	if err := until(ctx, "failover", func() error {
		if role := p.replica.info(ctx, "replication", "role"); role == "master" {
			return nil
		}
		if how == "" {
			return fmt.Errorf("%s is still a replica", p.replica.host.Name)
		}
		err := p.replica.Do(ctx, "cluster", "failover", how).Err()
		Rest(ctx, time.Second, time.Second) // a second command would begin anew
		return fmt.Errorf("%s is still a replica: %v", p.replica.host.Name, err)
	}); err != nil {
		return err
	}
	c.failovers++
	if acknowledged > 0 {
		kept, err := p.replica.Get(ctx, witness).Int64()
		if err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
		c.lost += acknowledged - kept
	}
	Rest(ctx, 1500*time.Millisecond, 2500*time.Millisecond)
	if strike%4 == 1 {
		Rest(ctx, 5*time.Second, 6*time.Second) // until rows are taken over
	}
	c.network.Heal()
	if p.owner.server.Ended() {
		p.owner.start(c.t, c.args...)
	}
	_, err = c.settled(ctx)
	return err
}

// answers waits until the nodes have answered with more errors of a kind than before.
func (c *redisCluster) answers(ctx context.Context, kind string, before int) error {
	return until(ctx, kind, func() error {
		if c.errors(ctx, kind) <= before {
			return fmt.Errorf("no node has answered %s, after %d", kind, before)
		}
		return nil
	})
}

// errors sums the errors of a kind that all nodes have answered with.
func (c *redisCluster) errors(ctx context.Context, kind string) (n int) {
	for _, node := range c.nodes {
		n += node.errors(ctx, kind)
	}
	return n
}

// A slot that moves loses nothing, so this needs no loss guard. Run also checks that each
// renewal was answered as its row was, by one node or the other.
func TestSlotThatMovesRepeatsNoID(t *testing.T) {
	Nightly(t)
	Burn(t, func(t *testing.T) Fire {
		Need(t, "redis-server")
		c := newRedisCluster(t)
		f := Fire{Leases: c.chaos(), Network: c.network, Weather: true, Strike: c.move}.ending(t)
		lister, err := openCluster(f.DSN)
		if err != nil {
			t.Fatal(err)
		}
		f.Lister = lister.(leasestore.Lister)
		f.Check = func(t *testing.T) {
			moved, ask, again := c.errors(t.Context(), "MOVED"), c.errors(t.Context(), "ASK"), c.errors(t.Context(), "TRYAGAIN")
			t.Logf("%d moves, %d times MOVED, %d times ASK, %d times TRYAGAIN", c.moves, moved, ask, again)
			if c.moves < 1 || moved < c.moves || ask < c.moves {
				t.Errorf("%d moves, %d times MOVED, %d times ASK; want some", c.moves, moved, ask)
			}
		}
		return f
	}, chaos.Fence, Mutant{Rules: chaos.TTL})
}

// nodeTimeout is when a primary counts as failed at the earliest. One that is cut off
// takes no more writes then: after half as much again it knows that it is, and after 4 s
// that it is alone.
const nodeTimeout = 4 * time.Second

// A new primary is alone, too, and would refuse the claims that repeat IDs. Without the guard
// it therefore takes writes then, and replicas are promoted in haste.
func TestClusterFailoverRepeatsNoID(t *testing.T) {
	Nightly(t)
	light := func(hasty bool, settings ...string) func(t *testing.T) Fire {
		return func(t *testing.T) Fire {
			Need(t, "redis-server")
			c := newRedisCluster(t, settings...)
			c.hasty = hasty
			f := Fire{Leases: c.chaos(), Network: c.network, Weather: true, Strike: c.fail}.ending(t)
			f.Check = func(t *testing.T) {
				t.Logf("%d failovers, %d acknowledged writes lost", c.failovers, c.lost)
				// A primary that refuses writes when it is alone may lose none.
				if c.failovers < 1 || c.lost < 1 && hasty {
					t.Errorf("%d failovers have lost %d acknowledged writes; want some", c.failovers, c.lost)
				}
			}
			return f
		}
	}
	Burn(t, light(false, alone...), chaos.Guard, Mutant{Rules: chaos.NoGuard, Light: light(true)})
}
