//go:build unix

package segmentchaos

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/internal/chaos"
)

const (
	processes = 5
	stop      = time.Second     // processes are stopped for so long at most
	patience  = 2 * time.Second // a process that was asked to end is killed after this time
)

// lasts is how long a run takes at least. It goes on, up to three minutes, until it has
// seen enough.
var lasts = flag.Duration("segmentchaos.for", shortest, "how long each run of segmentchaos takes at least; longer than the default: all runs")

const shortest = time.Second

// longest is how long a run may go on.
const longest = 3 * time.Minute

// Long reports whether -segmentchaos.for asks for more than the default. A test of the
// edit loop then makes all of its runs, and one otherwise.
func Long() bool { return *lasts > shortest }

// A Chaos is a store, with its table and no row.
type Chaos struct {
	Name string // in the map of Main
	DSN  string // for the Open of that map; in no error and no log
	Store

	// Torn makes the processes read the row and write it in two steps. Then numbers must
	// be repeated.
	Torn bool
}

// Run makes the row, runs the processes and checks their numbers.
func (c Chaos) Run(t *testing.T) {
	t.Helper()
	if err := c.Create(t.Context(), segment.Row{Tag: tag, Next: 1, Step: 100, Stride: 1}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(1, 0)) // the same in every run: a release must not depend on luck
	g := &chaos.Group{
		T: t, Name: c.Name, Variable: variable, Dir: dir, Random: random, Stop: stop, Patience: patience,
		Order: func(files string) any {
			return order{Store: c.Name, DSN: c.DSN, Torn: c.Torn, Seed: random.Uint64(), Files: files}
		},
	}
	c.conduct(t, g)
	numbers, err := chaos.ReadNumbers(dir)
	if err != nil {
		t.Fatal(err)
	}
	count, repeated := numbers.Duplicates()
	t.Logf("%s, torn %t: %d numbers, %d of them repeated; %d restarts, %d stops", c.Name, c.Torn, count, len(repeated), g.Restarts, g.Stops)
	if c.Torn {
		if len(repeated) == 0 {
			t.Error("no number was repeated; want some, or the chaos proves nothing")
		}
		return
	}
	if len(repeated) > 0 {
		t.Errorf("%d numbers were repeated; want none. The first is %d, from %s", len(repeated), repeated[0], numbers.Files(repeated[0]))
	}
	if err := numbers.Ascend(); err != nil {
		t.Error(err)
	}
	c.checkRow(t, numbers)
}

// conduct starts the processes, does things to them for as long as the run lasts, and
// ends them.
func (c Chaos) conduct(t *testing.T, g *chaos.Group) {
	t.Helper()
	g.Start(processes)
	defer g.End()
	began := time.Now()
	look := began.Add(*lasts)
	for !t.Failed() {
		g.Wait()
		if now := time.Now(); now.After(look) {
			if c.enough(g) {
				break
			}
			if now.Sub(began) > longest+*lasts {
				t.Errorf("not enough has happened in %v for the run to mean anything: %d restarts, %d stops", longest, g.Restarts, g.Stops)
				break
			}
			look = now.Add(time.Second / 4)
		}
		g.Look()
		g.Strike()
	}
	// Stopped processes go on, and return the numbers that they were about to return.
	g.Continue()
	time.Sleep(stop / 2)
}

// enough reports whether so much has happened that the run means something.
func (c Chaos) enough(g *chaos.Group) bool {
	numbers, err := chaos.ReadNumbers(g.Dir)
	if err != nil {
		return false
	}
	count, repeated := numbers.Duplicates()
	if c.Torn {
		return len(repeated) > 0
	}
	return count >= 2000 && g.Restarts >= 4 && g.Stops >= 4
}

// checkRow fails the test if a number was returned that the row has not passed.
func (c Chaos) checkRow(t *testing.T, numbers chaos.Numbers) {
	t.Helper()
	rows, err := c.Rows(t.Context())
	if err != nil || len(rows) != 1 {
		t.Errorf("Rows = %+v, %v; want one row", rows, err)
		return
	}
	for name, list := range numbers {
		if len(list) > 0 && int64(list[len(list)-1]) >= rows[0].Next {
			t.Errorf("%s has %d; want a row that has passed it, of %+v", name, list[len(list)-1], rows[0])
		}
	}
}
