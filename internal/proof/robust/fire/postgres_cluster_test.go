//go:build linux

package fire

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const postgresBin = "/usr/lib/postgresql/15/bin/"

// A postgres is a PostgreSQL primary and its standby.
type postgres struct {
	*cluster
	admins  map[*node]*sql.DB // by the way that is never cut
	primary *node

	// synchronous: a commit waits until the standby has it on its disk.
	synchronous bool
}

// postgresConf is for small servers that soon know that the other one is gone. Where
// pg_rewind is to work, wal_log_hints must be on.
const postgresConf = `
unix_socket_directories = ''
shared_buffers = 16MB
max_connections = 60
max_wal_size = 64MB
min_wal_size = 16MB
wal_keep_size = 256MB
wal_log_hints = on
wal_sender_timeout = 3s
wal_receiver_timeout = 3s
wal_retrieve_retry_interval = 200ms
autovacuum = off
jit = off
`

// newPostgres starts a primary and its standby. commits is the server's default of synchronous_commit.
func newPostgres(t *testing.T, store string, synchronous bool, commits string) *postgres {
	t.Helper()
	Need(t)
	for program := range strings.FieldsSeq("initdb postgres pg_basebackup pg_rewind") {
		if _, err := exec.LookPath(postgresBin + program); err != nil {
			t.Fatal(err)
		}
	}
	c := &postgres{cluster: newCluster(t, store, "postgres", 2, "postgres"), admins: map[*node]*sql.DB{}, synchronous: synchronous}
	// The DSN leads to the primary, whichever it is. It is not a URL: lib/pq 1.12 does not
	// understand one with several hosts and ports.
	c.dsn = "host=" + addresses(c.nodes, "", "") + " user=postgres dbname=postgres sslmode=disable connect_timeout=1 target_session_attrs=read-write"
	for _, n := range c.nodes {
		admin, err := sql.Open("pgx", fmt.Sprintf("postgres://postgres@%s:5432/postgres?sslmode=disable&connect_timeout=20", n.host.IP))
		must(t, err)
		t.Cleanup(func() { _ = admin.Close() })
		admin.SetMaxIdleConns(0) // the server on the other end changes
		c.admins[n] = admin
	}
	// A node starts as what its data says that it is. What it has left behind may be in its way at first.
	c.begin = func(ctx context.Context, n *node) error {
		start := func() {
			c.launch(n, false, "postgres", postgresBin+"postgres", "-D", n.dir, "-c", "listen_addresses="+n.host.IP,
				"-c", "primary_conninfo=host="+c.other(n).host.IP+" user=postgres application_name=standby connect_timeout=2")
		}
		start()
		return eventually(ctx, "the server does not answer", func() error {
			if n.Ended() {
				start()
			}
			return c.admins[n].PingContext(ctx)
		})
	}
	must(t, c.init(t.Context(), commits))
	return c
}

func (c *postgres) init(ctx context.Context, commits string) error {
	c.primary = c.nodes[0]
	p, s := c.primary, c.standby()
	if _, err := p.host.Run(ctx, "postgres", postgresBin+"initdb", "-D", p.dir, "-N", "-A", "trust", "--wal-segsize=1", "--locale=C", "-E", "UTF8"); err != nil {
		return err
	}
	hba := "host all all 10.0.0.0/8 trust\nhost replication all 10.0.0.0/8 trust\n"
	// The files are the server's. Written over, they stay so.
	if err := errors.Join(os.WriteFile(filepath.Join(p.dir, "pg_hba.conf"), []byte(hba), 0o600),
		os.WriteFile(filepath.Join(p.dir, "postgresql.conf"), []byte(postgresConf), 0o600), c.start(ctx, p)); err != nil {
		return err
	}
	if err := c.exec(ctx, "ALTER SYSTEM SET synchronous_commit = "+commits); err != nil {
		return err
	}
	if err := os.Chmod(s.dir, 0o700); err != nil { // or the server refuses it
		return err
	}
	if _, err := s.host.Run(ctx, "postgres", postgresBin+"pg_basebackup", "-h", p.host.IP, "-U", "postgres", "-D", s.dir, "-c", "fast", "-N"); err != nil {
		return err
	}
	return c.follow(ctx)
}

// follow makes the other node, which is down, the standby of the primary, and waits until it has all
// that the primary has.
func (c *postgres) follow(ctx context.Context) error {
	n := c.standby()
	signal := filepath.Join(n.dir, "standby.signal")
	if err := errors.Join(os.WriteFile(signal, nil, 0o600), run("chown", "postgres:", signal), c.start(ctx, n)); err != nil {
		return err
	}
	if c.synchronous {
		if err := errors.Join(c.wait(ctx, "streaming"), c.waitsForStandby(ctx, "standby")); err != nil {
			return err
		}
	}
	return c.caughtUp(ctx)
}

// waitsForStandby sets the name of the standby that commits wait for.
func (c *postgres) waitsForStandby(ctx context.Context, name string) error {
	return c.exec(ctx, "ALTER SYSTEM SET synchronous_standby_names = '"+name+"'", "SELECT pg_reload_conf()")
}

// caughtUp waits until the standby has all that the primary has now, and the primary
// waits for it if it is to.
func (c *postgres) caughtUp(ctx context.Context) error {
	state := "async"
	if c.synchronous {
		state = "sync"
	}
	if err := c.wait(ctx, state); err != nil {
		return err
	}
	var now string
	if err := c.admin().QueryRowContext(ctx, "SELECT pg_current_wal_lsn()").Scan(&now); err != nil {
		return err
	}
	return eventually(ctx, "the standby does not catch up", func() error {
		var done bool
		err := c.admin().QueryRowContext(ctx, "SELECT COALESCE(bool_or(replay_lsn >= CAST($1 AS pg_lsn)), false) FROM pg_stat_replication WHERE application_name = 'standby'", now).Scan(&done)
		if err == nil && !done {
			err = errors.New("it lags")
		}
		return err
	})
}

// wait waits until the standby has a state, or a sync_state.
func (c *postgres) wait(ctx context.Context, state string) error {
	return eventually(ctx, "the standby is not "+state, func() error {
		var now, sync string
		err := c.admin().QueryRowContext(ctx, "SELECT state, sync_state FROM pg_stat_replication WHERE application_name = 'standby'").Scan(&now, &sync)
		if err == nil && (now != "streaming" || now != state && sync != state) {
			err = fmt.Errorf("it is %s, %s", now, sync)
		}
		return err
	})
}

func (c *postgres) other(n *node) *node { return without(c.nodes, n)[0] }

// standby returns the node that is not the primary.
func (c *postgres) standby() *node { return c.other(c.primary) }

// admin is the test's way to the primary.
func (c *postgres) admin() *sql.DB { return c.admins[c.primary] }

// exec executes statements on the primary.
func (c *postgres) exec(ctx context.Context, statements ...string) error {
	for _, s := range statements {
		if _, err := c.admin().ExecContext(ctx, s); err != nil {
			return fmt.Errorf("%s: %s: %w", c.primary.host.Name, s, err)
		}
	}
	return nil
}

// detach cuts the replication.
func (c *postgres) detach() { c.Cut(hosts(c.primary), hosts(c.standby())) }

// promote makes the standby the primary. Whoever is to fence the old one has to have done
// so before.
func (c *postgres) promote(ctx context.Context) error {
	next := c.standby()
	// What it has received it replays first, in any case.
	if _, err := c.admins[next].ExecContext(ctx, "SELECT pg_promote(true, 60)"); err != nil {
		return err
	}
	c.primary = next
	if c.synchronous {
		// There is no standby. An operator, or what acts for him, lets the primary go on
		// without. Until there is one again it must not fail, and here it does not.
		return c.waitsForStandby(ctx, "")
	}
	return nil
}

// fail ends the primary at once, as a power failure would, and promotes the standby.
func (c *postgres) fail(ctx context.Context) error {
	c.primary.End(syscall.SIGQUIT)
	return c.promote(ctx)
}

// rejoin makes the old primary, which is down and cut off, the standby of the new one:
// pg_rewind takes back what the new one does not have.
func (c *postgres) rejoin(ctx context.Context) error {
	old := c.standby()
	// pg_rewind of PostgreSQL 15 believes the last checkpoint about the timeline.
	if err := c.exec(ctx, "CHECKPOINT"); err != nil {
		return err
	}
	err := eventually(ctx, "pg_rewind fails", func() error {
		_, err := old.host.Run(ctx, "postgres", postgresBin+"pg_rewind", "-D", old.dir, "-N",
			"--source-server=host="+c.primary.host.IP+" user=postgres dbname=postgres connect_timeout=5")
		return err
	})
	if err != nil {
		return err
	}
	return c.follow(ctx)
}

// failover returns a strike: the primary is cut off, the standby is promoted, and the old
// primary comes back as its standby. Before that the standby lags by least to most: what the
// primary acknowledges meanwhile is lost, if it does not wait.
//
// With an asynchronous standby no program reaches the old primary when the new one
// begins. The loss guard needs that: a store whose halves both take writes does not go
// back to an earlier state, it has two. And one half of the holders reaches neither for a
// while, so that they go on with what they have reserved. A synchronous standby needs
// nothing: one half of the holders reaches the old primary alone, the other the new one.
func (c *postgres) failover(least, most time.Duration) func(ctx context.Context, strike int) error {
	return func(ctx context.Context, strike int) error {
		defer c.Heal()
		old, next := hosts(c.primary), hosts(c.standby())
		one, other := c.half(strike/2), c.half(strike/2+1)
		c.detach()
		c.Cut(next, one) // which is of no use to anybody yet
		Rest(ctx, least, most)
		ctx = context.WithoutCancel(ctx) // a cluster in the middle of a failover is of no use
		if strike%2 == 1 {
			c.Cut(old, one)
			Rest(ctx, 0, time.Second)
		}
		if c.synchronous {
			c.Cut(old, other)
		} else {
			c.Isolate(old...)
		}
		if err := c.promote(ctx); err != nil {
			return err
		}
		Rest(ctx, 2*time.Second, 4*time.Second)
		c.standby().End(syscall.SIGQUIT)
		c.Heal()
		return c.rejoin(ctx)
	}
}
