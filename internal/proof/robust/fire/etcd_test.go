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
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/etcdlease"
)

const (
	etcdOtherClocks = "etcd" // half of the processes hear of clocks that are not the others'
	etcdRightClocks = "etcd with right clocks"
)

func init() {
	for name, part := range map[string]int{etcdOtherClocks: 2, etcdRightClocks: 0} {
		stores[name] = func(endpoints string) (lease.Store, error) {
			client, err := dialEtcd(strings.Split(endpoints, ",")...)
			if err != nil {
				return nil, err
			}
			config := etcdlease.Config{}
			if part > 0 && rand.IntN(part) == 0 {
				config.Clock = func(context.Context) (time.Time, error) {
					return time.Now().Add(rand.N(6*time.Second) - 3*time.Second), nil
				}
			}
			return etcdlease.New(client, config)
		}
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

func etcdClient(n *node) string { return "http://" + n.host.IP + ":2379" }
func etcdPeer(n *node) string   { return "http://" + n.host.IP + ":2380" }

// etcdData is the folder that restore makes.
func etcdData(n *node) string { return filepath.Join(n.dir, "data") }

// newEtcd starts three servers.
func newEtcd(t *testing.T, store string) *cluster {
	t.Helper()
	Need(t, "etcd", "etcdctl")
	c := newCluster(t, store, "etcd", 3, "etcd")
	c.dsn = addresses(c.nodes, "http://", ":2379")
	c.begin = func(_ context.Context, n *node) error { startEtcd(c, n, "new"); return nil }
	c.serve = func(ctx context.Context, nodes []*node) (leader *node, err error) {
		for _, n := range nodes {
			err := askEtcd(ctx, n, func(ctx context.Context, client *clientv3.Client) error {
				// A read that needs a majority: the status alone may be an old one.
				if _, err := client.Get(clientv3.WithRequireLeader(ctx), "health"); err != nil {
					return err
				}
				status, err := client.Status(ctx, etcdClient(n))
				if err == nil && status.Leader == status.Header.MemberId {
					leader = n
				}
				return err
			})
			if err != nil {
				return nil, fmt.Errorf("%s: %w", n.host.Name, err)
			}
		}
		return leader, nil
	}
	c.wipe = func(n *node) error { return os.RemoveAll(etcdData(n)) }
	c.admit = func(ctx context.Context, n *node, others []*node) error { return admitToEtcd(ctx, c, n, others[0]) }
	must(t, c.restart(t.Context()))
	return c
}

// etcdMembers is what the servers know each other by.
func etcdMembers(c *cluster) string {
	var all []string
	for _, n := range c.nodes {
		all = append(all, n.host.Name+"="+etcdPeer(n))
	}
	return strings.Join(all, ",")
}

// startEtcd starts a server. state counts only for one with an empty disk.
func startEtcd(c *cluster, n *node, state string) {
	c.launch(n, true, "etcd", "etcd", "--name", n.host.Name, "--data-dir", etcdData(n),
		"--listen-client-urls", etcdClient(n), "--advertise-client-urls", etcdClient(n),
		"--listen-peer-urls", etcdPeer(n), "--initial-advertise-peer-urls", etcdPeer(n),
		"--initial-cluster", etcdMembers(c), "--initial-cluster-state", state,
		"--heartbeat-interval", "100", "--election-timeout", "1000", "--grpc-keepalive-min-time", "500ms",
		"--log-level", "warn", "--logger", "zap")
}

// askEtcd asks a server something that takes a second at most.
func askEtcd(ctx context.Context, n *node, ask func(ctx context.Context, c *clientv3.Client) error) error {
	client, err := dialEtcd(etcdClient(n))
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return ask(ctx, client)
}

// admitToEtcd starts a server with an empty disk. To the others it is a new one: under its old name
// it would vote as if it knew what it has forgotten.
func admitToEtcd(ctx context.Context, c *cluster, n, other *node) error {
	// Servers refuse this until they have heard each other for five seconds.
	err := eventually(ctx, "the members do not change", func() error {
		return askEtcd(ctx, other, func(ctx context.Context, client *clientv3.Client) error {
			list, err := client.MemberList(ctx)
			if err != nil {
				return err
			}
			for _, each := range list.Members {
				switch {
				case !slices.Contains(each.PeerURLs, etcdPeer(n)):
				case each.Name == "": // it was added, and has not come yet
					return nil
				default:
					if _, err := client.MemberRemove(ctx, each.ID); err != nil {
						return err
					}
				}
			}
			_, err = client.MemberAdd(ctx, []string{etcdPeer(n)})
			return err
		})
	})
	if err != nil {
		return err
	}
	startEtcd(c, n, "existing")
	return nil
}

// etcdRestored sets the cluster back to a backup that is some seconds old.
func etcdRestored(ctx context.Context, c *cluster, leader *node, _ []*node) error {
	ctx = context.WithoutCancel(ctx)
	backup := filepath.Join(filepath.Dir(leader.dir), "backup")
	err := askEtcd(ctx, leader, func(ctx context.Context, client *clientv3.Client) error {
		r, err := client.Snapshot(ctx)
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
	c.kill(c.nodes...)
	for _, n := range c.nodes {
		if err := c.wipe(n); err != nil {
			return err
		}
		if _, err := n.host.Run(ctx, "etcd", "etcdctl", "snapshot", "restore", backup, "--name", n.host.Name, "--data-dir", etcdData(n),
			"--initial-cluster", etcdMembers(c), "--initial-advertise-peer-urls", etcdPeer(n)); err != nil {
			return err
		}
	}
	if err := c.restart(ctx); err != nil {
		return err
	}
	_, _, err = c.until(ctx, c.nodes...)
	return err
}
