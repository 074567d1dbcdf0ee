//go:build unix

package chaos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// Leases are chaos for a store of leases. Runs may use the store at the same time, because
// each has a namespace of its own.
type Leases struct {
	Store string // in the map of Main, and in what a run says
	DSN   string // for the Open of that map; in no error and no log

	// Look shows to the test who held the rows of the store. Nil: what the processes know of
	// them will do.
	Look leasestore.History

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

	// For is how long the run takes at least. Zero: what -chaos.for says.
	For time.Duration

	// Brief ends a run that must repeat IDs after For even if none was repeated. The caller
	// looks at the Result, and may begin another.
	Brief bool

	// Calm leaves the processes alone: they are neither stopped nor killed, and their
	// clocks show the truth. Then all that happens is the store's.
	Calm bool
}

// A Result is what came of a run.
type Result struct {
	Duplicates int
	Takeovers  int         // claims of rows that nobody had given back, forgotten ones included, at least
	Operations []Operation // in no order
}

// Run runs the processes under rules and checks their IDs. It fails the test if the rules
// promise unique IDs and one is repeated. It also fails the test if the rules do not
// promise that and no ID is repeated for ten minutes.
func (c Leases) Run(t *testing.T, rules Rules) Result {
	t.Helper()
	if rules.forgets() && c.Forget == nil && c.During == nil {
		t.Fatalf("chaos: Run(%s) on %s: Leases.Forget is missing", rules, c.Store)
	}
	c.Processes, c.Rows, c.For = cmp.Or(c.Processes, leaseProcesses), cmp.Or(c.Rows, rows), cmp.Or(c.For, *lasts)
	r := newLeaseRun(t, c, rules)
	r.conduct()

	e, err := readJournals(r.dir)
	must(t, err)
	f := r.numbers()
	ids, duplicates := f.duplicates()
	switch {
	case !rules.unique() && (len(duplicates) > 0 || c.Brief):
	case !rules.unique():
		r.errorf("none of %d IDs was repeated; want some, or the chaos proves nothing", ids)
	default:
		if len(duplicates) > 0 {
			r.errorf("%d of %d IDs were repeated; want none. The first is %s", len(duplicates), ids, describe(f, duplicates[0]))
		}
		if err := errors.Join(e.disjoint(), e.reserved(f)); err != nil {
			r.errorf("%v", err)
		}
		if c.Look != nil && !rules.forgets() {
			r.checkHolders(f)
		}
	}
	t.Logf("%s: %d IDs, %d of them repeated; %d takeovers, %d leases noticed it; forgotten %d times; %s",
		r.name, ids, len(duplicates), e.takeovers(), e.losses, r.forgotten, r.sum())
	return Result{len(duplicates), e.takeovers(), e.operations}
}

// A leaseRun is the chaos while it lasts.
type leaseRun struct {
	*group
	chaos     Leases
	rules     Rules
	namespace string
	forget    time.Time // when the store is to forget next
	forgotten int
}

// newLeaseRun returns a run without processes.
func newLeaseRun(t *testing.T, c Leases, rules Rules) *leaseRun {
	t.Helper()
	r := &leaseRun{chaos: c, rules: rules, namespace: unusedName(), forget: time.Now().Add(rules.window())}
	r.group = newGroup(t, fmt.Sprintf("%s, %s", c.Store, rules), leasing, order[any]{Store: c.Store, DSN: c.DSN, Work: leaseWork{
		Namespace: r.namespace, Rules: rules, Rows: c.Rows, Window: c.Window, Real: c.During != nil, Calm: c.Calm,
	}})
	r.enter, r.calm, r.stop, r.patience = c.Enter, c.Calm, rules.stop(), leaseWindow
	return r
}

func (r *leaseRun) conduct() {
	r.t.Helper()
	defer r.during()()
	r.group.conduct(script{processes: r.chaos.Processes, lasts: r.chaos.For, enough: r.enough, each: r.forgetInTime})
}

// during begins what happens to the store. The function that it returns ends that.
func (r *leaseRun) during() (end func()) {
	if r.chaos.During == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(r.t.Context())
	done := make(chan error, 1)
	go func() { done <- r.chaos.During(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			r.errorf("During = %v; want no error", err)
		}
	}
}

// forgetInTime makes the store forget when it is time to.
func (r *leaseRun) forgetInTime() {
	if r.chaos.Forget == nil || !r.rules.forgets() || time.Now().Before(r.forget) {
		return
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), longest)
	defer cancel()
	if err := r.chaos.Forget(ctx, r.namespace); err != nil {
		r.errorf("Forget = %v; want no error", err)
		return
	}
	r.forgotten++
	r.forget = time.Now().Add(between(r.random, r.rules.window()/4, 3*r.rules.window()/2))
}

// checkHolders fails the test if an ID has a time at which, by the store's records, its worker
// number was free. The processes are dead. A request of theirs may still be under way. It can raise
// a limit, or be a release, whose limit is after all IDs.
func (r *leaseRun) checkHolders(f numberFiles) {
	r.t.Helper()
	space := leasestore.Space{Namespace: r.namespace, Workers: r.chaos.Rows}
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	defer cancel()
	held := map[int64][]leasestore.Holder{}
	for worker := range space.Workers {
		var err error
		if held[worker], err = r.chaos.Look.History(ctx, space, worker); err != nil {
			r.errorf("History(worker %d) = error %v; want them", worker, err)
			return
		}
	}
	for _, ids := range f {
		for _, id := range ids {
			at := timeOf(id)
			if !slices.ContainsFunc(held[workerOf(id)], func(h leasestore.Holder) bool { return h.From <= at && at < h.Until }) {
				r.errorf("%s; want it to be of a holder, of %+v", describe(f, id), held[workerOf(id)])
				return
			}
		}
	}
}

// enough reports whether so much has happened that the run means something. If IDs should
// be repeated, some must be. If not, there must be enough of what makes a lease without a
// fence repeat them.
func (r *leaseRun) enough() bool {
	if r.chaos.Brief {
		return true
	}
	if !r.rules.unique() {
		_, duplicates := r.numbers().duplicates()
		return len(duplicates) > 0
	}
	if r.chaos.During != nil {
		return true // what happens to the store is the caller's, and how long it takes
	}
	e, err := readJournals(r.dir)
	return err == nil && e.takeovers() >= 4 && e.losses >= 1 && r.restarts >= 2 && r.stops >= 2 && (!r.rules.forgets() || r.forgotten >= 3)
}
