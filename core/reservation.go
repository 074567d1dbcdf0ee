package core

import (
	"fmt"
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
		return nil, fmt.Errorf("%w: it takes no more worker numbers", ErrClosed)
	}
	c := g.spanConfig(worker)
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
	return g.install(e, g.reservedCounter(c, begin, first, limit)), nil
}

// Close ends the generator's IDs: calls of Next and Fill, including those that wait, return
// [ErrClosed]. A Worker calls it when it will have no more numbers. The generator must still be
// closed by its owner, which is harmless, as is a second Close.
func (b *Binding) Close() { b.g.stop() }

// A Reservation is a worker number and the time for which a Generator has it. [Binding.Reserve]
// creates it. It is safe for concurrent use.
type Reservation struct {
	counter counter
	*span          // of counter
	entry   *entry // in the registry

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
	c := g.spanConfig(worker)
	e := g.entry(worker, &c.numbering, 0, c.end)
	stop, err := e.enter()
	if err != nil {
		return err
	}
	g.fixed = true
	g.install(e, g.fixedCounter(c, stop))
	return nil
}

// install makes c the counter of g.
func (g *Generator) install(e *entry, c counter) *Reservation {
	g.waits.Add(g.counter().common().waits.Load())
	g.held = &Reservation{counter: c, span: c.common(), entry: e}
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

// fixedCounter returns the counter of a worker number that is not leased.
func (g *Generator) fixedCounter(c spanConfig, stop uint64) counter {
	if c.rollback == Backfill {
		return newRing(c, stop)
	}
	return newTerm(c, stop)
}

// reservedCounter returns the counter of a leased worker number.
func (g *Generator) reservedCounter(c spanConfig, from, first, limit uint64) counter {
	if c.rollback == Backfill {
		return newReservedRing(c, from, first, limit)
	}
	return newReservedTerm(c, from, first, limit)
}

// spanConfig returns what all counters of the worker number share.
func (g *Generator) spanConfig(worker int64) spanConfig {
	return spanConfig{newNumbering(g.layout, g.datacenter, worker), g.clock, g.settings, &g.changes}
}
