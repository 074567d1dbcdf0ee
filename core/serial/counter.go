package serial

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"sync"
	"time"
)

// A Store keeps counters. Package sqlserial has one. It is safe for concurrent use.
type Store interface {
	// Define stores the definition of a series. If another one is stored the error is
	// [ErrDefinition], and shows both. If the texts of a new one may be those of another
	// series, it is [ErrMeets], see [Series.Meets].
	Define(ctx context.Context, s Series) error

	// Take takes count numbers of a period, or as many as it still has, and returns the
	// first. They follow each other, and nobody else gets them. The caller knows how many
	// they are from [Series.Bounds]. An error may have taken numbers, which are lost.
	//
	// A series without definition is [ErrNoSeries]. A period without a number is
	// [ErrSeriesFull], one that is closed [ErrPeriodClosed]. A Chronological series keeps
	// the latest at, and refuses an earlier date by [ErrBackdated].
	Take(ctx context.Context, series, period string, at time.Time, count int64) (first int64, err error)
}

// A Counter hands out the numbers of a series fast, and with gaps: it takes them from the
// store in blocks, in transactions of its own. A number that the caller does not use is a
// gap, and so is the rest of a block when the program ends. That is at most one block per
// process and period. A block is also lost if the outcome of its COMMIT is unknown. For a
// series without gaps see package sqlserial.
//
// It keeps blocks of the two latest periods that it was asked for, so a number that is a
// bit late finds its period. What is earlier is taken from the store one by one.
//
// Use [NewCounter]. It is safe for concurrent use.
type Counter struct {
	store  Store
	series Series
	block  int64

	turn    chan struct{} // holds a token while nobody asks the store; a mutex knows no context
	defined bool          // belongs to who has the token

	mu     sync.Mutex // guards what follows; never held during a call of the store
	closed bool
	blocks [2]block // the later period first; only who has the token puts one there
}

// A block is what is left of the numbers of a period that were taken at once.
type block struct {
	period     string
	next, last int64 // none is left if next is greater
}

// maxBlock is how many numbers a [Counter] takes at most at once.
const maxBlock = math.MaxInt32

// NewCounter returns a Counter that takes so many numbers at once: 1 to 1<<31-1. It does
// no I/O; the first call of Next defines the series. A Chronological series needs a block
// of 1: several processes would use their blocks on different days.
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

// Next returns a number of the period of a moment. It is larger than those of the period
// that this Counter had returned when the call began. After an error it is the zero value.
// The errors are those of the store, [ErrClosed], and that of ctx.
//
// One call at a time asks the store, until its ctx ends, and others whose period has no
// number left wait for it. Numbers that the Counter holds do not wait.
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

// fetch takes a block from the store, and returns its first number. While it has the
// token, numbers of the period do not come from elsewhere: so they stay in order.
func (c *Counter) fetch(ctx context.Context, period string, at time.Time) (int64, error) {
	if err := c.acquire(ctx); err != nil {
		return 0, err
	}
	defer c.release()
	if n, ok, err := c.held(period); ok || err != nil {
		return n, err // somebody else has fetched it meanwhile
	}
	if !c.defined {
		if err := c.store.Define(ctx, c.series); err != nil {
			return 0, err
		}
		c.defined = true
	}
	count := c.block
	if !c.keeps(period) {
		count = 1 // there is no place for the rest of a block
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

// keep puts a block in the place of the one before, or in that of an earlier period. Periods
// sort as their texts do.
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

// Close makes all later calls fail with [ErrClosed], at once, and waits for the call that
// asks the store. What is left of the blocks is a gap. A second Close does nothing else. The
// error is that of ctx.
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

func (c *Counter) acquire(ctx context.Context) error {
	if ctx.Err() == nil {
		select {
		case <-c.turn:
			return nil
		case <-ctx.Done():
		}
	}
	return c.ended(ctx.Err())
}

func (c *Counter) release() { c.turn <- struct{}{} }

func (c *Counter) ended(err error) error {
	return fmt.Errorf("serial: series %s: %w", c.series.Name, err)
}
