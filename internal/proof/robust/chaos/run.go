//go:build unix

package chaos

import (
	crand "crypto/rand"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// seed is the same in every run of the tests, since a release must not depend on luck.
var seed = flag.Uint64("chaos.seed", 1, "fixes what happens when in a run of chaos, though not what comes of it")

// lasts is how long a run takes at least. It goes on until it has seen enough, up to
// longest.
var lasts = flag.Duration("chaos.for", shortest, "how long each run of chaos takes at least; longer than the default: all runs")

const shortest = time.Second / 4

// longest is how long a run may go on until it has seen enough. That takes a few seconds, and more than a
// minute beside thirty processes on two cores. A run that never does has a mistake.
const longest = 10 * time.Minute

// Long reports whether -chaos.for asks for more than the default. A test of the edit loop
// then makes all of its runs, and one otherwise, since each takes some seconds.
func Long() bool { return *lasts > shortest }

// newGroup returns a group without processes, which will do some work in a role.
func newGroup(t *testing.T, name, role string, o order[any]) *group {
	t.Helper()
	t.Logf("%s: -chaos.seed=%d", name, *seed)
	return &group{t: t, name: name, dir: t.TempDir(), random: rand.New(rand.NewPCG(*seed, 0)), role: role, order: o}
}

// unusedName returns a name that no other run has.
func unusedName() string { return "chaos-" + strings.ToLower(crand.Text()) }

// A script is how a run goes.
type script struct {
	processes int
	lasts     time.Duration // at least
	enough    func() bool   // whether so much has happened that the run means something
	each      func()        // is called again and again while the run lasts; may be nil
}

// conduct starts the processes, does things to them for as long as the run lasts, and ends
// them.
func (g *group) conduct(s script) {
	g.t.Helper()
	g.startAll(s.processes)
	defer g.end()
	began := time.Now()
	look := began.Add(s.lasts)
	for !g.t.Failed() {
		g.wait()
		if now := time.Now(); now.After(look) {
			if s.enough() {
				break
			}
			if now.Sub(began) > longest+s.lasts {
				g.errorf("not enough has happened in %v for the run to mean anything: %s", longest, g.sum())
				break
			}
			look = now.Add(min(s.lasts, time.Second) / 2)
		}
		if s.each != nil {
			s.each()
		}
		g.lookAll()
		if !g.calm {
			g.strike()
		}
	}
	// Stopped processes go on, and return the numbers that they were about to return.
	g.continueAll()
	time.Sleep(min(s.lasts, time.Second) / 2)
}

// sum says what was done to the processes.
func (g *group) sum() string { return fmt.Sprintf("%d restarts, %d stops", g.restarts, g.stops) }

// numbers returns all that the processes were given so far.
func (g *group) numbers() numberFiles {
	g.t.Helper()
	n, err := readNumbers(g.dir)
	must(g.t, err)
	return n
}

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
