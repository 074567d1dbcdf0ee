package core

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/snowkey/snowkey/types"
)

// ringSlots is how many ticks a ring remembers.
const ringSlots = 256

// maxRingAhead bounds the run-ahead under Backfill, in ticks. A call may be that
// far ahead of the clock, and must not overwrite the ticks that the ring is for.
const maxRingAhead = ringSlots / 2

// A ring is the counter of the policy Backfill. Where a term has one word, a ring
// has one for each of the last 256 ticks, in slot tick % 256: the last number,
// tick<<sequenceBits | sequence, taken in that slot. A call goes to the slot of
// the wall clock's tick.
//
//   - The slot has an earlier tick: the slot is taken over, from the sequence
//     start on.
//   - The slot has this tick: its sequence goes on. If it is full, the next tick
//     is tried, up to the run-ahead; then the call waits.
//   - The slot has a later tick: how far this tick's sequence had come is
//     forgotten, and the call is refused.
//
// A slot is changed by a compare-and-swap to a greater number only, and a number
// belongs to one slot. So each CAS takes numbers that no other has, as in a term,
// and no number is taken twice. Rings are often published with one of two
// mistakes. To count on in a full tick after a step back carries out of the
// sequence, or, masked, starts the tick over: the clock readings 0, 0, 1, 0 with
// two numbers per tick repeat one. To take the last tick back to the clock enters
// the later tick anew when the clock is there again: 1, 0, 1. (The exhaustive test,
// of clock readings one after the other, finds both, and finds nothing wrong with
// this one.)
//
// Ticks before the generator was made are refused: what an earlier process did in
// them is not in the ring.
type ring struct {
	slots []atomic.Uint64
	waits atomic.Uint64

	limit atomic.Uint64 // no number from here on is taken; as that of a term

	numbering
	clock clock
	settings
	changes *bell // as that of a term

	born    int64  // the wall clock's tick when the ring was made
	first   uint64 // the first tick whose numbers are the ring's
	startup int64  // how many ticks first was above the ceiling then, at most
	leased  bool   // the wait for the first tick is one for the lease
}

// newRing returns a ring that begins at the given wall time, above all that this
// worker has issued before, as newTerm does. What it leaves to an earlier process
// is at least the default run-ahead, though its own may be less with short ticks:
// that process may have had another policy.
func newRing(n numbering, s settings, c clock, b *bell, wall int64, stop uint64) *ring {
	left := max(s.ahead, int64(defaultRunAhead))
	first := (max(n.floor(wall+left), stop)>>n.sequenceBits + 1) << n.sequenceBits
	r := newReservedRing(n, s, c, b, wall, first, first, n.end)
	r.leased = false
	r.startup = (left-r.ahead)/r.unit + 2 // not for what stop adds
	return r
}

// newReservedRing returns a ring whose numbers are those in [first, limit), both
// the first of a tick; from is where the lease begins, as for a term. The first tick
// is never 0, which is what an empty slot looks like.
func newReservedRing(n numbering, s settings, c clock, b *bell, wall int64, from, first, limit uint64) *ring {
	r := &ring{slots: make([]atomic.Uint64, ringSlots), numbering: n, clock: c, settings: s, changes: b}
	r.limit.Store(limit)
	r.first = max(1, first>>r.sequenceBits)
	r.born = wall / r.unit
	r.startup = max(0, int64(from>>r.sequenceBits)-(wall+r.ahead)/r.unit) + 1
	r.leased = true
	return r
}

// next takes one number and returns its ID.
func (r *ring) next(ctx context.Context, p *patience) (types.Snowflake, error) {
	number, _, err := r.reserve(ctx, 1, p)
	if err != nil {
		return 0, err
	}
	return r.compose(number), nil
}

// reserve takes up to want numbers of one tick, at least one, in one atomic
// operation, and returns the first and how many. Until there is one it waits. On
// an error nothing is taken.
//
// A goroutine that is stopped after it has read the clock may find its tick
// forgotten though the clock did not step, so a step is believed when it is met
// three times.
func (r *ring) reserve(ctx context.Context, want uint64, p *patience) (first, n uint64, err error) {
	for met := 0; ; {
		wall, _ := r.clock.both()
		first, n, err = r.at(wall, want)
		switch {
		case n > 0:
			return first, n, nil
		case err != nil && met < 2 && errors.Is(err, ErrClockBack):
			met++
			continue
		case errors.Is(err, errBeyond):
			// first is beyond the limit, or before the beginning of the lease. Not
			// for long without another look at the clock, which may have been wrong.
			d := maxWait
			if early := int64(r.first)*r.unit - r.ahead - wall; early > 0 {
				d = min(d, early)
			}
			if err := r.await(ctx, first, time.Duration(d), p); err != nil {
				return 0, 0, err
			}
			continue
		case err != nil:
			return 0, 0, err
		}
		r.waits.Add(1)
		tick := max((wall+r.ahead)/r.unit+1, int64(r.first)) // the next that there can be numbers of
		if err := sleep(ctx, time.Duration(min(tick*r.unit-r.ahead-wall, maxWait))); err != nil {
			return 0, 0, err
		}
	}
}

// at takes up to want numbers at the given wall time; none if they are used up up
// to the ceiling.
func (r *ring) at(wall int64, want uint64) (first, n uint64, err error) {
	ceiling := (wall + r.ahead) / r.unit
	if first = r.first << r.sequenceBits; first >= r.limit.Load() {
		return first, 0, refusal(r, first, r.end)
	}
	switch missing := int64(r.first) - ceiling; {
	case missing <= 0:
	case missing > r.startup || wall/r.unit < r.born:
		// Not the moment between New and the first tick, nor a lease that begins in
		// the future, but a clock that has stepped back to before that, or since the
		// generator or the lease before this one.
		return 0, 0, &ClockBackError{Behind: time.Duration(int64(r.first)*r.unit - wall)}
	case r.isSealed():
		return 0, 0, errSealed
	case r.leased:
		return first, 0, errBeyond
	}
	begin := r.begin.sequence() // of the clock's tick; the sequence of those after it begins at zero
	for tick := max(wall/r.unit, int64(r.first)); tick <= ceiling; tick++ {
		first, n, err = r.take(uint64(tick), want, begin)
		if errors.Is(err, errForgotten) {
			newest := int64(r.newest() >> r.sequenceBits)
			return 0, 0, &ClockBackError{Behind: time.Duration((newest-int64(len(r.slots))+1)*r.unit - wall)}
		}
		if n > 0 || err != nil {
			return first, n, err // first also with errBeyond
		}
		begin = 0
	}
	return 0, 0, nil
}

// errForgotten is the answer of take for a tick whose slot has a later one.
var errForgotten = errors.New("core: tick overwritten")

// take takes up to want numbers of tick, from begin on if it is the first time;
// none if they are used up.
func (r *ring) take(tick, want, begin uint64) (first, n uint64, err error) {
	number := min(tick, r.end>>r.sequenceBits) << r.sequenceBits // as in floor
	if err := refusal(r, number, r.end); err != nil {
		return number, 0, err
	}
	slot := &r.slots[tick%uint64(len(r.slots))]
	for {
		last := slot.Load()
		switch had := last >> r.sequenceBits; {
		case last >= sealed:
			return 0, 0, errSealed
		case had > tick:
			return 0, 0, errForgotten
		case had == tick && last&r.mask == r.mask:
			return 0, 0, nil
		case had == tick:
			first = last + 1
		default:
			first = tick<<r.sequenceBits + begin
		}
		n = min(want, r.mask-first&r.mask+1)
		if slot.CompareAndSwap(last, first+n-1) {
			return first, n, nil
		}
	}
}

// seal ends the ring: every later call fails, and no number above the returned
// last one has been or will be returned. Each slot is sealed by a swap that
// returns its last number, so a number taken meanwhile is either in it or is
// never taken.
func (r *ring) seal() (last uint64) {
	last = r.first<<r.sequenceBits - 1
	for i := range r.slots {
		if n := r.slots[i].Swap(sealed); n < sealed {
			last = max(last, n)
		}
	}
	return last
}

func (r *ring) isSealed() bool { return r.slots[0].Load() >= sealed }

// newest returns the greatest number taken, or the one before the first.
func (r *ring) newest() uint64 {
	newest := r.first<<r.sequenceBits - 1
	for i := range r.slots {
		if n := r.slots[i].Load(); n < sealed {
			newest = max(newest, n)
		}
	}
	return newest
}

// extend raises the limit to the given one, the first number of a tick.
func (r *ring) extend(limit uint64) { raise(&r.limit, limit) }

// reserved returns the limit.
func (r *ring) reserved() uint64 { return r.limit.Load() }

// await waits until number n is below the limit, the ring is sealed, or d has
// passed.
func (r *ring) await(ctx context.Context, n uint64, d time.Duration, p *patience) error {
	changed := r.changes.listen()
	if r.limit.Load() > n && n>>r.sequenceBits > r.first || r.isSealed() {
		return nil
	}
	return p.await(ctx, r.leaseWait, d, changed)
}

// outdated is what term.outdated is. A ring takes no other numbers than of the wall
// clock's tick, or ahead of it, so only those that it took before can be outdated.
func (r *ring) outdated(id types.Snowflake) bool {
	wall, _ := r.clock.both()
	return r.number(id) < r.floor(max(wall, 0)-r.behind)
}

// lead returns what term.lead does.
func (r *ring) lead() (wall int64, ahead, behind time.Duration, waits uint64) {
	wall, _ = r.clock.both()
	newest := uint64(0)
	for i := range r.slots {
		if n := r.slots[i].Load(); n < sealed {
			newest = max(newest, n)
		}
	}
	if newest > 0 {
		ahead, behind = r.distance(newest, wall)
	}
	return wall, ahead, behind, r.waits.Load()
}
