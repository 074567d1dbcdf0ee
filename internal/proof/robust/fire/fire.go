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
	"testing"
	"time"

	"github.com/snowkey/snowkey/internal/proof/robust/chaos"
)

var (
	wanted = flag.Bool("fire", false, "run the clusters; needs root")
	lasts  = flag.Duration("fire.for", 20*time.Second, "how long each run takes")
)

// Holders is the number of processes with leases, each on its own host. There are fewer rows
// than that, so a row that expires is taken at once.
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

// enough is the minimum length of a run at night. A run of that length that has shown nothing
// is a failure, and a shorter one is skipped.
const enough = time.Minute

// longest is the minimum time for which a mutant is searched.
const longest = 5 * time.Minute

// Nightly skips the test in short runs. It is for tests that take long, or need luck and time
// to show duplicates.
func Nightly(t testing.TB) {
	t.Helper()
	if *lasts < enough {
		skip(t, "only with -fire.for of %v or more", enough)
	}
}

// Shown is called by a run without errors. A run that has not shown what it is meant to show is
// no pass.
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

// skip skips a test and records that for the summary, because go test does not show it.
func skip(t testing.TB, format string, args ...any) {
	t.Helper()
	text := fmt.Sprintf(format, args...)
	skipped = append(skipped, t.Name()+": "+text)
	t.Skip("SKIPPED: " + text)
}

// skipped has what was skipped so far, and why. No tests run beside each other.
var skipped []string

// A Mutant is a mistake that a fire must detect. Its run differs from the fire's only in what
// it names, and thereby proves that the fire is hot enough.
type Mutant struct {
	Rules chaos.Rules
	Light func(t *testing.T) Fire // replaces the fire's, whose strikes would need luck
}

// Burn runs a fire under rules that promise unique IDs, and at night runs the same fire on each
// mutant, where IDs must repeat, because without mutants the silence of a fire would prove
// nothing. light makes the cluster, and is called for each run.
func Burn(t *testing.T, light func(t *testing.T) Fire, rules chaos.Rules, mutants ...Mutant) {
	t.Helper()
	if len(mutants) == 0 {
		t.Fatal("fire: want the mutants that it must find")
	}
	t.Run("holds", func(t *testing.T) {
		f := light(t)
		for began := time.Now(); !t.Failed() && time.Since(began) < *lasts; {
			f.Run(t, rules) // once, or several times if f.For is shorter, each time in a new namespace
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

	// Strike is one failure of the cluster and its repair. It is called at least once, and
	// repeatedly with rests between. It returns early when ctx ends.
	Strike func(ctx context.Context, strike int) error

	// Weather delays half of the holders by 50 to 500 ms and loses up to a tenth of the
	// packets. It does not apply to mutants, which the cluster and the strikes must reveal.
	Weather bool

	DirtyReads bool // are allowed: see CheckHistory

	// Check, if set, is called at the end of a run and checks the result of the strikes.
	Check func(t *testing.T, result chaos.Result)

	mutant bool
}

// Run runs the holders under rules while the cluster fails. Under the rules Fence, which are
// for a store that forgets nothing, it also checks the histories of the rows.
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
	result := c.Run(t, rules)
	if rules == chaos.Fence {
		switch err := CheckHistory(result.Operations, time.Minute, f.DirtyReads); {
		case err == nil:
			t.Logf("%d operations are linearizable", len(result.Operations))
		case errors.Is(err, errUndecided):
			t.Log(err) // happens on a busy machine; no mistake was found
		default:
			t.Error(err)
		}
	}
	if f.Check != nil {
		f.Check(t, result)
	}
	if !f.mutant && !c.Calm {
		Shown(t, strikes > 0 && result.Takeovers >= leastTakeovers, "%d strikes and %d takeovers; want 1 and %d", strikes, result.Takeovers, leastTakeovers)
	}
	return result
}

// leastTakeovers is how many rows must be taken over after they have expired. Otherwise no two
// holders share a row, and IDs are unique under any rules.
const leastTakeovers = 4

// Rest waits for a random time, and reports whether ctx is still live.
func Rest(ctx context.Context, least, most time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(least + rand.N(most-least+1)):
		return true
	}
}

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
