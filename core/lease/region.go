package lease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/internal/base/wait"
)

// A Region assigns the datacenter number to the region of a process, so that no two regions have
// one. A region is all processes whose leases are in one store, its own; it has one number, which
// it keeps for good. Acquire asks the store that all regions reach for a number once, and then the
// region's own store remembers it, so that a region that is cut off goes on, and starts processes
// too.
//
//	l, err := lease.Acquire(ctx, own, lease.Config{
//		Namespace: "shop",
//		Layout:    layout, // with DatacenterBits
//		Region:    &lease.Region{Name: "eu-west-1", Store: common},
//	})
//	…
//	gen, err := core.New(core.Config{Layout: layout, Datacenter: l.Status().Datacenter, Worker: l})
//
// A number is never taken from a region because time has passed: one that is cut off lives. Only
// an operator takes it; see "Regions" in docs/workers.md. About once a minute one process of the
// region marks the assignment in both stores anew, which finds what a copy of the region's store
// would otherwise hide: of the region and its copy, the one that comes second finds a mark that is
// not its own. Its leases end then, and no process of it gets a new one.
//
// Uniqueness across regions rests on these conditions:
//
//   - The common store keeps what it has acknowledged. After it was restored, wait until each
//     region has run for two minutes with it before a new region starts.
//   - A copy of a region's store has a Name of its own, or reaches the common store. A copy with
//     the same name that starts before the next mark runs until then, and one that is cut off runs
//     until it no longer is. Processes that end within a minute and a half make no marks.
//   - An operator takes a number from a region only when all its processes have ended.
//
// Region is experimental.
type Region struct {
	// Name names the region, in 1..40 of the characters a-z A-Z 0-9 . _ -. It never changes.
	// The region's own store keeps it and refuses every other, because a process that gives
	// another name runs with a copy of another region's store.
	Name string

	// Store is the one that all regions reach, which may be the own store of one of them. It
	// must be a [leasestore.Lister], and neither store may be one that LosesWrites.
	Store Store

	// Datacenters restricts the region to these numbers. A region that has made IDs with a number
	// of its own choice names that one here. Each is in 0..1<<Layout.DatacenterBits-1.
	//
	// Defaults to all.
	Datacenters []int64
}

// The rows. In the common store the space "<namespace>.regions" has a row for each datacenter
// number. In a region's own store the space "<namespace>.home" has one row, the home, whose Holder
// is "<number> <name>". They have names of their own because both may be in one store. All are
// ordinary rows of a [leasestore.Store], so every store can keep them. What makes them last is a
// claim with the window leasestore.Retired, after which a row counts as retired: no claim takes
// it, whatever the time is.
//
// An Owner is the token of one assignment, the same in both rows. A Nonce is a mark, and Until is
// its version. The home gets a new mark first and the number's row then copies it, so the region
// knows every mark that it may have written, however it crashes. A mark may be copied over an
// unknown one only if its version is greater. Of two copies of a home, each gives its next mark
// the version that follows the one they have in common, so the second is not greater and finds
// out: with times for versions, or without them, the two would write over each other for ever.
//
// A home that was claimed and not marked since is a proposal. It becomes the region's number only
// when the number's row has its owner. The other way round, a region that is cut off in between
// would go on with what another region has. The home comes first nonetheless, so that two
// processes that start at once propose one number, and no crash leaves a number taken to which no
// home refers.
//
// region_model_test.go visits all states of this, and shows what each rule is for.

const (
	regionsSuffix = ".regions"
	homeSuffix    = ".home"
	maxRegion     = 40

	// regionEvery is how often on average a process looks at its home. If it has the mark of
	// last time it gets another, so that one process of the region marks it in each such time,
	// however many there are.
	regionEvery = time.Minute

	// regionWait is how long the common store has for an answer if the home has its number, and
	// regionLimit how long all takes otherwise.
	regionWait  = 5 * time.Second
	regionLimit = 20 * time.Second
)

// A home is a parsed row of a region's own store.
type home struct {
	leasestore.Row
	number int64
	name   string
}

// homeOf parses a home in a layout with so many numbers.
func homeOf(row leasestore.Row, numbers int64) (h home, err error) {
	h.Row = row
	if row.Owner == "" {
		return h, nil
	}
	_, err = fmt.Sscanf(row.Holder, "%d %s", &h.number, &h.name)
	if err != nil || h.holder() != row.Holder || h.number < 0 || h.number >= numbers {
		return h, fmt.Errorf("lease: the home of the region has the holder %q: want a number in 0..%d and a name", row.Holder, numbers-1)
	}
	return h, nil
}

func (h *home) holder() string { return fmt.Sprintf("%d %s", h.number, h.name) }

// proposed reports whether the home has no number yet, or one that may still be another region's.
func (h *home) proposed() bool { return h.Owner == "" || h.Nonce == h.Owner }

// A regionStep is what to do about a home and the rows of the numbers.
type regionStep int

const (
	settled    regionStep = iota // nothing: the home has its number, and both rows have the same mark
	propose                      // claim the home, for a number
	take                         // claim the number's row with the owner and mark of the home
	markHome                     // give the home a new mark
	markNumber                   // copy it to the number's row
	withdraw                     // release the home: another region has the number that it proposes
)

// step decides what comes next, from rows that were there at one moment. The number is the home's,
// or the one to propose. free reports whether the common store can give a row to a claim.
func (r *Region) step(h home, rows []leasestore.Row, free func(leasestore.Row) bool) (do regionStep, number int64, err error) {
	if h.Owner == "" {
		return r.choose(rows, free)
	}
	if err := r.matches(h); err != nil {
		return 0, 0, err
	}
	row := rows[h.number]
	ours := row.Owner == h.Owner
	switch {
	case ours && row.Nonce == h.Nonce && h.proposed():
		do = markHome
	case ours && row.Nonce == h.Nonce:
		do = settled
	case ours && row.Until < h.Until:
		do = markNumber
	case ours:
		err = r.refused(h.number, "its own store does not know the mark of the common store: it is a copy of the region's store, or it was restored")
	case h.proposed() && !free(row):
		do = withdraw
	case h.proposed() || row == leasestore.Row{Worker: h.number}: // the common store has lost it
		do = take
	case row.Owner == "":
		err = r.refused(h.number, "an operator has freed the number")
	default:
		err = r.refused(h.number, fmt.Sprintf("the common store has given the number to %q", row.Holder))
	}
	return do, h.number, err
}

// matches returns an error if the region's own store is another region's, by its home.
func (r *Region) matches(h home) error {
	switch {
	case h.name != r.Name:
		return r.refused(h.number, fmt.Sprintf("its own store is that of region %q: want that name, or, if the store is a copy, a home that was freed", h.name))
	case !r.permits(h.number):
		return r.refused(h.number, fmt.Sprintf("Config.Region.Datacenters is %d", r.Datacenters))
	}
	return nil
}

func (r *Region) permits(number int64) bool {
	return r.Datacenters == nil || slices.Contains(r.Datacenters, number)
}

// choose proposes the first number that was never used, or else the first that is free.
func (r *Region) choose(rows []leasestore.Row, free func(leasestore.Row) bool) (do regionStep, number int64, err error) {
	number = -1
	for _, row := range rows {
		switch {
		case row.Owner != "" && row.Holder == r.Name:
			return 0, 0, r.refused(row.Worker, "a region of that name has it already, with another store of its own: want another name, or, if that store is gone, a number that was freed")
		case !r.permits(row.Worker) || !free(row):
		case number < 0 || row.Epoch == 0 && rows[number].Epoch > 0:
			number = row.Worker
		}
	}
	if number < 0 {
		return 0, 0, r.refused(number, "every number that it may have is taken")
	}
	return propose, number, nil
}

func (r *Region) refused(number int64, problem string) error {
	return &RegionError{Region: r.Name, Datacenter: number, Problem: problem}
}

// A regional obtains and keeps the number of a lease's region.
type regional struct {
	*Region
	own     Store
	config  *Config
	home    leasestore.Space
	numbers leasestore.Space
	skew    leasestore.Millis

	refusal atomic.Pointer[RegionError] // nil: none

	busy    chan struct{}    // full while a process settles, once at a time; no Mutex, as waits end with their context
	leases  leasestore.Space // with the datacenter once joined
	joined  bool
	mark    string // of the home when it was settled last
	failing bool   // the last time
}

// withRegion prepares the region of Config.Region, if any.
func (l *Lease) withRegion() error {
	c := &l.config
	if c.Region == nil {
		return nil
	}
	_, lists := l.store.(leasestore.Lister)
	_, fences := l.store.(leasestore.Fencer)
	switch {
	case !lists || !fences:
		return invalid("store", fmt.Sprintf("a %T", l.store), "a store with the methods Rows and Fence, for Config.Region")
	case l.store.LosesWrites():
		return invalid("store", fmt.Sprintf("a %T", l.store), "a store that does not lose writes, for Config.Region: it would forget the number")
	}
	layout := Fingerprint(c.Layout) + leasestore.RegionsMark
	l.region = &regional{
		Region:  c.Region,
		own:     l.store,
		busy:    make(chan struct{}, 1),
		config:  c,
		home:    leasestore.Space{Namespace: c.Namespace + homeSuffix, Workers: 1, Layout: layout},
		numbers: leasestore.Space{Namespace: c.Namespace + regionsSuffix, Workers: 1 << c.Layout.DatacenterBits, Layout: layout},
		skew:    l.protocol.settings.Skew,
		leases:  l.protocol.settings.Space,
	}
	l.status.Datacenter = -1
	return nil
}

// checkRegion returns why a request must not be sent. A claim is given the number of the region.
func (l *Lease) checkRegion(ctx context.Context, a action) error {
	switch {
	case l.region == nil:
		return nil
	case a.claim == nil && l.region.refusal.Load() != nil:
		return a.renewal.Lost(regionLost)
	case a.claim == nil:
		return nil
	}
	number, err := l.region.join(ctx)
	if err != nil {
		return err
	}
	if l.status.Datacenter < 0 { // the first time, before anything else knows of the lease
		l.mu.Lock()
		l.status.Datacenter, l.config.Datacenter = number, number
		l.mu.Unlock()
		l.config.Logger = l.config.Logger.With("datacenter", number)
		l.protocol.settings.Space.Datacenter = number
	}
	a.claim.Space.Datacenter, a.claim.Now = number, leasestore.MillisOf(l.config.now())
	return nil
}

// regionLost is why a lease ends whose region is refused.
const regionLost leasestore.Reason = "its region may not use the datacenter number any more"

// join returns the datacenter number of the region, which it obtains if there is none. It comes
// before each claim of a lease.
func (r *regional) join(ctx context.Context) (int64, error) {
	number, err := r.settle(ctx, false)
	r.note(err)
	return number, err
}

// keep looks after the number until ctx ends.
func (r *regional) keep(ctx context.Context) {
	_, random := luck()
	for wait.Sleep(ctx, regionEvery/2+time.Duration(random()*float64(regionEvery))) == nil {
		if _, err := r.settle(ctx, true); r.note(err) {
			r.config.Logger.Error("lease: the region is refused", "error", err)
		}
	}
}

// note keeps a refusal until the region has its number again, and reports whether it is the first.
// Any other error leaves open whether the region still has it.
func (r *regional) note(err error) (first bool) {
	var refusal *RegionError
	if !errors.As(err, &refusal) && err != nil {
		return false
	}
	before := r.refusal.Swap(refusal)
	return before == nil && refusal != nil
}

// settle takes steps until the region has its number, and returns it. To keep it, it marks a home
// that still has the mark of last time.
func (r *regional) settle(ctx context.Context, keep bool) (int64, error) {
	select {
	case r.busy <- struct{}{}:
		defer func() { <-r.busy }()
	case <-ctx.Done():
		return 0, fmt.Errorf("lease: region %q: %w", r.Name, ctx.Err())
	}
	ctx, cancel := context.WithTimeout(ctx, regionLimit)
	defer cancel()
	var last sight
	var failed error // the last step
	for {
		s, err := r.look(ctx)
		if err != nil {
			return 0, r.failed(err)
		}
		do, number, err := r.next(s)
		switch {
		case err != nil:
			return 0, err
		case failed != nil && s.home == last.home && slices.Equal(s.rows, last.rows):
			return 0, r.failed(failed) // as it would again
		case do == settled && keep && s.away == nil && s.home.Nonce == r.mark:
			do = markHome
		case do == settled:
			r.settled(s)
			return number, nil
		}
		last, failed = s, r.do(ctx, do, number, s)
	}
}

// A sight is what was there at one moment.
type sight struct {
	home home
	rows []leasestore.Row  // of the numbers
	now  leasestore.Millis // the clock of the common store
	away error             // why there are no rows, although the home has its number; nil: there are
}

// look reads the rows of the numbers between two looks at the home. Every write changes the nonce,
// so if the home has not changed, both are of one moment.
func (r *regional) look(ctx context.Context) (s sight, err error) {
	for before := false; ; before = true {
		homes, _, err := r.own.(leasestore.Lister).Rows(ctx, r.home)
		if err != nil {
			return s, err
		}
		row := leasestore.Row{}
		if len(homes) > 0 { // otherwise there is none yet
			row = homes[0]
		}
		if before && row == s.home.Row {
			return s, nil
		}
		if s.home, err = homeOf(row, r.numbers.Workers); err != nil {
			return s, err
		}
		has := !s.home.proposed()
		if s.rows, s.now, err = r.read(ctx, has); err != nil && (!has || errors.Is(err, leasestore.ErrLayout)) {
			return s, err
		}
		s.away = err
	}
}

// read returns the rows of the numbers, those that were not made yet too. It does not wait long
// if the region has a number.
func (r *regional) read(ctx context.Context, has bool) ([]leasestore.Row, leasestore.Millis, error) {
	if has {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, regionWait)
		defer cancel()
	}
	made, now, err := r.Store.(leasestore.Lister).Rows(ctx, r.numbers)
	rows := make([]leasestore.Row, r.numbers.Workers)
	for i := range rows {
		rows[i].Worker = int64(i)
	}
	for _, row := range made {
		if row.Worker >= r.numbers.Workers {
			return nil, 0, &leasestore.LayoutError{Namespace: r.numbers.Namespace, Stored: fmt.Sprintf("the datacenter number %d", row.Worker), Own: r.numbers.Layout}
		}
		rows[row.Worker] = row
	}
	return rows, now, err
}

// next decides what comes next.
func (r *regional) next(s sight) (do regionStep, number int64, err error) {
	h := &s.home
	switch {
	case r.joined && (h.proposed() || h.number != r.leases.Datacenter):
		return 0, 0, r.refused(r.leases.Datacenter, "the home of its own store was freed while this process ran; restart the process")
	case s.away != nil:
		if refusal := r.refusal.Load(); refusal != nil { // only the common store can take it back
			return 0, 0, refusal
		}
		return settled, h.number, r.matches(*h)
	}
	return r.step(*h, s.rows, func(row leasestore.Row) bool { return row.Owner == "" && row.Until <= s.now+r.skew })
}

// do takes a step. What has changed since s makes the store refuse it.
func (r *regional) do(ctx context.Context, do regionStep, number int64, s sight) (err error) {
	h, row := &s.home, leasestore.Row{}
	if s.rows != nil {
		row = s.rows[number]
	}
	now := leasestore.MillisOf(r.config.now())
	switch do {
	case propose:
		t := token()
		_, err = r.own.Claim(ctx, leasestore.Claim{
			Space: r.home, Owner: t, Nonce: t, Holder: (&home{number: number, name: r.Name}).holder(),
			Window: leasestore.Retired, Now: now,
			Skew: leasestore.Retired / 2, // free means released, whatever the time is
		})
	case take:
		_, err = r.Store.Claim(ctx, leasestore.Claim{
			Space: r.numbers, Only: []int64{number}, Owner: h.Owner, Nonce: h.Nonce, Holder: r.Name,
			Window: leasestore.Retired, Now: now, Skew: r.skew,
		})
	case markHome:
		if h.proposed() && row.Epoch > 1 {
			// Another region had the number. All its IDs are before the moment at which that was
			// freed, and the claim has raised Until from there.
			leases := r.leases
			leases.Datacenter = number
			err = r.own.(leasestore.Fencer).Fence(ctx, leasestore.Fencing{Space: leases, Nonce: token(), Until: row.Until - leasestore.Retired})
			if err != nil {
				return err
			}
		}
		_, err = r.own.Renew(ctx, renewal(r.home, h.Row, token(), max(h.Until, row.Until)+1))
	case markNumber:
		_, err = r.Store.Renew(ctx, renewal(r.numbers, row, h.Nonce, h.Until))
	case withdraw:
		err = r.own.Release(ctx, leasestore.Release{Space: r.home, Epoch: h.Epoch, Owner: h.Owner, Known: []string{h.Nonce}, Nonce: token()})
	}
	return err
}

// renewal returns one that gives a row a mark and its version.
func renewal(s leasestore.Space, row leasestore.Row, mark string, version leasestore.Millis) leasestore.Renewal {
	return leasestore.Renewal{
		Space: s, Worker: row.Worker, Epoch: row.Epoch, Owner: row.Owner, Known: []string{row.Nonce}, Nonce: mark, Until: version,
	}
}

// settled keeps what was seen, and reports a common store that is away, or no longer.
func (r *regional) settled(s sight) {
	r.joined, r.leases.Datacenter, r.mark = true, s.home.number, s.home.Nonce
	if s.away != nil {
		_ = r.failed(s.away)
	} else if r.failing {
		r.failing = false
		r.config.Logger.Info("lease: the datacenter number of the region is confirmed again")
	}
}

// failed reports a failure unless the last time was one too, and returns it with the region's name.
func (r *regional) failed(err error) error {
	if !r.failing && r.joined {
		r.config.Logger.Warn("lease: the datacenter number of the region is not confirmed; the region goes on with it", "error", err)
		r.failing = true
	}
	return failed(fmt.Sprintf("region %q", r.Name), err)
}
