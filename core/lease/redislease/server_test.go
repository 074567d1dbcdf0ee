package redislease_test

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"encoding/hex"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/redislease"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
)

// A place is a server and a prefix that no other test uses on it.
type place struct {
	options redis.Options
	prefix  string
}

// shared returns a place on the server that all tests share.
func shared(t testing.TB) place {
	t.Helper()
	p := place{redis.Options{Addr: servertest.Redis(t)}, "snowkey-test-" + token()}
	t.Cleanup(func() { p.clear(t) })
	return p
}

// client returns a new client of the server, which the test closes.
func (p place) client(t testing.TB) *redis.Client {
	options := p.options
	client := redis.NewClient(&options)
	t.Cleanup(func() { client.Close() })
	return client
}

func (p place) store(t testing.TB) *redislease.Store { return p.storeOn(t, p.client(t)) }

func (p place) storeOn(t testing.TB, client redislease.Client) *redislease.Store {
	t.Helper()
	config := redislease.Config{Prefix: p.prefix}
	s, err := redislease.New(client, config)
	if err != nil {
		t.Fatalf("New(client, %+v) = %v; want a store", config, err)
	}
	return s
}

// clear deletes all keys with the prefix.
func (p place) clear(t testing.TB) {
	client := p.client(t)
	ctx := context.Background() // the test's is over
	keys := client.Scan(ctx, 0, p.prefix+":*", 1000).Iterator()
	for keys.Next(ctx) {
		client.Del(ctx, keys.Val())
	}
	if err := keys.Err(); err != nil {
		t.Errorf("keys of the test remain: %v", err)
	}
}

// rowKey returns the key of a space's rows.
func (p place) rowKey(s leasestore.Space) string {
	return p.settingsKey(s) + ":" + strconv.FormatInt(s.Datacenter, 10)
}

func (p place) settingsKey(s leasestore.Space) string { return p.prefix + ":{" + s.Namespace + "}" }

// setUntil rewrites a row by hand.
func (p place) setUntil(t *testing.T, s leasestore.Space, worker int64, until leasestore.Millis) {
	t.Helper()
	client := p.client(t)
	field := strconv.FormatInt(worker, 10)
	text, err := client.HGet(t.Context(), p.rowKey(s), field).Result()
	if err != nil {
		t.Fatalf("HGET %s %s = %v; want a row", p.rowKey(s), field, err)
	}
	fields := strings.Split(text, ",")
	fields[3] = strconv.FormatInt(int64(until), 10)
	if err := client.HSet(t.Context(), p.rowKey(s), field, strings.Join(fields, ",")).Err(); err != nil {
		t.Fatal(err)
	}
}

func (p place) delete(t *testing.T, s leasestore.Space, worker int64) {
	t.Helper()
	if n, err := p.client(t).HDel(t.Context(), p.rowKey(s), strconv.FormatInt(worker, 10)).Result(); n != 1 || err != nil {
		t.Fatalf("HDEL of worker %d = %d, %v; want 1", worker, n, err)
	}
}

func token() string {
	var b [16]byte
	crand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// A server is a redis-server of its test's own.
type server struct {
	place
	dir  string
	args []string
	cmd  *exec.Cmd
}

// ownServer starts a redis-server on a free port with additional arguments, or skips the test
// and says so.
func ownServer(t *testing.T, args ...string) *server {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		servertest.Missing(t, "SKIPPED: no redis-server to start: ", err)
	}
	port := servertest.Port(t)
	s := &server{
		place: place{redis.Options{Addr: "127.0.0.1:" + port}, "snowkey-test"},
		dir:   t.TempDir(),
		args:  append([]string{"--save", "", "--repl-diskless-sync-delay", "0", "--bind", "127.0.0.1", "--port", port}, args...),
	}
	for i, arg := range args {
		if arg == "--requirepass" {
			s.options.Password = args[i+1]
		}
	}
	t.Cleanup(func() { s.kill() })
	s.start(t)
	return s
}

func (s *server) start(t *testing.T) {
	t.Helper()
	var output bytes.Buffer
	// Not t.Context: the server has to outlive it, because Cleanup stops it.
	s.cmd = exec.CommandContext(context.Background(), "redis-server", append(s.args, "--dir", s.dir)...)
	s.cmd.Stdout, s.cmd.Stderr = &output, &output
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	client := s.client(t)
	giveUp := time.Now().Add(3 * time.Minute)
	for {
		err := client.Ping(t.Context()).Err()
		if err == nil || redis.HasErrorPrefix(err, "NOAUTH") {
			return
		}
		if time.Now().After(giveUp) {
			s.kill()
			t.Fatalf("redis-server on %s does not answer for three minutes: %v\n%s", s.options.Addr, err, output.String())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// kill ends the server as a crash would.
func (s *server) kill() {
	if s.cmd != nil {
		s.cmd.Process.Kill() //nolint:errcheck // it may have ended
		s.cmd.Wait()         //nolint:errcheck // it was killed
		s.cmd = nil
	}
}

// do runs a command that must succeed.
func (s *server) do(t *testing.T, args ...any) any {
	t.Helper()
	reply, err := s.client(t).Do(t.Context(), args...).Result()
	if err != nil {
		t.Fatalf("%v = %v; want no error", args, err)
	}
	return reply
}
