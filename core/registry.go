package core

import (
	"fmt"
	"slices"
	"sync"
)

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
