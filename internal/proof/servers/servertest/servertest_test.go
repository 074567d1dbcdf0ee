package servertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"testing"
)

// nowhere refuses connections on every machine, because port 1 belongs to an obsolete service.
const nowhere = "127.0.0.1:1"

// all is every kind of server, with a value of its variable that leads to addr.
var all = []struct {
	server server
	find   func(testing.TB) string
	value  string
}{
	{postgreSQL, PostgreSQL, "postgres://joe:sesame@%s/test"},
	{mariaDB, MariaDB, "joe:sesame@tcp(%s)/test"},
	{mySQL, MySQL, "joe:sesame@tcp(%s)/test"},
	{redis, Redis, "%s"},
	{zooKeeper, ZooKeeper, "%s"},
	{etcd, Etcd, "%s"},
}

// A recorder is the testing.TB of a test whose end is of interest.
type recorder struct {
	testing.TB
	outcome string // "", "skip" or "fatal"
	message string
}

func (r *recorder) Helper()                  {}
func (r *recorder) Context() context.Context { return context.Background() }
func (r *recorder) Skip(args ...any)         { r.end("skip", args) }
func (r *recorder) Fatal(args ...any)        { r.end("fatal", args) }

func (r *recorder) end(outcome string, args []any) {
	r.outcome, r.message = outcome, fmt.Sprint(args...)
	runtime.Goexit() // as testing does
}

// run calls find as a test would, and returns what became of that test.
func run(find func(testing.TB) string) (value string, r *recorder) {
	r = &recorder{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		value = find(r)
	}()
	<-done
	return value, r
}

// A message names the server, the address, the variable and what to do. None holds the password.
func TestATestWithoutItsServerIsSkippedAndFailedInCI(t *testing.T) {
	const missing, malformed = "answers at " + nowhere, "malformed"
	for _, s := range all {
		for value, want := range map[string]string{
			fmt.Sprintf(s.value, nowhere):          missing,
			"postgres://joe:se%zzsame@host/test":   malformed, // net/url quotes the URL in its error
			"postgres://joe@host:sesame/test":      malformed, // and the port
			"host=h password=sesame":               malformed,
			"joe:sesame@udp(h:1)/test":             malformed,
			"joe:sesame@tcp(h:1":                   malformed,
			"joe:sesame":                           malformed,
			":sesame@" + nowhere:                   malformed,
			"redis://:sesame@h:6379":               malformed,
			"joe:sesame@tcp(" + nowhere + "),x":    malformed,
			"postgres:///x?user=joe&password=open": malformed,
		} {
			for ci, outcome := range map[string]string{"": "skip", "0": "skip", "false": "skip", "true": "fatal", "1": "fatal", "woodpecker": "fatal"} {
				parts := []string{want, s.server.variable, s.server.name, howToStart}
				if want == malformed { // a skip would hide the typing error
					outcome, parts = "fatal", []string{want, s.server.variable, s.server.example}
				}
				t.Setenv("CI", ci)
				t.Setenv(s.server.variable, value)
				got, r := run(s.find)
				if got != "" || r.outcome != outcome {
					t.Errorf("%s(t) with CI=%q, %s=%q = %q, outcome %q; want none, %q", s.server.name, ci, s.server.variable, value, got, r.outcome, outcome)
				}
				for _, part := range parts {
					if !strings.Contains(r.message, part) {
						t.Errorf("%s(t) with CI=%q, %s=%q says %q; want %q in it", s.server.name, ci, s.server.variable, value, r.message, part)
					}
				}
				if strings.Contains(r.message, "sesame") || strings.Contains(r.message, "joe") {
					t.Errorf("%s(t) with CI=%q, %s=%q says %q; want no user and password in it", s.server.name, ci, s.server.variable, value, r.message)
				}
			}
		}
	}
}

func TestTheVariableIsReturnedAsItIsWhenItsServerAnswers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, s := range all {
		want := fmt.Sprintf(s.value, l.Addr())
		t.Setenv(s.server.variable, want)
		if value, r := run(s.find); value != want || r.outcome != "" {
			t.Errorf("%s(t) = %q, outcome %q %s; want %q, no outcome", s.server.name, value, r.outcome, r.message, want)
		}
	}
}

func TestAddressIsTheOneThatTheDriverDials(t *testing.T) {
	for _, test := range []struct {
		dial            func(string) (network, target string)
		value           string
		network, target string
	}{
		{dialPostgres, postgreSQL.example, "tcp", "127.0.0.1:5432"},
		{dialPostgres, "postgresql://joe:p%40ss@db:6000/x?sslmode=disable", "tcp", "db:6000"},
		{dialPostgres, "postgres://[::1]/x", "tcp", "[::1]:5432"},
		{dialMySQL, mariaDB.example, "tcp", "127.0.0.1:3306"},
		{dialMySQL, "joe:p@ss/w(o)rd@tcp(db:3307)/x", "tcp", "db:3307"},
		{dialMySQL, "joe@unix(/run/mysqld/mysqld.sock)/x", "unix", "/run/mysqld/mysqld.sock"},
		{dialPlain, redis.example, "tcp", "127.0.0.1:6379"},
		{dialPlain, zooKeeper.example, "tcp", "127.0.0.1:2181"},
		{dialPlain, etcd.example, "tcp", "127.0.0.1:2379"},
		{dialPlain, "[::1]:6379", "tcp", "[::1]:6379"},
		{dialPlain, "a:1,b:2", "tcp", ""},
	} {
		if network, target := test.dial(test.value); network != test.network || target != test.target {
			t.Errorf("dial(%q) = %s, %s; want %s, %s", test.value, network, target, test.network, test.target)
		}
	}
}

func TestMySQLIsSkippedAloudUnlessItIsNamed(t *testing.T) {
	for _, ci := range []string{"", "true"} {
		t.Setenv("CI", ci)
		t.Setenv(mySQL.variable, "")
		if _, r := run(MySQL); r.outcome != "skip" || !strings.Contains(r.message, mySQL.variable) || !strings.Contains(r.message, howToStart) {
			t.Errorf("MySQL(t) with CI=%q and no %s: outcome %q %s; want a skip that says how to have one", ci, mySQL.variable, r.outcome, r.message)
		}
	}
}

func TestEmptyVariableMeansTheDefault(t *testing.T) {
	for _, s := range all {
		if s.server.name == "MySQL" {
			continue
		}
		t.Setenv(s.server.variable, "")
		if value, err := s.server.find(t.Context()); err == nil && value != s.server.example || errors.Is(err, errMalformed) {
			t.Errorf("%s: find() = %q, %v; want %q, or nobody there", s.server.name, value, err, s.server.example)
		}
	}
}
