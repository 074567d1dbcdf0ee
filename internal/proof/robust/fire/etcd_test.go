//go:build linux

package fire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/etcdlease"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/internal/proof/robust/chaos"
)

func init() {
	stores["etcd"] = func(endpoints string) (lease.Store, error) {
		client, err := dialEtcd(strings.Split(endpoints, ",")...)
		if err != nil {
			return nil, err
		}
		config := etcdlease.Config{}
		if rand.IntN(2) == 0 { // half of the processes hear of clocks that are not the others'
			config.Clock = func(context.Context) (time.Time, error) {
				return time.Now().Add(rand.N(6*time.Second) - 3*time.Second), nil
			}
		}
		return etcdlease.New(client, config)
	}
	stores["etcd with right clocks"] = func(endpoints string) (lease.Store, error) {
		client, err := dialEtcd(strings.Split(endpoints, ",")...)
		if err != nil {
			return nil, err
		}
		return etcdlease.New(client, etcdlease.Config{})
	}
}

// dialEtcd returns a client that soon notices when a server is cut off.
func dialEtcd(endpoints ...string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints:            endpoints,
		DialKeepAliveTime:    time.Second,
		DialKeepAliveTimeout: time.Second,
		Logger:               zap.NewNop(),
	})
}

// An etcd is a cluster of three servers.
type etcd struct {
	t       *testing.T
	network *Network
	root    string
	members []*member
}

// A member is one server, and the disk of its host.
type member struct {
	*Server
	host *Host
	data string
}

func (m *member) client() string { return "http://" + m.host.IP + ":2379" }
func (m *member) peer() string   { return "http://" + m.host.IP + ":2380" }

// newEtcd starts three servers.
func newEtcd(t *testing.T, n *Network) *etcd {
	t.Helper()
	e := &etcd{t: t, network: n, root: t.TempDir()}
	for _, dir := range []string{filepath.Dir(e.root), e.root} {
		if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // another user has to reach its folder
			t.Fatal(err)
		}
	}
	for _, h := range n.Hosts("etcd", 3) {
		m := &member{host: h, data: filepath.Join(e.root, h.Name, "data")}
		if err := give(filepath.Dir(m.data), "etcd", map[string]string{"empty": ""}); err != nil {
			t.Fatal(err)
		}
		e.members = append(e.members, m)
	}
	e.start("new", e.members...)
	if _, _, err := e.until(t.Context(), e.members...); err != nil {
		t.Fatal(err)
	}
	return e
}

// cluster is what the servers know each other by.
func (e *etcd) cluster() string {
	var all []string
	for _, m := range e.members {
		all = append(all, m.host.Name+"="+m.peer())
	}
	return strings.Join(all, ",")
}

// endpoints is what the store is opened with.
func (e *etcd) endpoints() string {
	var all []string
	for _, m := range e.members {
		all = append(all, m.client())
	}
	return strings.Join(all, ",")
}

// start starts servers that do not run. state counts only for those with an empty disk.
func (e *etcd) start(state string, members ...*member) {
	e.t.Helper()
	for _, m := range members {
		m.Server = m.host.Start(e.t, filepath.Dir(m.data)+".log", "etcd", "etcd", "--name", m.host.Name, "--data-dir", m.data,
			"--listen-client-urls", m.client(), "--advertise-client-urls", m.client(),
			"--listen-peer-urls", m.peer(), "--initial-advertise-peer-urls", m.peer(),
			"--initial-cluster", e.cluster(), "--initial-cluster-state", state,
			"--heartbeat-interval", "100", "--election-timeout", "1000", "--grpc-keepalive-min-time", "500ms",
			"--log-level", "warn", "--logger", "zap")
		_ = syscall.Setpriority(syscall.PRIO_PROCESS, m.cmd.Process.Pid, -10) // as for ZooKeeper
	}
}

func (e *etcd) wipe(members ...*member) error {
	var errs []error
	for _, m := range members {
		errs = append(errs, os.RemoveAll(m.data))
	}
	return errors.Join(errs...)
}

// until waits until all of some members serve, one as the leader. It gives up when ctx
// ends, or after two minutes.
func (e *etcd) until(ctx context.Context, members ...*member) (leader *member, others []*member, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for last := error(nil); ; {
		if leader, others, last = leadsEtcd(ctx, members); last == nil {
			return leader, others, nil
		}
		if !Rest(ctx, 50*time.Millisecond, 50*time.Millisecond) {
			return nil, nil, fmt.Errorf("%w; at last: %w", ctx.Err(), last)
		}
	}
}

func leadsEtcd(ctx context.Context, members []*member) (leader *member, others []*member, err error) {
	for _, m := range members {
		err := m.do(ctx, func(ctx context.Context, c *clientv3.Client) error {
			// A read that needs a majority: the status alone may be an old one.
			if _, err := c.Get(clientv3.WithRequireLeader(ctx), "health"); err != nil {
				return err
			}
			status, err := c.Status(ctx, m.client())
			if err != nil {
				return err
			}
			if status.Leader == status.Header.MemberId {
				leader = m
			} else {
				others = append(others, m)
			}
			return nil
		})
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", m.host.Name, err)
		}
	}
	if leader == nil {
		return nil, nil, errNoLeader
	}
	return leader, others, nil
}

// do asks a member something that takes a second at most.
func (m *member) do(ctx context.Context, ask func(ctx context.Context, c *clientv3.Client) error) error {
	c, err := dialEtcd(m.client())
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return ask(ctx, c)
}

// again asks a member something until it works, for two minutes.
func (m *member) again(ctx context.Context, ask func(ctx context.Context, c *clientv3.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		err := m.do(ctx, ask)
		if err == nil || !Rest(ctx, 100*time.Millisecond, 100*time.Millisecond) {
			return err
		}
	}
}

func memberHosts(members ...*member) []*Host {
	var all []*Host
	for _, m := range members {
		all = append(all, m.host)
	}
	return all
}

func (e *etcd) holders() []*Host { return e.network.Others(memberHosts(e.members...)...) }

// minority cuts the leader off, with half of the holders, for longer than their windows.
func (e *etcd) minority(ctx context.Context, _ int) error {
	leader, _, err := e.until(ctx, e.members...)
	if err != nil {
		return err
	}
	defer e.network.Heal()
	holders := e.holders()
	e.network.Isolate(append(memberHosts(leader), holders[:len(holders)/2]...)...)
	Rest(ctx, 8*time.Second, 9*time.Second)
	return nil
}

// failures are what a cluster survives, one after the other: at most one server at a time
// is away, or without its disk.
func (e *etcd) failures(ctx context.Context, strike int) error {
	leader, others, err := e.until(ctx, e.members...)
	if err != nil {
		return err
	}
	defer e.network.Heal()
	switch strike % 7 {
	case 0:
		return e.minority(ctx, strike)
	case 1: // the leader stands still, and takes itself for the leader when it goes on
		leader.Signal(syscall.SIGSTOP)
		defer leader.Signal(syscall.SIGCONT)
		if _, _, err := e.until(ctx, others...); err != nil {
			return err
		}
		Rest(ctx, time.Second, 5*time.Second)
	case 2: // the leader and its disk are gone
		return e.replace(ctx, leader, others)
	case 3: // two leaders are killed, one after the other
		leader.Kill()
		next, _, err := e.until(ctx, others...)
		e.start("new", leader)
		if err == nil {
			_, _, err = e.until(ctx, e.members...)
		}
		if err == nil {
			next.Kill()
			e.start("new", next)
		}
		return err
	case 4: // the followers do not hear the leader, which hears them
		e.network.CutOneWay(memberHosts(leader), memberHosts(others...))
		Rest(ctx, 2*time.Second, 6*time.Second)
	case 5: // all are killed at once; the disks are as they were
		for _, m := range e.members {
			m.Kill()
		}
		e.start("new", e.members...)
	case 6: // a server is cut off from its clients alone; another one's answers do not arrive
		e.network.Cut(memberHosts(others[0]), e.holders())
		e.network.CutOneWay(memberHosts(others[1]), e.holders())
		Rest(ctx, 2*time.Second, 6*time.Second)
	}
	return nil
}

// replace gives a member an empty disk. To the others it is a new one: under its old name
// it would vote as if it knew what it has forgotten.
func (e *etcd) replace(ctx context.Context, m *member, others []*member) error {
	ctx = context.WithoutCancel(ctx) // the next strike, and the end of the run, need all three
	m.Kill()
	if err := e.wipe(m); err != nil {
		return err
	}
	if _, _, err := e.until(ctx, others...); err != nil {
		return err
	}
	// Servers refuse this for as long as they have not heard each other for five seconds.
	err := others[0].again(ctx, func(ctx context.Context, c *clientv3.Client) error {
		list, err := c.MemberList(ctx)
		if err != nil {
			return err
		}
		for _, each := range list.Members {
			if slices.Contains(each.PeerURLs, m.peer()) {
				_, err = c.MemberRemove(ctx, each.ID)
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	err = others[0].again(ctx, func(ctx context.Context, c *clientv3.Client) error {
		list, err := c.MemberList(ctx)
		if err == nil && len(list.Members) < len(e.members) {
			_, err = c.MemberAdd(ctx, []string{m.peer()})
		}
		return err
	})
	if err != nil {
		return err
	}
	e.start("existing", m)
	_, _, err = e.until(ctx, e.members...)
	return err
}

// forgets are what makes a cluster forget what it has acknowledged.
func (e *etcd) forgets(ctx context.Context, strike int) error {
	if strike%2 == 0 {
		return e.wiped(ctx, strike)
	}
	return e.restored(ctx, strike)
}

// wiped starts the cluster anew on empty disks.
func (e *etcd) wiped(ctx context.Context, _ int) error {
	if _, _, err := e.until(ctx, e.members...); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	for _, m := range e.members {
		m.Kill()
	}
	if err := e.wipe(e.members...); err != nil {
		return err
	}
	e.start("new", e.members...)
	_, _, err := e.until(ctx, e.members...)
	return err
}

// restored sets the cluster back to a backup that is some seconds old.
func (e *etcd) restored(ctx context.Context, strike int) error {
	leader, _, err := e.until(ctx, e.members...)
	if err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	backup := filepath.Join(e.root, fmt.Sprint("backup", strike))
	err = leader.do(ctx, func(ctx context.Context, c *clientv3.Client) error {
		r, err := c.Snapshot(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = r.Close() }()
		f, err := os.Create(backup)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, r)
		return errors.Join(err, f.Close())
	})
	if err != nil {
		return err
	}
	Rest(ctx, 2*time.Second, 10*time.Second)
	for _, m := range e.members {
		m.Kill()
	}
	if err := e.wipe(e.members...); err != nil {
		return err
	}
	for _, m := range e.members {
		if _, err := m.host.Run(ctx, "etcd", "etcdctl", "snapshot", "restore", backup, "--name", m.host.Name, "--data-dir", m.data,
			"--initial-cluster", e.cluster(), "--initial-advertise-peer-urls", m.peer()); err != nil {
			return err
		}
	}
	e.start("new", e.members...)
	_, _, err = e.until(ctx, e.members...)
	return err
}

// Rows implements [leasestore.Lister]. It waits until the cluster serves, as it may not at the
// end of a run.
func (e *etcd) Rows(ctx context.Context, sp leasestore.Space) ([]leasestore.Row, leasestore.Millis, error) {
	if _, _, err := e.until(ctx, e.members...); err != nil {
		return nil, 0, err
	}
	client, err := dialEtcd(strings.Split(e.endpoints(), ",")...)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = client.Close() }()
	s, err := etcdlease.New(client, etcdlease.Config{})
	if err != nil {
		return nil, 0, err
	}
	return s.Rows(ctx, sp)
}

// onEtcd returns holders on a cluster to which something happens again and again.
func onEtcd(store string, window time.Duration, strike func(e *etcd, ctx context.Context, strike int) error) func(t *testing.T) Fire {
	return func(t *testing.T) Fire {
		Need(t, "etcd", "etcdctl")
		n := NewNetwork(t)
		e := newEtcd(t, n)
		f := Fire{Leases: chaos.Leases{Store: store, DSN: e.endpoints(), Lister: e, Window: window}, Network: n, Weather: true}
		f.Strike = func(ctx context.Context, i int) error { return strike(e, ctx, i) }
		return f
	}
}

func TestEtcdThatFailsRepeatsNoID(t *testing.T) {
	Burn(t, onEtcd("etcd", 0, (*etcd).failures), chaos.Fence, Mutant{Rules: chaos.TTL})
}

// The loss guard needs clocks that agree. Without it the windows are so long that the
// holders outlive the restore.
func TestEtcdThatForgetsRepeatsNoIDUnderTheGuard(t *testing.T) {
	Nightly(t)
	Burn(t, onEtcd("etcd with right clocks", 0, (*etcd).forgets), chaos.Guard,
		Mutant{Rules: chaos.NoGuard, Light: onEtcd("etcd with right clocks", time.Minute, (*etcd).wiped)})
}
