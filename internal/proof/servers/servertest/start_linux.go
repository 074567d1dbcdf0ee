package servertest

import (
	"context"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// StartPostgreSQL starts a PostgreSQL of the test's own, for settings that no server has by
// itself, such as "wal_level=logical". It returns the URL of a superuser of the database
// postgres, and the folder of the programs of that version, such as pg_dump. The server
// ends with the test. Without Debian's package postgresql it ends the test as [Missing] does.
func StartPostgreSQL(t testing.TB, settings ...string) (dsn, programs string) {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		Missing(t, "servertest: no initdb in /usr/lib/postgresql: this test starts a server of its own")
	}
	slices.Sort(found)
	programs = filepath.Dir(found[len(found)-1])
	s := newOwn(t, "nobody") // PostgreSQL refuses to run as root
	data := filepath.Join(s.dir, "data")
	s.run(t, filepath.Join(programs, "initdb"), "-D", data, "-U", "owner", "-A", "trust", "-N", "--locale=C", "-E", "UTF8")
	port := Port(t)
	args := []string{"-D", data, "-p", port, "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=",
		"-c", "fsync=off", "-c", "shared_buffers=16MB"}
	for _, setting := range settings {
		args = append(args, "-c", setting)
	}
	s.start(t, syscall.SIGQUIT, filepath.Join(programs, "postgres"), args...)
	s.await(t, filepath.Join(programs, "pg_isready"), "-q", "-h", "127.0.0.1", "-p", port, "-U", "owner")
	return "postgres://owner@127.0.0.1:" + port + "/postgres?sslmode=disable", programs
}

// StartPostgreSQLStandby starts a hot standby of a server of [StartPostgreSQL], which replays what that
// one sends, and returns its URL. It ends with the test.
func StartPostgreSQLStandby(t testing.TB, primary, programs string, settings ...string) (dsn string) {
	t.Helper()
	s := newOwn(t, "nobody")
	data := filepath.Join(s.dir, "data")
	s.run(t, filepath.Join(programs, "pg_basebackup"), "-d", primary, "-D", data, "-c", "fast", "-N", "-R")
	port := Port(t)
	args := []string{"-D", data, "-p", port, "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=",
		"-c", "fsync=off", "-c", "shared_buffers=16MB"}
	for _, setting := range settings {
		args = append(args, "-c", setting)
	}
	s.start(t, syscall.SIGQUIT, filepath.Join(programs, "postgres"), args...)
	s.await(t, filepath.Join(programs, "pg_isready"), "-q", "-h", "127.0.0.1", "-p", port, "-U", "owner")
	return "postgres://owner@127.0.0.1:" + port + "/postgres?sslmode=disable"
}

// StartMariaDB starts a MariaDB of the test's own, for settings such as "--log-bin". It returns
// a DSN of root, who needs no password, and the folder of the data. The server ends with the
// test. Without Debian's package mariadb-server it ends the test as [Missing] does.
func StartMariaDB(t testing.TB, settings ...string) (dsn, data string) {
	t.Helper()
	for _, program := range []string{"mariadb-install-db", "mariadbd", "mariadb-admin"} {
		if _, err := exec.LookPath(program); err != nil {
			Missing(t, "servertest: this test starts a server of its own: ", err)
		}
	}
	s := newOwn(t, "mysql")
	data = filepath.Join(s.dir, "data")
	// A server removes the temporary tables that it finds in its folder for them, also those of another.
	temporary := "--tmpdir=" + s.dir
	s.run(t, "mariadb-install-db", "--no-defaults", "--datadir="+data, temporary, "--skip-test-db", "--auth-root-authentication-method=normal", "--innodb-log-file-size=8M")
	port := Port(t)
	s.start(t, syscall.SIGTERM, "mariadbd", append([]string{"--no-defaults", "--datadir=" + data, temporary, "--socket=" + filepath.Join(s.dir, "socket"),
		"--bind-address=127.0.0.1", "--port=" + port, "--skip-name-resolve", "--performance-schema=OFF",
		"--innodb-log-file-size=8M", "--innodb-buffer-pool-size=16M", "--innodb-flush-log-at-trx-commit=0"}, settings...)...)
	s.await(t, "mariadb-admin", "--no-defaults", "--protocol=tcp", "--host=127.0.0.1", "--port="+port, "ping")
	return "root@tcp(127.0.0.1:" + port + ")/mysql?parseTime=true", data
}

// An own server is one that a test starts. It has a folder that its user owns: the server
// cannot reach the folder of a test if it runs as another user.
type own struct {
	dir  string
	attr syscall.SysProcAttr
	log  string
}

// newOwn makes the folder. The server runs as the named user if this process is root.
func newOwn(t testing.TB, name string) *own {
	t.Helper()
	dir, err := os.MkdirTemp("", "snowkey") //nolint:usetesting // see own
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	// Without it the server would outlive a test that is killed.
	s := &own{dir: dir, attr: syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}, log: filepath.Join(dir, "log")}
	if os.Getuid() != 0 {
		return s
	}
	u, err := user.Lookup(name)
	if err != nil {
		Missing(t, err)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	s.attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return s
}

func (s *own) command(name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(context.Background(), name, args...) // Cleanup ends it in its own way
	c.Dir, c.SysProcAttr = s.dir, &s.attr
	return c
}

// run runs a program to its end.
func (s *own) run(t testing.TB, name string, args ...string) {
	t.Helper()
	if out, err := s.command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// start starts the server. At the end of the test it gets the signal.
func (s *own) start(t testing.TB, end syscall.Signal, name string, args ...string) {
	t.Helper()
	log, err := os.Create(s.log)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }() // the server has its own
	server := s.command(name, args...)
	server.Stdout, server.Stderr = log, log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Signal(end)
		_ = server.Wait()
		if t.Failed() {
			text, _ := os.ReadFile(s.log)
			t.Logf("%s said at last:\n%s", name, text[max(0, len(text)-4000):])
		}
	})
}

// await runs a program until it succeeds, which says that the server answers.
func (s *own) await(t testing.TB, name string, args ...string) {
	t.Helper()
	var err error
	const patience = 3 * time.Minute // it takes seconds to start, and more on a busy machine
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err = s.command(name, args...).Run(); err == nil {
			return
		}
	}
	t.Fatalf("%s has failed for %v: %v", name, patience, err)
}
