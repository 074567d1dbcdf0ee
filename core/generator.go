package core

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
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
	// worker number one after the other have the same RunAhead. After a generator
	// of this process with a larger one, Continue begins that much ahead of the
	// clock, and the other policies refuse until the clock is there.
	//
	// Defaults to 20 ms. Under Backfill at most 128 ticks, and no more by default.
	RunAhead time.Duration

	// Rollback says what to do when the wall clock has stepped back.
	//
	// Defaults to Continue.
	Rollback Rollback

	// RollbackWait is how long one call may wait for the clock under Wait, at most
	// 1 min; a Fill that the clock lets through in pieces may for each piece. With
	// another policy it must be zero.
	//
	// Defaults to 5 ms.
	RollbackWait time.Duration

	// SequenceStart says where the sequence begins in a new tick. Choose Random if
	// anything shards by id % n: with Zero, at low rates, nearly all IDs are
	// multiples of 1<<Layout.SequenceBits.
	//
	// Defaults to Zero.
	SequenceStart SequenceStart

	// SequenceStartBelow bounds the beginnings of Random and Rotating:
	// 1..1<<Layout.SequenceBits. With Zero it must be zero.
	//
	// Defaults to 1<<Layout.SequenceBits, which is best for every n.
	SequenceStartBelow int64

	// MaxLeaseWait is how long one call may wait for a leased worker number: for
	// its lease to be renewed when all the reserved time is used up, or replaced
	// when it was lost. Then the call fails with ErrReservationExhausted. A Fill
	// may wait that long for each piece that it takes. Negative means until the
	// call's context ends. A StaticWorker has no use for it.
	//
	// Defaults to 5 s.
	MaxLeaseWait time.Duration

	// MaxBehind bounds how far the time in an ID may be behind the clock, counted
	// from the end of the ID's tick. IDs fall behind when the clock has passed the
	// time that a leased worker number is reserved for, because its store is away.
	// Calls then wait for the lease, and fail with ErrReservationExhausted, instead
	// of using up what is left of that time. Negative means any distance. A
	// StaticWorker has no use for it.
	//
	// The clock is the generator's own. It follows the wall clock, but not to beyond
	// the reserved time in one step: then the wall clock is wrong, or the machine was
	// suspended, and IDs are behind the wall clock until the lease is renewed.
	//
	// Defaults to 1 s.
	MaxBehind time.Duration
}

// settings are what a counter takes from a Config, checked and with defaults.
type settings struct {
	ahead     int64 // run-ahead, ns, whole ticks
	rollback  rollback
	begin     sequenceStart
	leaseWait time.Duration // negative: any time
	behind    int64         // MaxBehind, ns
}

func (c *Config) settings() (settings, error) {
	unit := c.Layout.Unit
	s := settings{rollback: rollback{c.Rollback, c.RollbackWait}, leaseWait: c.MaxLeaseWait}
	if s.leaseWait == 0 {
		s.leaseWait = defaultLeaseWait
	}
	switch s.behind = int64(c.MaxBehind); {
	case s.behind == 0:
		s.behind = int64(defaultMaxBehind)
	case s.behind < 0:
		s.behind = math.MaxInt64
	}

	ahead := c.RunAhead
	switch {
	case ahead > maxRunAhead:
		return s, &ValueError{"Config.RunAhead", ahead.String(), "at most " + maxRunAhead.String()}
	case ahead > maxRingAhead*unit && c.Rollback == Backfill:
		return s, &ValueError{"Config.RunAhead", ahead.String(), "at most " + (maxRingAhead * unit).String() + " (128 ticks) under Backfill"}
	case ahead == 0 && c.Rollback == Backfill:
		ahead = min(defaultRunAhead, maxRingAhead*unit)
	case ahead == 0:
		ahead = defaultRunAhead
	}
	s.ahead = int64(max(ahead, 0).Truncate(unit))

	switch {
	case c.Rollback < Continue || c.Rollback > Backfill:
		return s, &ValueError{"Config.Rollback", c.Rollback.String(), "Continue, Refuse, Wait or Backfill"}
	case c.RollbackWait != 0 && c.Rollback != Wait:
		return s, &ValueError{"Config.RollbackWait", c.RollbackWait.String(), "0 unless Config.Rollback is Wait"}
	case c.RollbackWait < 0 || c.RollbackWait > maxRollbackWait:
		return s, &ValueError{"Config.RollbackWait", c.RollbackWait.String(), "0.." + maxRollbackWait.String()}
	case c.RollbackWait == 0:
		s.rollback.wait = defaultRollbackWait
	}

	all := int64(1) << c.Layout.SequenceBits
	below := c.SequenceStartBelow
	switch {
	case c.SequenceStart < Zero || c.SequenceStart > Rotating:
		return s, &ValueError{"Config.SequenceStart", c.SequenceStart.String(), "Zero, Random or Rotating"}
	case below != 0 && c.SequenceStart == Zero:
		return s, &ValueError{"Config.SequenceStartBelow", strconv.FormatInt(below, 10), "0 unless Config.SequenceStart is Random or Rotating"}
	case below < 0 || below > all:
		return s, &ValueError{"Config.SequenceStartBelow", strconv.FormatInt(below, 10), fmt.Sprintf("1..%d, or 0 for %[1]d", all)}
	case below == 0:
		below = all
	}
	s.begin = newSequenceStart(c.SequenceStart, uint64(below))
	return s, nil
}

// The default and the greatest Config.RunAhead. 20 ms is how long a sleeping
// goroutine was seen to oversleep on a machine whose processors are all busy
// (golang/go#53824): less loses rate under load.
const (
	defaultRunAhead = 20 * time.Millisecond
	maxRunAhead     = 10 * time.Second
)

// defaultLeaseWait is the default Config.MaxLeaseWait: enough for a lease that was
// lost to be replaced, and less than most callers' patience.
const defaultLeaseWait = 5 * time.Second

// defaultMaxBehind is the default Config.MaxBehind: what a reader of new rows, by
// id > last seen, would wait for late ones.
const defaultMaxBehind = time.Second

// maxAge bounds the distance from a layout's epoch to now, so that nanoseconds
// since the epoch fit an int64 (292 years) with room to go on.
const maxAge = 250 * 365 * 24 * time.Hour

// A Generator returns unique, increasing IDs. It is made by New (the zero value
// is of no use), is safe for concurrent use, and must not be copied. Use one per
// process and worker number, and share it.
type Generator struct {
	// One of them is set, once there is a worker number: what the IDs are taken
	// from at present. Worker number and count are always read through one load of
	// it. (Apart from each other, a caller that has the number of one lease could
	// take its count from the next, and repeat an ID of another process.)
	term atomic.Pointer[term]
	ring atomic.Pointer[ring] // under Backfill

	layout     Layout
	datacenter int64
	settings   settings
	clock      clock
	owner      Worker
	namespace  string // of the worker numbers, if they are leased
	fixed      bool   // the worker number is not leased

	installing sync.Mutex    // of held
	held       *Reservation  // the present one
	worker     atomic.Int64  // its number
	waits      atomic.Uint64 // of the counters before the present one
	changes    bell
	closed     atomic.Bool
	closing    atomic.Bool   // Close has been called
	shut       chan struct{} // closed when the first Close is done
	closeErr   error         // its result
}

// A counter is what a term and a ring are to their owner. (Next and Fill, which
// must not allocate, call the methods of either type.)
type counter interface {
	extend(limit uint64)
	seal() (last uint64)
	isSealed() bool
	newest() uint64
	reserved() (limit uint64)
	outdated(id types.Snowflake) bool
	lead() (wall int64, ahead, behind time.Duration, waits uint64)
}

// counter returns the present counter, nil if there has been none.
func (g *Generator) counter() counter {
	if t := g.term.Load(); t != nil {
		return t
	}
	if r := g.ring.Load(); r != nil {
		return r
	}
	return nil
}

// New returns a Generator. It does no I/O and starts no goroutine. With a static
// worker the first call of Next or Fill may wait for up to one tick: the numbers of
// the present tick, and of the run-ahead, may belong to an earlier process with the
// same worker.
//
// It refuses a Config whose values are out of range with a [*ValueError], a
// clock that is past the layout's last tick with [ErrTimeExhausted], and a worker
// that another live Generator of this process has with [ErrWorkerInUse], be their
// numbers fixed or leased. A Generator that is dropped without Close keeps its
// worker for the life of the process.
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
			"a lease of package lease, which gives each process a number of its own, or a number that no other " +
				"process has at the same time, as StaticWorker(n). There is no default"}
	}
	if err := checkBits("Config.Datacenter", config.Datacenter, l.DatacenterBits); err != nil {
		return nil, err
	}
	config.Layout = l
	settings, err := config.settings()
	if err != nil {
		return nil, err
	}

	c := newClock(l.Epoch, step)
	if w, ok := config.Worker.(interface{ WallClock() func() time.Time }); ok {
		c.now = w.WallClock()
	}
	wall, _ := c.both()
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

	g := &Generator{
		layout:     l,
		datacenter: config.Datacenter,
		settings:   settings,
		clock:      c,
		owner:      config.Worker,
		shut:       make(chan struct{}),
	}
	if w, ok := config.Worker.(interface{ Namespace() string }); ok {
		g.namespace = w.Namespace()
	}
	if err := g.owner.Bind(&Binding{g}); err != nil {
		return nil, err
	}
	return g, nil
}

// Next returns an ID that no call has returned before, greater than that of
// every call that returned before this one began (but see Backfill). It takes no
// lock, and allocates nothing unless it has to wait or fails.
//
// It waits only when the sequence of the present tick and of the run-ahead is
// used up: then until the clock allows the next tick, or ctx ends. With a leased
// worker number it also waits while there is none, or all the time that it is
// reserved for is used up: for Config.MaxLeaseWait at most. On an error the ID is
// 0: ctx's error, wrapped, [ErrClosed], [ErrTimeExhausted], with a leased number
// [ErrReservationExhausted], or, under another policy than Continue, a
// [*ClockBackError].
func (g *Generator) Next(ctx context.Context) (types.Snowflake, error) {
	var p patience
	err := ctx.Err()
	for err == nil {
		var id types.Snowflake
		if t := g.term.Load(); t != nil {
			id, err = t.next(ctx, &p)
		} else if r := g.ring.Load(); r != nil {
			id, err = r.next(ctx, &p)
		} else {
			err = errSealed
		}
		if err == nil {
			return id, nil
		}
		if errors.Is(err, errSealed) {
			err = g.await(ctx, &p)
		}
	}
	return 0, fmt.Errorf("core: no ID: %w", err)
}

// await waits for a counter that is not sealed, unless the generator is closed.
func (g *Generator) await(ctx context.Context, p *patience) error {
	for {
		changed := g.changes.listen()
		if g.closed.Load() {
			return ErrClosed
		}
		if c := g.counter(); c != nil && !c.isSealed() {
			return nil
		}
		if err := p.await(ctx, g.settings.leaseWait, ever, changed); err != nil {
			return err
		}
	}
}

// Fill sets every element of ids to a new ID, as Next would return them but at a
// fraction of the cost: a whole slice is one atomic operation as long as the
// clock allows it. The IDs increase along the slice (but see Backfill). They need
// not be consecutive.
//
// A slice for which the clock must go on is taken in pieces. If a piece has to wait
// for the lease, and the first one is too far behind then, Fill starts over.
//
// All or nothing: on an error, which is one of Next's, every element is 0 and the
// IDs that were taken are lost. An empty slice returns nil.
func (g *Generator) Fill(ctx context.Context, ids []types.Snowflake) error {
	for rest := ids; len(rest) > 0; {
		var p patience
		n, err := g.piece(ctx, rest, &p)
		if err != nil {
			clear(ids)
			return fmt.Errorf("core: no IDs for a slice of %s: %w", strconv.Itoa(len(ids)), err)
		}
		rest = rest[n:]
		if p.leased > 0 && g.counter().outdated(ids[0]) {
			rest = ids
		}
	}
	return nil
}

// piece fills the first n elements of ids, at least one.
func (g *Generator) piece(ctx context.Context, ids []types.Snowflake, p *patience) (n uint64, err error) {
	err = ctx.Err()
	for err == nil {
		var first uint64
		if t := g.term.Load(); t != nil {
			if first, n, err = t.reserve(ctx, uint64(len(ids)), p); err == nil {
				t.fill(ids[:n], first)
				return n, nil
			}
		} else if r := g.ring.Load(); r != nil {
			if first, n, err = r.reserve(ctx, uint64(len(ids)), p); err == nil {
				r.fill(ids[:n], first)
				return n, nil
			}
		} else {
			err = errSealed
		}
		if errors.Is(err, errSealed) {
			err = g.await(ctx, p)
		}
	}
	return 0, err
}

// Close ends the generator: later calls of Next and Fill fail with [ErrClosed],
// and calls that race with it return either an ID that nobody else has or that
// error. Then it closes its worker. A static number is free for another generator
// of this process from then on, which starts above every ID of this one; a leased
// one is given back to its store, which takes until ctx ends at most; if ctx has
// ended already it is not given back, and busy until the reserved time is over.
//
// Closing twice is harmless: the second call waits for the first, or for its own
// ctx, and returns the same. With a static worker that is nil, at once.
func (g *Generator) Close(ctx context.Context) error {
	if g.closing.CompareAndSwap(false, true) {
		g.closeErr = g.end(ctx)
		close(g.shut)
		return g.closeErr
	}
	select {
	case <-g.shut:
		return g.closeErr
	default:
	}
	select {
	case <-g.shut:
		return g.closeErr
	case <-ctx.Done():
		return fmt.Errorf("core: another Close is not done yet: %w", ctx.Err())
	}
}

// end stops g before the worker gives its number back: in the other order, the next
// owner of the number could begin at the last ID before this one has stopped.
func (g *Generator) end(ctx context.Context) error {
	g.stop()
	return g.owner.Close(ctx)
}

// stop ends the IDs of g. closed is set first: a caller that finds the seal is not to
// wait for another number.
func (g *Generator) stop() {
	g.installing.Lock()
	defer g.installing.Unlock()
	g.closed.Store(true)
	if g.held != nil {
		g.held.seal()
	}
	g.changes.ring()
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
	Worker     int64 // between two leases, that of the last

	// Ahead is how far the last number taken is ahead of the wall clock: up to the
	// run-ahead after a burst, and in a new generator, which takes what an earlier
	// one may have used; more after the wall clock has stepped back; 0 when it is
	// not. Once it is back under the run-ahead, a restart is safe again.
	Ahead time.Duration

	// Behind is how far the tick of the last number taken is behind the wall clock;
	// 0 when it is not. In a generator that is not asked for IDs it grows. In one
	// that is, it stays within a tick, unless the reserved time is over: see
	// Config.MaxBehind.
	Behind time.Duration

	// Reserved is the time that no ID reaches before the lease of the worker number
	// is renewed; zero if the number is not leased.
	Reserved time.Time

	// Waits counts the sleeps of callers that found no number below the ceiling:
	// a measure of how much more is asked for than the layout has.
	Waits uint64

	// Exhausted is when the layout's time bits run out. Next and Fill return
	// ErrTimeExhausted from then on, or from up to Ahead earlier.
	Exhausted time.Time

	// ExhaustedSoon is the alarm for that: less than five years are left. Moving
	// the keys of a running system to a new layout takes planning; wire it to
	// your monitoring.
	ExhaustedSoon bool
}

// alarmYears is how many years before the end Stats.ExhaustedSoon is raised.
const alarmYears = 5

// Stats returns the state of the generator. It does not disturb it.
func (g *Generator) Stats() Stats {
	s := Stats{
		Datacenter: g.datacenter,
		Worker:     g.worker.Load(),
		Exhausted:  g.layout.Exhausted(),
	}
	wall, _ := g.clock.both()
	if c := g.counter(); c != nil {
		wall, s.Ahead, s.Behind, s.Waits = c.lead()
		s.Waits += g.waits.Load()
		if !g.fixed {
			limit := c.reserved() >> g.layout.SequenceBits
			s.Reserved = g.layout.Epoch.Add(time.Duration(limit) * g.layout.Unit)
		}
	}
	now := g.layout.Epoch.Add(time.Duration(wall))
	s.ExhaustedSoon = !now.AddDate(alarmYears, 0, 0).Before(s.Exhausted)
	return s
}
