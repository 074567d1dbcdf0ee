package core

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// A Binding gives a Worker access to its Generator. It is safe for concurrent use.
type Binding struct{ g *Generator }

// Layout returns the layout of the generator.
func (b *Binding) Layout() Layout { return b.g.layout }

// Datacenter returns the datacenter of the generator.
func (b *Binding) Datacenter() int64 { return b.g.datacenter }

// Reserve gives the generator a worker number and a stretch of time, from (inclusive) until
// (exclusive). The generator returns IDs of that worker whose ticks lie wholly within it. The
// previous reservation is sealed and returns no more IDs. The caller guarantees that no other
// generator has, had or will have an ID of this worker with a time in that stretch.
//
// If the generator, or a closed one of this process with the same worker, has already returned
// an ID with a later time than from, the reservation begins above that ID, so that IDs increase
// across reservations. If until is at or before from, there is no ID until the reservation is
// extended.
//
// Reserve returns a [*ValueError] for a worker outside the layout, [ErrClosed] if the generator
// is closed, and [ErrWorkerInUse] if another live generator of this process, with a fixed
// number or in the same namespace (see [Worker]), has part of that time. In the last case, too,
// the previous reservation is sealed.
func (b *Binding) Reserve(worker int64, from, until time.Time) (*Reservation, error) {
	g := b.g
	if err := checkBits("worker", worker, g.layout.WorkerBits); err != nil {
		return nil, err
	}
	g.installing.Lock()
	defer g.installing.Unlock()
	if g.closed.Load() {
		return nil, fmt.Errorf("%w: it takes no more worker numbers", errClosed)
	}
	c := g.counterConfig(worker)
	begin, limit := c.from(from), c.before(until)
	var last uint64
	if g.held != nil {
		last = g.held.seal()
	}
	e := g.entry(worker, &c.numbering, begin, limit)
	stop, err := e.enter()
	if err != nil {
		return nil, err
	}
	first := begin
	if last = max(last, stop); last > 0 {
		// One tick on, since in the same tick the worker number decides the order.
		first = max(first, last|c.mask+1)
	}
	return g.install(e, g.newReserved(c, begin, first, limit)), nil
}

// Close ends the generator's IDs: calls of Next and Fill, including those that wait, return
// [ErrClosed]. A Worker calls it when it will have no more numbers. The generator must still be
// closed by its owner, which is harmless, as is a second Close.
func (b *Binding) Close() { b.g.stop() }

// A Reservation is a worker number and the time for which a Generator has it. [Binding.Reserve]
// creates it. It is safe for concurrent use.
type Reservation struct {
	counter          counter
	*reservedCounter        // of counter
	entry            *entry // in the registry

	sealing sync.Once
	last    uint64 // the last number, once it is sealed
}

// Extend moves the end of the reservation to a later time; an earlier one is ignored. The
// caller gives the same guarantee for the additional time as for Reserve. Extend has no effect
// on a sealed reservation.
//
// If another live generator of this process has part of that time, the end stays and Extend
// returns [ErrWorkerInUse]. The caller must then seal the reservation.
func (r *Reservation) Extend(until time.Time) error {
	limit := r.before(until)
	if err := r.entry.extend(limit); err != nil {
		return err
	}
	r.counter.extend(limit)
	r.changes.notify()
	return nil
}

// Seal ends the reservation, which returns no more IDs. All IDs that it has returned have times
// before end, which is a whole millisecond. Sealing twice is harmless.
func (r *Reservation) Seal() (end time.Time) {
	r.seal()
	return r.millisecond(r.lastReturned()+r.mask+1, time.Millisecond-1)
}

// lastReturned returns the last number that a caller can have, once r is sealed. Callers that
// took numbers at the limit or above it got an error.
func (r *Reservation) lastReturned() uint64 { return min(r.last, r.counter.reserved()-1) }

// seal returns the last number that was taken. It seals before it leaves the registry, because
// in the other order another generator could begin at the last number before this one has
// stopped.
func (r *Reservation) seal() (last uint64) {
	r.sealing.Do(func() {
		r.last = r.counter.seal()
		r.entry.leave(r.lastReturned())
		r.changes.notify()
	})
	return r.last
}

// Next returns the earliest time that the next ID can have, rounded down to whole milliseconds.
// Under every policy but Backfill no later ID has an earlier time.
func (r *Reservation) Next() time.Time {
	newest := r.counter.newest()
	if newest >= sealed {
		return r.Seal()
	}
	return r.millisecond(newest+1, 0)
}

// fix gives g a worker number that is not leased.
func (g *Generator) fix(worker int64) error {
	if err := checkBits("Config.Worker", worker, g.layout.WorkerBits); err != nil {
		return err
	}
	c := g.counterConfig(worker)
	e := g.entry(worker, &c.numbering, 0, c.end)
	stop, err := e.enter()
	if err != nil {
		return err
	}
	g.fixed = true
	g.install(e, g.newFixed(c, stop))
	return nil
}

// install makes c the counter of g.
func (g *Generator) install(e *entry, c counter) *Reservation {
	g.waits.Add(g.counter().common().waits.Load())
	g.held = &Reservation{counter: c, reservedCounter: c.common(), entry: e}
	g.use(c)
	g.changes.notify()
	return g.held
}

// counter returns the present counter.
func (g *Generator) counter() counter {
	if t := g.term.Load(); t != nil {
		return t
	}
	return g.ring.Load()
}

// use makes c the present counter, and returns it.
func (g *Generator) use(c counter) counter {
	switch c := c.(type) {
	case *term:
		g.term.Store(c)
	case *ring:
		g.ring.Store(c)
	}
	return c
}

// newFixed returns the counter of a worker number that is not leased.
func (g *Generator) newFixed(c counterConfig, stop uint64) counter {
	if c.rollback == Backfill {
		return newRing(c, stop)
	}
	return newTerm(c, stop)
}

// newReserved returns the counter of a leased worker number.
func (g *Generator) newReserved(c counterConfig, from, first, limit uint64) counter {
	if c.rollback == Backfill {
		return newReservedRing(c, from, first, limit)
	}
	return newReservedTerm(c, from, first, limit)
}

// counterConfig returns what all counters of the worker number share.
func (g *Generator) counterConfig(worker int64) counterConfig {
	return counterConfig{newNumbering(g.layout, g.datacenter, worker), g.clock, g.settings, &g.changes}
}

// The registry has every generator of this process, because two that share a layout, datacenter
// and worker would return the same IDs, and a new generator per request, test or package is the
// most common mistake in this field. It is the package's only mutable variable, since the
// process is the scope in which no two may exist.
//
// It also records where a generator stopped, so that the next one for the same worker starts
// above that even if the wall clock has stepped back meanwhile. This takes a few words per
// worker and namespace, which are never freed.
var registry = struct {
	sync.Mutex
	records map[identity]*record
}{records: map[identity]*record{}}

// An identity is what no two live generators may share. Its layout is a generator's, whose
// Epoch is in UTC without a monotonic reading, so that equal layouts are ==. It has no
// ShardBits, because generators that differ in them alone could return the same IDs.
type identity struct {
	layout             Layout
	datacenter, worker int64
}

func (g *Generator) identity(worker int64) identity {
	l := g.layout
	l.ShardBits = 0
	return identity{l, g.datacenter, worker}
}

// A record is the registry's state of one identity.
type record struct {
	live  []*entry          // of the reservations that are not sealed
	stops map[string]uint64 // the last number of those that are, by namespace
}

// An entry stands for a reservation: no other generator of its namespace may have a number in
// [first, limit). A number that is not leased has the whole layout.
//
// Generators of one identity may have different ShardBits. The numbers here are therefore those
// of a layout without: number n of a generator with shards stands for all of the 1<<ShardBits
// IDs that it could have become, n<<ShardBits and those that follow.
//
// Ranges are compared rather than workers alone, because a lease may move from one generator of
// a process to another. The store keeps their ranges apart, while the first generator learns of
// its loss later and may use up its own range until then.
type entry struct {
	identity
	namespace    string
	first, limit uint64
	shardBits    uint8 // of the generator
}

// entry returns the entry of a worker number and the numbers of c in [first, limit).
func (g *Generator) entry(worker int64, c *numbering, first, limit uint64) *entry {
	return &entry{g.identity(worker), g.namespace, first << c.shardBits, limit << c.shardBits, c.shardBits}
}

// collides reports whether e and another entry of its identity could return the same IDs. The
// empty namespace of numbers that are not leased overlaps all others.
func (e *entry) collides(other *entry) bool {
	return sameIDs(e.namespace, other.namespace) && e.first < other.limit && other.first < e.limit
}

func sameIDs(a, b string) bool { return a == b || a == "" || b == "" }

// check returns ErrWorkerInUse if a live entry collides with e. It requires the lock.
func (e *entry) check(r *record) error {
	for _, other := range r.live {
		if other != e && e.collides(other) {
			return fmt.Errorf("%w: datacenter %d, worker %d; share that generator, Close it first, or keep fixed and leased numbers apart",
				ErrWorkerInUse, e.datacenter, e.worker)
		}
	}
	return nil
}

// enter makes e live. It returns the last number of earlier generators, as a number of e's, or 0
// if there was none, or ErrWorkerInUse.
func (e *entry) enter() (last uint64, err error) {
	registry.Lock()
	defer registry.Unlock()
	r := registry.records[e.identity]
	if r == nil {
		r = &record{stops: map[string]uint64{}}
		registry.records[e.identity] = r
	}
	if err := e.check(r); err != nil {
		return 0, err
	}
	r.live = append(r.live, e)
	for namespace, stop := range r.stops {
		if sameIDs(namespace, e.namespace) {
			last = max(last, stop)
		}
	}
	return last >> e.shardBits, nil
}

// extend raises the limit of e, or returns ErrWorkerInUse.
func (e *entry) extend(limit uint64) error {
	registry.Lock()
	defer registry.Unlock()
	r := registry.records[e.identity]
	if !slices.Contains(r.live, e) {
		return nil // it is sealed
	}
	before := e.limit
	e.limit = max(e.limit, limit<<e.shardBits)
	if err := e.check(r); err != nil {
		e.limit = before
		return err
	}
	return nil
}

// leave ends e, last being the last number that was taken.
func (e *entry) leave(last uint64) {
	registry.Lock()
	defer registry.Unlock()
	r := registry.records[e.identity]
	r.live = slices.DeleteFunc(r.live, func(other *entry) bool { return other == e })
	r.stops[e.namespace] = max(r.stops[e.namespace], (last+1)<<e.shardBits-1)
}
