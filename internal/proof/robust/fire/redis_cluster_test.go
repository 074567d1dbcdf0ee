//go:build linux

package fire

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// nodeTimeout is when a primary counts as failed at the earliest. One that is cut off
// takes no more writes then: after half as much again it knows that it is, and after 4 s
// that it is alone.
const nodeTimeout = 4 * time.Second

// A clusterSet is three primaries and a replica of each.
type clusterSet struct {
	*redisSet
	ids   map[string]*redisNode
	hasty bool // do not wait until a primary that is cut off knows it
}

func newRedisCluster(t *testing.T, args ...string) *clusterSet {
	t.Helper()
	c := &clusterSet{redisSet: newRedisSet(t, redisCluster, "node", 6, slices.Concat(args,
		[]string{"--cluster-enabled", "yes", "--cluster-node-timeout", fmt.Sprint(nodeTimeout.Milliseconds())})...), ids: map[string]*redisNode{}}
	create := []string{"--cluster", "create"}
	for _, n := range c.servers {
		err := c.start(t.Context(), n)
		if err == nil {
			var id string
			id, err = n.Do(t.Context(), "cluster", "myid").Text()
			c.ids[id] = n
		}
		must(t, err)
		create = append(create, n.host.IP+":6379")
	}
	_, err := c.nodes[0].host.Run(t.Context(), "root", "redis-cli", append(create, "--cluster-replicas", "1", "--cluster-yes")...)
	if err == nil {
		_, err = c.settled(t.Context())
	}
	must(t, err)
	return c
}

func (c *clusterSet) id(n *redisNode) string {
	for id, of := range c.ids {
		if of == n {
			return id
		}
	}
	return ""
}

// view returns the replica of each primary, as a node sees it.
func (c *clusterSet) view(ctx context.Context, n *redisNode) (map[*redisNode]*redisNode, error) {
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
	if info, err := n.ClusterInfo(ctx).Result(); err != nil || len(view) != len(c.nodes)/2 || !strings.Contains(info, "cluster_state:ok") {
		return nil, fmt.Errorf("%s sees %q, %q, %w", n.host.Name, text, info, err)
	}
	return view, nil
}

// settled waits until all nodes see the same, and returns the replica of each primary.
// Each has all that its primary has.
func (c *clusterSet) settled(ctx context.Context) (replicas map[*redisNode]*redisNode, err error) {
	return replicas, eventually(ctx, "cluster", func() error {
		replicas = nil
		for _, n := range c.servers {
			view, err := c.view(ctx, n)
			if err != nil {
				return err
			}
			if replicas == nil {
				replicas = view
			}
			for primary, replica := range view {
				if replicas[primary] != replica {
					return fmt.Errorf("%s and %s do not agree", n.host.Name, c.servers[0].host.Name)
				}
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
	others         []*redisNode // primaries
}

// where waits until the processes hold rows of their namespace, and returns where its keys
// are. They must be in one slot.
func (c *clusterSet) where(ctx context.Context) (p place, err error) {
	replicas, err := c.settled(ctx)
	if err != nil {
		return place{}, err
	}
	err = eventually(ctx, "namespace", func() error {
		p = place{}
		for primary, replica := range replicas {
			switch keys, err := primary.Keys(ctx, "snowkey:*").Result(); {
			case err != nil:
				return err
			case len(keys) > 0:
				p.keys, p.owner, p.replica = keys, primary, replica
			default:
				p.others = append(p.others, primary)
			}
		}
		if len(p.keys) == 0 || len(p.others) != 2 {
			return fmt.Errorf("%d primaries have no key; want two, and all keys in one place", len(p.others))
		}
		for i, key := range p.keys {
			slot, err := p.owner.ClusterKeySlot(ctx, key).Result()
			if err != nil || i > 0 && slot != p.slot {
				return fmt.Errorf("%q is in slot %d, %w; want that of %q, %d", key, slot, err, p.keys[0], p.slot)
			}
			p.slot = slot
		}
		return nil
	})
	if err == nil {
		err = p.owner.held(ctx)
	}
	return p, err
}

// move moves the slot of the namespace to another primary, key by key, as redis-cli does.
func (c *clusterSet) move(ctx context.Context, _ int) error {
	p, err := c.where(ctx)
	if err != nil {
		return err
	}
	to := p.others[0] // any
	// A move that has begun is done to its end, or the test could not read the rows.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	set := func(n *redisNode, args ...any) error {
		return n.Do(ctx, append([]any{"cluster", "setslot", p.slot}, args...)...).Err()
	}
	if err := errors.Join(set(to, "importing", c.id(p.owner)), set(p.owner, "migrating", c.id(to))); err != nil {
		return err
	}
	for {
		keys, err := p.owner.ClusterGetKeysInSlot(ctx, int(p.slot), 100).Result()
		if err != nil {
			return err
		}
		if len(keys) == 0 {
			break
		}
		for _, key := range keys { // between two of them: TRYAGAIN
			if err := p.owner.Migrate(ctx, to.host.IP, "6379", key, 0, 5*time.Second).Err(); err != nil {
				return err
			}
			Rest(ctx, 50*time.Millisecond, 200*time.Millisecond)
		}
	}
	if err := c.answers(ctx, "ASK", c.errors(ctx, "ASK")); err != nil { // and now this
		return err
	}
	moved := c.errors(ctx, "MOVED")
	if err := errors.Join(set(to, "node", c.id(to)), set(p.owner, "node", c.id(to)), c.answers(ctx, "MOVED", moved)); err != nil {
		return err
	}
	there, err := to.ClusterCountKeysInSlot(ctx, int(p.slot)).Result()
	left, errLeft := p.owner.ClusterCountKeysInSlot(ctx, int(p.slot)).Result()
	if err := errors.Join(err, errLeft); err != nil || there < int64(len(p.keys)) || left > 0 {
		return fmt.Errorf("after a move %d keys of the namespace are at the new primary, and %d left, %w; want all of %d", there, left, err, len(p.keys))
	}
	c.moves++
	return nil
}

// answers waits until the nodes have answered with more errors of a kind than before.
func (c *clusterSet) answers(ctx context.Context, kind string, before int) error {
	return eventually(ctx, kind, func() error {
		if c.errors(ctx, kind) <= before {
			return fmt.Errorf("no node has answered so, after %d", before)
		}
		return nil
	})
}

// fail lets the replica of the namespace's primary take over, in turn by command and because
// the others notice that the primary is away.
func (c *clusterSet) fail(ctx context.Context, strike int) error {
	p, err := c.where(ctx)
	if err != nil {
		return err
	}
	half := c.half(strike)
	defer c.Heal()
	promote := func(commanded bool) (*redisNode, error) {
		return p.replica, eventually(ctx, "failover", func() error {
			if role := p.replica.info(ctx, "replication", "role"); role == "master" {
				return nil
			}
			err := fmt.Errorf("%s is still a replica", p.replica.host.Name)
			if commanded {
				err = errors.Join(err, p.replica.Do(ctx, "cluster", "failover", "takeover").Err())
				Rest(ctx, time.Second, time.Second) // a second command would begin anew
			}
			return err
		})
	}
	if strike%3 == 1 { // the primary lives, cut off with half of the holders
		c.Isolate(append(half, p.owner.host)...)
		_, err = promote(c.hasty)
		c.failovers++
		Rest(ctx, 6*time.Second, 8*time.Second) // until rows are taken over
		c.Heal()
	} else {
		tag, _, _ := strings.Cut(p.keys[0], "}") // in the slot of the namespace
		_, err = c.loses(ctx, p.owner, hosts(p.replica.node), half, strings.TrimPrefix(tag, "snowkey:")+"}witness",
			func() (*redisNode, error) { return promote(strike%3 == 0) })
	}
	if err == nil {
		_, err = c.settled(ctx)
	}
	return err
}

// slotThatMoves loses nothing, so it needs no loss guard. The run also checks that each
// renewal was answered as its row was, by one node or the other.
func slotThatMoves(t *testing.T) Fire {
	c := newRedisCluster(t)
	f := c.fire(c.move, func() bool {
		moved, ask, again := c.errors(t.Context(), "MOVED"), c.errors(t.Context(), "ASK"), c.errors(t.Context(), "TRYAGAIN")
		t.Logf("%d times MOVED, %d times ASK, %d times TRYAGAIN", moved, ask, again)
		return c.moves >= 1 && moved >= c.moves && ask >= c.moves
	})
	f.Lister = c
	return f
}

// clusterFailover returns a fire in which replicas are promoted, in haste or not. A new primary is
// alone, too, and if that makes it refuse writes it refuses the claims that repeat IDs.
func clusterFailover(hasty bool, settings ...string) func(t *testing.T) Fire {
	return func(t *testing.T) Fire {
		c := newRedisCluster(t, settings...)
		c.hasty = hasty
		// A primary that refuses writes when it is alone may lose none.
		return c.fire(c.fail, func() bool { return c.failovers >= 1 && (c.lost >= 1 || !hasty) })
	}
}
