//go:build linux

package fire

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/zklease"
)

const zooKeeper = "ZooKeeper"

func init() {
	stores[zooKeeper] = func(servers string) (lease.Store, error) {
		conn, events, err := zk.Connect(strings.Split(servers, ","), session, zk.WithLogger(discard{}))
		if err != nil {
			return nil, err
		}
		go func() {
			for range events { // the client drops those that nobody takes, but has them in its way
			}
		}()
		return zklease.New(conn, zklease.Config{})
	}
}

// session is how long servers keep a session without a sign of life. A client that hears
// nothing for two thirds of it turns to another server.
const session = 2 * time.Second

type discard struct{}

func (discard) Printf(string, ...any) {}

// newZooKeeper starts an ensemble of three servers.
func newZooKeeper(t *testing.T) *cluster {
	t.Helper()
	const jars = "/usr/share/java/"
	Need(t, "java")
	if _, err := os.Stat(jars + "zookeeper.jar"); err != nil {
		t.Fatalf("fire: %v; install Debian's package zookeeper", err)
	}
	c := newCluster(t, zooKeeper, "zookeeper", 3, "zookeeper")
	c.dsn = addresses(c.nodes, "", ":2181")
	// Short ticks, so that a server which is cut off soon knows it.
	config := "clientPort=2181\ntickTime=300\ninitLimit=50\nsyncLimit=10\nminSessionTimeout=400\nmaxSessionTimeout=60000\n" +
		"maxClientCnxns=0\nadmin.enableServer=false\n4lw.commands.whitelist=srvr\n"
	for i, n := range c.nodes {
		config += fmt.Sprintf("server.%d=%s:2888:3888\n", i+1, n.host.IP)
	}
	for i, n := range c.nodes {
		for name, text := range map[string]string{"zoo.cfg": config + "dataDir=" + n.dir + "\n", "myid": strconv.Itoa(i + 1)} {
			if err := os.WriteFile(filepath.Join(n.dir, name), []byte(text), 0o644); err != nil { //nolint:gosec // another user reads it
				t.Fatal(err)
			}
		}
	}
	c.begin = func(_ context.Context, n *node) error {
		c.launch(n, true, "zookeeper", "java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
			"-Dzookeeper.preAllocSize=1024", "-Dorg.slf4j.simpleLogger.showDateTime=true", "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
			"-cp", jars+"slf4j-simple.jar:"+jars+"zookeeper.jar",
			"org.apache.zookeeper.server.quorum.QuorumPeerMain", filepath.Join(n.dir, "zoo.cfg"))
		return nil
	}
	c.serve = func(ctx context.Context, nodes []*node) (leader *node, err error) {
		for _, n := range nodes {
			mode, err := zooKeeperMode(ctx, n)
			if err != nil {
				return nil, err
			}
			if mode == "leader" {
				leader = n
			}
		}
		return leader, nil
	}
	c.wipe = func(n *node) error { return os.RemoveAll(filepath.Join(n.dir, "version-2")) } // its number stays
	// It does not vote without both of the others until it has copied what they have.
	c.admit = func(ctx context.Context, n *node, _ []*node) error { return c.start(ctx, n) }
	must(t, c.restart(t.Context()))
	return c
}

// zooKeeperMode asks a server what it is: leader or follower. It is an error if it serves no
// client.
func zooKeeperMode(ctx context.Context, n *node) (string, error) {
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(n.host.IP, "2181"))
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := io.WriteString(conn, "srvr"); err != nil {
		return "", err
	}
	said, err := io.ReadAll(conn)
	_, mode, found := strings.Cut(string(said), "\nMode: ")
	if !found {
		return "", fmt.Errorf("%s does not serve: %q, %w", n.host.Name, said, err)
	}
	mode, _, _ = strings.Cut(mode, "\n")
	return mode, nil
}

// zooKeeperOvertaken takes one disk away, while another server is behind. These two then form a
// majority that lacks what the third has acknowledged with the first.
func zooKeeperOvertaken(ctx context.Context, c *cluster, leader *node, others []*node) error {
	ctx = context.WithoutCancel(ctx) // the next strike needs all three
	behind, empty := others[0], others[1]
	c.Isolate(behind.host)
	Rest(ctx, 5*time.Second, 10*time.Second)
	c.kill(leader, empty)
	if err := c.wipe(empty); err != nil {
		return err
	}
	c.Heal()
	if err := c.start(ctx, empty); err != nil {
		return err
	}
	if _, _, err := c.until(ctx, behind, empty); err != nil {
		return err
	}
	if err := c.start(ctx, leader); err != nil {
		return err
	}
	_, _, err := c.until(ctx, c.nodes...)
	return err
}
