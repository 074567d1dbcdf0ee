package servertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
)

// nowhere refuses connections on every machine, because port 1 belongs to an obsolete service.
const nowhere = "127.0.0.1:1"

// all is every kind of server, with a value of its variable that leads to addr.
var all = []struct {
	server server
	find   func(testing.TB) string
	value  func(addr string) string
}{
	{postgreSQL, PostgreSQL, func(addr string) string { return "postgres://joe:sesame@" + addr + "/test" }},
	{mariaDB, MariaDB, func(addr string) string { return "joe:sesame@tcp(" + addr + ")/test" }},
	{mySQL, MySQL, func(addr string) string { return "joe:sesame@tcp(" + addr + ")/test" }},
	{redis, Redis, func(addr string) string { return addr }},
	{zooKeeper, ZooKeeper, func(addr string) string { return addr }},
	{etcd, Etcd, func(addr string) string { return addr }},
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

// listen serves each connection with reply, once it has read question.
func listen(t *testing.T, question, reply string) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				got := make([]byte, len(question))
				if _, err := io.ReadFull(conn, got); err == nil && string(got) == question {
					_, _ = io.WriteString(conn, reply)
				}
			}()
		}
	}()
	return l.Addr().String()
}

func TestUnreachableServerSkipsWithoutCI(t *testing.T) {
	for _, ci := range []string{"", "0", "false"} {
		for _, s := range all {
			t.Setenv("CI", ci)
			t.Setenv(s.server.variable, s.value(nowhere))
			value, r := run(s.find)
			if value != "" || r.outcome != "skip" {
				t.Errorf("%s(t) with CI=%q and nothing at %s = %q, outcome %q; want %q, %q",
					s.server.name, ci, nowhere, value, r.outcome, "", "skip")
			}
		}
	}
}

func TestUnreachableServerFailsInCI(t *testing.T) {
	for _, ci := range []string{"true", "1", "woodpecker"} {
		for _, s := range all {
			t.Setenv("CI", ci)
			t.Setenv(s.server.variable, s.value(nowhere))
			value, r := run(s.find)
			if value != "" || r.outcome != "fatal" {
				t.Errorf("%s(t) with CI=%q and nothing at %s = %q, outcome %q; want %q, %q",
					s.server.name, ci, nowhere, value, r.outcome, "", "fatal")
			}
		}
	}
}

func TestMessageNamesServerAddressVariableAndStart(t *testing.T) {
	for _, s := range all {
		for _, ci := range []string{"", "true"} {
			t.Setenv("CI", ci)
			t.Setenv(s.server.variable, s.value(nowhere))
			_, r := run(s.find)
			for _, part := range []string{"servertest: ", s.server.name, nowhere, s.server.variable, s.server.start} {
				if !strings.Contains(r.message, part) {
					t.Errorf("%s(t) with CI=%q says %q; want %q in it", s.server.name, ci, r.message, part)
				}
			}
		}
	}
}

func TestAnsweringServerReturnsTheVariableAsItIs(t *testing.T) {
	replies := map[string][2]string{
		"PostgreSQL": {}, "MariaDB": {}, "MySQL": {},
		"Redis":     {"PING\r\n", "+PONG\r\n"},
		"ZooKeeper": {"srvr", "Zookeeper version: 3.8.0\nMode: standalone\n"},
		"etcd":      {"GET /version HTTP/1.0\r\n\r\n", "HTTP/1.0 200 OK\r\n\r\n{\"etcdserver\":\"3.4.23\",\"etcdcluster\":\"3.4.0\"}"},
	}
	for _, s := range all {
		want := s.value(listen(t, replies[s.server.name][0], replies[s.server.name][1]))
		t.Setenv(s.server.variable, want)
		if value, r := run(s.find); value != want || r.outcome != "" {
			t.Errorf("%s(t) = %q, outcome %q %s; want %q, no outcome", s.server.name, value, r.outcome, r.message, want)
		}
	}
}

func TestMySQLIsSkippedAloudUnlessItIsNamed(t *testing.T) {
	for _, ci := range []string{"", "true"} {
		t.Setenv("CI", ci)
		t.Setenv(mySQL.variable, "")
		if _, r := run(MySQL); r.outcome != "skip" || !strings.Contains(r.message, mySQL.variable) || !strings.Contains(r.message, mySQL.start) {
			t.Errorf("MySQL(t) with CI=%q and no %s: outcome %q %s; want a skip that says how to have one", ci, mySQL.variable, r.outcome, r.message)
		}
	}
}

func TestStrangerOnThePortIsNoServer(t *testing.T) {
	for _, s := range all {
		if s.server.exchange == nil {
			continue
		}
		for _, reply := range []string{
			"",
			"-NOAUTH Authentication required.\r\n",
			"This ZooKeeper instance is not currently serving requests\n",
			"HTTP/1.1 400 Bad Request\r\n\r\n",
			strings.Repeat("x", 1<<20), // without an end of line
		} {
			question := "PING\r\n"
			switch s.server.name {
			case "ZooKeeper":
				question = "srvr"
			case "etcd":
				question = "GET /version HTTP/1.0\r\n\r\n"
			}
			t.Setenv("CI", "")
			t.Setenv(s.server.variable, listen(t, question, reply))
			value, r := run(s.find)
			if value != "" || r.outcome != "skip" {
				t.Errorf("%s(t) answered by %.20q = %q, outcome %q; want %q, %q",
					s.server.name, reply, value, r.outcome, "", "skip")
			}
			if shown := min(len(reply), 20); !strings.Contains(r.message, strings.Trim(fmt.Sprintf("%q", reply[:shown]), `"`)) {
				t.Errorf("%s(t) answered by %.20q says %q; want the answer in it", s.server.name, reply, r.message)
			}
			if len(r.message) > 1000 {
				t.Errorf("%s(t) answered by %.20q says %d bytes; want at most 1000", s.server.name, reply, len(r.message))
			}
		}
	}
}

func TestSilentServerIsGivenUpAfterThePatience(t *testing.T) {
	for _, s := range all {
		if s.server.exchange == nil {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			here, there := net.Pipe()
			defer func() { _, _ = here.Close(), there.Close() }()
			go func() { _, _ = io.Copy(io.Discard, there) }() // listens, says nothing
			if err := s.server.speaks(here); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s: speaks(silent) = %v; want %v", s.server.name, err, os.ErrDeadlineExceeded)
			}
		})
	}
}

func TestEndlessAnswerIsNotReadToItsEnd(t *testing.T) {
	for _, s := range all {
		if s.server.exchange == nil {
			continue
		}
		here, there := net.Pipe()
		sent := make(chan int)
		go func() {
			question := make([]byte, 64) // the whole, or both sides write, and wait for patience
			_, _ = there.Read(question)
			n := 0
			for n < 1<<20 {
				m, err := there.Write(make([]byte, 1024))
				n += m
				if err != nil {
					break
				}
			}
			_ = there.Close()
			sent <- n
		}()
		err := s.server.speaks(here)
		_ = here.Close()
		if n := <-sent; err == nil || n == 0 || n > 2*longestReply {
			t.Errorf("%s: speaks(endless) = %v after %d bytes; want an error after 1 to %d", s.server.name, err, n, 2*longestReply)
		}
	}
}

func TestMalformedValueFailsEverywhereAndNamesTheVariable(t *testing.T) {
	for _, ci := range []string{"", "true"} {
		for _, s := range all {
			t.Setenv("CI", ci)
			t.Setenv(s.server.variable, "no address")
			value, r := run(s.find)
			if value != "" || r.outcome != "fatal" || !strings.Contains(r.message, s.server.variable) ||
				!strings.Contains(r.message, s.server.form) {
				t.Errorf("%s(t) with CI=%q, %s=%q = %q, outcome %q %q; want %q, %q naming the variable and %q",
					s.server.name, ci, s.server.variable, "no address", value, r.outcome, r.message, "", "fatal", s.server.form)
			}
		}
	}
}

func TestNoMessageHoldsThePassword(t *testing.T) {
	for _, s := range all {
		for _, value := range []string{
			s.value(nowhere),
			"postgres://joe:sesame@" + nowhere + "/test",
			"postgres://joe:se%zzsame@host/test", // net/url quotes the URL in its error
			"postgres://joe@host:sesame/test",    // and the port
			"host=h password=sesame",
			"joe:sesame@tcp(" + nowhere + ")/test",
			"joe:sesame@udp(h:1)/test",
			"joe:sesame@tcp(h:1",
			"joe:sesame",
			":sesame@" + nowhere,
			"redis://:sesame@h:6379",
		} {
			t.Setenv("CI", "true")
			t.Setenv(s.server.variable, value)
			_, r := run(s.find)
			if r.outcome != "fatal" || strings.Contains(r.message, "sesame") || strings.Contains(r.message, "joe") {
				t.Errorf("%s(t) with %s=%s: outcome %q %q; want %q without user and password",
					s.server.name, s.server.variable, value, r.outcome, r.message, "fatal")
			}
		}
	}
}

func TestEmptyVariableMeansTheDefault(t *testing.T) {
	for _, s := range all {
		if s.server.fallback == "" {
			continue
		}
		t.Setenv(s.server.variable, "")
		if value, err := s.server.find(t.Context()); err == nil && value != s.server.fallback {
			t.Errorf("%s: find() = %q; want %q", s.server.name, value, s.server.fallback)
		} else if err != nil && errors.Is(err, errMalformed) {
			t.Errorf("%s: find() = %v; want the default to be well-formed", s.server.name, err)
		}
	}
}
