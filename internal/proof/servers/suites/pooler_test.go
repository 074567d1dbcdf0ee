//go:build unix

package servers

import (
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/snowkey/snowkey/internal/proof/cases/sqlxcases"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
)

// A pooler is a PgBouncer in front of the server, with a schema of the test's own.
type pooler struct {
	url    *url.URL
	direct *url.URL // the same schema without the pooler
	schema string
	admin  *sqlx.DB // of direct
	keys   *sqlxcases.Counter
}

// newPooler starts a PgBouncer that gives server connections away for a transaction or
// a statement. It takes another one each time, so a test meets what only holds on one
// connection.
func newPooler(t *testing.T, mode string) pooler {
	t.Helper()
	server, err := url.Parse(servertest.PostgreSQL(t))
	if err != nil {
		t.Fatal("the URL of PostgreSQL cannot be parsed")
	}
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program, err = exec.LookPath("/usr/sbin/pgbouncer")
	}
	if err != nil {
		servertest.Missing(t, "no PgBouncer: ", err, "; install one: apt-get install pgbouncer")
	}
	schema := "pooler_" + strings.ToLower(rand.Text())
	admin := openSqlx(t, "pgx", server.String())
	execSqlx(t, admin, "CREATE SCHEMA "+schema)
	t.Cleanup(func() { execSqlx(t, admin, "DROP SCHEMA "+schema+" CASCADE") })

	//nolint:usetesting // its user is another one, who gets to no folder below t.TempDir
	dir, err := os.MkdirTemp("", "pgbouncer")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	database := "host=" + server.Hostname() + " dbname=" + strings.TrimPrefix(server.Path, "/") + " user=" + server.User.Username() +
		" connect_query='SET search_path = " + schema + "'"
	if port := server.Port(); port != "" {
		database += " port=" + port
	}
	if password, ok := server.User.Password(); ok {
		database += " password='" + strings.ReplaceAll(password, "'", "''") + "'"
	}
	port, password := servertest.Port(t), rand.Text()
	config := "[databases]\nschema = " + database + "\n[pgbouncer]\n" +
		"listen_addr = 127.0.0.1\nlisten_port = " + port + "\nunix_socket_dir =\n" +
		"auth_type = md5\nauth_file = " + filepath.Join(dir, "users") + "\n" +
		"pool_mode = " + mode + "\ndefault_pool_size = 8\nserver_round_robin = 1\nlog_connections = 0\nlog_disconnections = 0\n"
	if os.Geteuid() == 0 { // which it refuses to be
		config += "user = nobody\n"
		giveTo(t, "nobody", dir)
	}
	for name, text := range map[string]string{"config": config, "users": fmt.Sprintf("%q %q\n", "snowkey", password)} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if os.Geteuid() == 0 {
			giveTo(t, "nobody", path)
		}
	}
	said := new(strings.Builder)
	cmd := exec.Command(program, "-q", filepath.Join(dir, "config"))
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	p := pooler{
		schema: schema,
		keys:   sqlxcases.NewCounter(1 << 40),
		url:    &url.URL{Scheme: "postgres", User: url.UserPassword("snowkey", password), Host: "127.0.0.1:" + port, Path: "/schema", RawQuery: "sslmode=disable"},
		direct: server,
	}
	query := server.Query()
	query.Set("search_path", schema)
	server.RawQuery = query.Encode()
	p.admin = openSqlx(t, "pgx", server.String())
	for giveUp := time.Now().Add(hangs); ; time.Sleep(10 * time.Millisecond) {
		if conn, err := p.in(t, "pgx").connector(); err == nil {
			c, err := conn.Connect(t.Context())
			if err == nil {
				_ = c.Close()
				p.spread(t)
				return p
			}
			if time.Now().After(giveUp) {
				t.Fatalf("PgBouncer does not answer: %v", err)
			}
		}
	}
}

// spread has the pooler open four connections to the server. Those of one client
// alone, which waits for each answer, would all go to one.
func (p pooler) spread(t *testing.T) {
	t.Helper()
	db := p.in(t, "pgx simple protocol").open(t)
	var conns []*sqlx.Conn
	for range 4 {
		conn, err := db.Connx(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
	}
	var wg sync.WaitGroup
	for _, conn := range conns {
		wg.Go(func() {
			if _, err := conn.ExecContext(t.Context(), "SELECT pg_sleep(0.3)"); err != nil {
				t.Errorf("pg_sleep = %v", err)
			}
			_ = conn.Close()
		})
	}
	wg.Wait()
}

// in returns the way to the pooler by a driver in one of its modes.
func (p pooler) in(t *testing.T, name string) place {
	t.Helper()
	w := wayTo(name)
	return place{way: w, schema: p.schema, dsn: p.url.String()}.with(t, w.parameters...)
}

// giveTo makes a file that of a user.
func giveTo(t *testing.T, name, path string) {
	t.Helper()
	u, err := user.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.Atoi(u.Uid)
	if err := os.Chown(path, uid, -1); err != nil {
		t.Fatal(err)
	}
}
