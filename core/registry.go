package core

import (
	"fmt"
	"sync"
	"time"
)

// The registry knows every generator of this process: two that share a layout,
// datacenter and worker would return the same IDs, and the mistake (a new
// generator per request, per test, per package) is the most common one in this
// field. It is the only mutable package variable here, because the process is
// what must not have two.
//
// After Close it remembers where a generator stopped, so that the next one for
// the same identity starts above it even if the wall clock has stepped back
// meanwhile. That is a few words per identity, for good.
var registry = struct {
	sync.Mutex
	generators map[identity]*record
}{generators: map[identity]*record{}}

// An identity is what two generators must not share.
type identity struct {
	epoch                                              int64 // ns, Unix time
	unit                                               time.Duration
	timeBits, datacenterBits, workerBits, sequenceBits int
	datacenter, worker                                 int64
}

func identityOf(l Layout, datacenter, worker int64) identity {
	return identity{
		l.Epoch.UnixNano(), l.Unit,
		l.TimeBits, l.DatacenterBits, l.WorkerBits, l.SequenceBits,
		datacenter, worker,
	}
}

// A record is what the registry keeps of one identity.
type record struct {
	live bool
	stop uint64 // the last number of the generator that was closed last
}

// enter marks id as live and returns the last number of the generator before, 0
// when this is the first.
func enter(id identity) (stop uint64, err error) {
	registry.Lock()
	defer registry.Unlock()
	r := registry.generators[id]
	if r == nil {
		registry.generators[id] = &record{live: true}
		return 0, nil
	}
	if r.live {
		return 0, fmt.Errorf("%w: datacenter %d, worker %d; share that generator, or Close it first",
			ErrWorkerInUse, id.datacenter, id.worker)
	}
	r.live = true
	return r.stop, nil
}

// leave marks id as free, stop being the last number of its generator.
func leave(id identity, stop uint64) {
	registry.Lock()
	defer registry.Unlock()
	*registry.generators[id] = record{stop: stop}
}
