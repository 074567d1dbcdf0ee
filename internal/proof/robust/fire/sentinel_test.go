//go:build linux

package fire

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/snowkey/snowkey/internal/proof/robust/chaos"
)

// master is the name of the primary in the configuration of Sentinel.
const master = "m"

// afterAlone is when Sentinel may promote a replica, if a primary without replicas refuses writes.
const afterAlone = 5 * time.Second

// A sentinelSet is a primary and two replicas, each with a Sentinel beside it. Two
// Sentinels must agree that a primary has failed. The Sentinel has a host of its own, so
// that the servers can be cut off from each other alone.
type sentinelSet struct {
	*redisSet
	sentinels []*redisNode
	together  time.Duration // for how long there are two primaries at least, if there are
	newborn   *redisNode    // the primary, if it was cut off from its replicas before the run
}

func newSentinelSet(t *testing.T, downAfter time.Duration, args ...string) *sentinelSet {
	t.Helper()
	all := newRedisSet(t, redisSentinel, "redis", 6, args...)
	s := &sentinelSet{redisSet: all}
	all.servers = all.servers[:3]
	s.dsn = addresses(s.nodes[3:], "", ":26379")
	ctx, first := t.Context(), s.servers[0]
	for _, n := range s.servers {
		var replica []string
		if n != first {
			replica = []string{"--replicaof", first.host.IP, "6379"}
		}
		must(t, s.start(ctx, n, replica...))
	}
	for _, n := range s.nodes[3:] {
		path := filepath.Join(n.dir, "sentinel.conf") // it is the Sentinel's to change
		config := fmt.Sprintf("sentinel monitor %[1]s %[2]s 6379 2\nsentinel down-after-milliseconds %[1]s %[3]d\n"+
			"sentinel failover-timeout %[1]s 4000\nsentinel parallel-syncs %[1]s 2\n", master, first.host.IP, downAfter.Milliseconds())
		err := os.WriteFile(path, []byte(config), 0o600)
		if err == nil {
			err = run("chown", "redis:", path)
		}
		must(t, err)
		s.launch(n, false, "redis", "redis-server", path, "--sentinel",
			"--bind", n.host.IP, "--port", "26379", "--protected-mode", "no", "--dir", n.dir)
		s.sentinels = append(s.sentinels, newRedisNode(t, n, ":26379"))
	}
	if _, err := s.settled(ctx); err != nil {
		t.Fatal(err)
	}
	return s
}

// replicas returns the hosts of the servers but one.
func (s *sentinelSet) replicas(primary *redisNode) []*Host {
	return hosts(without(s.nodes[:3], primary.node)...)
}

// settled waits until all Sentinels name one primary and the others have all that it has.
func (s *sentinelSet) settled(ctx context.Context) (primary *redisNode, err error) {
	err = eventually(ctx, "Sentinel", func() error {
		if primary, err = s.named(ctx, s.sentinels); err != nil {
			return err
		}
		for _, n := range s.sentinels {
			if status := n.info(ctx, "sentinel", "master0"); !strings.Contains(status, "status=ok") || !strings.HasSuffix(status, "slaves=2,sentinels=3") {
				return fmt.Errorf("%s knows %q", n.host.Name, status)
			}
		}
		for _, n := range s.servers {
			if n != primary {
				if err := n.inSync(ctx, primary); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return primary, err
}

// named returns the primary that Sentinels name, if it is one.
func (s *sentinelSet) named(ctx context.Context, sentinels []*redisNode) (*redisNode, error) {
	var named *redisNode
	for _, n := range sentinels {
		address := redis.NewStringSliceCmd(ctx, "sentinel", "get-master-addr-by-name", master)
		if err := n.Process(ctx, address); err != nil {
			return nil, err
		}
		i := slices.IndexFunc(s.servers, func(n *redisNode) bool { return n.host.IP == address.Val()[0] })
		if i < 0 || named != nil && named != s.servers[i] {
			return nil, fmt.Errorf("%s names %s", n.host.Name, address.Val())
		}
		named = s.servers[i]
	}
	if role := named.info(ctx, "replication", "role"); role != "master" {
		return nil, fmt.Errorf("%s is a %q", named.host.Name, role)
	}
	return named, nil
}

// promoted waits until Sentinels name another primary than old. If commanded, it asks one of them
// for a failover, as an operator does. That one does not wait for the others.
func (s *sentinelSet) promoted(ctx context.Context, old *redisNode, sentinels []*redisNode, commanded bool) (next *redisNode, err error) {
	if commanded {
		if err := eventually(ctx, "SENTINEL FAILOVER", func() error {
			err := sentinels[0].Do(ctx, "sentinel", "failover", master).Err()
			if err != nil && strings.HasPrefix(err.Error(), "INPROG") {
				return nil
			}
			return err
		}); err != nil {
			return nil, err
		}
	}
	return next, eventually(ctx, "failover", func() error {
		if next, err = s.named(ctx, sentinels); err == nil && next == old {
			err = fmt.Errorf("%s is still the primary", old.host.Name)
		}
		return err
	})
}

// primary returns the primary when most rows are held there.
func (s *sentinelSet) primary(ctx context.Context) (primary *redisNode, err error) {
	if primary, s.newborn = s.newborn, nil; primary == nil {
		primary, err = s.settled(ctx)
	}
	if err == nil {
		err = primary.held(ctx)
	}
	return primary, err
}

// forgets makes Sentinel promote a replica that lags. The old primary comes back as a primary
// until somebody tells it.
//
// After cutBefore the old one is all that knows of the namespace. Each row is then free at
// the new primary at once, while half of the holders use theirs to the end of the window. A
// replica that has the rows, as old as they are, lets others wait until most of that is
// over, so only a new namespace finds a guard that is short by its window.
func (s *sentinelSet) forgets(ctx context.Context, strike int) error {
	old, err := s.primary(ctx)
	if err != nil {
		return err
	}
	next, err := s.loses(ctx, old, s.replicas(old), s.half(strike), "witness", func() (*redisNode, error) {
		return s.promoted(ctx, old, s.sentinels, strike%2 == 0) // else Sentinel notices
	})
	if err != nil {
		return err
	}
	return s.demote(ctx, strike, old, next)
}

// cutBefore cuts the primary off from its replicas, for a namespace that begins after that.
// It clears earlier ones away.
func (s *sentinelSet) cutBefore() {
	s.Heal()
	ctx := s.t.Context()
	primary, err := s.settled(ctx)
	if err == nil {
		err = primary.FlushAll(ctx).Err()
	}
	if err == nil {
		_, err = s.settled(ctx)
	}
	must(s.t, err)
	s.newborn = primary
	s.Cut(hosts(primary.node), s.replicas(primary))
}

// demote waits until the old primary is a replica of the next, and tells it so every
// other time. Otherwise Sentinel does, after 8 s.
func (s *sentinelSet) demote(ctx context.Context, strike int, old, next *redisNode) error {
	if strike%2 == 0 {
		if err := old.SlaveOf(ctx, next.host.IP, "6379").Err(); err != nil {
			return err
		}
	}
	_, err := s.settled(ctx)
	return err
}

// splits lets Sentinel promote a replica while the primary is alive. Half of the holders
// hear nothing of it, and go on with the old primary.
func (s *sentinelSet) splits(ctx context.Context, strike int) error {
	old, err := s.primary(ctx)
	if err != nil {
		return err
	}
	i := slices.Index(s.servers, old)
	beside, watchers := s.sentinels[i], slices.Delete(slices.Clone(s.sentinels), i, i+1)
	far := append(s.replicas(old), hosts(watchers[0].node, watchers[1].node)...)
	half := s.half(strike)
	defer s.Heal()
	switch strike % 4 {
	case 0:
		s.Isolate(append(half, old.host, beside.host)...)
	case 1: // an operator's failover; the old primary does not hear of it for 8 s
		s.Cut(append(half, beside.host), far)
	case 2: // all arrives at the old primary, and nothing from it at the others
		s.Cut(half, far)
		s.CutOneWay(hosts(old.node, beside.node), s.Others(half...))
	case 3: // it was stopped, and goes on
		s.Cut(append(half, beside.host), far)
		old.Signal(syscall.SIGSTOP)
		defer old.Signal(syscall.SIGCONT)
	}
	next, err := s.promoted(ctx, old, watchers, strike%4 == 1)
	if err != nil {
		return err
	}
	s.failovers++
	old.Signal(syscall.SIGCONT)
	Rest(ctx, s.together, s.together+2*time.Second)
	s.refused = s.errors(ctx, "NOREPLICAS")
	s.Heal()
	return s.demote(ctx, strike, old, next)
}

// sentinelForgets returns a fire in which replicas that lag are promoted, first for a namespace that
// they have never had.
func sentinelForgets(t *testing.T) Fire {
	s := newSentinelSet(t, 2*time.Second)
	s.cutBefore()
	return s.fire(s.forgets, func() bool { return s.failovers >= 1 && s.lost >= 1 })
}

// sentinelForgetsNamespaces returns one in which one namespace after the other begins while the primary is
// alone, and is forgotten. The holders are left alone, so that each of those that are cut off uses its row
// while another has it as well.
func sentinelForgetsNamespaces(t *testing.T) Fire {
	s := newSentinelSet(t, 2*time.Second)
	s.cutBefore()
	f := s.fire(s.forgets, func() bool { return s.failovers >= 1 && s.lost >= 1 })
	f.Weather, f.Calm, f.For = false, true, 20*time.Second
	check := f.Check
	f.Check = func(t *testing.T, r chaos.Result) {
		check(t, r)
		s.cutBefore() // for the next
	}
	return f
}

// twoPrimaries returns a fire with two primaries at once, where one without replicas refuses
// writes.
func twoPrimaries(t *testing.T) Fire {
	s := newSentinelSet(t, afterAlone, alone...)
	s.together = 5 * time.Second
	return s.fire(s.splits, func() bool { return s.failovers >= 1 && s.refused >= 1 })
}

// twoPrimariesThatWrite returns one with two that go on without replicas. A row that is held for long at both
// sides is surely used at both.
func twoPrimariesThatWrite(t *testing.T) Fire {
	s := newSentinelSet(t, afterAlone)
	s.together = 30 * time.Second
	f := s.cluster.fire()
	f.Weather, f.Calm = false, true
	f.Strike = func(ctx context.Context, strike int) error { return s.splits(ctx, 4*strike) }
	return f
}
