//go:build linux

package fire

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/snowkey/snowkey/internal/proof/robust/chaos"
)

// waits makes a session see all that any node has acknowledged.
var waits = map[string]string{"wsrep_sync_wait": "1"}

// The runs share a cluster, since to make one takes longer than to use it. Each leaves it
// whole, but for the last.
func TestGalera(t *testing.T) {
	Nightly(t)
	c := newGaleraLeases(t)
	members := memberDBs(c)
	// Rows of the other nodes come without the trigger, and from transactions that this node does not know.
	t.Run("has no horizon of a feed", func(t *testing.T) { noHorizon(t, members) })
	t.Run("says that a commit was rolled back only if it was", func(t *testing.T) {
		look := openInTurn(c.dsn, "fire", waits)
		defer func() { _ = look.Close() }()
		askCommits(t, members, look, func(ctx context.Context, i int) {
			defer c.Heal()
			kinds := []failure{deafened, detached}
			err := kinds[i](ctx, c, c.nodes[0], c.nodes[1:])
			c.Heal()
			if _, _, errWhole := c.until(ctx, c.nodes...); errors.Join(err, errWhole) != nil {
				t.Error(err, errWhole)
			}
		})
	})
	t.Run("takes children of one parent side by side", func(t *testing.T) { childrenOfOne(t, members) })
	t.Run("has every order whole or not at all", func(t *testing.T) {
		Orders{Shop: galera, On: c, Strike: c.strikes(minority, killed, deafened, allKilled)}.Run(t).Whole(t)
	})
	strikes := c.strikes(detached, killed, deafened, allKilled)
	t.Run("repeats no number of a segment", func(t *testing.T) { numbers(t, c, strikes, ofSegments) })
	t.Run("repeats no serial number", func(t *testing.T) { numbers(t, c, strikes, ofSerials) })
	t.Run("repeats IDs if a minority is made a cluster", func(t *testing.T) {
		f := c.fire()
		f.Weather, f.Strike = false, func(ctx context.Context, strike int) error {
			if strike > 0 {
				return nil // it stays so
			}
			return bootstrapMinority(ctx, c)
		}
		f.Run(t, chaos.NoGuard)
	})
}

// bootstrapMinority tells a minority that it is the cluster, which no operator should do.
// It then takes writes that the majority never sees.
func bootstrapMinority(ctx context.Context, c *cluster) error {
	leader, others, err := c.until(ctx, c.nodes...)
	if err != nil {
		return err
	}
	c.Cut(hosts(leader), hosts(others...))
	db := openInTurn(leader.host.IP, "", nil)
	defer func() { _ = db.Close() }()
	return eventually(ctx, "the minority does not become a cluster", func() error {
		ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		if _, err := c.serve(ctx, []*node{leader}); err == nil {
			return nil
		}
		var size int
		err := db.QueryRowContext(ctx, "SHOW STATUS LIKE 'wsrep_cluster_size'").Scan(new(string), &size)
		if err == nil && size == 1 { // it has noticed; before, this is ignored
			_, err = db.ExecContext(ctx, "SET GLOBAL wsrep_provider_options = 'pc.bootstrap=YES'")
		}
		return errors.Join(err, fmt.Errorf("it sees %d nodes", size))
	})
}
