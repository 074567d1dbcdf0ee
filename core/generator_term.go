package core

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/snowkey/snowkey/types"
)

// A term is the time in which one generator has one worker number. Every ID of that worker
// is taken from it.
//
// # The counter
//
// state is one word, tick<<countBits | sequence, that holds the last number taken. It
// changes only by an atomic Add and by a compare-and-swap to a greater value (and when Close
// swaps in sealed, which is above every number). Hence:
//
//   - The word never decreases, and each Add or CAS takes the numbers in (old, new], which no
//     other takes. No number is taken twice, whatever the clocks and goroutines do, and since
//     each number has its own ID, no ID is returned twice.
//   - A call that begins after another has returned finds the other's number in the word, or a
//     greater one, and takes one above that. IDs therefore increase along every happens-before
//     chain.
//   - A sequence that overflows carries into the next tick, as it should.
//
// The well-known lock-free version resets the sequence when a caller sees a new millisecond,
// by a CAS to the time that it read. It repeats numbers, because a caller that is delayed
// after reading the clock takes the word back: ten steps of two goroutines suffice, and when
// run about one ID in a hundred repeats. Keeping time and sequence in two words repeats
// numbers as well, because another Add may come between the two writes.
//
// # The clock
//
// Uniqueness does not depend on the clock, only the nearness of IDs to real time does. The
// logical clock is offset + monotonic time. It bounds the numbers from both sides:
//
//   - The floor is the first number of the clock's current tick. A caller below it jumps up to
//     it, so that an ID's time is never before its call.
//   - The ceiling is run-ahead ticks above that. No number above it is returned, so that a
//     burst moves IDs ahead of real time by the run-ahead at most. The run-ahead is what lets
//     waiters sleep: when a sleep ends late, the numbers of the missed milliseconds are still
//     free.
//
// Callers that are about to leave the tick of the word set the offset by the wall clock (see
// resync). When the wall clock has stepped back, the logical clock does not go below the last
// number but goes on from there at the pace of the monotonic clock, so that IDs increase at
// the full rate after any step. The wall clock catches up while callers ask for less than the
// full rate.
//
// A caller that finds the word at the ceiling sleeps before it takes a number. Callers that
// race past this check can take one number each beyond the ceiling, which they keep until the
// ceiling is there. Cancelled calls therefore cannot push the word away from the clock.
//
// # The limit
//
// A leased worker number is reserved up to some time. No number of that time or later may be
// returned, however late the caller is. The limit is the first such number, the first of a
// tick, and only rises. Without a lease it is the end of the layout.
//
// Every number is checked against it. If look finds the last number below the limit, so is all
// of its tick, and the fast path returns only numbers of that tick. The slow paths, reserve and
// settle, compare the number itself. A caller at the limit waits without taking a number; one
// that raced past it keeps its number until the limit rises, as at the ceiling.
//
// A wall clock at the limit or beyond is ignored, since it may be wrong: a clock that is a day
// fast would otherwise take the word to the limit, where every call would wait. Numbers then go
// on from the last one at the pace of the monotonic clock.
//
// When the logical clock itself reaches the limit, the lease was not renewed in time, and the
// numbers that are left below the limit fall behind. Config.MaxBehind bounds how far, because
// the floor is that far below the clock; once the floor is at the limit, calls wait for the
// lease. Calls check the bound against their last reading of the clock. A number that fell
// behind while its caller waited is lost, and the caller takes another.
type term struct {
	_     [64]byte
	state atomic.Uint64 // on a cache line of its own, because all goroutines write it
	_     [56]byte

	offset atomic.Int64 // logical time is offset + clock.monotonic(), in ns

	reservedCounter

	// opening is the initial state if the lease may begin ahead of the clock, and 0 otherwise.
	opening uint64
}

// newTerm returns a term that begins now, for a worker number that is not leased. Its first
// number is above all that this worker has issued before. The registry knows those of this
// process (stop). An earlier process with the same run-ahead can have issued numbers up to its
// ceiling, unless the wall clock has stepped back since; all numbers up to the present ceiling
// therefore count as taken, and the first one is free when the next tick begins.
//
// If stop is above that, the clock has stepped back or the earlier generator had a larger
// run-ahead. The logical clock then begins where stop is at the ceiling, so that the first
// number is free at once and the logical clock is no further ahead than the one that issued
// stop.
func newTerm(c counterConfig, stop uint64) *term {
	t := &term{reservedCounter: reservedCounter{counterConfig: c}}
	wall, monotonic := t.clock.both()
	t.offset.Store(wall - monotonic)
	t.limit.Store(t.end)
	last := t.floor(wall+t.ahead) | t.mask
	if stop > last {
		last = stop
		t.offset.Store(max(wall, t.start(last)-t.ahead) - monotonic)
	}
	t.state.Store(last)
	return t
}

// newReservedTerm returns a term whose numbers are those in [first, limit), both the first of a
// tick, which no other generator has or had. Under Continue the logical clock therefore begins
// at first, however far ahead of the clock that is, and the first number is free at once. The
// other policies wait until the clock is there if the lease begins there. If first is above
// from, where the lease begins, the generator has been there before, and they act as after any
// step back.
func newReservedTerm(c counterConfig, from, first, limit uint64) *term {
	t := &term{reservedCounter: reservedCounter{counterConfig: c}}
	wall, monotonic := t.clock.both()
	if first == from {
		t.opening = max(first, 1) - 1
	}
	t.limit.Store(limit)
	t.state.Store(max(first, 1) - 1)
	if t.ignores(wall) {
		wall = t.start(first)
	}
	t.offset.Store(max(wall, t.start(first)-t.ahead) - monotonic)
	return t
}

// next takes one number and returns its ID. It mostly consists of now, look and take, which
// cost one clock reading and one Add, without the wall clock or a division. The rest is left to
// reserve and settle.
func (t *term) next(ctx context.Context, w *waited) (types.Snowflake, error) {
	// The clock is read first, so that the word is loaded right before the Add and its
	// contended cache line is fetched once instead of twice.
	now := t.now()
	if last, ok := t.look(now); ok {
		n, ok := t.take(last)
		if ok {
			return t.compose(n), nil
		}
		return t.settle(ctx, n, w)
	}
	return t.one(ctx, w)
}

// one reserves one number.
func (t *term) one(ctx context.Context, w *waited) (types.Snowflake, error) {
	n, _, err := t.reserve(ctx, 1, w)
	if err != nil {
		return 0, err
	}
	return t.compose(n), nil
}

// now returns the logical time in ns since the epoch.
func (t *term) now() int64 { return t.offset.Load() + t.clock.monotonic() }

// look returns the last number, and whether the next one may be taken with an Add: it must be
// in the same tick, and that tick between the logical clock's and the ceiling. It compares
// times, because computing the clock's tick would take a division.
func (t *term) look(now int64) (last uint64, ok bool) {
	last = t.state.Load()
	into := now - t.start(last)
	return last, into < t.unit && into >= -t.ahead && last&t.mask != t.mask && last < t.limit.Load()
}

// take adds one number after look has returned last and true. Others may have added since, or
// sealed the term. A number in the tick of last is under the ceiling and the limit, as last
// was; settle decides about any other.
func (t *term) take(last uint64) (n uint64, ok bool) {
	n = t.state.Add(1)
	return n, n|t.mask == last|t.mask
}

// settle waits until number n, which this caller has taken, is under the ceiling and the limit.
// If n has fallen too far behind, it takes another. On an error n is lost.
func (t *term) settle(ctx context.Context, n uint64, w *waited) (types.Snowflake, error) {
	now := t.now()
	for {
		err := refusal(t, n, t.end)
		early := t.start(n) - t.ahead - now
		switch {
		case errors.Is(err, errBeyond):
			err = t.await(ctx, n, w)
		case err != nil:
		case n < t.oldest(now):
			return t.one(ctx, w)
		case early <= 0:
			return t.compose(n), nil
		default:
			err = t.wait(ctx, early)
		}
		if err == nil {
			now, err = t.accept(ctx, w)
		}
		if err != nil {
			return 0, err
		}
	}
}

// reserve takes up to want numbers, at least one, in one atomic operation, and returns the
// first and the count. All are under the ceiling and the limit, and it waits until there is
// one. On an error it has taken nothing.
func (t *term) reserve(ctx context.Context, want uint64, w *waited) (first, n uint64, err error) {
	now := t.now()
	for synced := false; ; {
		last := t.state.Load()
		limit := t.limit.Load()
		floor := t.lowest(now, limit)
		if leaves := last&t.mask+want > t.mask; !synced && (leaves || floor > last) {
			if now, err = t.accept(ctx, w); err != nil {
				return 0, 0, err
			}
			synced = true
			continue
		}
		first = last + 1
		if floor > last {
			first = floor + t.begin.sequence(t.mask)
		}
		ceiling := min(t.floor(now+t.ahead)+t.mask+1, limit)
		err = refusal(t, first, t.end)
		switch {
		case errors.Is(err, errBeyond):
			err = t.await(ctx, first, w)
		case err != nil:
		case first < ceiling:
			n = min(want, ceiling-first)
			if t.state.CompareAndSwap(last, first+n-1) {
				return first, n, nil
			}
			// Other calls were faster and may have taken all numbers, and time has passed.
			if err := ctx.Err(); err != nil {
				return 0, 0, err
			}
			now, synced = t.now(), false
			continue
		default:
			err = t.wait(ctx, t.start(first)-t.ahead-now)
		}
		if err == nil {
			now, err = t.accept(ctx, w)
		}
		if err != nil {
			return 0, 0, err
		}
		synced = true
	}
}

// lowest returns the floor, below which reserve takes no number. A floor at the limit does not
// count, except at the end of the layout, and only MaxBehind does.
func (t *term) lowest(now int64, limit uint64) uint64 {
	if floor := t.floor(now); floor < limit || limit >= t.end {
		return floor
	}
	return t.oldest(now)
}

// await waits until number n is below the limit or the term is sealed.
func (t *term) await(ctx context.Context, n uint64, w *waited) error {
	for {
		changed := t.changes.listen()
		if t.limit.Load() > n || t.isSealed() {
			return nil
		}
		if err := w.await(ctx, t.leaseWait, ever, changed); err != nil {
			return err
		}
	}
}

// resync reads the wall clock, sets the offset by it, and returns the logical time in ns since
// the epoch. If the wall clock is beyond the limit, the offset stays.
//
// With w the offset at which the logical clock shows the wall clock's time, the new offset is
//
//	max(w, min(offset, start of the next number's tick - monotonic))
//
// If the wall clock is not behind the logical one, this is w, and the wall clock is followed at
// once. If it is behind, the logical clock drops to the next number to take, but not below the
// wall clock, and stays where it is if numbers have run ahead of it. It drops to the next
// number rather than the last, because with a run-ahead below one tick the next tick would
// otherwise never begin. It is never raised above both the wall clock and its former value: if
// it were raised to the last number, each burst would start where the one before ended, and IDs
// would drift away from real time.
//
// time.Now reads the wall clock first. If the goroutine is stopped between its two readings, w
// is too low, never too high, and the floor is too low until the next resync.
//
// A caller may read the clock before another and store after it. The compare-and-swap drops the
// older reading.
func (t *term) resync() int64 {
	offset := t.offset.Load()
	wall, monotonic := t.clock.both()
	if t.ignores(wall) {
		return offset + monotonic
	}
	now := wall - monotonic
	if now < offset {
		last := t.state.Load()
		if last >= sealed {
			return offset + monotonic // sealed, so the result does not matter
		}
		now = max(now, min(offset, t.start(last+1)-monotonic))
	}
	if now != offset && !t.offset.CompareAndSwap(offset, now) {
		now = t.offset.Load()
	}
	return now + monotonic
}

// ignores reports whether to disregard a wall clock that shows ns since the epoch because this
// is not below the limit. At the end of the layout the clock is always obeyed.
func (t *term) ignores(ns int64) bool {
	limit := t.limit.Load()
	return limit < t.end && t.floor(ns) >= limit
}

// seal ends the term: every later call fails, and no number above last is ever returned.
func (t *term) seal() (last uint64) { return t.state.Swap(sealed) }

func (t *term) isSealed() bool { return t.state.Load() >= sealed }

func (t *term) newest() uint64 { return t.state.Load() }

// outdated reports whether id is too far behind the logical clock by now.
func (t *term) outdated(id types.Snowflake) bool { return t.tick(id) < t.oldest(t.now()) }
