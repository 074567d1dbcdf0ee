package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/snowkey/snowkey/internal/base/wait"
	"github.com/snowkey/snowkey/types"
)

// maxAge bounds the distance from a layout's epoch to now, so that nanoseconds since the epoch
// fit an int64, which holds 292 years.
const maxAge = 250 * 365 * 24 * time.Hour

// A Generator returns unique, increasing IDs. New creates one; the zero value is not usable. It
// is safe for concurrent use and must not be copied. Use one per process and worker number, and
// share it.
type Generator struct {
	// term is the present counter, a sealed one until there is a worker number. It holds both
	// the worker number and the count, and callers load it once for both: with two loads, a
	// caller could combine the number of one lease with the count of the next, and that ID may
	// be another's.
	//
	// Under Backfill ring has its place, and term stays nil.
	term atomic.Pointer[term]
	ring atomic.Pointer[ring]

	layout     Layout
	datacenter int64
	settings   settings
	clock      clock
	owner      Worker
	namespace  string // of the worker numbers, if they are leased
	fixed      bool   // the worker number is not leased

	installing sync.Mutex    // of held
	held       *Reservation  // the present one
	waits      atomic.Uint64 // of the counters before the present one
	changes    notifier
	closed     atomic.Bool
	closing    atomic.Bool   // Close has been called
	shut       chan struct{} // closed when the first Close is done
	closeErr   error         // its result
}

// New returns a Generator. It does no I/O and starts no goroutine. With a static worker the
// first call of Next or Fill may wait for up to one tick, because an earlier process with the
// same worker may have used the present tick and the run-ahead.
//
// A value of config that is out of range is a [*ValueError], a clock past the layout's last
// tick is [ErrTimeExhausted], and a worker that another live Generator of this process has,
// fixed or leased, is [ErrWorkerInUse]. A Generator that is dropped without Close keeps its
// worker for the life of the process.
func New(config Config) (*Generator, error) {
	l := cmp.Or(config.Layout, Default())
	if err := l.Validate(); err != nil {
		return nil, err
	}
	l.Epoch = l.Epoch.UTC() // which drops the monotonic reading that Sub would prefer
	if config.Worker == nil {
		return nil, invalid("Config.Worker", "missing",
			"a lease of package lease, which gives each process a number of its own, or a number that no other "+
				"process has at the same time, as StaticWorker(n). There is no default")
	}
	if err := checkBits("Config.Datacenter", config.Datacenter, l.DatacenterBits); err != nil {
		return nil, err
	}
	config.Layout = l
	settings, err := config.settings()
	if err != nil {
		return nil, err
	}

	c := newClock(l.Epoch, config.Worker.WallClock())
	wall, _ := c.both()
	switch now := l.Epoch.Add(time.Duration(wall)); {
	case wall < 0:
		return nil, invalid("Layout.Epoch", l.Epoch.Format(time.RFC3339Nano),
			"a time in the past; the clock shows "+now.Format(time.RFC3339Nano))
	case wall > int64(maxAge):
		return nil, invalid("Layout.Epoch", l.Epoch.Format(time.RFC3339Nano), "a time in the last 250 years")
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
		namespace:  config.Worker.Namespace(),
		shut:       make(chan struct{}),
	}
	g.use(g.newReserved(g.counterConfig(0), 0, 0, 0)).seal()
	if err := g.owner.Bind(&Binding{g}); err != nil {
		return nil, err
	}
	return g, nil
}

// Next returns an ID that no other call returns and that is greater than every ID returned
// before this call began (but see Backfill). It takes no lock, and allocates only if it waits
// or fails.
//
// Next waits for the next tick when the present tick and the run-ahead are used up and, with a
// leased worker number, for the lease for at most Config.MaxLeaseWait. It returns when ctx
// ends. On an error the ID is 0. The error is ctx's, wrapped, [ErrClosed] or
// [ErrTimeExhausted]; with a leased number also [ErrReservationExhausted], under a policy
// other than Continue a [*ClockBackError], and in a layout with ShardBits a [*ValueError] for a
// shard of ctx that it does not have.
func (g *Generator) Next(ctx context.Context) (types.Snowflake, error) {
	var w waited
	var at assignment
	err := ctx.Err()
	if g.layout.ShardBits > 0 && err == nil { // else nobody searches ctx, which can be a long chain
		at, err = g.assign(ctx)
	}
	for err == nil {
		var id types.Snowflake
		if t := g.term.Load(); t != nil {
			id, err = t.next(ctx, &w)
		} else {
			id, err = g.ring.Load().next(ctx, &w)
		}
		if err == nil {
			return id | at.shard, nil
		}
		if errors.Is(err, errSealed) {
			err = g.await(ctx, &w)
		}
	}
	return 0, noID(err)
}

// noID returns err as an error of this package.
func noID(err error) error {
	if strings.HasPrefix(err.Error(), "core: ") {
		return err
	}
	return fmt.Errorf("core: no ID: %w", err)
}

// await waits for a counter that is not sealed, unless the generator is closed.
func (g *Generator) await(ctx context.Context, w *waited) error {
	for {
		changed := g.changes.listen()
		if g.closed.Load() {
			return errClosed
		}
		if !g.counter().isSealed() {
			return nil
		}
		if err := w.await(ctx, g.settings.leaseWait, ever, changed); err != nil {
			return err
		}
	}
}

// Fill sets every element of ids to a new ID, at a fraction of the cost of as many calls of
// Next: a slice takes one atomic operation unless it has to wait for the clock. The IDs
// increase along the slice (but see Backfill) and need not be consecutive.
//
// A slice that has to wait for the clock is taken in pieces. If a piece waits for the lease for
// so long that the first one falls too far behind, Fill starts over. All the waits that make it
// start over take at most Config.MaxLeaseWait together.
//
// Fill fills all elements or none. Its errors are the same as those that Next returns; on an
// error every element is 0 and the IDs that were taken are lost. An empty slice returns nil.
func (g *Generator) Fill(ctx context.Context, ids []types.Snowflake) error {
	if len(ids) == 0 {
		return nil
	}
	at, err := g.assign(ctx)
	if err == nil {
		err = g.pieces(ctx, ids)
	}
	if err != nil {
		clear(ids)
		return noID(err)
	}
	at.apply(ids)
	return nil
}

// pieces fills ids, piece by piece.
func (g *Generator) pieces(ctx context.Context, ids []types.Snowflake) error {
	var wasted time.Duration // in waits for the lease that made it start over
	for rest := ids; len(rest) > 0; {
		w := waited{lease: wasted}
		n, err := g.piece(ctx, rest, &w)
		if err != nil {
			return err
		}
		rest = rest[n:]
		if w.lease > wasted && g.counter().outdated(ids[0]) {
			rest, wasted = ids, w.lease
		}
	}
	return nil
}

// piece fills the first n elements of ids, at least one.
func (g *Generator) piece(ctx context.Context, ids []types.Snowflake, w *waited) (n uint64, err error) {
	err = ctx.Err()
	for err == nil {
		var first uint64
		var of *reservedCounter
		if t := g.term.Load(); t != nil {
			of = &t.reservedCounter
			first, n, err = t.reserve(ctx, uint64(len(ids)), w)
		} else {
			r := g.ring.Load()
			of = &r.reservedCounter
			first, n, err = r.reserve(ctx, uint64(len(ids)), w)
		}
		if err == nil {
			of.fill(ids[:n], first)
			return n, nil
		}
		if errors.Is(err, errSealed) {
			err = g.await(ctx, w)
		}
	}
	return 0, err
}

// An assignment says on which shards the IDs of one call are: the next one on shard, and each
// further one by step on, modulo the mask.
type assignment struct{ shard, step, mask types.Snowflake }

// assign returns the assignment that ctx asks for, the zero value in a layout without shards.
//
// Without a request a call begins at a random shard, so that goroutines share no state. An odd step
// visits all shards in turn, which makes a slice as even as can be. One of five eighths of their
// number keeps a few IDs far apart: with a step of 1, a hundred rows would be in two of four
// databases that have a range of 64 shards each.
func (g *Generator) assign(ctx context.Context) (assignment, error) {
	bits := g.layout.ShardBits
	shard, ok, err := g.layout.ShardFrom(ctx)
	if ok || err != nil || bits == 0 {
		return assignment{shard: types.Snowflake(shard)}, err
	}
	mask := types.Snowflake(ones(bits))
	return assignment{types.Snowflake(rand.Int64()) & mask, (mask+1)*5/8 | 1, mask}, nil
}

// apply puts ids, which are on shard 0, on their shards.
func (a assignment) apply(ids []types.Snowflake) {
	if a == (assignment{}) {
		return
	}
	for i := range ids {
		ids[i] |= a.shard
		if a.step != 0 {
			a.shard = (a.shard + a.step) & a.mask
		}
	}
}

// Close ends the generator and then closes its worker. Later calls of Next and Fill fail with
// [ErrClosed]; calls that race with Close return either a unique ID or that error. A static
// number is then free for another generator of this process, which starts above every ID of
// this one. A leased number is given back to its store, until ctx ends at most; if ctx has
// already ended, the number stays reserved until its time is over.
//
// Closing twice is harmless: the second call waits for the first, or for its own ctx, and
// returns the same error.
func (g *Generator) Close(ctx context.Context) error {
	if g.closing.CompareAndSwap(false, true) {
		// In the other order, the next owner of the worker number could begin at the
		// last ID before g has stopped.
		g.stop()
		g.closeErr = g.owner.Close(ctx)
		close(g.shut)
	}
	if err := wait.For(ctx, g.shut); err != nil {
		return fmt.Errorf("core: another Close is not done yet: %w", err)
	}
	return g.closeErr
}

// stop ends the IDs of g. It sets closed first, so that a caller that finds the seal does not
// wait for another number.
func (g *Generator) stop() {
	g.installing.Lock()
	defer g.installing.Unlock()
	g.closed.Store(true)
	if g.held != nil {
		g.held.seal()
	}
	g.changes.notify()
}

// Worker returns Config.Worker. A program that did not acquire its lease itself finds it here,
// as a *lease.Lease, for readiness probes and metrics.
func (g *Generator) Worker() Worker { return g.owner }

// Layout returns the generator's layout, which takes its IDs apart.
func (g *Generator) Layout() Layout { return g.layout }

// Between returns the first and the last ID of a span of time; see [Layout.Between].
func (g *Generator) Between(from, until time.Time) (first, last types.Snowflake) {
	return g.layout.Between(from, until)
}

// Min returns the smallest ID of the tick that contains t; see [Layout.Min].
func (g *Generator) Min(t time.Time) types.Snowflake { return g.layout.Min(t) }

// Max returns the largest ID of the tick that contains t; see [Layout.Max].
func (g *Generator) Max(t time.Time) types.Snowflake { return g.layout.Max(t) }

// ShardBits returns Layout.ShardBits. Together with ShardFrom it lets package gormplugin and
// package sqlxhelper, which know no layout, keep the keys of a graph on one shard.
func (g *Generator) ShardBits() int { return g.layout.ShardBits }

// ShardFrom returns the shard that ctx asks for; see [Layout.ShardFrom].
func (g *Generator) ShardFrom(ctx context.Context) (shard int64, ok bool, err error) {
	return g.layout.ShardFrom(ctx)
}
