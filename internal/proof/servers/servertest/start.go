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
	initdb := found[len(found)-1]
	programs = filepath.Dir(initdb)
	s := newOwn(t, "nobody") // PostgreSQL refuses to run as root
	s.run(t, initdb, "-D", s.data, "-U", "owner", "-A", "trust", "-N", "--locale=C", "-E", "UTF8")
	return s.startPostgreSQL(t, programs, settings), programs
}

// StartPostgreSQLStandby starts a hot standby of a server of [StartPostgreSQL], which replays what that
// one sends, and returns its URL. It ends with the test.
func StartPostgreSQLStandby(t testing.TB, primary, programs string, settings ...string) (dsn string) {
	t.Helper()
	s := newOwn(t, "nobody")
	s.run(t, filepath.Join(programs, "pg_basebackup"), "-d", primary, "-D", s.data, "-c", "fast", "-N", "-R")
	return s.startPostgreSQL(t, programs, settings)
}

func (s *own) startPostgreSQL(t testing.TB, programs string, settings []string) (dsn string) {
	t.Helper()
	port := Port(t)
	args := []string{"-D", s.data, "-p", port}
	for _, setting := range append([]string{"listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off", "shared_buffers=16MB"}, settings...) {
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
	options := MariaDBOptions(s.dir, s.data)
	s.run(t, "mariadb-install-db", append(options, "--skip-test-db", "--auth-root-authentication-method=normal")...)
	port := Port(t)
	s.start(t, syscall.SIGTERM, "mariadbd", append(append(options, "--socket="+filepath.Join(s.dir, "socket"),
		"--bind-address=127.0.0.1", "--port="+port, "--skip-name-resolve", "--performance-schema=OFF", "--innodb-flush-log-at-trx-commit=0"), settings...)...)
	s.await(t, "mariadb-admin", "--no-defaults", "--protocol=tcp", "--host=127.0.0.1", "--port="+port, "ping")
	return "root@tcp(127.0.0.1:" + port + ")/mysql?parseTime=true", s.data
}

// MariaDBOptions returns the options that mariadb-install-db and mariadbd share for a small server.
// temporary is its folder for temporary tables. No other may have the same one, because a server
// removes the temporary tables that it finds there, also those of another.
func MariaDBOptions(temporary, data string) []string {
	return []string{"--no-defaults", "--datadir=" + data, "--tmpdir=" + temporary, "--innodb-log-file-size=8M", "--innodb-buffer-pool-size=16M"}
}

// An own server is one that a test starts. It has a folder that its user owns: the server
// cannot reach the folder of a test if it runs as another user.
type own struct {
	dir, data string
	as        []string // who runs its programs, for setpriv
}

// newOwn makes the folder. The server runs as the named user if this process is root, and ends with it:
// otherwise it would outlive a test that is killed. Only Linux has the program for that.
func newOwn(t testing.TB, name string) *own {
	t.Helper()
	if _, err := exec.LookPath("setpriv"); err != nil {
		Missing(t, "servertest: this test starts a server of its own, on Linux: ", err)
	}
	dir, err := os.MkdirTemp("", "snowkey") //nolint:usetesting // see own
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &own{dir: dir, data: filepath.Join(dir, "data"), as: []string{"--pdeathsig", "KILL"}}
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
	s.as = append(s.as, "--reuid", u.Uid, "--regid", u.Gid, "--clear-groups")
	return s
}

func (s *own) command(name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(context.Background(), "setpriv", slices.Concat(s.as, []string{"--", name}, args)...) // Cleanup ends it in its own way
	c.Dir = s.dir
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
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	server := s.command(name, args...)
	server.Stdout, server.Stderr = log, log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Signal(end)
		_ = server.Wait()
		_ = log.Close()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
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
