package core

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/snowkey/snowkey/types"
)

// A term is one generator's hold on one worker number: a counter from which
// every ID of that worker is taken.
//
// # The counter
//
// state is one word, tick<<sequenceBits | sequence, that holds the last number
// taken. It is changed by two operations only: an atomic Add, and a
// compare-and-swap to a greater value. (Close swaps in sealed, which is above
// every number.) Hence:
//
//   - The word never decreases, and each Add or CAS takes numbers that no other
//     has: those in (old, new]. So no number is taken twice, whatever the
//     clocks do and however the goroutines interleave. Number to ID is one to
//     one, so no ID is returned twice.
//   - A call that begins after another has returned finds the other's number in
//     the word, or a greater one, and gets one above that. So IDs increase along
//     every happens-before chain.
//   - A carry out of the sequence is a step to the next tick, which is what it
//     should be.
//
// The well-known lock-free version that resets the sequence when a caller sees a
// new millisecond, by a CAS to the time which that caller read, is not this one:
// a caller that read the clock, was delayed, and resets later takes the word
// back, and numbers repeat (ten steps with two goroutines; around one in a
// hundred IDs when run). Time and sequence in two words repeat as well, because
// a second caller's Add may fall between the two writes.
//
// # The clock
//
// Uniqueness does not need the clock; nearness to real time does. The logical
// clock is offset + monotonic time. It bounds the numbers from both sides:
//
//   - floor: the first number of its current tick. A caller below it jumps up to
//     it, so an ID's time is never before its call.
//   - ceiling: run-ahead ticks above it. No number above it is returned, so a
//     burst moves IDs ahead of real time by the run-ahead at most. The run-ahead
//     is what lets waiters sleep: a sleep that ends a few milliseconds late finds
//     the numbers of those milliseconds still there to be taken.
//
// The offset is re-read from the wall clock whenever a caller is about to leave
// the tick of the word (see resync). When the wall clock has stepped back, the
// logical clock does not follow below the last number, but goes on from there at
// the pace of the monotonic clock: IDs go on, increasing, at the full rate,
// however far the step, and the wall clock catches up when less than the full
// rate is asked for.
//
// A caller that finds the word at the ceiling sleeps before it takes a number.
// Only callers that race past the same check can take one beyond the ceiling, at
// most one each; they keep it and wait until the ceiling is there. So cancelled
// calls cannot push the word away from the clock.
//
// # The limit
//
// A worker number that is leased is reserved up to some time, and no number of
// that time or later may be returned, however late the caller is. The limit is
// the first such number. It is the first of a tick, and is only ever raised. With
// a number that is not leased it is the end of the layout.
//
// Every number is checked against it: through its tick, if look and take have it
// (look finds the last number below the limit, so all of its tick is, and take
// returns a number of that tick only), by the number itself otherwise. Who finds
// the word at the limit waits without taking a number; who has raced past it keeps
// the number until the limit is above it, as at the ceiling.
//
// A wall clock at the limit or beyond is ignored and not obeyed, since it may be
// wrong. Numbers then go on from the last one, at the pace of the monotonic clock.
// Obeyed, a clock that is a day fast would take the word to the limit, and every
// call would wait there.
//
// When the logical clock itself has come to the limit, the lease was not renewed in
// time. The numbers that are left below the limit then fall behind. Config.MaxBehind
// bounds how far: the floor is by so much below the clock. Once that is at the limit,
// calls wait for the lease. The bound is checked against the last reading of the
// clock that a call has made. A number that a caller has held while it waited may
// have fallen behind; then it is lost, and the caller takes another.
type term struct {
	_     [64]byte
	state atomic.Uint64 // all goroutines write it: it has its cache line to itself
	_     [56]byte

	offset atomic.Int64  // logical time is offset + clock.monotonic(), in ns
	limit  atomic.Uint64 // no number from here on is returned; see "The limit"
	waits  atomic.Uint64

	numbering
	clock clock
	settings
	changes *bell // rings when the limit is raised and when the term is sealed

	// opening is the state at the beginning, if the lease has the worker number
	// from a time that the clock may not have reached; 0 otherwise.
	opening uint64
}

// sealed is the word of a closed term. Numbers are below 1<<63; the distance
// leaves room for Adds past the last number, which must not look like a seal, and
// for Adds past the seal, which must not overflow.
const sealed = 3 << 62

// newTerm returns a term that begins at the given reading of both clocks, for a
// worker number that is not leased. Its first number is above all that this worker
// has issued before: in this process, where the registry knows (stop), and in an
// earlier process with the same run-ahead, provided that the wall clock has not
// stepped back since. Such a process could have issued up to its ceiling, which is
// the ceiling of now; so that much counts as taken, and the first number falls due
// when the next tick begins.
//
// If stop is above that, the clock has stepped back since, or that generator had
// already gone on from a step, or had a larger run-ahead. The logical clock then
// begins where stop is at the ceiling: that is as late as lets the first number
// out at once, and not ahead of the logical clock that let out stop.
func newTerm(n numbering, s settings, c clock, b *bell, wall, monotonic int64, stop uint64) *term {
	t := &term{numbering: n, clock: c, settings: s, changes: b}
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

// newReservedTerm returns a term whose numbers are those in [first, limit), both
// the first of a tick. Nobody else has or had them, so under Continue the first is
// out at once, however far ahead of the clock it is: the logical clock begins there.
// The other policies wait until the clock is there, if it is the lease that begins
// then. If first is above from, where the lease begins, because the generator has
// been there, it is as after any step back.
func newReservedTerm(n numbering, s settings, c clock, b *bell, wall, monotonic int64, from, first, limit uint64) *term {
	t := &term{numbering: n, clock: c, settings: s, changes: b}
	if first == from {
		t.opening = max(first, 1) - 1
	}
	t.limit.Store(limit)
	if t.ignores(wall) {
		wall = t.start(first)
	}
	t.offset.Store(max(wall, t.start(first)-t.ahead) - monotonic)
	t.state.Store(max(first, 1) - 1)
	return t
}

// next takes one number and returns its ID. Mostly that is now, look and take: one
// clock reading, one Add, no wall clock, no division. Everything else is reserve
// and settle.
func (t *term) next(ctx context.Context, p *patience) (types.Snowflake, error) {
	// The clock first: the word is then loaded right before it is added to, and
	// its cache line, which all goroutines want, is fetched once and not twice.
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

// look returns the last number, and whether one more may simply be added: it
// would be in the same tick, which is the tick of the logical clock, or ahead of
// it by no more than the run-ahead. (The tick is compared as a time; computing
// the clock's tick would take a division.)
func (t *term) look(now int64) (last uint64, ok bool) {
	last = t.state.Load()
	into := now - t.start(last)
	return last, into < t.unit && into >= -t.ahead && last&t.mask != t.mask && last < t.limit.Load()
}

// take adds one number after look has returned last and true. Others may have
// added since, or sealed the term: in the tick of last the number is under the
// ceiling and the limit as last was, else settle decides.
func (t *term) take(last uint64) (n uint64, ok bool) {
	n = t.state.Add(1)
	return n, n|t.mask == last|t.mask
}

// settle waits until number n, which this caller has taken, is under the ceiling
// and the limit. If it has fallen too far behind meanwhile it takes another. On an
// error n is lost, never reused.
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

// reserve takes up to want numbers, at least one, in one atomic operation, and
// returns the first and how many; all are under the ceiling and the limit. Until
// there is one it waits. On an error nothing is taken.
func (t *term) reserve(ctx context.Context, want uint64, p *patience) (first, n uint64, err error) {
	now := t.now()
	for synced := false; ; {
		last := t.state.Load()
		limit := t.limit.Load()
		floor := t.floor(now)
		if floor >= limit && limit < t.end {
			floor = t.oldest(now) // else ignored
		}
		if leaves := last&t.mask+want > t.mask; !synced && (leaves || floor > last) {
			if now, err = t.accept(ctx, p); err != nil {
				return 0, 0, err
			}
			synced = true
			continue
		}
		first = last + 1
		if floor > last {
			first = floor + t.begin.sequence()
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
			// Others were faster; what they took may be all there was, and time
			// has passed.
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

// accept returns the logical time after a look at the wall clock, or the error of
// a policy that does not go on after a step back.
func (t *term) accept(ctx context.Context, p *patience) (now int64, err error) {
	if t.rollback.policy == Continue {
		return t.resync(), nil
	}
	for {
		now, back := t.follow()
		if back == nil {
			return now, nil
		}
		if last := t.state.Load(); last == t.opening && last > 0 {
			// No ID was returned, so no clock has stepped back behind one: the
			// reservation begins in the future, as under the loss guard.
			err = p.await(ctx, t.leaseWait, min(back.missing, time.Duration(maxWait)), nil)
		} else {
			err = p.wait(ctx, t.rollback, back)
		}
		if err != nil {
			return 0, err
		}
	}
}

// oldest returns the first number that may be returned when the logical clock shows
// now: see Config.MaxBehind.
func (t *term) oldest(now int64) uint64 { return t.floor(max(now, 0) - t.behind) }

// outdated reports whether an ID is too far behind the logical clock by now.
func (t *term) outdated(id types.Snowflake) bool { return t.number(id) < t.oldest(t.now()) }

// What refusal says besides ErrTimeExhausted. Both are for this package: a caller is
// told of them after it has waited in vain, and in other words.
var (
	errSealed = errors.New("core: term is sealed")
	errBeyond = errors.New("core: number is not reserved yet")
)

// refusal returns why number n of c may not be taken, or returned if it has been taken
// already, if it may not. The layout has no number from end on.
//
// The limit first, and the seal after it. Whoever seals reads the limit after that,
// and gives back what is above it or above the last number. So a number that is seen
// below the limit, and then not sealed, is not given back. The other way round, the
// term could be sealed and the limit raised between the two loads, and a number
// returned that the next owner of the worker number has too.
//
// It loads them by methods of c, so that a test can act between the two.
func refusal(c counter, n, end uint64) error {
	limit := c.reserved()
	switch {
	case c.isSealed():
		return errSealed
	case n >= end:
		return ErrTimeExhausted
	case n >= limit:
		return errBeyond
	}
	return nil
}

// await waits until number n is below the limit or the term is sealed.
func (t *term) await(ctx context.Context, n uint64, p *patience) error {
	for {
		changed := t.changes.listen()
		if t.limit.Load() > n || t.isSealed() {
			return nil
		}
		if err := p.await(ctx, t.leaseWait, ever, changed); err != nil {
			return err
		}
	}
}

// extend raises the limit to the given one, the first number of a tick.
func (t *term) extend(limit uint64) { raise(&t.limit, limit) }

// raise sets v to n unless it is more already.
func raise(v *atomic.Uint64, n uint64) {
	for was := v.Load(); was < n && !v.CompareAndSwap(was, n); was = v.Load() {
	}
}

// ignores reports whether a wall clock that shows ns since the epoch is to be
// ignored, because that is not below the limit. (At the end of the layout it is
// not: then the time is over.)
func (t *term) ignores(ns int64) bool {
	limit := t.limit.Load()
	return limit < t.end && t.floor(ns) >= limit
}

// maxWait bounds a single sleep in ns, so that a wall clock that steps forward
// meanwhile is noticed.
const maxWait = int64(100 * time.Millisecond)

// wait sleeps until the logical clock has advanced by d ns, or nearly.
func (t *term) wait(ctx context.Context, d int64) error {
	t.waits.Add(1)
	return sleep(ctx, time.Duration(min(d, maxWait)))
}

// resync reads the wall clock, sets the offset by it, and returns the logical
// time in ns since the epoch. (If the wall clock is beyond the limit, the offset
// stays.)
//
// With w the offset at which the logical clock shows the wall clock's time, the
// new offset is
//
//	max(w, min(offset, start of the next number's tick - monotonic))
//
// If the wall clock is where the logical one is or ahead of it, that is w: the
// wall clock is followed at once. If it is behind, the logical clock drops to the
// next number to take, but not below the wall clock; and if numbers have run ahead
// of the logical clock, it stays. (The next number, and not the last: with a
// run-ahead of less than a tick, a logical clock that was taken back to the last
// one's tick each time would never let out the next one's.) It is never raised above both the wall clock
// and what it was: raising it to the last number, which may be the run-ahead
// above it, would let each burst start from the end of the one before, away from
// real time for good.
//
// w is too low when the goroutine is stopped between the two readings of
// time.Now (the wall clock comes first), never too high. That costs the floor a
// moment's accuracy, and is set right by the next resync.
//
// Callers race: one may have read the clock before another did and store after
// it. The compare-and-swap drops the older reading.
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

// tolerated is how far, in ns, the wall clock may fall behind from one reading to
// the next before that is a step back: what the system takes away to adjust the
// clock smoothly is less.
const tolerated = int64(time.Millisecond)

// follow is resync for the policies that do not go on after a step back: the
// logical clock is the wall clock. While the wall clock has stepped back so far
// that the last number is above the ceiling it would give, follow returns how far
// that is, and leaves the offset: the step must be seen by every caller until the
// clock has caught up.
//
// A goroutine that is stopped between the two readings of one time.Now sees a
// step that is none, so a step is believed when it is read three times.
func (t *term) follow() (now int64, back *ClockBackError) {
	offset := t.offset.Load()
	var wall, monotonic int64
	for range 3 {
		if wall, monotonic = t.clock.both(); wall-monotonic >= offset-tolerated {
			if t.ignores(wall) {
				return offset + monotonic, nil
			}
			t.offset.CompareAndSwap(offset, wall-monotonic)
			return wall, nil
		}
	}
	last := t.state.Load()
	if last >= sealed {
		return offset + monotonic, nil // as in resync
	}
	if missing := t.start(last) - t.ahead - wall; missing > 0 {
		return 0, &ClockBackError{Behind: time.Duration(t.start(last) - wall), missing: time.Duration(missing)}
	}
	t.offset.CompareAndSwap(offset, wall-monotonic)
	return wall, nil
}

// seal ends the term: every later call fails, and no number above the returned
// last one has been or will be returned.
func (t *term) seal() (last uint64) { return t.state.Swap(sealed) }

func (t *term) isSealed() bool { return t.state.Load() >= sealed }

// newest returns the last number taken.
func (t *term) newest() uint64 { return t.state.Load() }

// reserved returns the limit.
func (t *term) reserved() uint64 { return t.limit.Load() }

// lead returns the wall clock, in ns since the epoch, how far the tick of the
// last number is ahead of it or behind, and the count of waits.
func (t *term) lead() (wall int64, ahead, behind time.Duration, waits uint64) {
	wall, _ = t.clock.both()
	if last := t.state.Load(); last < sealed {
		ahead, behind = t.distance(last, wall)
	}
	return wall, ahead, behind, t.waits.Load()
}
