//go:build linux

package fire

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/snowkey/snowkey/internal/chaos"
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

// enough is how long a run takes at night, at least. A run that has shown nothing in that
// time is a failure, and a shorter one is skipped.
const enough = time.Minute

// longest is how long a mutant is looked for, at least.
const longest = 5 * time.Minute

// Nightly skips the test in short runs. It is for what takes long, or what needs luck and
// time to show duplicates.
func Nightly(t testing.TB) {
	t.Helper()
	if *lasts < enough {
		skip(t, "only with -fire.for of %v or more", enough)
	}
}

// Shown is called by a run that was well. If it has not shown what it is for, it is no pass.
func Shown(t testing.TB, shown bool, format string, args ...any) {
	t.Helper()
	switch text := fmt.Sprintf(format, args...); {
	case shown || t.Failed():
	case *lasts < enough:
		skip(t, "%v is too short to prove anything: %s", *lasts, text)
	default:
		t.Errorf("the run proves nothing: %s", text)
	}
}

// skip skips a test, and remembers that for the end: go test says nothing of it.
func skip(t testing.TB, format string, args ...any) {
	t.Helper()
	text := fmt.Sprintf(format, args...)
	results.mu.Lock()
	results.skipped = append(results.skipped, t.Name()+": "+text)
	results.mu.Unlock()
	t.Skip("SKIPPED: " + text)
}

// A Mutant is a mistake that a fire must find. Its run is that of the fire in all but what
// it names, so it shows that the fire is hot enough.
type Mutant struct {
	Rules chaos.Rules
	Light func(t *testing.T) Fire // in place of the fire's, where the same strikes need luck
}

// Burn runs a fire under rules that promise unique IDs. At night it then runs the same
// fire on each mutant, where IDs must be repeated. A fire without mutants would prove
// nothing by its silence. light makes the cluster, and is called for each run.
func Burn(t *testing.T, light func(t *testing.T) Fire, rules chaos.Rules, mutants ...Mutant) {
	t.Helper()
	if len(mutants) == 0 {
		t.Fatal("fire: want the mutants that it must find")
	}
	t.Run("holds", func(t *testing.T) {
		f := light(t)
		for began := time.Now(); !t.Failed() && time.Since(began) < *lasts; {
			f.Run(t, rules) // once, unless f.For is less: then in a new namespace each time
		}
	})
	for _, m := range mutants {
		t.Run("finds "+m.Rules.String(), func(t *testing.T) {
			Nightly(t)
			if m.Light == nil {
				m.Light = light
			}
			f := m.Light(t)
			f.mutant, f.Brief = true, f.For > 0
			began, repeated := time.Now(), 0
			for repeated == 0 && !t.Failed() && time.Since(began) < max(*lasts, longest) {
				repeated = f.Run(t, m.Rules).Duplicates
			}
			if repeated == 0 {
				t.Errorf("no ID was repeated in %v; want some, or the fire proves nothing", time.Since(began))
			}
			t.Logf("found in %v", time.Since(began))
		})
	}
}

// A Fire is a store in a cluster, and what is done to it.
type Fire struct {
	chaos.Leases // Store and DSN, and what else differs

	Network *Network

	// Strike is one failure of the cluster and its repair. It is called again and
	// again, with rests between, and at least once. It returns early when ctx ends.
	Strike func(ctx context.Context, strike int) error

	// Weather: half of the holders are 50 to 500 ms away, and up to a tenth of the packets
	// is lost. Not with a mutant, of which the cluster and the strikes are to tell.
	Weather bool

	May Allowance

	// Check is called at the end of a run, if set. It says what came of the strikes.
	Check func(t *testing.T)

	mutant bool
}

// Run runs the holders under rules while the cluster fails. Under the rules Fence, which
// are for a store that forgets nothing, it also checks the histories of the rows.
func (f Fire) Run(t *testing.T, rules chaos.Rules) chaos.Result {
	t.Helper()
	holders := f.Network.Hosts("holder", Holders)
	if f.Weather && !f.mutant {
		for i, h := range holders {
			if i%2 == 1 {
				// The nearest hosts can still hold a lease whose renewal takes several answers.
				h.Delay(t, 50*time.Millisecond, time.Duration(50+75*(i-1))*time.Millisecond)
			}
			h.Loss(0.1 * float64(i) / (Holders - 1))
		}
	}
	c := f.Leases
	c.Processes, c.Rows, c.For = Holders, Rows, cmp.Or(c.For, *lasts)
	if c.Calm {
		c.Rows = Holders // nobody waits for a row
	}
	c.Enter = func(slot int, cmd *exec.Cmd) { holders[slot].Enter(cmd) }
	strikes := 0 // that came to their ends
	c.During = func(ctx context.Context) error {
		for strike := 0; ; strike++ {
			if strike > 0 && !Rest(ctx, time.Second, 5*time.Second) {
				return nil
			}
			if err := f.Strike(ctx, strike); err != nil || ctx.Err() != nil {
				return err
			}
			strikes++
		}
	}
	result := conduct(t, c, rules, f.May)
	if f.Check != nil {
		f.Check(t)
	}
	if !f.mutant && !c.Calm {
		Shown(t, strikes > 0 && result.Takeovers >= leastTakeovers, "%d strikes and %d takeovers; want 1 and %d", strikes, result.Takeovers, leastTakeovers)
	}
	return result
}

// leastTakeovers is how many rows must change their holders by expiry. Without that no
// two holders have one row, and IDs are unique whatever the rules are.
const leastTakeovers = 4

// conduct runs c, checks the histories if the rules are Fence and the store is not
// broken, and keeps the result for Table.
func conduct(t *testing.T, c chaos.Leases, rules chaos.Rules, may Allowance) chaos.Result {
	t.Helper()
	if rules == chaos.Fence && !c.Broken && c.History == "" {
		c.History = t.TempDir()
	}
	result := c.Run(t, rules)
	report(result)
	if rules == chaos.Fence && !c.Broken {
		operations, err := chaos.ReadHistory(c.History)
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
	mu      sync.Mutex
	all     []chaos.Result
	skipped []string
}

// Skipped returns what was skipped so far, and why, a line each.
func Skipped() (lines string) {
	results.mu.Lock()
	defer results.mu.Unlock()
	for _, line := range results.skipped {
		lines += "!!! SKIPPED: " + line + "\n"
	}
	return lines
}

func report(r chaos.Result) {
	results.mu.Lock()
	defer results.mu.Unlock()
	results.all = append(results.all, r)
}

// Table returns the results of all runs so far, for people.
func Table() string {
	results.mu.Lock()
	defer results.mu.Unlock()
	return chaos.Table(results.all)
}
