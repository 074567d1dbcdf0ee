package core

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/snowkey/snowkey/types"
)

// Config is what a Generator is made of. Only Worker has no default.
type Config struct {
	// Layout says what the bits of the IDs mean. All processes that write to one
	// table must agree on it.
	//
	// Defaults to Default().
	Layout Layout

	// Datacenter goes into the datacenter bits: 0..1<<Layout.DatacenterBits-1.
	//
	// Defaults to 0.
	Datacenter int64

	// Worker gives the number for the worker bits, which no other live process of
	// this datacenter may have. Required.
	Worker Worker

	// RunAhead is how far the time in an ID may be ahead of the clock. It lets a
	// burst take the numbers of the next milliseconds, and lets callers that wait
	// at the full rate sleep instead of spin. It counts in whole ticks, rounded
	// down. At most 10 s; negative means none, at the price of about 15 % of the
	// full rate.
	//
	// It is also how much time a new generator leaves free, because an earlier
	// process with the same worker could have used it: let processes that share a
	// worker number one after the other have the same RunAhead.
	//
	// Defaults to 20 ms.
	RunAhead time.Duration
}

// The default and the greatest Config.RunAhead. 20 ms is how long a sleeping
// goroutine was seen to oversleep on a machine whose processors are all busy
// (golang/go#53824): less loses rate under load.
const (
	defaultRunAhead = 20 * time.Millisecond
	maxRunAhead     = 10 * time.Second
)

// maxAge bounds the distance from a layout's epoch to now, so that nanoseconds
// since the epoch fit an int64 (292 years) with room to go on.
const maxAge = 250 * 365 * 24 * time.Hour

// A Generator returns unique, increasing IDs. It is made by New, is safe for
// concurrent use, and must not be copied. Use one per process and worker number,
// and share it.
type Generator struct {
	layout     Layout
	datacenter int64
	worker     int64
	identity   identity
	term       *term
	close      sync.Once
}

// New returns a Generator. It does no I/O and starts no goroutine. The first call
// of Next or Fill may wait for up to one tick: the numbers of the present tick,
// and of the run-ahead, may belong to an earlier process with the same worker.
//
// It refuses a Config whose values are out of range with a [*ValueError], a
// clock that is past the layout's last tick with [ErrTimeExhausted], and a worker
// that another live Generator of this process has with [ErrWorkerInUse].
func New(config Config) (*Generator, error) {
	return newGenerator(config, nil)
}

// newGenerator is New with a wall clock that step moves; nil leaves it alone.
func newGenerator(config Config, step func() time.Duration) (*Generator, error) {
	if config.Layout == (Layout{}) {
		config.Layout = Default()
	}
	l := config.Layout
	if err := l.Validate(); err != nil {
		return nil, err
	}
	l.Epoch = l.Epoch.UTC() // which drops the monotonic reading that Sub would prefer
	if config.Worker == nil {
		return nil, &ValueError{"Config.Worker", "missing",
			"a number that no other process has at the same time, as StaticWorker(n) from a setting " +
				"of the deployment: an environment variable, or the ordinal of a StatefulSet pod. There is no default"}
	}
	worker := config.Worker.number()
	if err := checkBits("Config.Datacenter", config.Datacenter, l.DatacenterBits); err != nil {
		return nil, err
	}
	if err := checkBits("Config.Worker", worker, l.WorkerBits); err != nil {
		return nil, err
	}
	runAhead := config.RunAhead
	switch {
	case runAhead == 0:
		runAhead = defaultRunAhead
	case runAhead < 0:
		runAhead = 0
	case runAhead > maxRunAhead:
		return nil, &ValueError{"Config.RunAhead", runAhead.String(), "at most " + maxRunAhead.String()}
	}

	c := newClock(l.Epoch, step)
	wall, monotonic := c.both()
	switch now := l.Epoch.Add(time.Duration(wall)); {
	case wall < 0:
		return nil, &ValueError{"Layout.Epoch", l.Epoch.Format(time.RFC3339Nano),
			"a time in the past; the clock shows " + now.Format(time.RFC3339Nano)}
	case wall > int64(maxAge):
		return nil, &ValueError{"Layout.Epoch", l.Epoch.Format(time.RFC3339Nano), "a time in the last 250 years"}
	case !now.Before(l.Exhausted()):
		return nil, fmt.Errorf("%w: Layout.Epoch %s and %d TimeBits of %s end at %s; the clock shows %s", ErrTimeExhausted,
			l.Epoch.Format(time.RFC3339Nano), l.TimeBits, l.Unit,
			l.Exhausted().Format(time.RFC3339Nano), now.Format(time.RFC3339Nano))
	}

	id := identityOf(l, config.Datacenter, worker)
	stop, err := enter(id)
	if err != nil {
		return nil, err
	}
	return &Generator{
		layout:     l,
		datacenter: config.Datacenter,
		worker:     worker,
		identity:   id,
		term:       newTerm(l, config.Datacenter, worker, runAhead, c, wall, monotonic, stop),
	}, nil
}

// Next returns an ID that no call has returned before, greater than that of
// every call that returned before this one began. It allocates nothing and takes
// no lock.
//
// It waits only when the sequence of the present tick and of the run-ahead is
// used up: then until the clock allows the next tick, or ctx ends. On an error
// the ID is 0: ctx's error, wrapped, [ErrClosed] or [ErrTimeExhausted].
func (g *Generator) Next(ctx context.Context) (types.Snowflake, error) {
	err := ctx.Err()
	if err == nil {
		var id types.Snowflake
		if id, err = g.term.next(ctx); err == nil {
			return id, nil
		}
	}
	return 0, fmt.Errorf("core: no ID: %w", err)
}

// Fill sets every element of ids to a new ID, as Next would return them but at a
// fraction of the cost: a whole slice is one atomic operation as long as the
// clock allows it. The IDs increase along the slice. They need not be
// consecutive.
//
// All or nothing: on an error, which is one of Next's, every element is 0 and the
// IDs that were taken are lost. An empty slice returns nil.
func (g *Generator) Fill(ctx context.Context, ids []types.Snowflake) error {
	for rest := ids; len(rest) > 0; {
		err := ctx.Err()
		var first, n uint64
		if err == nil {
			first, n, err = g.term.reserve(ctx, uint64(len(rest)))
		}
		if err != nil {
			clear(ids)
			return fmt.Errorf("core: no IDs for a slice of %s: %w", strconv.Itoa(len(ids)), err)
		}
		g.term.fill(rest[:n], first)
		rest = rest[n:]
	}
	return nil
}

// Close ends the generator: later calls of Next and Fill fail with [ErrClosed],
// and calls that race with it return either an ID that nobody else has or that
// error. Its worker number is then free for another generator of this process,
// which starts above every ID of this one.
//
// Closing twice is harmless. With a static worker Close does not wait, uses no
// ctx, and returns nil.
func (g *Generator) Close(context.Context) error {
	g.close.Do(func() { leave(g.identity, g.term.seal()) })
	return nil
}

// Layout returns the layout, which takes the generator's IDs apart.
func (g *Generator) Layout() Layout { return g.layout }

// Min returns the smallest ID of the tick that contains t; see [Layout.Min].
func (g *Generator) Min(t time.Time) types.Snowflake { return g.layout.Min(t) }

// Max returns the largest ID of the tick that contains t; see [Layout.Max].
func (g *Generator) Max(t time.Time) types.Snowflake { return g.layout.Max(t) }

// Stats is the state of a Generator at one moment.
type Stats struct {
	Datacenter int64
	Worker     int64

	// Ahead is how far the time of the next ID is ahead of the wall clock: up to
	// the run-ahead after a burst, more after the wall clock has stepped back, 0
	// when it is not.
	Ahead time.Duration

	// Waits counts the sleeps of callers that found no number below the ceiling:
	// a measure of how much more is asked for than the layout has.
	Waits uint64

	// Exhausted is when the layout's time bits run out.
	Exhausted time.Time
}

// Stats returns the state of the generator. It does not disturb it.
func (g *Generator) Stats() Stats {
	return Stats{
		Datacenter: g.datacenter,
		Worker:     g.worker,
		Ahead:      g.term.lead(),
		Waits:      g.term.waits.Load(),
		Exhausted:  g.layout.Exhausted(),
	}
}
