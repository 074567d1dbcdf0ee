package core

import "time"

// Stats is the state of a Generator at one moment.
type Stats struct {
	Datacenter int64
	Worker     int64 // between two leases, that of the last

	// Ahead is how far the last number taken is ahead of the wall clock, or 0. After a burst,
	// and in a new generator, it is at most the run-ahead; after the wall clock has stepped
	// back it is more, and a restart is safe again once it is back under the run-ahead.
	Ahead time.Duration

	// Behind is how far the tick of the last number taken is behind the wall clock, or 0. It
	// grows while the generator is idle. A busy generator stays within a tick unless the
	// reserved time is over; see Config.MaxBehind.
	Behind time.Duration

	// Reserved is the end of the time that is reserved for a leased worker number. No ID has
	// this time or a later one before the lease is renewed. It is zero for a fixed number.
	Reserved time.Time

	// Waits counts the sleeps of callers that found no number below the ceiling.
	Waits uint64

	// Exhausted is when the layout's time bits run out. Next and Fill return
	// ErrTimeExhausted from then on, or from up to Ahead earlier.
	Exhausted time.Time

	// ExhaustedSoon reports that less than five years are left until Exhausted. Monitor it,
	// because moving a running system to a new layout takes planning.
	ExhaustedSoon bool
}

// alarmYears is how many years before the end Stats.ExhaustedSoon becomes true.
const alarmYears = 5

// Stats returns the state of the generator without disturbing it.
func (g *Generator) Stats() Stats {
	c := g.counter()
	of := c.common()
	s := Stats{
		Datacenter: g.datacenter,
		Worker:     g.layout.Parts(of.compose(0)).Worker,
		Waits:      of.waits.Load() + g.waits.Load(),
		Exhausted:  g.layout.Exhausted(),
	}
	wall, _ := g.clock.both()
	if last := c.newest(); last < sealed {
		s.Ahead, s.Behind = of.distance(last, wall)
	}
	if limit := c.reserved() >> of.countBits; limit > 0 && !g.fixed {
		s.Reserved = g.layout.Epoch.Add(time.Duration(limit) * g.layout.Unit)
	}
	now := g.layout.Epoch.Add(time.Duration(wall))
	s.ExhaustedSoon = !now.AddDate(alarmYears, 0, 0).Before(s.Exhausted)
	return s
}
