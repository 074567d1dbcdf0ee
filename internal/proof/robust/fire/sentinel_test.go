//go:build linux

package fire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/redislease"
	"github.com/snowkey/snowkey/internal/proof/robust/chaos"
)

func init() {
	stores["Redis, Sentinel"] = func(addresses string) (lease.Store, error) {
		return redislease.New(redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: master, SentinelAddrs: strings.Split(addresses, ","),
			DialTimeout: time.Second, ReadTimeout: 2 * time.Second,
		}), redislease.Config{Logger: quiet})
	}
}

// master is the name of the primary in the configuration of Sentinel.
const master = "m"

// A sentinelSet is a primary and two replicas, each with a Sentinel beside it. Two
// Sentinels must agree that a primary has failed. The Sentinel has a host of its own, so
// that the servers can be cut off from each other alone.
type sentinelSet struct {
	t         *testing.T
	network   *Network
	servers   []*redisNode
	sentinels []*redisNode
	args      []string      // of the servers
	together  time.Duration // for how long there are two primaries at least, if there are

	newborn   *redisNode // the primary, if it was cut off from its replicas before the run
	failovers int
	lost      int64 // acknowledged writes that were not there after a failover
	refused   int   // writes, by a primary without replicas
}

func newSentinelSet(t *testing.T, downAfter time.Duration, args ...string) *sentinelSet {
	t.Helper()
	s := &sentinelSet{t: t, network: NewNetwork(t), args: args}
	ctx := t.Context()
	for i, h := range s.network.Hosts("redis", 3) {
		n := newRedisNode(t, h, "6379")
		s.servers = append(s.servers, n)
		if i == 0 {
			n.start(t, args...)
		} else {
			n.start(t, append(slices.Clone(args), "--replicaof", s.servers[0].host.IP, "6379")...)
		}
	}
	for _, h := range s.network.Hosts("sentinel", 3) {
		n := newRedisNode(t, h, "26379")
		s.sentinels = append(s.sentinels, n)
		n.startSentinel(t, fmt.Sprintf("sentinel monitor %[1]s %[2]s 6379 2\nsentinel down-after-milliseconds %[1]s %[3]d\n"+
			"sentinel failover-timeout %[1]s 4000\nsentinel parallel-syncs %[1]s 2\n", master, s.servers[0].host.IP, downAfter.Milliseconds()))
	}
	if _, err := s.settled(ctx); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *sentinelSet) chaos() chaos.Leases {
	var addresses []string
	for _, n := range s.sentinels {
		addresses = append(addresses, net.JoinHostPort(n.host.IP, "26379"))
	}
	return chaos.Leases{Store: "Redis, Sentinel", DSN: strings.Join(addresses, ",")}
}

// settled waits until all Sentinels name one primary and the others have all that it has.
func (s *sentinelSet) settled(ctx context.Context) (primary *redisNode, err error) {
	err = until(ctx, "Sentinel", func() error {
		if primary, err = s.named(ctx, s.sentinels); err != nil {
			return err
		}
		for _, n := range s.sentinels {
			if status := n.info(ctx, "sentinel", "master0"); !strings.Contains(status, "status=ok") || !strings.HasSuffix(status, "slaves=2,sentinels=3") {
				return fmt.Errorf("%s knows %q", n.host.Name, status)
			}
		}
		for _, n := range without(s.servers, primary) {
			if err := n.inSync(ctx, primary); err != nil {
				return err
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

// promoted waits until Sentinels name another primary than old.
func (s *sentinelSet) promoted(ctx context.Context, old *redisNode, sentinels []*redisNode) (next *redisNode, err error) {
	err = until(ctx, "failover", func() error {
		next, err = s.named(ctx, sentinels)
		if err == nil && next == old {
			err = fmt.Errorf("%s is still the primary", old.host.Name)
		}
		return err
	})
	if err == nil {
		s.failovers++
	}
	return next, err
}

// command asks a Sentinel for a failover, as an operator does. It does not wait for the
// other Sentinels.
func (s *sentinelSet) command(ctx context.Context, n *redisNode) error {
	return until(ctx, "SENTINEL FAILOVER", func() error {
		err := n.Do(ctx, "sentinel", "failover", master).Err()
		if err != nil && strings.HasPrefix(err.Error(), "INPROG") {
			return nil
		}
		return err
	})
}

// half returns half of the holders, another from strike to strike.
func (s *sentinelSet) half(strike int) []*Host { return halfOf(s.network, strike) }

func halfOf(n *Network, strike int) []*Host {
	all := slices.DeleteFunc(n.Others(), func(h *Host) bool { return !strings.HasPrefix(h.Name, "holder") })
	return all[strike%2*Holders/2:][:Holders/2]
}

func without(all []*redisNode, not *redisNode) []*redisNode {
	return slices.DeleteFunc(slices.Clone(all), func(n *redisNode) bool { return n == not })
}

func hostsOf(nodes ...*redisNode) (hosts []*Host) {
	for _, n := range nodes {
		hosts = append(hosts, n.host)
	}
	return hosts
}

// loses makes Sentinel promote a replica that lags, and so forget what the primary has
// acknowledged. The primary dies before, so there is one at a time. Then it comes back
// with its old data, as a primary until somebody tells it.
//
// After cutBefore that is all that anybody knows of the namespace. Each row is then free at
// the new primary at once, while half of the holders use theirs to the end of the window. A
// replica that has the rows, as old as they are, lets others wait until most of that is
// over, so only a new namespace finds a guard that is short by its window.
func (s *sentinelSet) loses(ctx context.Context, strike int) error {
	const key = "witness"
	old, err := s.newborn, error(nil)
	if s.newborn = nil; old == nil {
		old, err = s.settled(ctx)
	}
	if err == nil {
		err = old.held(ctx)
	}
	if err != nil {
		return err
	}
	others := without(s.servers, old)
	s.network.Cut(hostsOf(old), hostsOf(others...))
	defer s.network.Heal()
	lag, cancel := context.WithTimeout(ctx, 4*time.Second)
	acknowledged := old.count(lag, key)
	cancel()
	old.server.Kill()
	// Their holders go on for as long as they may. Others take their rows.
	s.network.Cut(s.half(strike), hostsOf(others...))
	if strike%2 == 0 {
		if err := s.command(ctx, s.sentinels[strike%3]); err != nil {
			return err
		}
	} // else Sentinel notices
	next, err := s.promoted(ctx, old, s.sentinels)
	if err != nil {
		return err
	}
	kept, err := next.Get(ctx, key).Int64()
	if err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	s.lost += acknowledged - kept
	Rest(ctx, 1500*time.Millisecond, 2500*time.Millisecond)
	s.network.Heal()
	old.start(s.t, s.args...)
	if err := until(ctx, "restart", func() error { return old.Ping(ctx).Err() }); err != nil {
		return err
	}
	if has, err := old.Get(ctx, key).Int64(); err == nil && has < acknowledged {
		return fmt.Errorf("%s came back with the count %d; want its old data, %d", old.host.Name, has, acknowledged)
	}
	return s.demote(ctx, strike, old, next)
}

// cutBefore cuts the primary off from its replicas, for a namespace that begins after that.
// It clears earlier ones away.
func (s *sentinelSet) cutBefore() {
	ctx := s.t.Context()
	primary, err := s.settled(ctx)
	if err == nil {
		if err = primary.FlushAll(ctx).Err(); err == nil {
			_, err = s.settled(ctx)
		}
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.newborn = primary
	s.network.Cut(hostsOf(primary), hostsOf(without(s.servers, primary)...))
}

// demote waits until the old primary is a replica of the next, and tells it so every
// other time. Otherwise Sentinel does, after 8 s.
func (s *sentinelSet) demote(ctx context.Context, strike int, old, next *redisNode) error {
	if strike%2 == 0 {
		if err := old.SlaveOf(ctx, next.host.IP, "6379").Err(); err != nil {
			return errors.Join(ctx.Err(), err)
		}
	}
	_, err := s.settled(ctx)
	return err
}

// splits lets Sentinel promote a replica while the primary is alive. Half of the holders
// hear nothing of it, and go on with the old primary.
func (s *sentinelSet) splits(ctx context.Context, strike int) error {
	old, err := s.settled(ctx)
	if err == nil {
		err = old.held(ctx)
	}
	if err != nil {
		return err
	}
	beside := s.sentinels[slices.Index(s.servers, old)]
	others, watchers := without(s.servers, old), without(s.sentinels, beside)
	far := hostsOf(append(slices.Clone(others), watchers...)...)
	half := s.half(strike)
	defer s.network.Heal()
	switch strike % 4 {
	case 0:
		s.network.Isolate(append(half, old.host, beside.host)...)
	case 1: // an operator's failover; the old primary does not hear of it for 8 s
		s.network.Cut(append(half, beside.host), far)
		if err := s.command(ctx, watchers[0]); err != nil {
			return err
		}
	case 2: // all arrives at the old primary, and nothing from it at the others
		s.network.Cut(half, far)
		s.network.CutOneWay(hostsOf(old, beside), s.network.Others(half...))
	case 3: // it was stopped, and goes on
		s.network.Cut(append(half, beside.host), far)
		old.server.Signal(syscall.SIGSTOP)
		defer old.server.Signal(syscall.SIGCONT)
	}
	next, err := s.promoted(ctx, old, watchers)
	if err != nil {
		return err
	}
	old.server.Signal(syscall.SIGCONT)
	Rest(ctx, s.together, s.together+2*time.Second)
	s.refused += old.errors(ctx, "NOREPLICAS")
	s.network.Heal()
	return s.demote(ctx, strike, old, next)
}

// sentinelLosesWrites returns a fire in which replicas that lag are promoted.
func sentinelLosesWrites(t *testing.T) (*sentinelSet, Fire) {
	Nightly(t)
	Need(t, "redis-server")
	s := newSentinelSet(t, 2*time.Second)
	f := Fire{Leases: s.chaos(), Network: s.network, Strike: s.loses}.ending(t)
	f.Check = func(t *testing.T) {
		t.Logf("%d failovers, %d acknowledged writes lost", s.failovers, s.lost)
		if s.failovers < 1 || s.lost < 1 {
			t.Errorf("%d failovers have lost %d acknowledged writes; want some", s.failovers, s.lost)
		}
	}
	return s, f
}

func TestSentinelFailoverThatLosesWritesRepeatsNoID(t *testing.T) {
	Burn(t, func(t *testing.T) Fire {
		s, f := sentinelLosesWrites(t)
		s.cutBefore()
		f.Weather = true
		return f
	}, chaos.Guard, Mutant{Rules: chaos.NoGuard})
}

// One namespace after the other begins while the primary is alone, and is forgotten. The
// holders are left alone, so that each of those that are cut off uses its row while
// another has it as well.
func TestSentinelFailoverThatForgetsANamespaceRepeatsNoID(t *testing.T) {
	Burn(t, func(t *testing.T) Fire {
		s, f := sentinelLosesWrites(t)
		s.cutBefore()
		f.Calm, f.For = true, 20*time.Second
		check := f.Check
		f.Check = func(t *testing.T) {
			check(t)
			s.network.Heal()
			s.cutBefore() // for the next
		}
		return f
	}, chaos.Guard, Mutant{Rules: chaos.GuardShort}, Mutant{Rules: chaos.NoGuard})
}

// alone makes a primary without replicas refuse writes, at most 4 s after it has lost
// them: an acknowledgement comes each second, its age is counted in whole seconds, and
// looked at once in a second. Sentinel may promote a replica no earlier.
var alone = []string{"--min-replicas-to-write", "1", "--min-replicas-max-lag", "1"}

const afterAlone = 5 * time.Second

func TestTwoPrimariesAtOnceRepeatNoIDIfOneWithoutReplicasRefusesWrites(t *testing.T) {
	Nightly(t)
	Need(t, "redis-server")
	Burn(t, func(t *testing.T) Fire {
		s := newSentinelSet(t, afterAlone, alone...)
		s.together = 5 * time.Second
		f := Fire{Leases: s.chaos(), Network: s.network, Weather: true, Strike: s.splits}.ending(t)
		f.Check = func(t *testing.T) {
			t.Logf("%d failovers, %d writes refused", s.failovers, s.refused)
			if s.failovers < 1 || s.refused < 1 {
				t.Errorf("%d failovers, and old primaries have refused %d writes; want some", s.failovers, s.refused)
			}
		}
		return f
	}, chaos.Guard, Mutant{Rules: chaos.GuardTwice, Light: bothTakeWrites})
}

// bothTakeWrites returns a fire with two primaries that go on without replicas.
func bothTakeWrites(t *testing.T) Fire {
	s := newSentinelSet(t, afterAlone)
	s.together = 30 * time.Second
	f := Fire{Leases: s.chaos(), Network: s.network}
	f.Calm = true // a row that is held for long at both sides is surely used at both
	f.Strike = func(ctx context.Context, strike int) error { return s.splits(ctx, 4*strike) }
	return f
}
