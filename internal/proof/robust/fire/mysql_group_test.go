//go:build linux

package fire

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/snowkey/snowkey/sqlxhelper"
)

// mysqlArchive names a tar file with MySQL and its libraries, which .ci/run makes.
const mysqlArchive = "SNOWKEY_MYSQL_ARCHIVE"

// A group is three MySQL servers that all take writes, and replicate to each other.
type group struct {
	t       testing.TB
	network *Network
	hosts   []*Host
	dbs     []*sql.DB
}

// newGroup starts three servers on hosts of their own. A member that is gone is expelled
// after five seconds, and one that has lost the others gives up as soon.
func newGroup(t *testing.T, n *Network) *group {
	t.Helper()
	root := t.TempDir() // of the servers: the libraries are not this machine's
	if err := run("tar", "-C", root, "-xf", os.Getenv(mysqlArchive)); err != nil {
		t.Fatal(err)
	}
	const user = "33173" // nobody else's
	for _, dir := range []string{"run", "tmp"} {
		if err := run("install", "-d", "-o", user, "-g", user, filepath.Join(root, dir)); err != nil {
			t.Fatal(err)
		}
	}
	for dir := root; dir != os.TempDir() && len(dir) > 1; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // the servers run as another user
			t.Fatal(err)
		}
	}
	const everywhere = "SET SQL_LOG_BIN = 0;\nCREATE USER IF NOT EXISTS root@'%';\nGRANT ALL ON *.* TO root@'%' WITH GRANT OPTION;\n"
	if err := os.WriteFile(filepath.Join(root, "init.sql"), []byte(everywhere), 0o644); err != nil { //nolint:gosec // as above
		t.Fatal(err)
	}
	g := &group{t: t, network: n, hosts: n.Hosts("mysql", 3)}
	var seeds []string
	for _, h := range g.hosts {
		seeds = append(seeds, h.IP+":33061")
	}
	var starting sync.WaitGroup
	for i, h := range g.hosts {
		name := strconv.Itoa(i + 1)
		if err := run("install", "-d", "-o", user, "-g", user, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
		mysqld := []string{"--userspec=" + user + ":" + user, "--groups=", root, "/usr/sbin/mysqld", "--no-defaults", "--datadir=/" + name, "--secure-file-priv=NULL",
			"--innodb-flush-method=nosync", "--innodb-buffer-pool-size=32M", "--innodb-redo-log-capacity=16M"}
		starting.Go(func() {
			if _, err := h.Run(t.Context(), "root", "chroot", append(mysqld[:len(mysqld):len(mysqld)], "--initialize-insecure")...); err != nil {
				t.Error(err)
				return
			}
			h.Start(t, filepath.Join(root, h.Name+".log"), "root", "chroot", append(mysqld[:len(mysqld):len(mysqld)],
				"--bind-address="+h.IP, "--port=3306", "--skip-name-resolve", "--mysqlx=OFF", "--socket=/run/"+name, "--pid-file=/run/"+name+".pid", "--max-connections=200",
				"--init-file=/init.sql", "--server-id="+name, "--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--report-host="+h.IP,
				"--plugin-dir=/usr/lib/mysql/plugin", "--plugin-load-add=group_replication.so", "--loose-group-replication-start-on-boot=OFF",
				"--loose-group-replication-group-name=aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee", "--loose-group-replication-local-address="+h.IP+":33061",
				"--loose-group-replication-group-seeds="+strings.Join(seeds, ","), "--loose-group-replication-ip-allowlist=10.0.0.0/8",
				"--loose-group-replication-single-primary-mode=OFF", "--loose-group-replication-enforce-update-everywhere-checks=ON",
				"--loose-group-replication-member-expel-timeout=0", "--loose-group-replication-unreachable-majority-timeout=3", "--loose-group-replication-autorejoin-tries=0")...)
		})
		g.dbs = append(g.dbs, openGroup(t, h, nil))
	}
	starting.Wait()
	for i, db := range g.dbs {
		Until(t.Context(), t, "the server", func() error { return db.PingContext(t.Context()) })
		for _, text := range []string{"RESET BINARY LOGS AND GTIDS", fmt.Sprintf("SET GLOBAL group_replication_bootstrap_group = %t", i == 0), "START GROUP_REPLICATION USER='root'", "SET GLOBAL group_replication_bootstrap_group = OFF"} {
			if _, err := db.ExecContext(t.Context(), text); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
		}
		g.online(t.Context(), i+1)
	}
	if _, err := g.dbs[0].ExecContext(t.Context(), "CREATE DATABASE fire"); err != nil {
		t.Fatal(err)
	}
	return g
}

// openGroup opens a member.
func openGroup(t *testing.T, h *Host, settings map[string]string) *sql.DB {
	t.Helper()
	db := openGalera(h.IP, "", settings)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// online waits until so many members serve.
func (g *group) online(ctx context.Context, want int) {
	g.t.Helper()
	err := eventually(ctx, "the group is not whole", func() error {
		for _, db := range g.dbs[:want] {
			var n int
			err := db.QueryRowContext(ctx, "SELECT count(*) FROM performance_schema.replication_group_members WHERE MEMBER_STATE = 'ONLINE'").Scan(&n)
			if err != nil || n != want {
				return errors.Join(err, fmt.Errorf("%d members are online; want %d", n, want))
			}
		}
		return nil
	})
	if err != nil {
		g.t.Error(err)
	}
}

// cut cuts the first member off until it has given up, and has it join again.
func (g *group) cut(ctx context.Context, i int) {
	if i%2 == 0 {
		g.network.Cut(g.hosts[:1], g.hosts[1:])
	} else { // what it sends arrives, and nothing comes back
		g.network.CutOneWay(g.hosts[1:], g.hosts[:1])
	}
	Rest(ctx, 12*time.Second, 14*time.Second)
	g.network.Heal()
	err := eventually(ctx, "the member does not join again", func() error {
		for _, text := range []string{"STOP GROUP_REPLICATION", "START GROUP_REPLICATION USER='root'"} {
			if _, err := g.dbs[0].ExecContext(ctx, text); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		g.t.Error(err)
	}
	g.online(ctx, len(g.dbs))
}

// MySQL's group replication says 3101, and 1180 with the engine's error 149, to the one of
// two transactions that comes second. Both are retried. 3100 it says of transactions that
// the others may have committed.
func TestGroupOfMySQLRollsBackWhatItSaysItDoes(t *testing.T) {
	Nightly(t)
	Need(t)
	if os.Getenv(mysqlArchive) == "" {
		t.Skip("fire: no MySQL: name an archive of it in " + mysqlArchive + ", as .ci/run makes one")
	}
	g := newGroup(t, NewNetwork(t))
	t.Run("and has no horizon of a feed", func(t *testing.T) { noHorizon(t, g.dbs) })
	t.Run("while a member is cut off", func(t *testing.T) {
		look := openGroup(t, g.hosts[1], map[string]string{"group_replication_consistency": "'BEFORE'"}) // it waits for all that is acknowledged
		kinds := askCommits(t, g.dbs, look, g.cut)
		for _, want := range []string{"Error 3101", "Got error 149"} {
			found := false
			for kind := range kinds {
				found = found || strings.Contains(kind, want)
			}
			if !found {
				t.Errorf("no COMMIT said %q; want some, or the run shows nothing", want)
			}
		}
	})
	t.Run("and refuses rows of a table without a key", func(t *testing.T) {
		if _, err := g.dbs[0].ExecContext(t.Context(), "CREATE TABLE fire.keyless (n INT)"); err != nil {
			t.Fatal(err)
		}
		if _, err := g.dbs[0].ExecContext(t.Context(), "INSERT INTO fire.keyless VALUES (1)"); err == nil || !strings.Contains(err.Error(), "Error 3098") {
			t.Errorf("INSERT = %v; want error 3098", err)
		}
	})
	t.Run("and takes rows without a parent for children of one", func(t *testing.T) { childrenOfOne(t, g.dbs, true) })
	t.Run("and InTx runs it again", func(t *testing.T) {
		const writers, each = 9, 40
		failed := make(chan error, writers*each)
		var running sync.WaitGroup
		for w := range writers {
			db := sqlx.NewDb(g.dbs[w%len(g.dbs)], "mysql")
			running.Go(func() {
				for range each {
					failed <- sqlxhelper.InTx(t.Context(), db, nil, func(tx *sqlx.Tx) error {
						_, err := tx.ExecContext(t.Context(), "UPDATE fire.hot SET n = n + 1 WHERE id = 1")
						return err
					})
				}
			})
		}
		running.Wait()
		close(failed)
		for err := range failed {
			if err != nil {
				t.Errorf("InTx on a hot row = %v; want nil", err)
			}
		}
	})
}
