//go:build linux

package fire

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

// newGroup starts three MySQL servers that all take writes, and replicate to each other. A member that is gone
// is expelled after five seconds, and one that has lost the others gives up as soon.
func newGroup(t *testing.T) *cluster {
	t.Helper()
	const user = "33173" // nobody else's
	c := newCluster(t, "", "mysql", 3, user)
	root := filepath.Dir(c.nodes[0].dir)                                                                 // of the servers: the libraries are not this machine's
	if err := errors.Join(run("tar", "-C", root, "-xf", os.Getenv(mysqlArchive)), os.Chmod(root, 0o755), //nolint:gosec // the servers run as another user
		run("install", "-d", "-o", user, "-g", user, filepath.Join(root, "run"), filepath.Join(root, "tmp"))); err != nil {
		t.Fatal(err)
	}
	const everywhere = "SET SQL_LOG_BIN = 0;\nCREATE USER IF NOT EXISTS root@'%';\nGRANT ALL ON *.* TO root@'%' WITH GRANT OPTION;\n"
	if err := os.WriteFile(filepath.Join(root, "init.sql"), []byte(everywhere), 0o644); err != nil { //nolint:gosec // as above
		t.Fatal(err)
	}
	seeds := addresses(c.nodes, "", ":33061")
	var starting sync.WaitGroup
	for i, n := range c.nodes {
		name := n.host.Name
		mysqld := []string{"--userspec=" + user + ":" + user, "--groups=", root, "/usr/sbin/mysqld", "--no-defaults", "--datadir=/" + name, "--secure-file-priv=NULL",
			"--innodb-flush-method=nosync", "--innodb-buffer-pool-size=32M", "--innodb-redo-log-capacity=16M"}
		starting.Go(func() {
			if _, err := n.host.Run(t.Context(), "root", "chroot", slices.Concat(mysqld, []string{"--initialize-insecure"})...); err != nil {
				t.Error(err)
				return
			}
			c.launch(n, false, "root", "chroot", slices.Concat(mysqld, []string{
				"--bind-address=" + n.host.IP, "--port=3306", "--skip-name-resolve", "--mysqlx=OFF", "--socket=/run/" + name, "--pid-file=/run/" + name + ".pid", "--max-connections=200",
				"--init-file=/init.sql", "--server-id=" + strconv.Itoa(i+1), "--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--report-host=" + n.host.IP,
				"--plugin-dir=/usr/lib/mysql/plugin", "--plugin-load-add=group_replication.so", "--loose-group-replication-start-on-boot=OFF",
				"--loose-group-replication-group-name=aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee", "--loose-group-replication-local-address=" + n.host.IP + ":33061",
				"--loose-group-replication-group-seeds=" + seeds, "--loose-group-replication-ip-allowlist=10.0.0.0/8",
				"--loose-group-replication-single-primary-mode=OFF", "--loose-group-replication-enforce-update-everywhere-checks=ON",
				"--loose-group-replication-member-expel-timeout=0", "--loose-group-replication-unreachable-majority-timeout=3", "--loose-group-replication-autorejoin-tries=0",
			})...)
		})
	}
	starting.Wait()
	dbs := memberDBs(c)
	c.serve = func(ctx context.Context, nodes []*node) (*node, error) {
		for i, n := range nodes {
			var online int
			err := dbs[slices.Index(c.nodes, n)].QueryRowContext(ctx, "SELECT count(*) FROM performance_schema.replication_group_members WHERE MEMBER_STATE = 'ONLINE'").Scan(&online)
			if err != nil || online != len(nodes) {
				return nil, fmt.Errorf("to member %d %d are online, %w; want %d", i, online, err, len(nodes))
			}
		}
		return nodes[0], nil
	}
	for i, db := range dbs {
		Until(t.Context(), t, "the server", func() error { return db.PingContext(t.Context()) })
		for _, text := range []string{"RESET BINARY LOGS AND GTIDS", fmt.Sprintf("SET GLOBAL group_replication_bootstrap_group = %t", i == 0), joinGroup, "SET GLOBAL group_replication_bootstrap_group = OFF"} {
			if _, err := db.ExecContext(t.Context(), text); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
		}
		if _, _, err := c.until(t.Context(), c.nodes[:i+1]...); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := dbs[0].ExecContext(t.Context(), "CREATE DATABASE fire"); err != nil {
		t.Fatal(err)
	}
	return c
}

const joinGroup = "START GROUP_REPLICATION USER='root'"

// MySQL's group replication says 3101, and 1180 with the engine's error 149, to the one of
// two transactions that comes second. Both are retried. 3100 it says of transactions that
// the others may have committed.
func TestGroupOfMySQLRollsBackWhatItSaysItDoes(t *testing.T) {
	Nightly(t)
	Need(t)
	if os.Getenv(mysqlArchive) == "" {
		t.Skip("fire: no MySQL: name an archive of it in " + mysqlArchive + ", as .ci/run makes one")
	}
	c := newGroup(t)
	members := memberDBs(c)
	t.Run("and has no horizon of a feed", func(t *testing.T) { noHorizon(t, members) })
	t.Run("while a member is cut off", func(t *testing.T) {
		look := openInTurn(c.nodes[1].host.IP, "", map[string]string{"group_replication_consistency": "'BEFORE'"}) // it waits for all that is acknowledged
		defer func() { _ = look.Close() }()
		kinds := askCommits(t, members, look, func(ctx context.Context, i int) {
			kinds := []func(from, to []*Host){c.Cut, c.CutOneWay} // what it sends arrives, and nothing comes back
			kinds[i](hosts(c.nodes[1:]...), hosts(c.nodes[0]))
			Rest(ctx, 12*time.Second, 14*time.Second) // until it has given up
			c.Heal()
			err := eventually(ctx, "the member does not join again", func() error {
				_, errStop := members[0].ExecContext(ctx, "STOP GROUP_REPLICATION")
				_, errStart := members[0].ExecContext(ctx, joinGroup)
				return errors.Join(errStop, errStart)
			})
			if err == nil {
				_, _, err = c.until(ctx, c.nodes...)
			}
			if err != nil {
				t.Error(err)
			}
		})
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
		if _, err := members[0].ExecContext(t.Context(), "CREATE TABLE fire.keyless (n INT)"); err != nil {
			t.Fatal(err)
		}
		if _, err := members[0].ExecContext(t.Context(), "INSERT INTO fire.keyless VALUES (1)"); err == nil || !strings.Contains(err.Error(), "Error 3098") {
			t.Errorf("INSERT = %v; want error 3098", err)
		}
	})
	t.Run("and takes rows without a parent for children of one", func(t *testing.T) { childrenOfOne(t, members, true) })
	t.Run("and InTx runs it again", func(t *testing.T) {
		const writers, each = 9, 40
		failed := make(chan error, writers*each)
		var running sync.WaitGroup
		for w := range writers {
			db := sqlx.NewDb(members[w%len(members)], "mysql")
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
