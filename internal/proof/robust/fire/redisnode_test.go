//go:build linux

package fire

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// A redisNode is a Redis server on a host, or a Sentinel. Its data outlive it.
type redisNode struct {
	*redis.Client // the test's, whatever is cut

	host   *Host
	dir    string
	server *Server
}

// newRedisNode returns a node that was not started.
func newRedisNode(t *testing.T, h *Host, port string) *redisNode {
	t.Helper()
	dir := t.TempDir()
	owner, err := user.Lookup("redis")
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.Atoi(owner.Uid)
	gid, _ := strconv.Atoi(owner.Gid)
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(dir), 0o711); err != nil { //nolint:gosec // the server's user must pass
		t.Fatal(err)
	}
	n := &redisNode{host: h, dir: dir, Client: redis.NewClient(&redis.Options{
		Addr: net.JoinHostPort(h.IP, port), MaxRetries: 5, DialTimeout: time.Second, ReadTimeout: 5 * time.Second, PoolSize: 2,
	})}
	t.Cleanup(func() { _ = n.Close() })
	return n
}

// start starts a server with what it has kept. It does not wait until the server answers.
func (n *redisNode) start(t *testing.T, args ...string) {
	t.Helper()
	n.server = n.host.Start(t, filepath.Join(n.dir, "log"), "redis", "redis-server", append([]string{
		"--bind", n.host.IP, "--port", "6379", "--protected-mode", "no", "--dir", n.dir,
		"--save", "", "--appendonly", "yes", "--appendfsync", "everysec",
		// The replicas come back at once, and in full.
		"--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1", "--repl-backlog-size", "1mb",
	}, args...)...)
}

// startSentinel starts a Sentinel that begins with a configuration.
func (n *redisNode) startSentinel(t *testing.T, config string) {
	t.Helper()
	path := filepath.Join(n.dir, "sentinel.conf")
	if err := os.WriteFile(path, []byte(config), 0o666); err != nil { //nolint:gosec // it is the Sentinel's to change
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o666); err != nil { //nolint:gosec // against the umask
		t.Fatal(err)
	}
	n.server = n.host.Start(t, filepath.Join(n.dir, "log"), "redis", "redis-server", path, "--sentinel",
		"--bind", n.host.IP, "--port", "26379", "--protected-mode", "no", "--dir", n.dir)
}

// info returns a field of INFO, or nothing.
func (n *redisNode) info(ctx context.Context, section, field string) string {
	text, _ := n.Info(ctx, section).Result()
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), field+":"); ok {
			return value
		}
	}
	return ""
}

// errors returns how many errors of a kind a node has answered with.
func (n *redisNode) errors(ctx context.Context, kind string) (count int) {
	_, _ = fmt.Sscanf(n.info(ctx, "errorstats", "errorstat_"+kind), "count=%d", &count)
	return count
}

// inSync returns an error unless the node is a replica that has all that its primary has.
func (n *redisNode) inSync(ctx context.Context, primary *redisNode) error {
	text, err := n.Info(ctx, "replication").Result()
	if err != nil {
		return err
	}
	for _, want := range []string{"role:slave", "master_host:" + primary.host.IP + "\r", "master_link_status:up"} {
		if !strings.Contains(text, want) {
			return fmt.Errorf("%s is not a replica of %s in sync: no %s", n.host.Name, primary.host.Name, strings.TrimSpace(want))
		}
	}
	return nil
}

// count adds to a key until ctx ends, and returns the last number that the server has
// acknowledged.
func (n *redisNode) count(ctx context.Context, key string) (acknowledged int64) {
	for ctx.Err() == nil {
		if value, err := n.Incr(ctx, key).Result(); err == nil {
			acknowledged = value
		}
		Rest(ctx, 10*time.Millisecond, 20*time.Millisecond)
	}
	return acknowledged
}

// until returns nil when ready does, and its last error when that takes more than a
// minute, or ctx.Err() when ctx ends.
func until(ctx context.Context, what string, ready func() error) error {
	for began := time.Now(); ; {
		err := ready()
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Since(began) > time.Minute {
			return fmt.Errorf("%s: %w", what, err)
		}
		Rest(ctx, 50*time.Millisecond, 100*time.Millisecond)
	}
}

// ending returns f with strikes that end the test at once when one of them fails. The
// first goes on to its end, however short the run is, so that there is one.
func (f Fire) ending(t *testing.T) Fire {
	strike := f.Strike
	f.Strike = func(ctx context.Context, n int) error {
		within := ctx
		if n == 0 {
			var cancel context.CancelFunc
			within, cancel = context.WithTimeout(context.WithoutCancel(ctx), 3*time.Minute)
			defer cancel()
		}
		err := strike(within, n)
		if err != nil && within.Err() == nil {
			t.Errorf("strike %d: %v", n, err)
			return err
		}
		return ctx.Err()
	}
	return f
}

// held waits until most rows of a namespace have been claimed.
func (n *redisNode) held(ctx context.Context) error {
	return until(ctx, "claims", func() error {
		keys, err := n.Keys(ctx, "snowkey:{*}:0").Result()
		if err != nil || len(keys) != 1 {
			return fmt.Errorf("%s has the keys %q, %v; want one of rows", n.host.Name, keys, err)
		}
		rows, err := n.HVals(ctx, keys[0]).Result()
		if free := strings.Count(strings.Join(rows, "\n"), ",,,"); err != nil || len(rows)-free < Rows-2 {
			return fmt.Errorf("%d of %d rows have not been claimed yet, %v", free, len(rows), err)
		}
		return nil
	})
}
