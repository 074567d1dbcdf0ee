//go:build linux

package fire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/redislease"
	"github.com/snowkey/snowkey/internal/proof/robust/chaos"
)

// The names are those that runs say.
const (
	redisAlone    = "Redis"
	redisSentinel = "Redis, Sentinel"
)

var quiet = slog.New(slog.DiscardHandler)

func init() {
	for name, open := range map[string]func(addresses []string) redis.UniversalClient{
		redisAlone: func(a []string) redis.UniversalClient { return redis.NewClient(&redis.Options{Addr: a[0]}) },
		redisSentinel: func(a []string) redis.UniversalClient {
			return redis.NewFailoverClient(&redis.FailoverOptions{MasterName: master, SentinelAddrs: a, DialTimeout: time.Second, ReadTimeout: 2 * time.Second})
		},
	} {
		stores[name] = func(addresses string) (lease.Store, error) {
			return redislease.New(open(strings.Split(addresses, ",")), redislease.Config{Logger: quiet})
		}
	}
}

// A redisNode is a Redis server, or a Sentinel.
type redisNode struct {
	*node
	*redis.Client // the test's, whatever is cut
}

// A redisSet is a set of Redis servers. Some are replicas of others.
type redisSet struct {
	*cluster
	servers []*redisNode
	args    []string

	// What has come of the strikes.
	failovers int
	lost      int64 // acknowledged writes that were not there after a failover
	refused   int   // writes, by a primary without replicas
}

// newRedisSet makes a cluster of nodes that were not started.
func newRedisSet(t *testing.T, store, name string, count int, args ...string) *redisSet {
	t.Helper()
	Need(t, "redis-server")
	s := &redisSet{cluster: newCluster(t, store, name, count, "redis"), args: args}
	for _, n := range s.nodes {
		s.servers = append(s.servers, newRedisNode(t, n, ":6379"))
	}
	s.dsn = addresses(s.nodes, "", ":6379")
	return s
}

func newRedisNode(t *testing.T, n *node, port string) *redisNode {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: n.host.IP + port, MaxRetries: 5, DialTimeout: time.Second, ReadTimeout: 5 * time.Second, PoolSize: 2})
	t.Cleanup(func() { _ = client.Close() })
	return &redisNode{n, client}
}

// start starts a server with what it has kept, and waits until it answers.
func (s *redisSet) start(ctx context.Context, n *redisNode, args ...string) error {
	s.launch(n.node, false, "redis", "redis-server", slices.Concat([]string{
		"--bind", n.host.IP, "--port", "6379", "--protected-mode", "no", "--dir", n.dir,
		"--save", "", "--appendonly", "yes", "--appendfsync", "everysec",
		// The replicas come back at once, and in full.
		"--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1", "--repl-backlog-size", "1mb",
	}, s.args, args)...)
	return eventually(ctx, "redis-server", func() error { return n.Ping(ctx).Err() })
}

// newRedis starts one server.
func newRedis(t *testing.T) *cluster {
	t.Helper()
	s := newRedisSet(t, redisAlone, "redis", 1)
	must(t, s.start(t.Context(), s.servers[0]))
	s.serve = func(context.Context, []*node) (*node, error) { return s.nodes[0], nil }
	return s.cluster
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

// errors sums the errors of a kind that the servers have answered with.
func (s *redisSet) errors(ctx context.Context, kind string) (sum int) {
	for _, n := range s.servers {
		var count int
		_, _ = fmt.Sscanf(n.info(ctx, "errorstats", "errorstat_"+kind), "count=%d", &count)
		sum += count
	}
	return sum
}

// inSync returns an error unless the node is a replica that has all that its primary has.
func (n *redisNode) inSync(ctx context.Context, primary *redisNode) error {
	for field, want := range map[string]string{"role": "slave", "master_host": primary.host.IP, "master_link_status": "up"} {
		if got := n.info(ctx, "replication", field); got != want {
			return fmt.Errorf("%s has %s = %q; want it to be a replica of %s in sync", n.host.Name, field, got, primary.host.Name)
		}
	}
	return nil
}

// held waits until most rows of a namespace have been claimed.
func (n *redisNode) held(ctx context.Context) error {
	return eventually(ctx, "claims", func() error {
		keys, err := n.Keys(ctx, "snowkey:{*}:0").Result()
		if err != nil || len(keys) != 1 {
			return fmt.Errorf("%s has the keys %q, %w; want one of rows", n.host.Name, keys, err)
		}
		rows, err := n.HVals(ctx, keys[0]).Result()
		if free := strings.Count(strings.Join(rows, "\n"), ",,,"); err != nil || len(rows)-free < Rows-2 {
			return fmt.Errorf("%d of %d rows have not been claimed yet, %w", free, len(rows), err)
		}
		return nil
	})
}

// loses makes a replica that lags take over, and so forgets what the primary has acknowledged. The
// primary dies before, so there is one at a time. Then it comes back with its old data. witness is a
// key on the primary, by which the loss is counted.
func (s *redisSet) loses(ctx context.Context, old *redisNode, replicas []*Host, half []*Host, witness string, promote func() (*redisNode, error)) (next *redisNode, err error) {
	s.Cut(hosts(old.node), replicas)
	defer s.Heal()
	var acknowledged int64
	for lag, cancel := context.WithTimeout(ctx, 4*time.Second); ; Rest(lag, 10*time.Millisecond, 20*time.Millisecond) {
		if value, err := old.Incr(lag, witness).Result(); err == nil {
			acknowledged = value
		}
		if lag.Err() != nil {
			cancel()
			break
		}
	}
	old.Kill()
	s.Cut(half, replicas) // these go on for as long as they may; others take their rows
	if next, err = promote(); err != nil {
		return nil, err
	}
	kept, err := next.Get(ctx, witness).Int64()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, err
	}
	s.failovers++
	s.lost += acknowledged - kept
	Rest(ctx, 1500*time.Millisecond, 2500*time.Millisecond)
	s.Heal()
	if err := s.start(ctx, old); err != nil {
		return nil, err
	}
	if has, err := old.Get(ctx, witness).Int64(); err == nil && has < acknowledged {
		return nil, fmt.Errorf("%s came back with the count %d; want its old data, %d", old.host.Name, has, acknowledged)
	}
	return next, nil
}

// fire returns holders on the servers with strikes that end the test at once when one of them fails. The
// first goes on to its end, however short the run is, so that there is one. At the end the strikes must have
// had some result.
func (s *redisSet) fire(strike func(ctx context.Context, strike int) error, shown func() bool) Fire {
	f := s.cluster.fire()
	f.Strike = func(ctx context.Context, n int) error {
		within := ctx
		if n == 0 {
			var cancel context.CancelFunc
			within, cancel = context.WithTimeout(context.WithoutCancel(ctx), 3*time.Minute)
			defer cancel()
		}
		err := strike(within, n)
		if err != nil && within.Err() == nil {
			s.t.Errorf("strike %d: %v", n, err)
			return err
		}
		return ctx.Err()
	}
	f.Check = func(t *testing.T, _ chaos.Result) {
		text := fmt.Sprintf("%d failovers, %d acknowledged writes lost, %d refused", s.failovers, s.lost, s.refused)
		if t.Log(text); !shown() {
			t.Errorf("the strikes have done too little: %s", text)
		}
	}
	return f
}

// alone makes a primary without replicas refuse writes, at most 4 s after it has lost
// them: an acknowledgement comes each second, its age is counted in whole seconds, and
// looked at once in a second. A replica may be promoted no earlier.
var alone = []string{"--min-replicas-to-write", "1", "--min-replicas-max-lag", "1"}
