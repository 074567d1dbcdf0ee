//go:build unix

package leasechaos

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"errors"
	"flag"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/internal/chaos"
)

// A Chaos is a store and what a run needs to know of it. Its runs may use the store at
// the same time. Each has a namespace of its own.
type Chaos struct {
	Store string // for the table, and in the map of Main
	DSN   string // for the Open of that map; in no error and no log

	// Lister shows the rows of the store to the test. Nil: what the processes know of
	// them will do.
	Lister lease.Lister

	// Forget makes the store forget all that it has acknowledged in a namespace, at
	// one moment. Guard and NoGuard need it, or During.
	Forget func(ctx context.Context, namespace string) error

	// During is what happens to the store while the processes run. It returns when its
	// context ends, which is the end of the run. If it is set, that is all that
	// happens to requests: no faults are injected, and windows are as asked.
	During func(ctx context.Context) error

	// Enter changes the command of the process in a slot, 0..Processes-1, so that it runs
	// somewhere else, say on another host. It must keep the process group and the number
	// of the process. Nil: all run here.
	Enter func(slot int, cmd *exec.Cmd)

	// Processes is how many run at a time, and Rows, at most 8, how many of them can hold
	// a row. Zero: 6, and 3.
	Processes int
	Rows      int64

	// Window is Config.Window of all leases. Zero: 3 s, and 6 s of one in three. A store
	// that is away for longer ends all leases, and then repeats no ID of theirs.
	Window time.Duration

	// For is how long the run takes at least. Zero: what -leasechaos.for says.
	For time.Duration

	// Broken says that the store breaks its promises, so that IDs must be repeated
	// whatever the rules are.
	Broken bool

	// Brief ends a run that must repeat IDs after For also if it has not. The caller looks at
	// the Result, and may begin another.
	Brief bool

	// Calm leaves the processes alone: they are neither stopped nor killed, and their
	// clocks show the truth. Then the longest pause is due to the store alone.
	Calm bool

	// History is a folder for what the processes asked of the store and when, one file
	// for each process: see [Operation]. Empty: it is not written down.
	History string
}

// seed is the same in every run of the tests, since a release must not depend on luck.
var seed = flag.Uint64("leasechaos.seed", 1, "fixes what happens when in a run of leasechaos, though not what comes of it")

// lasts is how long a run takes at least. It goes on, up to three minutes, until it has
// seen enough takeovers, losses and restarts.
var lasts = flag.Duration("leasechaos.for", shortest, "how long each run of leasechaos takes at least; longer than the default: all runs")

const shortest = time.Second

// Long reports whether -leasechaos.for asks for more than the default. A test of the edit
// loop then makes all of its runs, and one otherwise: each takes some seconds.
func Long() bool { return *lasts > shortest }

// A Result is what came of a run.
type Result struct {
	Store string
	Rules Rules

	IDs        int
	Duplicates int

	Takeovers int // claims of rows that nobody had given back, forgotten ones included
	Losses    int // leases that noticed it
	Restarts  int
	Stops     int
	Forgotten int // times that the store was made to forget

	// Pause is the longest time without an ID of a process that had returned one
	// before. Times in which the process did not run do not count.
	Pause time.Duration
}

// unique reports whether a run promises that no ID is repeated.
func (c Chaos) unique(rules Rules) bool { return rules.unique() && !c.Broken }

// longest is how long a run may go on. A run takes a few seconds to see enough. On a slow
// or busy machine it takes several times as long.
const longest = 3 * time.Minute

// Run runs the processes under rules and checks their IDs. It fails the test if the rules
// promise unique IDs and one is repeated. It also fails the test if the rules do not
// promise that, or the store is broken, and no ID is repeated for three minutes.
func (c Chaos) Run(t *testing.T, rules Rules) Result {
	t.Helper()
	if rules.forgets() && c.Forget == nil && c.During == nil {
		t.Fatalf("leasechaos: Run(%s) on %s: Chaos.Forget is missing", rules, c.Store)
	}
	c.Processes, c.Rows, c.For = cmp.Or(c.Processes, processes), cmp.Or(c.Rows, rows), cmp.Or(c.For, *lasts)
	g := &chaos.Group{T: t, Dir: t.TempDir(), Random: rand.New(rand.NewPCG(*seed, 0))}
	r := newRun(g, c, rules, "chaos-"+strings.ToLower(crand.Text()))
	t.Logf("%s, %s: -leasechaos.seed=%d", c.Store, rules, *seed)
	r.conduct()

	e, err := readJournals(r.Dir)
	if err != nil {
		t.Fatal(err)
	}
	n, err := chaos.ReadNumbers(r.Dir)
	if err != nil {
		t.Fatal(err)
	}
	f := idFiles{n}
	if err := f.Ascend(); err != nil {
		r.Errorf("%v", err)
	}
	ids, duplicates := f.Duplicates()
	switch {
	case !c.unique(rules) && (len(duplicates) > 0 || c.Brief):
	case !c.unique(rules):
		r.Errorf("none of %d IDs was repeated; want some, or the chaos proves nothing", ids)
	default:
		if len(duplicates) > 0 {
			r.Errorf("%d of %d IDs were repeated; want none. The first is %s", len(duplicates), ids, f.describe(duplicates[0]))
		}
		if err := errors.Join(e.disjoint(), e.reserved(f)); err != nil {
			r.Errorf("%v", err)
		}
		if c.Lister != nil && !rules.forgets() {
			r.checkRows(f)
		}
	}
	return Result{
		Store: c.Store, Rules: rules,
		IDs: ids, Duplicates: len(duplicates),
		Takeovers: e.takeovers(), Losses: e.losses,
		Restarts: r.Restarts, Stops: r.Stops, Forgotten: r.forgotten,
		Pause: e.pause,
	}
}

// checkRows fails the test if an ID has a time that the store has not reserved. The
// processes are dead. A request of theirs may still be under way. It can raise a limit,
// or be a release, whose limit is after all IDs.
func (r *run) checkRows(f idFiles) {
	r.T.Helper()
	space := lease.Space{Namespace: r.namespace, Workers: r.chaos.Rows}
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	defer cancel()
	got, _, err := r.chaos.Lister.Rows(ctx, space)
	if err != nil || int64(len(got)) != r.chaos.Rows {
		r.Errorf("Rows = %d rows, error %v; want %d", len(got), err, r.chaos.Rows)
		return
	}
	for worker, newest := range f.newest() {
		if worker >= r.chaos.Rows || timeOf(newest) >= got[worker].Until {
			r.Errorf("%s; want a row that reserves more than that, of %+v", f.describe(newest), got)
		}
	}
}

// enough reports whether so much has happened that the run means something. If IDs should
// be repeated, some must be. If not, there must be enough of what makes a lease without a
// fence repeat them.
func (r *run) enough() bool {
	if r.chaos.Brief {
		return true
	}
	if !r.chaos.unique(r.rules) {
		n, err := chaos.ReadNumbers(r.Dir)
		if err != nil {
			return false
		}
		_, duplicates := n.Duplicates()
		return len(duplicates) > 0
	}
	if r.chaos.During != nil {
		return true // what happens to the store is the caller's, and how long it takes
	}
	e, err := readJournals(r.Dir)
	return err == nil && e.takeovers() >= 4 && e.losses >= 1 && r.Restarts >= 2 && r.Stops >= 2 && (!r.rules.forgets() || r.forgotten >= 3)
}
