package core

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/snowkey/snowkey/internal/wait"
	"github.com/snowkey/snowkey/types"
)

// A term is the time in which one generator has one worker number. Every ID of that
// worker is taken from it.
//
// # The counter
//
// state is one word, tick<<sequenceBits | sequence, that holds the last number
// taken. Only an atomic Add and a compare-and-swap to a greater value change it.
// (Close swaps in sealed, which is above every number.) Hence:
//
//   - The word never decreases, and each Add or CAS takes the numbers in (old,
//     new], which no other takes. So no number is taken twice, whatever the clocks
//     and goroutines do. Each number has its own ID, so no ID is returned twice.
//   - A call that begins after another has returned finds the other's number in the
//     word, or a greater one. It gets one above that. So IDs increase along every
//     happens-before chain.
//   - A sequence that overflows carries into the next tick, as it should.
//
// The well-known lock-free version resets the sequence when a caller sees a new
// millisecond, by a CAS to the time that it read. It repeats numbers: a caller that
// is delayed after it has read the clock takes the word back. Ten steps of two
// goroutines suffice, and around one in a hundred IDs repeats when run. Time and
// sequence in two words repeat as well, because another Add may come between the
// two writes.
//
// # The clock
//
// Uniqueness does not need the clock. Only nearness to real time does. The logical
// clock is offset + monotonic time. It bounds the numbers from both sides:
//
//   - floor: the first number of its current tick. A caller below it jumps up to
//     it, so an ID's time is never before its call.
//   - ceiling: run-ahead ticks above it. No number above it is returned, so a burst
//     moves IDs ahead of real time by the run-ahead at most. The run-ahead lets
//     waiters sleep. After a sleep that ends late, the numbers of the missed
//     milliseconds are still free.
//
// Callers that are about to leave the tick of the word set the offset by the wall
// clock (see resync). When the wall clock has stepped back, the logical clock does
// not go below the last number. It goes on from there at the pace of the monotonic
// clock. So IDs increase at the full rate after any step. The wall clock catches up
// when callers ask for less than the full rate.
//
// A caller that finds the word at the ceiling sleeps before it takes a number.
// Callers that race past the check can take one number each beyond the ceiling.
// They keep it and wait until the ceiling is there. So cancelled calls cannot push
// the word away from the clock.
//
// # The limit
//
// A leased worker number is reserved up to some time. No number of that time or
// later may be returned, however late the caller is. The limit is the first such
// number. It is the first of a tick, and only rises. Without a lease it is the end
// of the layout.
//
// Every number is checked against it. If look finds the last number below the limit,
// so is all of its tick. The fast path returns a number of that tick only. The slow ones,
// reserve and settle, compare the number itself. A caller at the limit waits without taking a
// number. One that raced past it keeps its number until the limit rises, as at the
// ceiling.
//
// A wall clock at the limit or beyond is ignored, since it may be wrong. Numbers
// then go on from the last one, at the pace of the monotonic clock. Otherwise a
// clock that is a day fast would take the word to the limit, and every call would
// wait there.
//
// When the logical clock is at the limit, the lease was not renewed in time. The
// numbers that are left below the limit then fall behind. Config.MaxBehind bounds
// how far: the floor is so far below the clock. Once the floor is at the limit,
// calls wait for the lease. Calls check the bound against their last reading of the
// clock. A number that fell behind while its caller waited is lost, and the caller
// takes another.
type term struct {
	_     [64]byte
	state atomic.Uint64 // all goroutines write it: it has its cache line to itself
	_     [56]byte

	offset atomic.Int64  // logical time is offset + clock.monotonic(), in ns
	limit  atomic.Uint64 // no number from here on is returned; see "The limit"
	waits  atomic.Uint64

	termConfig

	// opening is the state at the beginning, if the lease may begin ahead of the
	// clock; 0 otherwise.
	opening uint64

	ring ring // under Backfill
}

// A termConfig is what the terms of one worker number have in common.
type termConfig struct {
	numbering
	clock clock
	settings
	changes *notifier // notified when the limit is raised and when the term is sealed
}

// sealed is the word of a closed term. Numbers are below 1<<63. Adds past the last
// number do not reach the seal, and Adds past the seal do not overflow.
const sealed = 3 << 62

// newTerm returns a term that begins now, for a worker number that is not leased.
// Its first number is above all that this worker has issued before. For this
// process the registry knows them (stop). An earlier process with the same
// run-ahead could have issued up to its ceiling, unless the wall clock has stepped
// back since. So all numbers up to the present ceiling count as taken, and the
// first one is free when the next tick begins.
//
// If stop is above that, the clock has stepped back, or the earlier generator had a
// larger run-ahead. The logical clock then begins where stop is at the ceiling. So
// the first number is free at once, and the logical clock is not ahead of that
// which let out stop.
//
// A ring leaves at least the default run-ahead to an earlier process. Its own may
// be less with short ticks, but that process may have had another policy.
func newTerm(c termConfig, stop uint64) *term {
	t := &term{termConfig: c}
	wall, monotonic := t.clock.both()
	left := t.ahead
	if t.rollback == Backfill {
		left = max(left, int64(defaultRunAhead))
	}
	t.offset.Store(wall - monotonic)
	t.limit.Store(t.end)
	last := t.floor(wall+left) | t.mask
	if stop > last {
		last = stop
		t.offset.Store(max(wall, t.start(last)-t.ahead) - monotonic)
	}
	t.state.Store(last)
	if t.rollback == Backfill {
		t.addRing(wall, (left-t.ahead)/t.unit+2, false) // startup does not include what stop adds
	}
	return t
}

// newReservedTerm returns a term whose numbers are those in [first, limit), both
// the first of a tick. Nobody else has or had them. So under Continue the logical
// clock begins at first, however far ahead of the clock, and the first number is
// free at once. The other policies wait until the clock is there, if the lease
// begins then. If first is above from, where the lease begins, the generator has
// been there. They then act as after any step back.
func newReservedTerm(c termConfig, from, first, limit uint64) *term {
	t := &term{termConfig: c}
	wall, monotonic := t.clock.both()
	if first == from {
		t.opening = max(first, 1) - 1
	}
	t.limit.Store(limit)
	t.state.Store(max(first, 1) - 1)
	if t.rollback == Backfill {
		t.addRing(wall, max(0, int64(from>>t.sequenceBits)-(wall+t.ahead)/t.unit)+1, true)
	}
	if t.ignores(wall) {
		wall = t.start(first)
	}
	t.offset.Store(max(wall, t.start(first)-t.ahead) - monotonic)
	return t
}

// next takes one number and returns its ID. Mostly that is now, look and take: one
// clock reading and one Add. There is no wall clock and no division in them. For the
// rest there are reserve and settle.
func (t *term) next(ctx context.Context, p *patience) (types.Snowflake, error) {
	if t.rollback == Backfill {
		return t.one(ctx, p)
	}
	// Read the clock first. The word is then loaded right before the Add, and its
	// contended cache line is fetched once, not twice.
	now := t.now()
	if last, ok := t.look(now); ok {
		n, ok := t.take(last)
		if ok {
			return t.compose(n), nil
		}
		return t.settle(ctx, n, p)
	}
	return t.one(ctx, p)
}

// one is reserve of one number.
func (t *term) one(ctx context.Context, p *patience) (types.Snowflake, error) {
	n, _, err := t.reserve(ctx, 1, p)
	if err != nil {
		return 0, err
	}
	return t.compose(n), nil
}

// now returns the logical time in ns since the epoch.
func (t *term) now() int64 { return t.offset.Load() + t.clock.monotonic() }

// look returns the last number, and whether the next one may be taken with an Add.
// That one must be in the same tick, and the tick between the logical clock's and
// the ceiling. It compares times, because computing the clock's tick would take a
// division.
func (t *term) look(now int64) (last uint64, ok bool) {
	last = t.state.Load()
	into := now - t.start(last)
	return last, into < t.unit && into >= -t.ahead && last&t.mask != t.mask && last < t.limit.Load()
}

// take adds one number after look has returned last and true. Others may have added
// since, or sealed the term. A number in the tick of last is under the ceiling and
// the limit, as last was. For any other, settle decides.
func (t *term) take(last uint64) (n uint64, ok bool) {
	n = t.state.Add(1)
	return n, n|t.mask == last|t.mask
}

// settle waits until number n, which this caller has taken, is under the ceiling
// and the limit. If n has fallen too far behind, it takes another. On an error n is
// lost.
func (t *term) settle(ctx context.Context, n uint64, p *patience) (types.Snowflake, error) {
	now := t.now()
	for {
		err := refusal(t, n, t.end)
		early := t.start(n) - t.ahead - now
		switch {
		case errors.Is(err, errBeyond):
			err = t.await(ctx, n, p)
		case err != nil:
		case n < t.oldest(now):
			return t.one(ctx, p)
		case early <= 0:
			return t.compose(n), nil
		default:
			err = t.wait(ctx, early)
		}
		if err == nil {
			now, err = t.accept(ctx, p)
		}
		if err != nil {
			return 0, err
		}
	}
}

// reserve takes up to want numbers, at least one, in one atomic operation. It
// returns the first and how many. All are under the ceiling and the limit. It waits
// until there is one. On an error it has taken nothing.
func (t *term) reserve(ctx context.Context, want uint64, p *patience) (first, n uint64, err error) {
	if t.rollback == Backfill {
		return t.backfill(ctx, want, p)
	}
	now := t.now()
	for synced := false; ; {
		last := t.state.Load()
		limit := t.limit.Load()
		floor := t.lowest(now, limit)
		if leaves := last&t.mask+want > t.mask; !synced && (leaves || floor > last) {
			if now, err = t.accept(ctx, p); err != nil {
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
			err = t.await(ctx, first, p)
		case err != nil:
		case first < ceiling:
			n = min(want, ceiling-first)
			if t.state.CompareAndSwap(last, first+n-1) {
				return first, n, nil
			}
			// Others were faster, and may have taken all. Time has passed.
			if err := ctx.Err(); err != nil {
				return 0, 0, err
			}
			now, synced = t.now(), false
			continue
		default:
			err = t.wait(ctx, t.start(first)-t.ahead-now)
		}
		if err == nil {
			now, err = t.accept(ctx, p)
		}
		if err != nil {
			return 0, 0, err
		}
		synced = true
	}
}

// maxWait bounds a single sleep in ns, so that a wall clock that steps forward
// meanwhile is noticed.
const maxWait = int64(100 * time.Millisecond)

// wait sleeps until the logical clock has advanced by d ns, or nearly.
func (t *term) wait(ctx context.Context, d int64) error {
	t.waits.Add(1)
	return wait.Sleep(ctx, time.Duration(min(d, maxWait)))
}

// resync reads the wall clock and sets the offset by it. It returns the logical time
// in ns since the epoch. If the wall clock is beyond the limit, the offset stays.
//
// With w the offset at which the logical clock shows the wall clock's time, the
// new offset is
//
//	max(w, min(offset, start of the next number's tick - monotonic))
//
// If the wall clock is not behind the logical one, that is w, and the wall clock is
// followed at once. If it is behind, the logical clock drops to the next number to
// take, but not below the wall clock. If numbers have run ahead of the logical
// clock, it stays. It drops to the next number, not the last. Otherwise, with a
// run-ahead below one tick, the next tick would never begin. It is never raised
// above both the wall clock and what it was. If it were raised to the last number,
// each burst would start at the end of the one before. IDs would drift from real time.
//
// time.Now reads the wall clock first. If the goroutine is stopped between its two
// readings, w is too low, never too high. The floor is then too low until the next
// resync.
//
// A caller may read the clock before another and store after it. The
// compare-and-swap drops the older reading.
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
			return offset + monotonic // nobody needs it any more
		}
		now = max(now, min(offset, t.start(last+1)-monotonic))
	}
	if now != offset && !t.offset.CompareAndSwap(offset, now) {
		now = t.offset.Load()
	}
	return now + monotonic
}

// seal ends the term. Every later call fails, and no number above last is ever
// returned.
func (t *term) seal() (last uint64) { return max(t.state.Swap(sealed), t.ring.seal()) }

func (t *term) isSealed() bool { return t.state.Load() >= sealed }

// newest returns the last number taken.
func (t *term) newest() uint64 { return max(t.state.Load(), t.ring.newest()) }
