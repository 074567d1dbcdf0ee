//go:build linux

package fire

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/snowkey/snowkey/internal/proof/robust/fire/disk"
)

// Redis writes each command to its log before it answers. By appendfsync always it syncs
// the log before that, too; else later, and a machine whose power fails forgets the end.
func TestACounterOfRedisWhenThePowerFails(t *testing.T) {
	Need(t, "redis-server", "nsenter")
	for _, c := range []struct {
		appendfsync string
		repeats     bool
	}{{"always", false}, {"everysec", true}, {"no", true}} {
		t.Run(c.appendfsync, func(t *testing.T) {
			m := NewNetwork(t).Machine(t, "redis", disk.Config{LoseAll: true})
			client := redis.NewClient(&redis.Options{Addr: net.JoinHostPort(m.IP, "6379")})
			defer func() { _ = client.Close() }()
			given, twice := map[int64]bool{}, 0
			for range 5 {
				cmd := exec.CommandContext(context.Background(), "redis-server", "--bind", m.IP, "--protected-mode", "no", // the cut ends it
					"--save", "", "--appendonly", "yes", "--appendfsync", c.appendfsync, "--dir", m.Dir)
				m.Enter(cmd)
				must(t, cmd.Start())
				ended := make(chan struct{})
				go func() { // the cut counts a process until it was waited for
					_ = cmd.Wait() // it was killed
					close(ended)
				}()
				Until(t.Context(), t, "redis-server", func() error { return client.Ping(t.Context()).Err() })
				// Redis leaves the names of new files to file systems that sync them with the file.
				// This disk does not.
				for _, dir := range []string{filepath.Join(m.Dir, "appendonlydir"), m.Dir} {
					d, err := os.Open(dir)
					must(t, err)
					must(t, errors.Join(d.Sync(), d.Close()))
				}
				for range 10 {
					id, err := client.Incr(t.Context(), "id").Result()
					must(t, err)
					if given[id] {
						twice++
					}
					given[id] = true
				}
				must(t, m.CutPower(0, 0))
				<-ended
			}
			if t.Logf("of 50 numbers %d were given twice", twice); twice > 0 != c.repeats {
				t.Errorf("of 50 numbers %d were given twice; want some: %v", twice, c.repeats)
			}
		})
	}
}
