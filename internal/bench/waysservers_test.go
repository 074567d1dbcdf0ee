package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/redis/go-redis/v9"

	"github.com/snowkey/snowkey/internal/servertest"
)

const (
	connections = 64    // of a pool: one for each goroutine
	smallCache  = "16M" // a database's own cache of pages, where memory is little
	smallMemory = "48M" // PostgreSQL's memory then, with the system's cache of its files
)

// servers are started for the benchmarks, in a folder of their own.
type servers struct {
	dir               string
	postgres, mariaDB *server
	redis             []*redis.Client
	redisProcesses    []int
	trips, sent       atomic.Int64 // round trips and bytes, over all connections
	closers           []func() error
}

// A server is a database with its default settings, but for what the page names, and a
// pool of connections to it.
type server struct {
	*sql.DB
	name    string // as on the page
	command []string
	small   func(context.Context) ([]string, error) // the command for little memory
	open    func() (*sql.DB, error)
	dir     string
	process *exec.Cmd
}

// startServers starts the servers for t, if they are installed.
func startServers(t testing.TB) *servers {
	t.Helper()
	for _, name := range []string{program("postgres"), "mariadbd", "redis-server"} {
		if _, err := exec.LookPath(name); err != nil {
			servertest.Missing(t, err)
		}
	}
	dir, err := os.MkdirTemp("", "ways") //nolint:usetesting // PostgreSQL may run as another user
	if err != nil {
		t.Fatal(err)
	}
	s := &servers{dir: dir}
	s.closers = append(s.closers, func() error { return os.RemoveAll(dir) })
	t.Cleanup(func() {
		for _, c := range slices.Backward(s.closers) {
			if err := c(); err != nil {
				t.Error(err)
			}
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background() // t.Context ends before the Cleanup
	for _, start := range []func(context.Context) error{s.newPostgres, s.newMariaDB, s.newRedis, s.newRedis, s.newRedis} {
		if err := start(ctx); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// printVersions prints lines for the header of the results.
func (s *servers) printVersions(t testing.TB) {
	var onPostgres, onMariaDB string
	err := errors.Join(
		s.postgres.QueryRowContext(t.Context(), "SHOW server_version").Scan(&onPostgres),
		s.mariaDB.QueryRowContext(t.Context(), "SELECT version()").Scan(&onMariaDB),
	)
	info, err2 := s.redis[0].Info(t.Context(), "server").Result()
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	_, onRedis, _ := strings.Cut(info, "redis_version:")
	onRedis, _, _ = strings.Cut(onRedis, "\r")
	fmt.Printf("PostgreSQL: %s\nMariaDB: %s\nRedis: %s\n", onPostgres, onMariaDB, onRedis)
}

func (s *servers) newPostgres(ctx context.Context) error {
	port, err := freePort(ctx)
	if err != nil {
		return err
	}
	home := filepath.Join(s.dir, "postgres")
	if err := os.Mkdir(home, 0o700); err != nil {
		return err
	}
	data := filepath.Join(home, "data")
	var as []string
	if os.Getuid() == 0 { // PostgreSQL refuses to run as root
		as = []string{"setpriv", "--reuid=nobody", "--clear-groups"}
		if err := command(ctx, "chown", "nobody", home); err != nil {
			return err
		}
	}
	if err := command(ctx, append(as, program("initdb"), "-D", data, "-U", "ways", "-A", "trust", "--no-sync", "--locale=C", "-E", "UTF8")...); err != nil {
		return err
	}
	config, err := pgx.ParseConfig("postgres://ways@127.0.0.1:" + port + "/postgres?sslmode=disable")
	if err != nil {
		return err
	}
	config.DialFunc = s.dial
	s.postgres = &server{
		name:    "PostgreSQL",
		dir:     home,
		command: append(as, program("postgres"), "-D", data, "-p", port, "-h", "127.0.0.1", "-k", "", "-c", "autovacuum=off"),
		small:   s.limitPostgres,
		open:    func() (*sql.DB, error) { return stdlib.OpenDB(*config), nil },
	}
	s.closers = append(s.closers, func() error {
		group, _ := memoryGroup()
		_ = os.Remove(group) // it may not be there
		return nil
	}, s.postgres.stop)
	return s.postgres.start(ctx, s.postgres.command)
}

// limitPostgres lets the server run in a memory cgroup, since it reads files through the
// system's cache. What this has of its files, from outside of the group, is dropped. Only
// root may do both.
func (s *servers) limitPostgres(ctx context.Context) ([]string, error) {
	group, limit := memoryGroup()
	if err := os.MkdirAll(group, 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(group, limit), []byte(smallMemory), 0o644); err != nil {
		return nil, err
	}
	if err := command(ctx, "find", s.postgres.dir, "-type", "f", "-size", "+1M", "-exec", "dd", "if={}", "iflag=nocache", "count=0", "status=none", ";"); err != nil {
		return nil, err
	}
	enter := []string{"sh", "-c", `echo $$ >"$0" && exec "$@"`, filepath.Join(group, "cgroup.procs")}
	return slices.Concat(enter, s.postgres.command, []string{"-c", "shared_buffers=" + smallCache + "B"}), nil
}

// memoryGroup returns the folder of a cgroup, and the name of the file with its limit.
func memoryGroup() (folder, limit string) {
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil { // version 2
		return "/sys/fs/cgroup/snowkey-ways", "memory.max"
	}
	return "/sys/fs/cgroup/memory/snowkey-ways", "memory.limit_in_bytes"
}

func (s *servers) newMariaDB(ctx context.Context) error {
	port, err := freePort(ctx)
	if err != nil {
		return err
	}
	me, err := user.Current() // MariaDB runs as root only if that is said
	if err != nil {
		return err
	}
	home := filepath.Join(s.dir, "mariadb")
	if err := command(ctx, "mariadb-install-db", "--no-defaults", "--user="+me.Username, "--datadir="+home, "--skip-test-db"); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(home, "ways"), 0o700); err != nil { // a database is a folder
		return err
	}
	config, err := mysql.ParseDSN("root@tcp(127.0.0.1:" + port + ")/ways?parseTime=true&interpolateParams=true")
	if err != nil {
		return err
	}
	config.DialFunc = s.dial
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return err
	}
	s.mariaDB = &server{
		name: "MariaDB",
		dir:  home,
		command: []string{program("mariadbd"), "--no-defaults", "--user=" + me.Username, "--datadir=" + home, "--port=" + port, "--bind-address=127.0.0.1",
			"--socket=" + filepath.Join(home, "socket"), "--skip-grant-tables"},
		small: func(context.Context) ([]string, error) { // InnoDB reads past the system's cache
			return append(slices.Clone(s.mariaDB.command), "--innodb-buffer-pool-size="+smallCache), nil
		},
		open: func() (*sql.DB, error) { return sql.OpenDB(connector), nil },
	}
	s.closers = append(s.closers, s.mariaDB.stop)
	return s.mariaDB.start(ctx, s.mariaDB.command)
}

// start starts the server, and opens the pool when it answers.
func (d *server) start(ctx context.Context, command []string) (err error) {
	log, err := os.Create(filepath.Join(d.dir, "log"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	d.process = exec.CommandContext(ctx, command[0], command[1:]...)
	d.process.Stdout, d.process.Stderr = log, log
	if err := d.process.Start(); err != nil {
		return err
	}
	if d.DB, err = d.open(); err != nil {
		return err
	}
	d.SetMaxOpenConns(connections)
	d.SetMaxIdleConns(connections)
	if err := answers(func() error { return d.PingContext(ctx) }); err != nil {
		text, _ := os.ReadFile(log.Name())
		return fmt.Errorf("%s: %w\n%s", d.name, errors.Join(err, d.stop()), text)
	}
	return nil
}

// restart starts the server again, with little memory.
func (d *server) restart(t testing.TB) {
	t.Helper()
	if err := d.stop(); err != nil {
		t.Fatal(err)
	}
	command, err := d.small(context.Background())
	if err == nil {
		err = d.start(context.Background(), command)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// stop waits until the server has written what it holds.
func (d *server) stop() error {
	if d.DB == nil || d.process.ProcessState != nil {
		return nil
	}
	return errors.Join(d.Close(), d.process.Process.Signal(syscall.SIGTERM), d.process.Wait())
}

// newRedis starts a server that keeps nothing on disk.
func (s *servers) newRedis(ctx context.Context) error {
	port, err := freePort(ctx)
	if err != nil {
		return err
	}
	server := exec.CommandContext(ctx, "redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", s.dir)
	if err := server.Start(); err != nil {
		return err
	}
	client := redis.NewClient(&redis.Options{Addr: net.JoinHostPort("127.0.0.1", port), PoolSize: connections, Dialer: s.dial})
	s.redis, s.redisProcesses = append(s.redis, client), append(s.redisProcesses, server.Process.Pid)
	s.closers = append(s.closers, func() error {
		err := errors.Join(client.Close(), server.Process.Kill())
		_ = server.Wait() // it was killed
		return err
	})
	return answers(func() error { return client.Ping(ctx).Err() })
}

// answers waits until a server answers, for half a minute.
func answers(ping func() error) (err error) {
	for range 600 {
		if err = ping(); err == nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return err
}

// program returns the path of a program of PostgreSQL, which Debian keeps out of PATH.
func program(name string) string {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if len(found) == 0 {
		return name
	}
	return found[len(found)-1]
}

// command runs a program. Its output is in the error.
func command(ctx context.Context, words ...string) error {
	if out, err := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(words, " "), err, out)
	}
	return nil
}

func freePort(ctx context.Context) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port, l.Close()
}

func (s *servers) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &countingConn{Conn: c, trips: &s.trips, sent: &s.sent}, nil
}

// A countingConn counts the bytes that it sends, and a round trip for each read that
// follows a write.
type countingConn struct {
	net.Conn
	trips, sent *atomic.Int64
	wrote       atomic.Bool
}

func (c *countingConn) Write(b []byte) (int, error) {
	c.wrote.Store(true)
	n, err := c.Conn.Write(b)
	c.sent.Add(int64(n))
	return n, err
}

func (c *countingConn) Read(b []byte) (int, error) {
	if c.wrote.CompareAndSwap(true, false) {
		c.trips.Add(1)
	}
	return c.Conn.Read(b)
}

// cpu returns what servers have used, by their names.
func (s *servers) cpu(names ...string) (sum time.Duration) {
	for _, name := range names {
		switch name {
		case "PostgreSQL":
			sum += processCPU(s.postgres.process.Process.Pid)
		case "MariaDB":
			sum += processCPU(s.mariaDB.process.Process.Pid)
		case "Redis":
			for _, process := range s.redisProcesses {
				sum += processCPU(process)
			}
		}
	}
	return sum
}

// processCPU returns what a process, its children and all their threads have used. A child
// that has ended is left out, and so is all of it on a system without /proc.
func processCPU(process int) (sum time.Duration) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", process))
	for _, task := range tasks {
		text, _ := os.ReadFile(filepath.Join(task, "schedstat"))
		running, _, _ := strings.Cut(string(text), " ")
		ns, _ := strconv.ParseInt(running, 10, 64)
		sum += time.Duration(ns)
		children, _ := os.ReadFile(filepath.Join(task, "children"))
		for child := range strings.FieldsSeq(string(children)) {
			id, _ := strconv.Atoi(child)
			sum += processCPU(id)
		}
	}
	return sum
}

// A reader may need several reads for one answer, which is one round trip.
func TestARoundTripIsTheFirstReadAfterAWrite(t *testing.T) {
	here, there := net.Pipe()
	go func() {
		b := make([]byte, 1)
		for {
			if _, err := there.Read(b); err != nil {
				return
			}
			if b[0] == '?' {
				_, _ = there.Write([]byte("ab")) // the other end is read by the test
			}
		}
	}()
	var trips, sent atomic.Int64
	c := &countingConn{Conn: here, trips: &trips, sent: &sent}
	defer func() { _ = c.Close() }()
	b := make([]byte, 1)
	for i := range int64(3) {
		for _, step := range []func([]byte) (int, error){
			func([]byte) (int, error) { return c.Write([]byte("!")) },
			func([]byte) (int, error) { return c.Write([]byte("?")) },
			c.Read, c.Read,
		} {
			if _, err := step(b); err != nil {
				t.Fatal(err)
			}
		}
		if trips.Load() != i+1 {
			t.Errorf("after %d questions the count is %d", i+1, trips.Load())
		}
	}
}
