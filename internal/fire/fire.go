//go:build linux

package fire

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/snowkey/snowkey/internal/leasechaos"
)

var (
	wanted = flag.Bool("fire", false, "run the clusters; needs root")
	lasts  = flag.Duration("fire.for", 20*time.Second, "how long each run takes")
)

// Holders is how many processes with leases there are. Each has a host of its own. There
// are fewer rows, so that a row that expires is taken at once.
const (
	Holders = 8
	Rows    = 6
)

// Need skips the test unless -fire is set, and fails it if a program is missing.
func Need(t testing.TB, programs ...string) {
	t.Helper()
	if !*wanted {
		t.Skip("run with -fire, as root: clusters on several hosts")
	}
	if os.Geteuid() != 0 {
		t.Fatal("fire: needs root, to make hosts")
	}
	for _, program := range append(programs, "ip", "iptables", "setpriv") {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatal(err)
		}
	}
}

// Nightly skips the test in short runs. It is for what takes long, or what needs luck and
// time to show duplicates.
func Nightly(t testing.TB) {
	t.Helper()
	if *lasts < time.Minute {
		t.Skip("only with -fire.for of a minute or more")
	}
}

// A Fire is a store in a cluster, and what is done to it.
type Fire struct {
	leasechaos.Chaos // Store and DSN, and what else differs

	Network *Network

	// Strike is one failure of the cluster and its repair. It is called again and
	// again, with rests between, and at least once. It returns early when ctx ends.
	Strike func(ctx context.Context, strike int) error

	// Weather: half of the holders are 50 to 500 ms away, and up to a tenth of the packets
	// is lost.
	Weather bool

	May Allowance
}

// Run runs the holders under rules while the cluster fails. Under the rules Fence, which
// are for a store that forgets nothing, it also checks the histories of the rows.
func (f Fire) Run(t *testing.T, rules leasechaos.Rules) leasechaos.Result {
	t.Helper()
	holders := f.Network.Hosts("holder", Holders)
	if f.Weather {
		for i, h := range holders {
			if i%2 == 1 {
				// The nearest hosts can still hold a lease whose renewal takes several answers.
				h.Delay(t, 50*time.Millisecond, time.Duration(50+75*(i-1))*time.Millisecond)
			}
			h.Loss(0.1 * float64(i) / (Holders - 1))
		}
	}
	c := f.Chaos
	c.Processes, c.Rows, c.For = Holders, Rows, *lasts
	if c.Calm {
		c.Rows = Holders // nobody waits for a row
	}
	c.Enter = func(slot int, cmd *exec.Cmd) { holders[slot].Enter(cmd) }
	c.During = func(ctx context.Context) error {
		for strike := 0; ; strike++ {
			if strike > 0 && !Rest(ctx, time.Second, 5*time.Second) {
				return nil
			}
			if err := f.Strike(ctx, strike); err != nil || ctx.Err() != nil {
				return err
			}
		}
	}
	return conduct(t, c, rules, f.May)
}

// conduct runs c, checks the histories if the rules are Fence and the store is not
// broken, and keeps the result for Table.
func conduct(t *testing.T, c leasechaos.Chaos, rules leasechaos.Rules, may Allowance) leasechaos.Result {
	t.Helper()
	if rules == leasechaos.Fence && !c.Broken && c.History == "" {
		c.History = t.TempDir()
	}
	result := c.Run(t, rules)
	report(result)
	if rules == leasechaos.Fence && !c.Broken {
		operations, err := leasechaos.ReadHistory(c.History)
		if err == nil {
			err = CheckHistory(operations, time.Minute, may)
		}
		switch {
		case err == nil:
			t.Logf("%d operations are linearizable", len(operations))
		case errors.Is(err, errUndecided):
			t.Log(err) // on a busy machine; nothing wrong was found
		default:
			t.Error(err)
		}
	}
	return result
}

// Rest waits for a random time, and reports whether ctx is still good.
func Rest(ctx context.Context, least, most time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(least + rand.N(most-least+1)):
		return true
	}
}

// Results are those of all runs so far.
var results struct {
	mu  sync.Mutex
	all []leasechaos.Result
}

func report(r leasechaos.Result) {
	results.mu.Lock()
	defer results.mu.Unlock()
	results.all = append(results.all, r)
}

// Table returns the results of all runs so far, for people.
func Table() string {
	results.mu.Lock()
	defer results.mu.Unlock()
	return leasechaos.Table(results.all)
}
