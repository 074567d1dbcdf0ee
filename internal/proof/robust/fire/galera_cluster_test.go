//go:build linux

package fire

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

const galeraProvider = "/usr/lib/galera/libgalera_smm.so"

// The driver says of each connection that breaks that it did.
func init() { _ = mysql.SetLogger(log.New(io.Discard, "", 0)) }

// A galera is a cluster of MariaDB servers that all take writes.
type galera struct {
	t       testing.TB
	network *Network
	nodes   []*galeraNode
}

// A galeraNode is a server. Its host does not change; what it runs does.
type galeraNode struct {
	cluster   *galera
	host      *Host
	data, log string
	options   []string
	server    *Server
	db        *sql.DB // the test's own way to it
}

// newGalera starts three nodes on hosts of their own. options are further ones of each
// server. A node notices a partner that is gone after two seconds, instead of five.
func newGalera(t *testing.T, n *Network, options ...string) *galera {
	t.Helper()
	if _, err := os.Stat(galeraProvider); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	template := filepath.Join(dir, "new")
	// The servers run as another user, to whom the folders above must be open.
	for _, d := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := run("install", "-d", "-o", "mysql", template); err != nil {
		t.Fatal(err)
	}
	if _, err := output(as(t.Context(), "mysql", "mariadb-install-db", "--no-defaults", "--datadir="+template, "--skip-test-db",
		"--innodb-log-file-size=8M", "--innodb-buffer-pool-size=16M")); err != nil {
		t.Fatal(err)
	}
	g := &galera{t: t, network: n}
	hosts := n.Hosts("galera", 3)
	var addresses []string
	for _, h := range hosts {
		addresses = append(addresses, h.IP)
	}
	for i, h := range hosts {
		node := &galeraNode{cluster: g, host: h, data: filepath.Join(dir, strconv.Itoa(i)), log: filepath.Join(dir, fmt.Sprint(i, ".log"))}
		node.options = append([]string{
			"--no-defaults", "--datadir=" + node.data, "--socket=" + filepath.Join(node.data, "s"), "--pid-file=" + filepath.Join(node.data, "pid"),
			"--bind-address=" + h.IP, "--skip-name-resolve", "--skip-grant-tables", "--performance-schema=OFF", "--max-connections=200",
			"--innodb-log-file-size=8M", "--innodb-buffer-pool-size=16M", "--innodb-flush-log-at-trx-commit=1", "--innodb-autoinc-lock-mode=2", "--binlog-format=ROW",
			"--loose-innodb-buffer-pool-dump-at-shutdown=OFF", "--loose-innodb-buffer-pool-load-at-startup=OFF",
			"--wsrep-on=ON", "--wsrep-provider=" + galeraProvider, "--wsrep-cluster-name=fire", "--wsrep-cluster-address=gcomm://" + strings.Join(addresses, ","),
			"--wsrep-node-address=" + h.IP, "--wsrep-node-name=" + h.Name, "--wsrep-sst-method=rsync",
			"--wsrep-provider-options=gcache.size=32M;evs.keepalive_period=PT0.5S;evs.inactive_check_period=PT0.25S;evs.suspect_timeout=PT2S;evs.inactive_timeout=PT4S;evs.install_timeout=PT4S",
		}, options...)
		node.db = openGalera(h.IP, "", nil)
		t.Cleanup(func() { _ = node.db.Close() })
		g.nodes = append(g.nodes, node)
	}
	// All begin as copies of the first, so that none asks another for its data.
	first := g.nodes[0]
	g.must("mv", template, first.data)
	first.start("--wsrep-new-cluster")
	first.wait(t.Context(), func(state string, _ int) bool { return state == "Synced" })
	if _, err := first.db.ExecContext(t.Context(), "CREATE DATABASE fire"); err != nil {
		t.Fatal(err)
	}
	first.server.Stop()
	for _, node := range g.nodes[1:] {
		g.must("cp", "-a", first.data, node.data)
	}
	first.start("--wsrep-new-cluster")
	first.wait(t.Context(), func(state string, _ int) bool { return state == "Synced" })
	for _, node := range g.nodes[1:] {
		node.start()
	}
	g.synced(t.Context())
	return g
}

func (g *galera) must(name string, args ...string) {
	g.t.Helper()
	if err := run(name, args...); err != nil {
		g.t.Fatal(err)
	}
}

// addresses is the DSN of the cluster: see inTurn.
func (g *galera) addresses() string {
	var all []string
	for _, node := range g.nodes {
		all = append(all, node.host.IP)
	}
	return strings.Join(all, ",")
}

// synced waits until all nodes are in one cluster and serve.
func (g *galera) synced(ctx context.Context) {
	g.t.Helper()
	for _, node := range g.nodes {
		node.synced(ctx)
	}
}

func (n *galeraNode) start(options ...string) {
	n.cluster.t.Helper()
	n.server = n.host.Start(n.cluster.t, n.log, "mysql", "mariadbd", append(n.options[:len(n.options):len(n.options)], options...)...)
}

// synced waits until the node serves as one of all.
func (n *galeraNode) synced(ctx context.Context) {
	n.cluster.t.Helper()
	n.wait(ctx, func(state string, size int) bool { return state == "Synced" && size == len(n.cluster.nodes) })
}

// wait waits until the state of the node, and the number of nodes that it sees, are good,
// or ctx ends.
func (n *galeraNode) wait(ctx context.Context, good func(state string, size int) bool) {
	n.cluster.t.Helper()
	for began := time.Now(); ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
		state, err := n.status(ctx, "wsrep_local_state_comment")
		var size string
		if err == nil {
			size, err = n.status(ctx, "wsrep_cluster_size")
		}
		if count, _ := strconv.Atoi(size); err == nil && good(state, count) {
			return
		}
		if n.server.Ended() || time.Since(began) > 5*time.Minute && ctx.Err() == nil {
			n.cluster.t.Errorf("fire: %s: state %q of %q nodes, %v; has its server ended: %t", n.host.Name, state, size, err, n.server.Ended())
			return
		}
	}
}

func (n *galeraNode) status(ctx context.Context, name string) (value string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	err = n.db.QueryRowContext(ctx, "SHOW STATUS LIKE '"+name+"'").Scan(new(string), &value)
	return value, err
}

// recover returns the position of a node that was killed: what it has on its disk.
func (n *galeraNode) recover(ctx context.Context) (position string, number int64, err error) {
	text, err := n.host.Run(ctx, "mysql", "mariadbd", append(n.options[:len(n.options):len(n.options)], "--wsrep-recover", "--skip-networking")...)
	found := recovered.FindStringSubmatch(text)
	if found == nil {
		return "", 0, errors.Join(fmt.Errorf("fire: no position on %s: %s", n.host.Name, text[max(0, len(text)-2000):]), err)
	}
	number, err = strconv.ParseInt(found[2], 10, 64)
	return found[1], number, err
}

var recovered = regexp.MustCompile(`WSREP: Recovered position: ([0-9a-f-]+:(-?\d+))`)

// rejoin starts a node that was killed, and waits until it is one of the cluster.
func (n *galeraNode) rejoin(ctx context.Context) error {
	position, _, err := n.recover(ctx)
	if err != nil || ctx.Err() != nil {
		return errors.Join(err, ctx.Err())
	}
	n.start("--wsrep-start-position=" + position)
	n.synced(ctx)
	return nil
}

// killAll kills all nodes at one moment. The cluster begins again with the node that has
// most, as an operator would do it.
func (g *galera) killAll(ctx context.Context) error {
	for _, node := range g.nodes {
		node.server.Signal(syscall.SIGKILL)
	}
	for _, node := range g.nodes {
		node.server.Kill() // waits
	}
	positions, numbers := make([]string, len(g.nodes)), make([]int64, len(g.nodes))
	failed := make(chan error, len(g.nodes))
	for i, node := range g.nodes {
		go func() {
			var err error
			positions[i], numbers[i], err = node.recover(ctx)
			failed <- err
		}()
	}
	var err error
	for range g.nodes {
		err = errors.Join(err, <-failed)
	}
	if err != nil {
		return errors.Join(err, ctx.Err())
	}
	most := 0
	for i, number := range numbers {
		if number > numbers[most] {
			most = i
		}
	}
	for i, node := range g.nodes {
		// The last members of the cluster would find each other by this, without a word
		// from the operator.
		_ = os.Remove(filepath.Join(node.data, "gvwstate.dat"))
		if i == most {
			if err := run("sed", "-i", "s/safe_to_bootstrap:.*/safe_to_bootstrap: 1/", filepath.Join(node.data, "grastate.dat")); err != nil {
				return err
			}
			node.start("--wsrep-new-cluster", "--wsrep-start-position="+positions[i])
			node.wait(ctx, func(state string, _ int) bool { return state == "Synced" })
		}
	}
	for i, node := range g.nodes {
		if i != most {
			node.start("--wsrep-start-position=" + positions[i])
		}
	}
	g.synced(ctx)
	return nil
}

// openGalera opens a database, or none if it has no name, at some addresses with commas
// between. settings apply to each session.
func openGalera(addresses, database string, settings map[string]string) *sql.DB {
	c := &inTurn{}
	for ip := range strings.SplitSeq(addresses, ",") {
		config := mysql.NewConfig()
		config.Net, config.Addr, config.User, config.DBName = "tcp", ip+":3306", "root", database
		config.Timeout, config.Params = time.Second, settings
		connector, err := mysql.NewConnector(config)
		if err != nil {
			panic(err) // it has no setting for which that could be
		}
		c.nodes = append(c.nodes, connector)
	}
	c.next.Store(rand.Uint64N(1 << 32))
	return sql.OpenDB(c)
}

// An inTurn connects to the nodes of a cluster in turn, which no driver does, but every
// balancer in front of such a cluster.
type inTurn struct {
	nodes []driver.Connector
	next  atomic.Uint64
}

func (c *inTurn) Connect(ctx context.Context) (driver.Conn, error) {
	var failed error
	for range c.nodes {
		conn, err := c.nodes[c.next.Add(1)%uint64(len(c.nodes))].Connect(ctx)
		if err == nil {
			return conn, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, failed
}

func (c *inTurn) Driver() driver.Driver { return c.nodes[0].Driver() }
