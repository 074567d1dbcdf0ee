package lease

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/types"
)

// A simulation runs several processes, a network and a store in one goroutine. It tests the
// real protocol, all of Lease but its goroutine, and the real generator. Its time is the time
// of a synctest bubble, which stands still except when the event loop sleeps. A single seeded
// source makes all random choices, so a run depends only on its seed.
type simulation struct {
	setting
	t      *testing.T
	rng    *rand.Rand
	began  time.Time
	events events
	order  uint64
	tokens int

	store     simulatedStore
	hosts     []*host
	processes []*process // that are up, or were

	flights []*flight // to be stopped at the end

	ids     map[types.Snowflake]issue
	retired map[int64]bool // the numbers whose keys are not those of leases
	calm    bool           // nothing goes wrong any more
	counts  [kinds]int
	digest  uint64 // of all IDs, whose, and when

	violations [violationKinds]string // the first of each; empty: none
	trace      []string
	tracing    bool
}

// A setting is what does not change during a run.
type setting struct {
	layout core.Layout
	window leasestore.Millis
	skew   leasestore.Millis
	guard  leasestore.Millis
	only   []int64

	oneGuard bool // all processes have guard; else some have a longer one
	mutant   mutant

	// windows are the windows from which each process draws one. If nil, all have window.
	windows []leasestore.Millis

	// faithful: the store forgets nothing. Each ID is then below the limit that
	// the store has at that moment.
	faithful bool

	rollback  core.Rollback
	runAhead  time.Duration
	maxBehind time.Duration
}

// newLayout returns a layout for a bubble, which begins in the year 2000.
func newLayout(unit time.Duration, workerBits, sequenceBits int) core.Layout {
	return core.Layout{
		Epoch: time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC), Unit: unit,
		TimeBits: 41, WorkerBits: workerBits, SequenceBits: sequenceBits,
	}
}

// space returns the leases' space.
func (x *setting) space() leasestore.Space {
	return leasestore.Space{Namespace: "simulation", Workers: 1 << x.layout.WorkerBits, Layout: Fingerprint(x.layout)}
}

// claim returns the settings of a protocol.
func (s *simulation) claim() leasestore.Claim {
	c := leasestore.Claim{Space: s.space(), Only: s.only, Window: s.window, Skew: s.skew, Guard: s.guard}
	if s.windows != nil {
		c.Window = pick(s, s.windows...)
	}
	if s.guard > 0 {
		if !s.oneGuard {
			c.Guard = pick(s, s.guard, max(s.guard, c.Window/4)) // no less than clocks are apart
		}
		c.Skew = min(s.skew, c.Guard, c.Window/2-c.Guard-c.Window/16)
	}
	return c
}

// An issue is what is known of an ID.
type issue struct {
	process *process
	at      time.Duration
}

// The violations. Only a duplicate shows that a mutant repeats IDs. The others are nearer
// to the mistake than to its harm.
type violation int

const (
	duplicate violation = iota // an ID that another call has returned
	beyond                     // an ID that is not reserved
	disorder                   // an ID that is not above the one before
	stuck                      // no IDs, though nothing is wrong any more
	refused                    // an error that may not be
	violationKinds
)

func (s *simulation) violate(v violation, format string, args ...any) {
	if s.violations[v] == "" {
		s.violations[v] = fmt.Sprintf("at %v: %s", s.elapsed(), fmt.Sprintf(format, args...))
		s.tracef("VIOLATION: %s", s.violations[v])
	}
}

// violated returns the first violation, if there is one.
func (s *simulation) violated() string {
	for _, v := range s.violations {
		if v != "" {
			return v
		}
	}
	return ""
}

func (s *simulation) tracef(format string, args ...any) {
	if s.tracing {
		s.trace = append(s.trace, fmt.Sprintf("%12v ", s.elapsed())+fmt.Sprintf(format, args...))
	}
}

// A kind is something that happens in a run and is counted.
type kind int

const (
	ids kind = iota
	claims
	takeovers // claims of a row that another lease has not given back
	reclaims  // claims of a process that had a row before
	renewals
	releases
	losses
	lapses
	exhaustions // calls that found all the reserved time used up
	policies    // calls that a rollback policy refused

	pauses
	suspensions
	crashes
	restarts
	closes
	steps
	slews
	requestsLost
	repliesLost
	duplications
	zombies
	partitions
	timeouts
	lateReplies
	outages
	slownesses
	storeSteps
	farSteps
	rollbacks
	wipes
	deletions
	lowerings
	clones
	retirements
	copied // IDs that two copies of a process have both returned, as they may
	unfree // processes that had no row to claim in the end

	kinds
)

var kindNames = [kinds]string{
	"IDs", "claims", "takeovers", "re-claims", "renewals", "releases", "losses", "lapses", "exhaustions", "refusals of a rollback policy",
	"pauses", "suspensions", "crashes", "restarts", "clean closes", "clock steps", "clock slews", "lost requests", "lost replies",
	"duplicated requests", "zombies", "partitions", "timeouts", "late replies", "outages", "slow stores", "steps of the store's clock", "steps far back of all clocks", "rollbacks",
	"wipes", "deleted rows", "lowered rows", "clones", "retired numbers", "IDs of copies", "processes without a free row",
}

func (k kind) String() string { return kindNames[k] }

// The loop.

type event struct {
	at    time.Duration
	order uint64 // of two at one moment, the first that was planned is first
	do    func()
}

type events []event

func (e events) Len() int      { return len(e) }
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e events) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(e[i].at, e[j].at), cmp.Compare(e[i].order, e[j].order)) < 0
}
func (e *events) Push(x any) { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// elapsed returns the true time since the beginning.
func (s *simulation) elapsed() time.Duration { return time.Since(s.began) }

// after plans do for d from now.
func (s *simulation) after(d time.Duration, do func()) {
	s.order++
	heap.Push(&s.events, event{s.elapsed() + d, s.order, do})
}

// run lets d pass. It stops early if an ID was repeated, or, without a mutant, if
// anything is wrong.
func (s *simulation) run(d time.Duration) {
	end := s.elapsed() + d
	for len(s.events) > 0 && s.events[0].at <= end && !s.over() {
		s.next()
	}
	time.Sleep(end - s.elapsed())
}

// until runs until is, at most for d.
func (s *simulation) until(d time.Duration, is func() bool) {
	for end := s.elapsed() + d; !is() && !s.over(); {
		if len(s.events) == 0 || s.events[0].at > end {
			s.violate(refused, "%v have passed; want what was waited for", d)
			return
		}
		s.next()
	}
}

// next lets the next event happen.
func (s *simulation) next() {
	e := heap.Pop(&s.events).(event)
	time.Sleep(e.at - s.elapsed())
	e.do()
}

func (s *simulation) over() bool {
	return s.violations[duplicate] != "" || s.mutant == none && s.violated() != ""
}

// chance returns true with probability p.
func (s *simulation) chance(p float64) bool { return p > 0 && s.rng.Float64() < p }

// upTo returns a random time in [0, d].
func (s *simulation) upTo(d time.Duration) time.Duration {
	return time.Duration(s.rng.Int64N(int64(max(d, 0)) + 1))
}

// between returns a random time in [low, high].
func (s *simulation) between(low, high time.Duration) time.Duration { return low + s.upTo(high-low) }

// part returns the n-th part of a window.
func (s *simulation) part(n int) time.Duration { return s.window.Duration() / time.Duration(n) }

func (s *simulation) token() string {
	s.tokens++
	return fmt.Sprintf("%032x", s.tokens)
}

// A simulatedClock shows the true time, plus offset, plus what it has gained.
type simulatedClock struct {
	s      *simulation
	offset time.Duration
	ppm    int64
	since  time.Duration // when ppm was set

	// most, if not negative, bounds how far it is ahead of the true time. This is the
	// condition of the loss guard.
	most time.Duration
}

func (c *simulatedClock) now() time.Time {
	elapsed := c.s.elapsed()
	off := c.offset + (elapsed-c.since)/1_000_000*time.Duration(c.ppm)
	if c.most >= 0 {
		off = min(max(off, 0), c.most)
	}
	return c.s.began.Add(elapsed + off)
}

func (c *simulatedClock) set(offset time.Duration, ppm int64) {
	c.offset, c.ppm, c.since = offset, ppm, c.s.elapsed()
}

// The store.

type simulatedStore struct {
	s      *simulation
	clock  simulatedClock
	layout string           // empty: no claim yet
	rows   []leasestore.Row // in the order of the workers
	high   []leasestore.Millis

	history []memory // what it was before each write
	losses  int      // how often it has gone back

	down, refuses bool // does not answer; or with an error at once
	slow          time.Duration
}

// A memory is what a store knows at one moment.
type memory struct {
	layout string
	rows   []leasestore.Row
	losses int
}

var errStoreAway = errors.New("simulation: the store is away")

func (st *simulatedStore) find(worker int64) *leasestore.Row {
	for i := range st.rows {
		if st.rows[i].Worker == worker {
			return &st.rows[i]
		}
	}
	return nil
}

func (st *simulatedStore) state() memory { return memory{st.layout, slices.Clone(st.rows), st.losses} }

// remember keeps the present state, to go back to.
func (st *simulatedStore) remember() {
	if len(st.history) == 256 {
		st.history = slices.Delete(st.history, 0, 64)
	}
	st.history = append(st.history, st.state())
}

func (st *simulatedStore) write(row leasestore.Row) {
	st.remember()
	*st.find(row.Worker) = row
	st.high[row.Worker] = max(st.high[row.Worker], row.Until)
}

// create makes the rows of the space.
func (st *simulatedStore) create(x leasestore.Space) {
	st.layout = x.Layout
	st.rows = make([]leasestore.Row, x.Workers)
	for i := range st.rows {
		st.rows[i].Worker = int64(i)
	}
	if st.high == nil {
		st.high = make([]leasestore.Millis, x.Workers)
	}
}

// read is what a register shows of its rows.
func (st *simulatedStore) read(workers []int64) leasestore.View {
	v := leasestore.View{Layout: st.layout, Made: st.layout != "", Now: leasestore.MillisOf(st.clock.now())}
	for _, row := range st.rows {
		if workers == nil || slices.Contains(workers, row.Worker) {
			v.Rows = append(v.Rows, leasestore.Seen{Row: row})
		}
	}
	return v
}

// make makes the rows of the space, unless it has a layout.
func (st *simulatedStore) make(x leasestore.Space) {
	if st.layout == "" {
		st.create(x)
	}
}

// makeAnew makes missing rows, which is forbidden.
func (st *simulatedStore) makeAnew(x leasestore.Space) {
	for worker := range x.Workers {
		if st.find(worker) == nil {
			st.rows = slices.Insert(st.rows, int(worker), leasestore.Row{Worker: worker})
		}
	}
}

// swap writes a row if it is what was seen.
func (st *simulatedStore) swap(x leasestore.Space, from, to leasestore.Row) bool {
	row := st.find(from.Worker)
	if row == nil || st.layout != x.Layout {
		return false
	}
	if *row != from && !st.s.mutant.same(*row, from, to) {
		return false
	}
	st.write(to)
	switch s := st.s; {
	case to.Owner == "":
		s.counts[releases]++
	case to.Epoch == from.Epoch:
		s.counts[renewals]++
	default:
		s.counts[claims]++
		if from.Owner != "" {
			s.counts[takeovers]++
		}
	}
	return true
}

// forget makes the store go back by n writes.
func (st *simulatedStore) forget(n int) {
	if n = min(n, len(st.history)); n == 0 {
		return
	}
	at := len(st.history) - n
	st.layout, st.rows = st.history[at].layout, st.history[at].rows
	st.history = st.history[:at]
	st.losses++
	st.s.counts[rollbacks]++
	st.s.tracef("the store forgets %d writes: %v", n, st.rows)
}

// become makes the store go back to an earlier state. A state that it has left by going
// back is no longer part of its past. It does not go to such a one.
func (st *simulatedStore) become(m memory) {
	if m.losses != st.losses {
		return
	}
	st.layout, st.rows, st.history = m.layout, slices.Clone(m.rows), nil
	st.losses++
	st.s.counts[rollbacks]++
	st.s.tracef("the store goes back: %v", st.rows)
}

// wipe makes the store forget everything.
func (st *simulatedStore) wipe() {
	st.layout, st.rows, st.history = "", nil, nil
	st.losses++
	st.s.counts[wipes]++
	st.s.tracef("the store forgets everything")
}

// remove deletes a row by hand.
func (st *simulatedStore) remove(worker int64) {
	if st.find(worker) == nil {
		return
	}
	st.remember()
	st.rows = slices.DeleteFunc(slices.Clone(st.rows), func(r leasestore.Row) bool { return r.Worker == worker })
	st.s.counts[deletions]++
	st.s.tracef("row %d is deleted", worker)
}

// lower sets R of a row by hand.
func (st *simulatedStore) lower(worker int64, to leasestore.Millis) {
	row := st.find(worker)
	if row == nil || row.Until <= to {
		return
	}
	after := *row
	after.Until = to
	st.write(after)
	st.s.counts[lowerings]++
	st.s.tracef("row %d is lowered to %d", worker, to)
}

// The network.

// A link is the way between a host and the store. Its zero value is a good one.
type link struct {
	lose, loseReply, duplicate, zombie float64       // probabilities
	delay                              time.Duration // at most, one way
	late                               time.Duration // each request is, by exactly that
	cut, deaf                          bool          // no request arrives; no reply does
	writes                             bool          // all this befalls swaps alone
}

// of returns the link as a trip finds it.
func (l link) of(t *trip) link {
	if l.writes && !t.swap {
		return link{delay: l.delay}
	}
	return l
}

// A flight is a request under way. It makes its trips one after the other.
type flight struct {
	claim   *leasestore.Claim
	renewal *leasestore.Renewal
	release *leasestore.Release

	retires bool // claim does, or would without a mutant

	next  func() (*trip, bool) // runs it up to its next trip
	stop  func()               // ends it: the trips to come fail
	at    *trip                // the last that it has begun
	swaps int                  // that were served
	reply leasestore.Reply     // what it has come to, when it has ended
	err   error

	sent     time.Duration
	waiters  []*process // who wait for the answer: more than one if they are copies
	families []*family  // of copies made since it was sent
}

// A trip is a call of the register. It may be served several times, if the network
// repeats it. What answers it is what was done first.
type trip struct {
	swap     bool
	serve    func() // sets what the call returns
	err      error  // of the call, if the trip has failed
	answered bool   // by the store
	over     bool   // for the caller, who has the answer or waits no longer
}

// A tripping is the register that a flight calls. Each call waits until the simulation has
// made its trip.
type tripping struct {
	s     *simulation
	f     *flight
	yield func(*trip) bool
	ended bool
}

var errStopped = errors.New("simulation: the caller does not wait any more")

func (r *tripping) trip(swap bool, serve func()) error {
	t := &trip{swap: swap, serve: serve}
	if r.ended = r.ended || !r.yield(t); r.ended {
		return errStopped
	}
	return t.err
}

func (r *tripping) Read(_ context.Context, x leasestore.Space, workers []int64) (leasestore.View, error) {
	var got *leasestore.View
	err := r.trip(false, func() {
		if r.s.mutant == rowMadeAnew && r.f.claim != nil && r.s.store.layout != "" {
			r.s.store.makeAnew(x)
		}
		v := r.s.store.read(workers)
		r.s.mutant.doctor(r.f, &v)
		if got == nil {
			got = &v
		}
	})
	if err != nil {
		return leasestore.View{}, err
	}
	return *got, nil
}

func (r *tripping) Find(ctx context.Context, x leasestore.Space, _ leasestore.Hint) (leasestore.View, error) {
	return r.Read(ctx, x, nil)
}

func (r *tripping) Make(_ context.Context, x leasestore.Space) error {
	return r.trip(false, func() { r.s.store.make(x) })
}

func (r *tripping) Swap(_ context.Context, x leasestore.Space, from leasestore.Seen, to leasestore.Row) (bool, error) {
	var done *bool
	err := r.trip(true, func() {
		r.f.swaps++
		before, after := from.Row, to
		if tag, ok := from.Tag.(leasestore.Row); ok { // what a mutant has changed
			before, after.Epoch, after.Owner = tag, tag.Epoch, tag.Owner
		}
		r.s.mutant.lower(r.f, &after, leasestore.MillisOf(r.s.store.clock.now()))
		ok := r.s.store.swap(x, before, after)
		if ok {
			for _, fam := range r.f.families {
				if to.Worker == fam.worker {
					fam.until = max(fam.until, to.Until)
				}
			}
		}
		if done == nil {
			done = &ok
		}
	})
	return err == nil && *done, err
}

func (r *tripping) LosesWrites() bool { return r.s.guard > 0 }

// A family is a process and its copy. Both use the time that the process had when it was
// copied, and what a request then under way obtains. If one gives the row back, so does the
// next lease of the row, since the other still has its limit. Later times are not shared.
type family struct {
	worker int64
	until  leasestore.Millis
}

// has reports whether the IDs of a worker with times before end may be shared.
func (f *family) has(worker int64, end leasestore.Millis) bool {
	return f != nil && worker == f.worker && end <= f.until
}

// send begins a request.
func (s *simulation) send(h *host, f *flight) {
	f.sent = s.elapsed()
	f.next, f.stop = iter.Pull(func(yield func(*trip) bool) {
		store, ctx := leasestore.FromRegister(&tripping{s: s, f: f, yield: yield}), context.Background()
		switch {
		case f.claim != nil:
			f.reply, f.err = store.Claim(ctx, *f.claim)
		case f.renewal != nil:
			f.reply, f.err = store.Renew(ctx, *f.renewal)
		default:
			f.err = store.Release(ctx, *f.release)
		}
	})
	s.flights = append(s.flights, f)
	s.proceed(h, f)
}

// retire asks for a worker number whose keys, of any time, are then somebody else's.
func (s *simulation) retire(h *host, worker int64) {
	c := s.claim()
	c.Only, c.Retire = []int64{worker}, s.mutant != retirementIsAClaim
	c.Owner, c.Nonce, c.Now = s.token(), s.token(), leasestore.MillisOf(h.clock.now())
	s.send(h, &flight{claim: &c, retires: true})
}

// hasRetired records that a number is retired, so that no ID may have it.
func (s *simulation) hasRetired(worker int64) {
	s.counts[retirements]++
	s.retired[worker] = true
	for id, was := range s.ids {
		if w, end := s.where(id); w == worker {
			s.violate(duplicate, "worker %d is retired; process %d has had its ID of %v", worker, was.process.id, end.Time())
		}
	}
}

// proceed lets a request go on to its next trip, or to its end.
func (s *simulation) proceed(h *host, f *flight) {
	t, more := f.next()
	if !more {
		s.tracef("host %d: %v has come to %+v, %v", h.number, f, f.reply, f.err)
		if f.retires && f.err == nil {
			s.hasRetired(f.reply.Row.Worker)
		}
		for _, p := range slices.Clone(f.waiters) {
			if p.up && p.flight == f {
				p.done(f.reply, f.err)
			}
		}
		return
	}
	f.at = t
	s.after(s.part(renewPart), func() { // Over gives each trip half of the time
		t.err = cmp.Or(t.err, context.DeadlineExceeded)
		s.answer(h, f, t)
	})
	l := h.link.of(t)
	copies := 1
	if s.chance(l.duplicate) {
		copies = 2
		s.counts[duplications]++
	}
	for range copies {
		if l.cut || s.chance(l.lose) {
			s.counts[requestsLost]++
			continue
		}
		d := l.late + s.upTo(l.delay)
		if s.chance(l.zombie) {
			d += s.between(s.part(2), 6*s.part(1))
			s.counts[zombies]++
		}
		s.after(d, func() { s.arrive(h, f, t) })
	}
}

func (s *simulation) arrive(h *host, f *flight, t *trip) {
	switch st := &s.store; {
	case st.down && st.refuses && !t.answered:
		t.answered = true
		t.err = errStoreAway
		s.after(s.upTo(h.link.delay), func() { s.answer(h, f, t) })
	case st.down:
	case st.slow > 0:
		s.after(s.upTo(st.slow), func() { s.serve(h, f, t) })
	default:
		s.serve(h, f, t)
	}
}

func (s *simulation) serve(h *host, f *flight, t *trip) {
	t.serve()
	s.tracef("the store: a trip of %v of host %d: %v", f, h.number, s.store.rows)
	if t.answered {
		return
	}
	t.answered = true
	l := h.link.of(t)
	if l.deaf || s.chance(l.loseReply) {
		s.counts[repliesLost]++
		return
	}
	s.after(s.upTo(l.delay), func() { s.answer(h, f, t) })
}

func (f *flight) String() string {
	switch {
	case f.claim != nil:
		return "claim at " + fmt.Sprint(f.claim.Now)
	case f.renewal != nil:
		return fmt.Sprintf("renewal of %d, epoch %d, at %d", f.renewal.Worker, f.renewal.Epoch, f.renewal.Now)
	}
	return fmt.Sprintf("release of %d, epoch %d, at %d", f.release.Worker, f.release.Epoch, f.release.End)
}

// answer brings the answer of a trip. It goes nowhere if all who waited for it have ended
// or wait no longer.
func (s *simulation) answer(h *host, f *flight, t *trip) {
	if t.over {
		return
	}
	t.over = true
	waits := f.release != nil || f.retires
	for _, p := range f.waiters {
		switch {
		case !p.up:
		case p.flight != f:
			s.counts[lateReplies]++
		case p.paused:
			p.inbox = true
		default:
			waits = true
		}
	}
	if waits {
		s.proceed(h, f)
	}
}

// The processes.

// A host is a machine: its clock and its link outlive a process.
type host struct {
	s       *simulation
	number  int
	clock   simulatedClock
	link    link
	process *process // the last
}

func (s *simulation) addHost() *host {
	h := &host{s: s, number: len(s.hosts), clock: simulatedClock{s: s, most: -1}}
	s.hosts = append(s.hosts, h)
	return h
}

// A process is one life of a program. It has a lease, and a generator once the lease has
// its first row.
type process struct {
	*host
	id     int
	lease  *Lease
	gen    *core.Generator
	flight *flight // whose answer it waits for
	inbox  bool    // an answer came while it was paused
	family *family // nil: it has no copies

	up, paused bool
	wake       uint64 // the number of its last alarm: those before are off
	only       []int64
	captured   *leasestore.Release

	last    types.Snowflake // ID
	taken   int
	before  int // taken, when all was set right
	claimed int
	made    error // of core.New
	err     error // of the last call of Next or Fill
	lowered leasestore.Millis
	losses  []*LostError
}

// A capture is the store of a Lease that a simulation drives. Only Close calls it, to
// release the row. It keeps that release.
type capture struct {
	Store
	p *process
}

func (c capture) Release(_ context.Context, r leasestore.Release) error {
	c.p.captured = &r
	return errStoreAway // unknown yet
}

var (
	discard = slog.New(slog.DiscardHandler)
	ended   = func() chan struct{} { c := make(chan struct{}); close(c); return c }()
)

// start starts a process, instead of the one before.
func (h *host) start() *process { return h.startOnly(h.s.only) }

// startOnly starts one with a choice of workers of its own.
func (h *host) startOnly(only []int64) *process {
	p := h.newProcess()
	p.only = only
	settings := h.s.claim()
	settings.Only = only
	p.lease = p.newLease(newProtocol(settings, h.s.token, h.s.rng.Float64))
	h.s.tracef("host %d: process %d starts", h.number, p.id)
	p.step()
	return p
}

func (h *host) newProcess() *process {
	p := &process{host: h, id: len(h.s.processes), up: true}
	h.process = p
	h.s.processes = append(h.s.processes, p)
	return p
}

// elsewhere returns a namespace that no other process has. All processes of a simulation
// are in one real process, whose registry must not see more than a real one.
func elsewhere() string { return fmt.Sprintf("simulated-%d", simulated.Add(1)) }

var simulated atomic.Int64

func (p *process) newLease(protocol *protocol) *Lease {
	return &Lease{
		store:    capture{p: p},
		config:   Config{Namespace: elsewhere(), Layout: p.s.layout, Now: p.clock.now, Logger: discard},
		begin:    time.Now(),
		protocol: protocol,
		stop:     func() {},
		stopped:  ended,
		closed:   make(chan struct{}),
	}
}

// bind makes the generator.
func (p *process) bind() {
	p.gen, p.made = core.New(core.Config{
		Layout: p.s.layout, Worker: p.lease,
		Rollback: p.s.rollback, RunAhead: p.s.runAhead, MaxBehind: p.s.maxBehind, MaxLeaseWait: time.Nanosecond,
	})
}

// step does what Lease.run does until it would wait.
func (p *process) step() {
	for p.up && !p.paused && p.flight == nil {
		undo := p.s.mutant.blind(p)
		a := p.lease.next()
		undo(&a)
		switch {
		case a.lost != nil:
			p.apply(outcome{seal: true, lost: a.lost})
		case a.wait > 0:
			p.wake++
			alarm := p.wake
			p.s.after(a.wait, func() {
				if p.wake == alarm {
					p.step()
				}
			})
			return
		default:
			p.request(&flight{claim: a.claim, renewal: a.renewal})
		}
	}
}

func (p *process) request(f *flight) {
	p.s.mutant.blindfold(p, f)
	p.flight = f
	f.waiters = []*process{p}
	p.s.tracef("process %d: %v", p.id, f)
	p.expect(f, p.lease.protocol.answerTimeout())
	p.s.send(p.host, f)
}

// expect plans the end of the wait for f.
func (p *process) expect(f *flight, d time.Duration) {
	p.s.after(d, func() {
		if p.flight == f && p.up && !p.paused {
			p.expire()
		}
	})
}

func (p *process) expire() {
	p.s.counts[timeouts]++
	if p.s.mutant == timeoutIsSuccess && p.flight.renewal != nil {
		r := *p.flight.renewal
		row, _ := r.Apply(leasestore.Row{Worker: r.Worker, Epoch: r.Epoch, Owner: r.Owner, Nonce: r.Known[0], Until: r.Until}, r.Now)
		p.done(leasestore.Reply{Row: row, Before: r.Until, Now: r.Now}, nil)
		return
	}
	p.done(leasestore.Reply{}, context.DeadlineExceeded)
}

// done takes the answer of the request under way.
func (p *process) done(reply leasestore.Reply, err error) {
	p.flight = nil
	now := leasestore.MillisOf(p.lease.config.now())
	p.s.mutant.distort(p.lease.protocol, &reply, &now)
	p.apply(p.lease.protocol.done(reply, err, now, p.lease.monotonic()))
	p.step()
}

func (p *process) apply(o outcome) {
	s := p.s
	if err := p.lease.apply(o); err != nil {
		s.violate(refused, "process %d refuses worker %d: %v", p.id, o.worker, err)
	}
	if s.tracing {
		s.tracef("process %d: %+v", p.id, o)
	}
	p.lowered += o.lowered
	if o.lost != nil {
		s.counts[losses]++
		p.losses = append(p.losses, o.lost)
		if o.lost.Reason == leasestore.Lapsed {
			s.counts[lapses]++
		}
	}
	if o.install {
		if p.claimed++; p.claimed > 1 {
			s.counts[reclaims]++
		}
		if p.gen == nil {
			p.bind()
		}
	}
}

// pause is SIGSTOP.
func (p *process) pause() {
	if p.up && !p.paused {
		p.paused = true
		p.s.counts[pauses]++
		p.s.tracef("process %d is paused", p.id)
	}
}

// resume is SIGCONT. If an answer has come, and the time for it is up too, either
// may be seen first.
func (p *process) resume() {
	if !p.up || !p.paused {
		return
	}
	p.paused = false
	p.s.tracef("process %d goes on", p.id)
	in := p.inbox
	p.inbox = false
	if f := p.flight; f != nil {
		in = in && f.at.over // or else a copy of the process has gone on to the next trip
		left := f.sent + p.lease.protocol.answerTimeout() - p.s.elapsed()
		switch {
		case in && (left > 0 || p.s.chance(0.5)):
			if left > 0 {
				p.expect(f, left)
			} else {
				p.expect(f, 0) // it may send its next trip, and no more
			}
			p.s.proceed(p.host, f)
		case left <= 0:
			p.expire()
		default:
			p.expect(f, left)
		}
	}
	p.step()
}

// suspend stops the machine for d, with its monotonic clock. (That of the generator
// cannot be stopped. It is used only for pace.)
func (p *process) suspend(d time.Duration) {
	p.pause()
	p.s.counts[suspensions]++
	p.s.after(d, func() {
		if p.up && p.paused {
			p.lease.begin = p.lease.begin.Add(d)
			p.resume()
		}
	})
}

// crash is kill -9. What is under way stays so.
func (p *process) crash() {
	if p.up {
		p.up = false
		p.s.counts[crashes]++
		p.s.tracef("process %d crashes", p.id)
	}
}

// close ends the process as Generator.Close does.
func (p *process) close() {
	if !p.up || p.paused {
		return
	}
	p.s.counts[closes]++
	p.s.tracef("process %d closes", p.id)
	if p.s.mutant == releaseBeforeSeal && p.closeInTheWrongOrder() {
		return
	}
	if p.flight != nil { // run is told, but not the generator
		p.flight = nil
		p.lease.protocol.done(leasestore.Reply{}, context.Canceled, leasestore.MillisOf(p.lease.config.now()), p.lease.monotonic())
	}
	if p.gen != nil {
		_ = p.gen.Close(context.Background())
	} else {
		_ = p.lease.Close(context.Background())
	}
	p.up = false
	if p.captured != nil {
		p.s.send(p.host, &flight{release: p.captured})
	}
}

// clone copies the running process: its memory, and the connection to the store. A
// generator cannot be copied. A new one that begins with the next tick stands for the
// copy's.
func (p *process) clone() *process {
	if !p.up || p.paused || p.gen == nil || p.lease.term == nil || p.family != nil {
		return nil
	}
	l := p.lease
	protocol := *l.protocol
	protocol.known = slices.Clone(protocol.known)
	p.s.mutant.twin(p.s, l.protocol, &protocol)

	h := p.s.addHost()
	h.clock, h.link = p.clock, p.link
	q := h.newProcess()
	q.only, q.claimed = p.only, 1
	p.family = &family{worker: protocol.row.Worker, until: protocol.limit}
	q.family = p.family
	q.lease = p.newLease(&protocol)
	q.lease.begin = l.begin
	q.lease.status = l.Status()
	q.lease.from = leasestore.MillisOf(l.term.Next())
	q.bind()
	if f := p.flight; f != nil {
		f.families = append(f.families, p.family)
		if p.s.chance(0.5) { // or it is only the first that the answer reaches
			f.waiters = append(f.waiters, q)
		}
		q.flight = f
		q.expect(f, f.sent+protocol.answerTimeout()-p.s.elapsed())
		// If the answer is under way, it is what the row has now, or less.
		if row := p.s.store.find(p.family.worker); row != nil {
			p.family.until = max(p.family.until, row.Until)
		}
	}
	p.s.counts[clones]++
	p.s.tracef("process %d is copied: %d", p.id, q.id)
	q.step()
	return q
}

// An impatient context ends as soon as a call begins to wait for it, so no call waits, and each
// is a single moment of the simulation.
type impatient struct {
	context.Context
	waited bool
}

func (c *impatient) Done() <-chan struct{} { c.waited = true; return ended }

func (c *impatient) Err() error {
	if c.waited {
		return context.Canceled
	}
	return nil
}

// working reports whether the process has a generator and runs.
func (p *process) working() bool { return p.up && !p.paused && p.gen != nil }

// take takes up to n IDs one by one, and returns how many it got.
func (p *process) take(n int) int {
	if !p.working() {
		return 0
	}
	for i := range n {
		id, err := p.gen.Next(&impatient{Context: context.Background()})
		if p.err = err; err != nil {
			p.failed()
			return i
		}
		if p.issued(id); p.s.over() {
			return i
		}
	}
	return n
}

// fill takes n IDs at once, or none.
func (p *process) fill(n int) []types.Snowflake {
	if !p.working() {
		return nil
	}
	batch := make([]types.Snowflake, n)
	if p.err = p.gen.Fill(&impatient{Context: context.Background()}, batch); p.err != nil {
		p.failed()
		for _, id := range batch {
			if id != 0 {
				p.s.violate(refused, "process %d: Fill(%d) = %v; want all of them 0 with %v", p.id, n, batch, p.err)
			}
		}
		return nil
	}
	for _, id := range batch {
		p.issued(id)
	}
	return batch
}

func (p *process) failed() {
	switch err := p.err; {
	case errors.Is(err, core.ErrReservationExhausted):
		p.s.counts[exhaustions]++
	case errors.Is(err, core.ErrClockBack):
		p.s.counts[policies]++
	case errors.Is(err, context.Canceled), errors.Is(err, core.ErrTimeExhausted):
	default:
		p.s.violate(refused, "process %d: %v", p.id, err)
	}
}

// issued checks an ID: everything that is promised.
func (p *process) issued(id types.Snowflake) {
	s := p.s
	s.counts[ids]++
	p.taken++
	worker, end := s.where(id)

	if was, ok := s.ids[id]; ok {
		if p.family.has(worker, end) || was.process.family.has(worker, end) {
			s.counts[copied]++
		} else {
			s.violate(duplicate, "process %d has ID %d, as process %d had at %v: worker %d, %v", p.id, id, was.process.id, was.at, worker, end.Time())
		}
	}
	s.ids[id] = issue{p, s.elapsed()}
	if s.retired[worker] {
		s.violate(duplicate, "process %d has ID %d of worker %d, which is retired", p.id, id, worker)
	}

	if id <= p.last && s.rollback != core.Backfill {
		s.violate(disorder, "process %d has ID %d after %d", p.id, id, p.last)
	}
	p.last = id

	switch l := p.lease; {
	case !l.protocol.held || worker != l.protocol.row.Worker:
		s.violate(beyond, "process %d has ID %d of worker %d, which it does not have", p.id, id, worker)
	case end > l.protocol.limit || end > s.store.high[worker]:
		s.violate(beyond, "process %d has ID %d, %v; the confirmed limit is %v, the highest ever stored %v",
			p.id, id, end.Time(), l.protocol.limit.Time(), s.store.high[worker].Time())
	case end <= l.protocol.from:
		s.violate(beyond, "process %d has ID %d, %v; its lease begins at %v", p.id, id, end.Time(), l.protocol.from.Time())
	case s.faithful && !p.family.has(worker, end):
		if row := s.store.find(worker); row != nil && end > row.Until {
			s.violate(beyond, "process %d has ID %d, %v; the row is %+v", p.id, id, end.Time(), *row)
		}
	}
	for _, v := range [...]uint64{uint64(id), uint64(p.id), uint64(s.elapsed())} {
		s.digest = (s.digest ^ v) * 1099511628211
	}
}

// where returns the worker of an ID, and the end of its tick.
func (s *simulation) where(id types.Snowflake) (worker int64, end leasestore.Millis) {
	l := s.layout
	worker = int64(id) >> l.SequenceBits & (1<<l.WorkerBits - 1)
	tick := int64(id) >> (l.SequenceBits + l.WorkerBits)
	return worker, leasestore.MillisOf(l.Epoch) + leasestore.Millis((tick+1)*int64(l.Unit)/int64(time.Millisecond))
}

// simulate runs do in a world of its own, which depends on the seed alone.
func simulate(t *testing.T, seed uint64, x setting, tracing bool, do func(s *simulation)) (s *simulation) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s = newSimulation(t, seed, x, tracing)
		defer func() {
			for _, f := range s.flights {
				f.stop()
			}
		}()
		do(s)
	})
	return s
}

func newSimulation(t *testing.T, seed uint64, x setting, tracing bool) *simulation {
	s := &simulation{
		setting: x, t: t, tracing: tracing,
		rng:   rand.New(rand.NewPCG(seed, 0x51)),
		began: time.Now(),
		ids:   map[types.Snowflake]issue{},

		retired: map[int64]bool{},
	}
	s.store = simulatedStore{s: s, clock: simulatedClock{s: s, most: -1}}
	return s
}

// tail returns the end of the trace.
func (s *simulation) tail() string {
	return strings.Join(s.trace[max(0, len(s.trace)-60):], "\n")
}
