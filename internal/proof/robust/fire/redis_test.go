//go:build linux

package fire

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/redislease"
	"github.com/snowkey/snowkey/internal/proof/robust/chaos"
)

func init() {
	stores["Redis"] = func(address string) (lease.Store, error) {
		return redislease.New(redis.NewClient(&redis.Options{Addr: address}), redislease.Config{Logger: quiet})
	}
}

var quiet = slog.New(slog.DiscardHandler)

// One server that keeps all that it acknowledges, as long as nothing ends it. Hosts are
// cut off from it, in one direction or both.
func TestRedisThatIsCutOffRepeatsNoID(t *testing.T) {
	Burn(t, redisCutOff, chaos.Fence, Mutant{Rules: chaos.TTL})
}

func redisCutOff(t *testing.T) Fire {
	Need(t, "redis-server")
	n := NewNetwork(t)
	h := n.Host("redis")
	h.Start(t, filepath.Join(t.TempDir(), "log"), "redis", "redis-server", "--bind", h.IP, "--port", "6379", "--save", "", "--protected-mode", "no")
	address := net.JoinHostPort(h.IP, "6379")
	c := redis.NewClient(&redis.Options{Addr: address})
	defer func() { _ = c.Close() }()
	Until(t.Context(), t, "redis-server", func() error { return c.Ping(t.Context()).Err() })

	f := Fire{Leases: chaos.Leases{Store: "Redis", DSN: address}, Network: n, Weather: true}
	f.Strike = func(ctx context.Context, strike int) error {
		switch strike % 3 {
		case 0:
			n.Isolate(h)
		case 1:
			n.CutOneWay([]*Host{h}, n.Others(h))
		case 2:
			half := n.Others(h)[:Holders/2]
			n.Cut([]*Host{h}, half)
		}
		defer n.Heal()
		Rest(ctx, time.Second, 8*time.Second)
		return nil
	}
	return f
}
