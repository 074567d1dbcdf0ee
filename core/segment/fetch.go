package segment

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

const (
	// takeTime bounds a call of the store. It is less than the default of Config.MaxWait, so that a
	// call which gives up knows the store's error.
	takeTime = 3 * time.Second

	firstRetry = 10 * time.Millisecond
	lastRetry  = time.Second
)

// A fetcher is the goroutine of an Allocator, and the only one that adds links.
type fetcher struct {
	a    *Allocator
	rule prefetcher

	at     *link // the first link that may have numbers left
	passed int64 // numbers in the links before at
	top    int64 // the greatest number that was seen
	some   bool  // top was set
	floor  bool  // Config.Floor was called
	step   int64 // the least count; 0: the row's step
	most   int64 // the greatest count
	stride int64 // required by the next Take; 0: any

	failures int // in a row
	retry    time.Time
	random   func(time.Duration) time.Duration // up to a time, for pauses

	databases []Database // after the last fetch, if there are several
}

// luck returns what draws the pauses of one fetcher. Tests replace it, so that they can be played again.
var luck = func() func(time.Duration) time.Duration { return rand.N[time.Duration] }

func newFetcher(a *Allocator) *fetcher {
	f := &fetcher{a: a, at: a.tail, step: a.config.Step, most: a.config.MaxStep, random: luck()}
	switch {
	case a.config.Hold < 0:
		f.rule = none{}
	case a.config.Rule == Leaf:
		f.rule = &leaf{most: f.most}
	default:
		f.rule = &byRate{hold: a.config.Hold.Seconds()}
	}
	return f
}

// run fetches what is wanted until ctx ends.
func (f *fetcher) run(ctx context.Context, stopped chan<- struct{}) {
	defer close(stopped)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		pause := f.look(ctx)
		if pause > 0 {
			timer.Reset(pause)
		} else {
			timer.Stop()
		}
		select {
		case <-f.a.wake:
		case <-timer.C:
		case <-ctx.Done():
			return
		}
	}
}

// look fetches as long as numbers are wanted. It returns the time after which to look again, or 0 to
// wait until the fetcher is woken.
func (f *fetcher) look(ctx context.Context) time.Duration {
	for ctx.Err() == nil {
		now := time.Now()
		for next := f.at.next.Load(); next != nil && f.at.left() == 0; next = f.at.next.Load() {
			f.passed += f.at.size
			f.at = next
		}
		held := f.at.left()
		f.rule.see(now, f.passed+f.at.size-held)
		for l := f.at.next.Load(); l != nil; l = l.next.Load() {
			held += l.left()
		}

		count, wanted, ended := f.count(held)
		switch {
		case ended || count < 0:
			f.at.mark.Store(min(f.at.size, f.at.taken.Load()+f.more(held)))
			return f.rule.again()
		case now.Before(f.retry):
			f.at.mark.Store(f.at.size)
			return f.retry.Sub(now)
		}
		if err := f.fetch(ctx, count, wanted); errors.Is(err, ErrNoTag) && wanted {
			return 0 // the callers that wait have the answer, and later ones wake the fetcher
		}
	}
	return 0
}

// more returns how many numbers may be taken before the fetcher is woken.
func (f *fetcher) more(held int64) int64 { return min(f.rule.more(f.at, held), f.at.size) }

// count returns how many numbers to ask for, 0 for the row's step, or -1 for no fetch. wanted
// reports that a caller waits for them, and ended that there will be no further fetch.
func (f *fetcher) count(held int64) (count int64, wanted, ended bool) {
	f.a.mu.Lock()
	defer f.a.mu.Unlock()
	if f.a.final != nil {
		return 0, false, true
	}
	count = f.rule.want(f.at, held, f.step)
	if n := f.a.wanted; n > 0 && held == 0 {
		count, wanted = max(count, n), true
		if f.step == 0 {
			return 0, true, false
		}
	}
	if count == 0 {
		return -1, false, false
	}
	return min(max(count, f.step), f.most), wanted, false
}

// fetch asks the store once, adds the range to the chain and wakes the callers that wait.
func (f *fetcher) fetch(ctx context.Context, count int64, wanted bool) error {
	a := f.a
	if a.slots != nil {
		select {
		case a.slots <- struct{}{}:
			defer func() { <-a.slots }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	a.mu.Lock()
	a.begun++
	fetch := a.begun
	a.mu.Unlock()

	began := time.Now()
	r, err := f.take(ctx, count)
	now := time.Now()
	var l *link
	var full bool
	if err == nil {
		l, full, err = f.accept(r)
	}
	if err != nil && ctx.Err() != nil {
		return err // Close
	}
	f.noteDatabases()
	final := f.settle(now, err, count, wanted)
	if l != nil {
		f.rule.fetched(now, now.Sub(began), l.size)
	}
	if final = final || full; full && err == nil {
		err = fmt.Errorf("%w; tag %s, Config.Last is %d", ErrExhausted, a.config.Tag, a.config.Last)
	}
	refill := a.add(fetch, l, err, final)
	if a.config.OnRefill != nil {
		refill.Took = now.Sub(began)
		a.config.OnRefill(refill)
	}
	return err
}

// add adds a link to the chain, unless it is nil, and wakes the callers that wait. final reports that
// there will be no further range.
func (a *Allocator) add(fetch int, l *link, err error, final bool) Refill {
	a.mu.Lock()
	defer a.mu.Unlock()
	if l != nil {
		if a.closing {
			l.taken.Store(sealed) // before a caller sees it
		}
		a.tail.next.Store(l)
		a.tail = l
	}
	a.outcome = outcome{fetch, err}
	switch {
	case errors.Is(err, ErrWentBack):
		a.end(err)
	case final && a.final == nil:
		a.final = err
	}
	a.notify()
	return a.note(l, err)
}

// take asks the store for count numbers, and a second time if the stride has changed.
func (f *fetcher) take(ctx context.Context, count int64) (Range, error) {
	ctx, cancel := context.WithTimeout(ctx, takeTime)
	defer cancel()
	c := f.a.config
	if c.Floor != nil && !f.floor {
		top, err := c.Floor(ctx)
		if err != nil {
			return Range{}, fmt.Errorf("segment: tag %s: Config.Floor: %w", c.Tag, err)
		}
		f.top, f.some, f.floor = top, true, true
	}
	request := Take{Tag: c.Tag, Count: count, Stride: f.stride, Waited: c.Hold < 0}
	r, err := f.a.store.Take(ctx, request)
	if errors.Is(err, ErrStride) && f.stride != 0 {
		// An operator has changed the stride, and the row was not moved. The next range must be
		// above everything seen before, as always.
		f.stride, request.Stride = 0, 0
		r, err = f.a.store.Take(ctx, request)
	}
	return r, err
}

// accept returns the link for a range, or ErrWentBack. full reports that the range reaches
// Config.Last and is therefore the last one.
//
// A range that is not above everything seen before was given away once already, before the row was
// set back, perhaps to this Allocator. If it were used, its numbers would be returned twice.
func (f *fetcher) accept(r Range) (l *link, full bool, err error) {
	c := f.a.config
	if err := r.check(); err != nil {
		return nil, false, err
	}
	if f.some && r.number(r.First) <= f.top {
		return nil, false, fmt.Errorf("%w; tag %s: it offers %d, but %d is in use. Stop every program of the tag, raise the row above all numbers in use, start again",
			ErrWentBack, c.Tag, r.number(r.First), f.top)
	}
	f.top, f.some, f.stride = r.number(r.Last), true, r.Stride
	if f.step == 0 {
		f.step = min(max(r.Step, 1), c.MaxStep)
	}
	if r.number(r.First) == 0 {
		if r.First++; r.First > r.Last { // 0 is no key
			return nil, false, fmt.Errorf("segment: tag %s: the row began at the number 0, which is no key", c.Tag)
		}
	}
	last := r.atMost(c.Last)
	if last < r.First {
		return nil, true, fmt.Errorf("%w; tag %s: the next is %d, Config.Last is %d", ErrExhausted, c.Tag, r.number(r.First), c.Last)
	}
	return newLink(r, min(last, r.Last)), r.Last >= last, nil
}

// settle decides when to try again after err. final reports that no further range will come.
func (f *fetcher) settle(now time.Time, err error, count int64, wanted bool) (final bool) {
	switch {
	case err == nil:
		f.failures, f.retry = 0, time.Time{}
		return false
	case errors.Is(err, ErrExhausted):
		// The store may have fewer numbers left. Ask for less, and no longer for the row's step,
		// which may be too much as well.
		if count == 0 {
			count, f.step = f.most, f.most
		}
		f.most = max(1, count/2)
		return count == 1
	case errors.Is(err, ErrNoTag) && wanted:
		return false // every call looks for the row
	}
	pause := min(firstRetry<<min(f.failures, 10), lastRetry)
	f.failures++
	f.retry = now.Add(pause/2 + f.random(pause)) // 0.5 to 1.5 times
	return false
}
