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
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/sqllease"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
)

const (
	galera         = "Galera"
	galeraProvider = "/usr/lib/galera/libgalera_smm.so"
)

func init() {
	_ = mysql.SetLogger(log.New(io.Discard, "", 0)) // it says of each connection that breaks that it did
	stores[galera] = func(addresses string) (lease.Store, error) {
		return sqllease.New(openInTurn(addresses, "fire", nil), sqlstore.Config{Dialect: sqlstore.MySQL, Logger: quiet})
	}
}

// galeraData is the folder of a server's data.
func galeraData(n *node) string { return filepath.Join(n.dir, "data") }

// newGalera starts three MariaDB servers that all take writes. A node notices a partner that is gone after two
// seconds, instead of five.
func newGalera(t *testing.T) *cluster {
	t.Helper()
	Need(t, "mariadbd", "mariadb-install-db", "rsync")
	if _, err := os.Stat(galeraProvider); err != nil {
		t.Fatal(err)
	}
	c := newCluster(t, galera, "galera", 3, "mysql")
	c.dsn = addresses(c.nodes, "", "")
	dbs := map[*node]*sql.DB{} // the test's own ways
	for _, n := range c.nodes {
		dbs[n] = openInTurn(n.host.IP, "", nil)
		t.Cleanup(func() { _ = dbs[n].Close() })
	}
	c.serve = func(ctx context.Context, nodes []*node) (*node, error) {
		for _, n := range nodes {
			for name, want := range map[string]string{"wsrep_local_state_comment": "Synced", "wsrep_cluster_size": strconv.Itoa(len(nodes))} {
				var got string
				err := dbs[n].QueryRowContext(ctx, "SHOW STATUS LIKE '"+name+"'").Scan(new(string), &got)
				if err != nil || got != want {
					return nil, fmt.Errorf("%s: %s = %q, %w; want %q", n.host.Name, name, got, err, want)
				}
			}
		}
		return nodes[rand.IntN(len(nodes))], nil
	}
	c.begin = func(ctx context.Context, n *node) error {
		position, _, err := galeraPosition(ctx, c, n)
		if err == nil {
			startGalera(c, n, "--wsrep-start-position="+position)
		}
		return err
	}
	c.reboot = func(ctx context.Context) error { return rebootGalera(ctx, c) }
	// All begin as copies of the first, so that none asks another for its data.
	first := c.nodes[0]
	_, err := output(as(t.Context(), "mysql", "mariadb-install-db", append(servertest.MariaDBOptions(first.dir, galeraData(first)), "--skip-test-db")...))
	if err == nil {
		startGalera(c, first, "--wsrep-new-cluster")
		_, _, err = c.until(t.Context(), first)
	}
	if err == nil {
		_, err = dbs[first].ExecContext(t.Context(), "CREATE DATABASE fire")
		first.End(syscall.SIGTERM)
	}
	for _, n := range c.nodes[1:] {
		err = errors.Join(err, run("cp", "-a", galeraData(first), n.dir))
	}
	if err == nil {
		err = c.restart(t.Context())
	}
	must(t, err)
	return c
}

// newGaleraLeases starts a cluster with the tables of leases.
func newGaleraLeases(t *testing.T) *cluster {
	t.Helper()
	c := newGalera(t)
	s, err := stores[galera](c.dsn)
	if err == nil {
		err = s.(*sqllease.Store).CreateTables(t.Context())
	}
	must(t, err)
	return c
}

// galeraOptions are the options of a server, whatever it begins with.
func galeraOptions(c *cluster, n *node) []string {
	return append(servertest.MariaDBOptions(n.dir, galeraData(n)),
		"--socket="+filepath.Join(n.dir, "s"), "--pid-file="+filepath.Join(n.dir, "pid"),
		"--bind-address="+n.host.IP, "--skip-name-resolve", "--skip-grant-tables", "--performance-schema=OFF", "--max-connections=200",
		"--innodb-flush-log-at-trx-commit=1", "--innodb-autoinc-lock-mode=2", "--binlog-format=ROW",
		"--loose-innodb-buffer-pool-dump-at-shutdown=OFF", "--loose-innodb-buffer-pool-load-at-startup=OFF",
		"--wsrep-on=ON", "--wsrep-provider="+galeraProvider, "--wsrep-cluster-name=fire", "--wsrep-cluster-address=gcomm://"+c.dsn,
		"--wsrep-node-address="+n.host.IP, "--wsrep-node-name="+n.host.Name, "--wsrep-sst-method=rsync",
		"--wsrep-provider-options=gcache.size=32M;evs.keepalive_period=PT0.5S;evs.inactive_check_period=PT0.25S;evs.suspect_timeout=PT2S;evs.inactive_timeout=PT4S;evs.install_timeout=PT4S")
}

func startGalera(c *cluster, n *node, options ...string) {
	c.t.Helper()
	c.launch(n, false, "mysql", "mariadbd", append(galeraOptions(c, n), options...)...)
}

var galeraRecovered = regexp.MustCompile(`WSREP: Recovered position: ([0-9a-f-]+:(-?\d+))`)

// galeraPosition returns the position of a node that does not run: what it has on its disk.
func galeraPosition(ctx context.Context, c *cluster, n *node) (position string, number int64, err error) {
	text, err := n.host.Run(ctx, "mysql", "mariadbd", append(galeraOptions(c, n), "--wsrep-recover", "--skip-networking")...)
	found := galeraRecovered.FindStringSubmatch(text)
	if found == nil {
		return "", 0, errors.Join(fmt.Errorf("no position on %s: %s", n.host.Name, text[max(0, len(text)-2000):]), err)
	}
	number, err = strconv.ParseInt(found[2], 10, 64)
	return found[1], number, err
}

// rebootGalera begins the cluster again with the node that has most, as an operator would do it.
func rebootGalera(ctx context.Context, c *cluster) error {
	positions, numbers, failed := make([]string, len(c.nodes)), make([]int64, len(c.nodes)), make([]error, len(c.nodes))
	var looks sync.WaitGroup
	for i, n := range c.nodes {
		looks.Go(func() { positions[i], numbers[i], failed[i] = galeraPosition(ctx, c, n) })
		// The last members of the cluster would find each other by this, without a word from the operator.
		_ = os.Remove(filepath.Join(galeraData(n), "gvwstate.dat"))
	}
	looks.Wait()
	most := slices.Index(numbers, slices.Max(numbers))
	first := c.nodes[most]
	err := errors.Join(append(failed, run("sed", "-i", "s/safe_to_bootstrap:.*/safe_to_bootstrap: 1/", filepath.Join(galeraData(first), "grastate.dat")))...)
	if err != nil {
		return err
	}
	startGalera(c, first, "--wsrep-new-cluster", "--wsrep-start-position="+positions[most])
	if _, _, err := c.until(ctx, first); err != nil {
		return err
	}
	for i, n := range c.nodes {
		if i != most {
			startGalera(c, n, "--wsrep-start-position="+positions[i])
		}
	}
	_, _, err = c.until(ctx, c.nodes...)
	return err
}

// openInTurn opens a database, or none if it has no name, at some addresses with commas
// between. settings apply to each session.
func openInTurn(addresses, database string, settings map[string]string) *sql.DB {
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
