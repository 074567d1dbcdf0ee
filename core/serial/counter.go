package serial

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/snowkey/snowkey/internal/base/wait"
)

// A Store keeps counters, as package sqlserial does. It is safe for concurrent use.
type Store interface {
	// Define stores the definition of a series. If a different one is stored, the error is
	// [ErrDefinition] and shows both. If a new series could write a text of another series of its
	// Scope, the error is [ErrMeets].
	Define(ctx context.Context, s Series) error

	// Take takes count consecutive numbers of a period, or as many as it still has, and returns
	// the first. No other call gets them. The last number of a period is the second result of
	// [Series.Bounds]. A call that fails may have taken numbers, which are then lost.
	//
	// The error is [ErrNoSeries] for a series without a definition, [ErrSeriesFull] for a period
	// without a number, [ErrPeriodClosed] for a closed period, and [ErrBackdated] for a date before
	// the latest one of a Chronological series.
	Take(ctx context.Context, series, period string, at time.Time, count int64) (first int64, err error)
}

// A Counter returns the numbers of a series fast and with gaps, because it takes them from the
// store in blocks, in transactions of its own. A number that the caller does not use is a gap, and
// so is the rest of a block when the program ends, at most one block per process and period. A
// block is also lost if the outcome of its COMMIT is unknown. For a series without gaps see
// package sqlserial.
//
// A Counter holds blocks of the two latest periods that it was asked for, so that a number which
// is asked for shortly after the end of a period costs no request. Earlier periods are fetched
// from the store one number at a time.
//
// NewCounter creates it; the zero value is not usable. It is safe for concurrent use.
type Counter struct {
	store  Store
	series Series
	block  int64

	turn    chan struct{} // a mutex for calls of the store, whose Lock ends with a context
	defined bool          // guarded by turn

	mu     sync.Mutex // guards what follows; never held during a call of the store
	closed bool
	blocks [2]block // the later period first; writing needs turn too
	stats  Stats    // Fetches and Failures
}

// A block is the rest of the numbers of a period that were taken at once.
type block struct {
	period     string
	next, last int64 // none is left if next is greater
}

// maxBlock is the greatest block.
const maxBlock = math.MaxInt32

// NewCounter returns a Counter that takes block numbers at once, 1 to 1<<31-1. It does no I/O; the
// first call of Next defines the series. A Chronological series needs a block of 1, because
// several processes would use their blocks on different days.
func NewCounter(store Store, s Series, block int64) (*Counter, error) {
	if store == nil {
		return nil, invalid("store", "nil", "a Store")
	}
	if err := s.Validate(); err != nil {
		return nil, err
	}
	if block < 1 || block > maxBlock {
		return nil, invalid("block", strconv.FormatInt(block, 10), fmt.Sprintf("1 to %d", maxBlock))
	}
	if s.Chronological && block > 1 {
		return nil, invalid("block", strconv.FormatInt(block, 10), "1 for a chronological series")
	}
	c := &Counter{store: store, series: s, block: block, turn: make(chan struct{}, 1)}
	c.turn <- struct{}{}
	return c, nil
}

// Next returns a number of the period of a moment, greater than all numbers of the period that this
// Counter had returned before the call began. After an error it is the zero value. The error is
// the store's, or matches [ErrClosed] or ctx.Err().
//
// One call at a time asks the store, and other calls whose period has no number left wait for it.
// Numbers that the Counter holds do not wait.
func (c *Counter) Next(ctx context.Context, at time.Time) (Number, error) {
	period, err := c.series.PeriodOf(at)
	if err != nil {
		return Number{}, err
	}
	if err := ctx.Err(); err != nil {
		return Number{}, c.ended(err)
	}
	n, ok, err := c.held(period)
	if !ok && err == nil {
		n, err = c.fetch(ctx, period, at)
	}
	if err != nil {
		return Number{}, err
	}
	return c.series.Number(at, n)
}

// held returns the next number of the period's block, if one is left.
func (c *Counter) held(period string) (n int64, ok bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, false, fmt.Errorf("%w: series %s", ErrClosed, c.series.Name)
	}
	b := c.blockOf(period)
	if b == nil || b.next > b.last {
		return 0, false, nil
	}
	b.next++
	return b.next - 1, true, nil
}

// fetch takes a block from the store and returns its first number. Numbers of the period stay in
// order, because only the holder of turn takes any from the store.
func (c *Counter) fetch(ctx context.Context, period string, at time.Time) (int64, error) {
	if err := c.acquire(ctx); err != nil {
		return 0, err
	}
	defer c.release()
	if n, ok, err := c.held(period); ok || err != nil {
		return n, err // another call has fetched it meanwhile
	}
	n, err := c.request(ctx, period, at)
	c.note(err)
	return n, err
}

// request is fetch for the holder of turn.
func (c *Counter) request(ctx context.Context, period string, at time.Time) (int64, error) {
	if !c.defined {
		if err := c.store.Define(ctx, c.series); err != nil {
			return 0, err
		}
		c.defined = true
	}
	count := c.block
	if !c.keeps(period) {
		count = 1 // the rest of a block would have no place
	}
	n, err := c.store.Take(ctx, c.series.Name, period, at, count)
	if err != nil {
		return 0, err
	}
	_, last := c.series.Bounds()
	c.keep(block{period, n + 1, min(n+count-1, last)})
	return n, nil
}

// keeps reports whether there is a place for a block of the period.
func (c *Counter) keeps(period string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.blockOf(period) != nil || period >= c.blocks[1].period
}

// blockOf returns the block of a period, or nil. It requires mu.
func (c *Counter) blockOf(period string) *block {
	for i := range c.blocks {
		if b := &c.blocks[i]; b.last > 0 && b.period == period {
			return b
		}
	}
	return nil
}

// keep replaces the block of the same period, or the one of an earlier period. The texts of periods
// sort as the periods do.
func (c *Counter) keep(b block) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.blockOf(b.period)
	switch {
	case before != nil:
		*before = b
	case c.blocks[0].last == 0 || b.period > c.blocks[0].period:
		c.blocks[0], c.blocks[1] = b, c.blocks[0]
	case c.blocks[1].last == 0 || b.period > c.blocks[1].period:
		c.blocks[1] = b
	}
}

// Close makes all later calls fail with [ErrClosed] at once, and waits for the call that asks the
// store, or until ctx ends, whose error it then returns. The rest of the blocks is a gap. A second
// Close is harmless.
func (c *Counter) Close(ctx context.Context) error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	if err := c.acquire(ctx); err != nil {
		return err
	}
	c.release()
	return nil
}

// acquire takes turn, if it is free also after the end of ctx.
func (c *Counter) acquire(ctx context.Context) error {
	if err := wait.For(ctx, c.turn); err != nil {
		return c.ended(err)
	}
	return nil
}

func (c *Counter) release() { c.turn <- struct{}{} }

func (c *Counter) ended(err error) error {
	return fmt.Errorf("serial: series %s: %w", c.series.Name, err)
}
