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

	_ "github.com/jackc/pgx/v5/stdlib"
)

const postgresBin = "/usr/lib/postgresql/15/bin/"

// A postgres is a PostgreSQL primary and its standby.
type postgres struct {
	t       testing.TB
	network *Network
	nodes   [2]*postgresNode
	primary *postgresNode

	// synchronous: a commit waits until the standby has it on its disk. commits is the
	// server's default of synchronous_commit.
	synchronous bool
	commits     string
}

type postgresNode struct {
	host   *Host
	dir    string // of the data
	log    string
	server *Server
	admin  *sql.DB // by the way that is never cut
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

// newPostgres starts a primary and its standby.
func newPostgres(t testing.TB, n *Network, synchronous bool, commits string) *postgres {
	t.Helper()
	dir, err := os.MkdirTemp("", "fire-postgres") //nolint:usetesting // the folders above t.TempDir are closed to postgres
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := run("chown", "postgres:", dir); err != nil {
		t.Fatal(err)
	}
	c := &postgres{t: t, network: n, synchronous: synchronous, commits: commits}
	for i := range c.nodes {
		h := n.Host(fmt.Sprint("postgres", i+1))
		admin, err := sql.Open("pgx", fmt.Sprintf("postgres://postgres@%s:5432/postgres?sslmode=disable&connect_timeout=20", h.IP))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = admin.Close() })
		admin.SetMaxIdleConns(0) // the server on the other end changes
		c.nodes[i] = &postgresNode{host: h, dir: filepath.Join(dir, h.Name), log: filepath.Join(dir, h.Name+".log"), admin: admin}
	}
	c.primary = c.nodes[0]
	if err := c.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *postgres) begin(ctx context.Context) error {
	p, s := c.nodes[0], c.nodes[1]
	if _, err := p.host.Run(ctx, "postgres", postgresBin+"initdb", "-D", p.dir, "-N", "-A", "trust", "--wal-segsize=1", "--locale=C", "-E", "UTF8"); err != nil {
		return err
	}
	hba := "host all all 10.0.0.0/8 trust\nhost replication all 10.0.0.0/8 trust\n"
	// The files are the server's. Written over, they stay so.
	if err := errors.Join(os.WriteFile(filepath.Join(p.dir, "pg_hba.conf"), []byte(hba), 0o600),
		os.WriteFile(filepath.Join(p.dir, "postgresql.conf"), []byte(postgresConf), 0o600)); err != nil {
		return err
	}
	c.start(p)
	if err := c.ready(ctx, p); err != nil {
		return err
	}
	if err := p.exec(ctx, "ALTER SYSTEM SET synchronous_commit = "+c.commits); err != nil {
		return err
	}
	if _, err := s.host.Run(ctx, "postgres", postgresBin+"pg_basebackup", "-h", p.host.IP, "-U", "postgres", "-D", s.dir, "-c", "fast", "-N"); err != nil {
		return err
	}
	return c.follow(ctx, s)
}

// start starts a node as what its data says that it is.
func (c *postgres) start(n *postgresNode) {
	n.server = n.host.Start(c.t, n.log, "postgres", postgresBin+"postgres", "-D", n.dir,
		"-c", "listen_addresses="+n.host.IP,
		"-c", "primary_conninfo=host="+c.other(n).host.IP+" user=postgres application_name=standby connect_timeout=2")
}

// follow makes a node that is down the standby of the primary, and waits until it has all
// that the primary has.
func (c *postgres) follow(ctx context.Context, n *postgresNode) error {
	signal := filepath.Join(n.dir, "standby.signal")
	if err := errors.Join(os.WriteFile(signal, nil, 0o600), run("chown", "postgres:", signal)); err != nil {
		return err
	}
	c.start(n)
	if err := c.ready(ctx, n); err != nil {
		return err
	}
	if c.synchronous {
		if err := c.wait(ctx, "streaming"); err != nil {
			return err
		}
		if err := c.primary.exec(ctx, "ALTER SYSTEM SET synchronous_standby_names = standby", "SELECT pg_reload_conf()"); err != nil {
			return err
		}
	}
	return c.caughtUp(ctx)
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
	if err := c.primary.admin.QueryRowContext(ctx, "SELECT pg_current_wal_lsn()").Scan(&now); err != nil {
		return err
	}
	return eventually(ctx, "the standby does not catch up", func() error {
		var done bool
		err := c.primary.admin.QueryRowContext(ctx, "SELECT COALESCE(bool_or(replay_lsn >= CAST($1 AS pg_lsn)), false) FROM pg_stat_replication WHERE application_name = 'standby'", now).Scan(&done)
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
		err := c.primary.admin.QueryRowContext(ctx, "SELECT state, sync_state FROM pg_stat_replication WHERE application_name = 'standby'").Scan(&now, &sync)
		if err == nil && (now != "streaming" || now != state && sync != state) {
			err = fmt.Errorf("it is %s, %s", now, sync)
		}
		return err
	})
}

func (c *postgres) ready(ctx context.Context, n *postgresNode) error {
	return eventually(ctx, n.host.Name+" does not answer", func() error {
		if n.server.Ended() {
			c.start(n) // what it has left behind may have been in its way
		}
		return n.admin.PingContext(ctx)
	})
}

func (c *postgres) other(n *postgresNode) *postgresNode {
	if n == c.nodes[0] {
		return c.nodes[1]
	}
	return c.nodes[0]
}

// standby returns the node that is not the primary.
func (c *postgres) standby() *postgresNode { return c.other(c.primary) }

// detach cuts the replication.
func (c *postgres) detach() {
	c.network.Cut([]*Host{c.primary.host}, []*Host{c.standby().host})
}

// promote makes the standby the primary. Whoever is to fence the old one has to have done
// so before.
func (c *postgres) promote(ctx context.Context) error {
	next := c.standby()
	// What it has received it replays first, in any case.
	if err := next.exec(ctx, "SELECT pg_promote(true, 60)"); err != nil {
		return err
	}
	c.primary = next
	if c.synchronous {
		// There is no standby. An operator, or what acts for him, lets the primary go on
		// without. Until there is one again it must not fail, and here it does not.
		return next.exec(ctx, "ALTER SYSTEM SET synchronous_standby_names = ''", "SELECT pg_reload_conf()")
	}
	return nil
}

// end ends a node at once, as a power failure would.
func (n *postgresNode) end(ctx context.Context) error {
	n.server.Signal(syscall.SIGQUIT)
	return eventually(ctx, n.host.Name+" does not end", func() error {
		if !n.server.Ended() {
			return errors.New("it runs")
		}
		return nil
	})
}

// rejoin makes the old primary, which is down and reached by nobody, the standby of the
// new one: pg_rewind takes back what the new one does not have.
func (c *postgres) rejoin(ctx context.Context) error {
	old := c.standby()
	// pg_rewind of PostgreSQL 15 believes the last checkpoint about the timeline.
	if err := c.primary.exec(ctx, "CHECKPOINT"); err != nil {
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
	return c.follow(ctx, old)
}

func (n *postgresNode) exec(ctx context.Context, statements ...string) error {
	for _, s := range statements {
		if _, err := n.admin.ExecContext(ctx, s); err != nil {
			return fmt.Errorf("%s: %s: %w", n.host.Name, s, err)
		}
	}
	return nil
}

// dsn leads to the primary, whichever it is. It is not a URL: lib/pq 1.12 does not
// understand one with several hosts and ports.
func (c *postgres) dsn() string {
	return fmt.Sprintf("host=%s,%s user=postgres dbname=postgres sslmode=disable connect_timeout=1 target_session_attrs=read-write",
		c.nodes[0].host.IP, c.nodes[1].host.IP)
}

// eventually waits until ready returns nil, for three minutes.
func eventually(ctx context.Context, what string, ready func() error) error {
	for began := time.Now(); ; {
		err := ready()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil || time.Since(began) > 3*time.Minute {
			return fmt.Errorf("fire: %s: %w", what, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// needPostgres skips or fails the test if it cannot run.
func needPostgres(t *testing.T) {
	t.Helper()
	Need(t)
	for program := range strings.FieldsSeq("initdb postgres pg_basebackup pg_rewind") {
		if _, err := exec.LookPath(postgresBin + program); err != nil {
			t.Fatal(err)
		}
	}
}
