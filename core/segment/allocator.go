package segment

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/snowkey/snowkey/internal/base/wait"
	"github.com/snowkey/snowkey/types"
)

// An Allocator returns the numbers of one tag. New creates it; the zero value is not usable. It
// is safe for concurrent use and must not be copied.
type Allocator struct {
	// cur is a link of the chain, which callers move along next only. Two loads of it in one
	// call may return two links, which is harmless because each position belongs to one link.
	cur atomic.Pointer[link]

	config Config
	store  Store
	slots  chan struct{} // bounds the fetches of a Set; nil: unbounded
	wake   chan struct{}

	mu      sync.Mutex    // of what follows; no call that finds a number takes it
	changed chan struct{} // closed when anything here changes
	tail    *link
	wanted  int64 // numbers that callers wait for
	begun   int   // fetches that have begun
	outcome outcome
	final   error // the reason why no further range is added
	stop    context.CancelFunc
	stopped chan struct{} // closed when the goroutine has ended; nil: it was not started
	closing bool
	stats   Stats // without what changes between fetches
	low     bool  // the warning was logged
}

// An outcome is the result of the last fetch.
type outcome struct {
	fetch int // its number, as Allocator.begun
	err   error
}

// New returns an Allocator. It does no I/O and starts no goroutine; the first call of Next or
// Fill starts one, and Close ends it. A value of c that is out of range is a [*core.ValueError].
func New(store Store, c Config) (*Allocator, error) {
	if store == nil {
		return nil, invalid("store", "nil", "a Store")
	}
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	return newAllocator(store, c, nil), nil
}

func newAllocator(store Store, c Config, slots chan struct{}) *Allocator {
	a := &Allocator{config: c, store: store, slots: slots, wake: make(chan struct{}, 1)}
	a.tail = &link{got: Range{Last: -1}} // no numbers: the first call finds it used up, and Close gives none back
	a.cur.Store(a.tail)
	a.stats.Tag = c.Tag
	return a
}

// Next returns a number that no other call returns and that is greater than every number
// returned before this call began. It takes no lock, and allocates only if it waits or fails.
//
// When the Allocator holds no number, Next waits for the store, for Config.MaxWait at most and
// until ctx ends. On an error the number is 0. The error is ctx's, wrapped, or matches
// [ErrClosed], [ErrUnavailable], [ErrNoTag], [ErrExhausted] or [ErrWentBack].
func (a *Allocator) Next(ctx context.Context) (types.Snowflake, error) {
	if ctx.Err() != nil {
		return 0, a.ended(ctx)
	}
	l := a.cur.Load()
	i := l.taken.Add(1)
	if i <= l.mark.Load() {
		return l.number(i), nil
	}
	return a.slow(ctx, l, i)
}

// slow is Next for a position above the mark.
func (a *Allocator) slow(ctx context.Context, l *link, i int64) (types.Snowflake, error) {
	var waited time.Duration
	for {
		if i <= l.mark.Load() {
			return l.number(i), nil
		}
		if i <= l.size {
			a.pass(l)
			return l.number(i), nil
		}
		if err := a.await(ctx, l, 1, &waited); err != nil {
			return 0, err
		}
		l = a.cur.Load()
		i = l.taken.Add(1)
	}
}

// Fill sets ids to numbers as Next returns them, in increasing order but not necessarily
// consecutive. It sets all of them or none: on an error ids is zeroed, and the numbers that the
// call has taken are lost. An empty slice returns nil.
func (a *Allocator) Fill(ctx context.Context, ids []types.Snowflake) error {
	if len(ids) > 0 && ctx.Err() != nil {
		clear(ids)
		return a.ended(ctx)
	}
	var waited time.Duration
	for rest := ids; len(rest) > 0; {
		l := a.cur.Load()
		n, passed := l.fill(rest)
		if passed {
			a.pass(l)
		}
		if rest = rest[n:]; len(rest) == 0 {
			break
		}
		if err := a.await(ctx, l, int64(len(rest)), &waited); err != nil {
			clear(ids)
			return err
		}
	}
	return nil
}

// pass wakes the fetcher on behalf of a caller that has passed the mark, and spares later callers
// that.
func (a *Allocator) pass(l *link) {
	l.mark.Store(l.size)
	select {
	case a.wake <- struct{}{}:
	default: // it is awake
	}
}

func (a *Allocator) ended(ctx context.Context) error {
	return fmt.Errorf("segment: tag %s: %w", a.config.Tag, ctx.Err())
}

// await returns nil when the chain continues after l, which is used up. It asks the fetcher for
// n numbers, and adds to waited, the time that the call has waited for the store.
func (a *Allocator) await(ctx context.Context, l *link, n int64, waited *time.Duration) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	began, asked := time.Now(), a.begun
	defer func() { *waited += time.Since(began) }()
	a.wanted += n
	defer func() { a.wanted -= n }()
	for {
		if next := l.next.Load(); next != nil {
			a.cur.CompareAndSwap(l, next)
			return nil
		}
		if a.final != nil {
			return a.final
		}
		// An older fetch does not count, because the row may have been created since.
		if err := a.outcome.err; a.outcome.fetch > asked && atOnce(err) {
			return err
		}
		a.start()
		if a.changed == nil {
			a.changed = make(chan struct{})
		}
		changed := a.changed
		a.mu.Unlock()
		err := a.pause(ctx, changed, *waited+time.Since(began))
		a.mu.Lock()
		if err != nil && l.next.Load() == nil && a.final == nil {
			reason := a.outcome.err
			if reason == nil {
				reason = errors.New("it has not answered")
			}
			return fmt.Errorf("%w; tag %s: %w; the store: %w", ErrUnavailable, a.config.Tag, err, reason)
		}
	}
}

// pause wakes the fetcher and waits until changed is closed. It returns an error when ctx
// ends, or when the call has waited for MaxWait.
func (a *Allocator) pause(ctx context.Context, changed <-chan struct{}, used time.Duration) error {
	select {
	case a.wake <- struct{}{}:
	default:
	}
	var over <-chan time.Time // nil: never
	if bound := a.config.MaxWait; bound >= 0 {
		if used >= bound {
			return fmt.Errorf("waited %v", bound)
		}
		timer := time.NewTimer(bound - used)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-changed:
		return nil
	case <-over:
		return fmt.Errorf("waited %v", a.config.MaxWait)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// start starts the goroutine unless it is running. The caller holds mu.
func (a *Allocator) start() {
	if a.stopped != nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	a.stop, a.stopped = stop, make(chan struct{})
	go newFetcher(a).run(ctx, a.stopped)
}

// notify wakes all calls that wait in await. The caller holds mu.
func (a *Allocator) notify() {
	if a.changed != nil {
		close(a.changed)
		a.changed = nil
	}
}

// end makes err the result of all later calls and drops the numbers that are held. It returns
// the first link that it has sealed; those before it are used up. The caller holds mu.
func (a *Allocator) end(err error) *link {
	if a.final == nil || errors.Is(a.final, ErrExhausted) {
		a.final = err
	}
	first := a.cur.Load()
	for l := first; l != nil; l = l.next.Load() {
		l.seal()
	}
	a.notify()
	return first
}

// Close ends the goroutine and gives the unused end of the range back to the store, so that a
// restart leaves no gap. It waits for the store until ctx ends, and for three seconds at most
// even if the store ignores its context. It returns the store's error, or that the time was
// over, in which case the numbers that were held become a gap. A store that refuses because
// another process has taken a range since is not an error.
//
// Calls that wait, and all calls after Close, return ErrClosed; after ErrWentBack they continue
// to return that. A second Close returns nil when the goroutine has ended.
func (a *Allocator) Close(ctx context.Context) error {
	a.mu.Lock()
	var from *link // where the numbers to give back begin; nil: there are none
	if !a.closing {
		a.closing = true
		wentBack := errors.Is(a.final, ErrWentBack)
		// The seal comes before the numbers are given back. After it no call gets one.
		if sealed := a.end(ErrClosed); !wentBack {
			from = sealed
		}
	}
	stopped := a.stopped
	if a.stop != nil {
		a.stop()
	}
	a.mu.Unlock()

	if stopped == nil {
		return nil
	}
	// A program that ends calls Close with a context that does not.
	ctx, cancel := context.WithTimeout(ctx, takeTime)
	defer cancel()
	select {
	case <-stopped:
	case <-ctx.Done():
		return fmt.Errorf("segment: closing tag %s: %w; the store has not answered", a.config.Tag, ctx.Err())
	}
	if from == nil {
		return nil
	}
	g, ok := unused(from)
	if !ok {
		return nil
	}
	g.Tag = a.config.Tag
	_, err := wait.Call(ctx, &wait.Calls{Max: 1}, func() (struct{}, error) { return struct{}{}, a.store.GiveBack(ctx, g) }, nil)
	if err != nil {
		return fmt.Errorf("segment: tag %s: giving %d numbers back: %w", a.config.Tag, g.End-g.First, err)
	}
	return nil
}
