//go:build linux

package fire

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/snowkey/snowkey/internal/proof/robust/chaos"
)

// A cluster is servers on hosts of their own. What differs between its kinds is in the functions.
type cluster struct {
	*Network
	t     *testing.T
	store string // in stores
	dsn   string // of all nodes
	nodes []*node

	// begin starts a server that does not run, with what is on its disk.
	begin func(ctx context.Context, n *node) error

	// serve returns the leader of some nodes if all of them serve. Of equal nodes it is any.
	serve func(ctx context.Context, nodes []*node) (leader *node, err error)

	// reboot starts all nodes after all were killed. Nil: begin does it.
	reboot func(ctx context.Context) error

	// wipe empties the disk of a node that does not run.
	wipe func(n *node) error

	// admit starts a node that was wiped, after the others serve without it.
	admit func(ctx context.Context, n *node, others []*node) error
}

// A node is one server, and the disk of its host.
type node struct {
	*Server
	host *Host
	dir  string // its user's, which outlives the server
}

// newCluster makes hosts and their disks, which belong to the user who runs the servers.
func newCluster(t *testing.T, store, name string, count int, user string) *cluster {
	t.Helper()
	c := &cluster{t: t, Network: NewNetwork(t), store: store}
	root := folder(t)
	for _, h := range c.Hosts(name, count) {
		n := &node{host: h, dir: filepath.Join(root, h.Name)}
		c.nodes = append(c.nodes, n)
		must(t, run("install", "-d", "-o", user, "-g", user, n.dir))
	}
	return c
}

// folder returns a new folder that other users can reach.
func folder(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for _, dir := range []string{filepath.Dir(root), root} {
		must(t, os.Chmod(dir, 0o755))
	}
	return root
}

// launch starts a program on the host of a node. All hosts share the processors of one, so a server
// that is to be urgent goes before the holders: they would slow its start down, and the leases would
// all be over before it serves.
func (c *cluster) launch(n *node, urgent bool, user, program string, args ...string) {
	c.t.Helper()
	n.Server = n.host.Start(c.t, n.dir+".log", user, program, args...)
	if urgent {
		_ = syscall.Setpriority(syscall.PRIO_PROCESS, n.cmd.Process.Pid, -10)
	}
}

func (c *cluster) start(ctx context.Context, nodes ...*node) error {
	for _, n := range nodes {
		if err := c.begin(ctx, n); err != nil {
			return fmt.Errorf("%s: %w", n.host.Name, err)
		}
	}
	return nil
}

// kill kills nodes at one moment.
func (c *cluster) kill(nodes ...*node) {
	for _, n := range nodes {
		n.Signal(syscall.SIGKILL)
	}
	for _, n := range nodes {
		n.Kill() // waits
	}
}

// restart starts all nodes after they were killed.
func (c *cluster) restart(ctx context.Context) error {
	if c.reboot != nil {
		return c.reboot(ctx)
	}
	return c.start(ctx, c.nodes...)
}

// until waits until all of some nodes serve, one as the leader. It gives up when ctx ends, or after
// three minutes.
func (c *cluster) until(ctx context.Context, nodes ...*node) (leader *node, others []*node, err error) {
	err = eventually(ctx, "the cluster does not serve", func() error {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		leader, err = c.serve(ctx, nodes)
		if err == nil && leader == nil {
			err = errors.New("no server is the leader")
		}
		return err
	})
	return leader, without(nodes, leader), err
}

// without returns all nodes but these.
func without(all []*node, these ...*node) []*node { return except(all, these) }

func hosts(nodes ...*node) (all []*Host) {
	for _, n := range nodes {
		all = append(all, n.host)
	}
	return all
}

// addresses returns the addresses of some nodes, with a port, and with
// something before.
func addresses(nodes []*node, before, port string) string {
	var all []string
	for _, n := range nodes {
		all = append(all, before+n.host.IP+port)
	}
	return strings.Join(all, ",")
}

// clients returns the hosts that are not servers.
func (c *cluster) clients() []*Host { return c.Others(hosts(c.nodes...)...) }

// half returns half of the clients, another from strike to strike.
func (c *cluster) half(strike int) []*Host {
	all := c.clients()
	return all[strike%2*len(all)/2:][:len(all)/2]
}

// fire returns holders on the cluster, to which some failures happen in turn.
func (c *cluster) fire(kinds ...failure) Fire {
	return Fire{
		Leases:  chaos.Leases{Store: c.store, DSN: c.dsn},
		Network: c.Network, Weather: true, Strike: c.strikes(kinds...),
	}
}

// A failure is one failure of a cluster that is whole. What it cuts is healed after it.
type failure func(ctx context.Context, c *cluster, leader *node, others []*node) error

// strikes returns a Fire.Strike of some failures in turn.
func (c *cluster) strikes(kinds ...failure) func(ctx context.Context, strike int) error {
	return func(ctx context.Context, strike int) error {
		leader, others, err := c.until(ctx, c.nodes...)
		if err != nil {
			return err
		}
		defer c.Heal()
		return kinds[strike%len(kinds)](ctx, c, leader, others)
	}
}

// survived are what every cluster of three survives, one after the other: at most one server at a time is
// away, or without its disk.
var survived = []failure{minority, diskLost, stopped, follower, severed, killed, deafening, allKilled, detached, deafened}

// minority cuts the leader off, with half of the clients. That lasts for longer than their
// windows, so the majority takes their rows over.
func minority(ctx context.Context, c *cluster, leader *node, _ []*node) error {
	c.Isolate(append(hosts(leader), c.half(rand.IntN(2))...)...)
	Rest(ctx, 8*time.Second, 9*time.Second)
	return nil
}

// diskLost takes the leader and its disk away.
func diskLost(ctx context.Context, c *cluster, leader *node, others []*node) error {
	ctx = context.WithoutCancel(ctx) // the next strike, and the end of the run, need all
	leader.Kill()
	if err := c.wipe(leader); err != nil {
		return err
	}
	if _, _, err := c.until(ctx, others...); err != nil {
		return err
	}
	if err := c.admit(ctx, leader, others); err != nil {
		return err
	}
	_, _, err := c.until(ctx, c.nodes...)
	return err
}

// stopped stops the leader, which takes itself for the leader when it goes on.
func stopped(ctx context.Context, c *cluster, leader *node, others []*node) error {
	leader.Signal(syscall.SIGSTOP)
	defer leader.Signal(syscall.SIGCONT)
	if _, _, err := c.until(ctx, others...); err != nil {
		return err
	}
	Rest(ctx, time.Second, 5*time.Second)
	return nil
}

// follower cuts one server off from its clients alone. Of another, requests arrive and answers do not.
func follower(ctx context.Context, c *cluster, leader *node, others []*node) error {
	c.CutOneWay(hosts(append(others, leader)[0]), c.clients())
	if len(others) > 1 {
		c.Cut(hosts(others[1]), c.clients())
	}
	Rest(ctx, 2*time.Second, 6*time.Second)
	return nil
}

// severed cuts all servers off from all clients, so that sessions expire.
func severed(ctx context.Context, c *cluster, _ *node, _ []*node) error {
	c.Cut(hosts(c.nodes...), c.clients())
	Rest(ctx, 2*session, 3*session)
	return nil
}

// killed kills two leaders, one after the other.
func killed(ctx context.Context, c *cluster, leader *node, others []*node) error {
	ctx = context.WithoutCancel(ctx)
	leader.Kill()
	next, _, err := c.until(ctx, others...)
	if err = errors.Join(err, c.start(ctx, leader)); err != nil {
		return err
	}
	if _, _, err := c.until(ctx, c.nodes...); err != nil {
		return err
	}
	next.Kill()
	return c.start(ctx, next)
}

// deafening cuts what the leader sends to the others, which it hears.
func deafening(ctx context.Context, c *cluster, leader *node, others []*node) error {
	c.CutOneWay(hosts(leader), hosts(others...))
	Rest(ctx, 2*time.Second, 6*time.Second)
	return nil
}

// deafened cuts what the others send to the leader, which they hear.
func deafened(ctx context.Context, c *cluster, leader *node, others []*node) error {
	c.CutOneWay(hosts(others...), hosts(leader))
	Rest(ctx, 3*time.Second, 8*time.Second)
	return nil
}

// detached leaves the leader its clients and takes the other servers from it. It may serve reads of old
// rows until it notices that.
func detached(ctx context.Context, c *cluster, leader *node, others []*node) error {
	c.Cut(hosts(leader), hosts(others...))
	Rest(ctx, 3*time.Second, 8*time.Second)
	return nil
}

// allKilled kills all at once. The disks are as they were.
func allKilled(ctx context.Context, c *cluster, _ *node, _ []*node) error {
	c.kill(c.nodes...)
	return c.restart(context.WithoutCancel(ctx))
}

// allWiped starts the cluster anew on empty disks, so that it forgets all.
func allWiped(ctx context.Context, c *cluster, _ *node, _ []*node) error {
	ctx = context.WithoutCancel(ctx)
	c.kill(c.nodes...)
	for _, n := range c.nodes {
		if err := c.wipe(n); err != nil {
			return err
		}
	}
	if err := c.restart(ctx); err != nil {
		return err
	}
	_, _, err := c.until(ctx, c.nodes...)
	return err
}
