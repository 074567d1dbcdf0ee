package core

import (
	"fmt"
	"sync"
	"time"
)

// A Binding is how a Worker reaches its Generator. It is safe for concurrent use.
type Binding struct{ g *Generator }

// Layout returns the layout of the generator.
func (b *Binding) Layout() Layout { return b.g.layout }

// Datacenter returns the datacenter of the generator.
func (b *Binding) Datacenter() int64 { return b.g.datacenter }

// Reserve gives the generator a worker number and a stretch of time, from
// (inclusive) until (exclusive). The generator returns IDs of that worker whose
// ticks lie wholly in it. The reservation before is sealed, and returns no more
// IDs. The caller guarantees that nobody else has, had or will have an ID of this
// worker with a time in it.
//
// If the generator has already returned an ID with a later time than from, it
// begins above that. So its IDs increase across reservations. until may be at or
// before from. Then there is no ID until it is extended.
//
// Reserve refuses a worker outside the layout with a [*ValueError], and a generator
// that is closed with [ErrClosed]. It returns [ErrWorkerInUse] if another live
// generator of this process has a part of that time. That one has a fixed number,
// or a reservation of the same namespace (see [Worker]). The reservation before is
// sealed then too. If a generator that was closed has already returned an ID with a
// later time than from, this one begins above that.
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
	c := g.termConfig(worker)
	begin, limit := c.from(from), c.before(until)
	var last uint64
	if g.held != nil {
		last = g.held.seal()
	}
	e := &entry{identity{g.layout, g.datacenter, worker}, g.namespace, begin, limit}
	stop, err := e.enter()
	if err != nil {
		return nil, err
	}
	first := begin
	if last = max(last, stop); last > 0 {
		// One tick on, since in the same tick the worker number decides the order.
		first = max(first, last|c.mask+1)
	}
	return g.install(e, newReservedTerm(c, begin, first, limit)), nil
}

// Close ends the generator's IDs. Calls of Next and Fill return [ErrClosed], also
// those that wait. A Worker calls it when it will have no more numbers. The
// generator must still be closed; that, and a second Close, are harmless.
func (b *Binding) Close() { b.g.stop() }

// A Reservation is a worker number and the time for which a Generator has it. It
// is made by [Binding.Reserve], and is safe for concurrent use.
type Reservation struct {
	counter counter
	numbering
	changes *notifier
	entry   *entry // in the registry

	sealing sync.Once
	last    uint64 // the last number, once it is sealed
}

// A counter is what a Reservation needs of its term.
type counter interface {
	extend(limit uint64)
	seal() (last uint64)
	isSealed() bool
	newest() uint64
	reserved() (limit uint64)
}

// Extend moves the end of the reservation, to a later time only: an earlier one is
// ignored. The caller guarantees for the time up to there what it did for Reserve.
// It has no effect once the reservation is sealed.
//
// If another live generator of this process has a part of that time, the end stays
// and Extend returns [ErrWorkerInUse]. Then seal the reservation.
func (r *Reservation) Extend(until time.Time) error {
	limit := r.before(until)
	if err := r.entry.extend(limit); err != nil {
		return err
	}
	r.counter.extend(limit)
	r.changes.notify()
	return nil
}

// Seal ends the reservation: no ID of it is returned any more. Every ID that was
// has a time before end, a whole millisecond. Sealing twice is harmless.
func (r *Reservation) Seal() (end time.Time) {
	r.seal()
	return r.millisecond(r.lastReturned()+r.mask+1, time.Millisecond-1)
}

// lastReturned returns the last number that a caller can have, once r is sealed. One
// at the limit or above was taken by a caller that got an error.
func (r *Reservation) lastReturned() uint64 { return min(r.last, r.counter.reserved()-1) }

// seal returns the last number that was taken. It seals before it leaves the
// registry. In the other order, another generator could begin at the last number
// before this one has stopped.
func (r *Reservation) seal() (last uint64) {
	r.sealing.Do(func() {
		r.last = r.counter.seal()
		r.entry.leave(r.lastReturned())
		r.changes.notify()
	})
	return r.last
}

// Next returns the earliest time of the next ID, in whole milliseconds, rounded
// down. Under every policy but Backfill no later ID has an earlier time.
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
	c := g.termConfig(worker)
	e := &entry{identity: identity{g.layout, g.datacenter, worker}, limit: c.end}
	stop, err := e.enter()
	if err != nil {
		return err
	}
	g.fixed = true
	g.install(e, newTerm(c, stop))
	return nil
}

// termConfig returns what a term of the worker number has.
func (g *Generator) termConfig(worker int64) termConfig {
	return termConfig{newNumbering(g.layout, g.datacenter, worker), g.clock, g.settings, &g.changes}
}

// install makes t the term of g.
func (g *Generator) install(e *entry, t *term) *Reservation {
	g.waits.Add(g.term.Load().waits.Load())
	g.held = &Reservation{counter: t, numbering: t.numbering, changes: &g.changes, entry: e}
	g.term.Store(t)
	g.changes.notify()
	return g.held
}
