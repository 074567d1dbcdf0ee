package core

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// ringSlots is how many ticks a ring remembers.
const ringSlots = 256

// maxRingAhead bounds the run-ahead under Backfill, in ticks, so that a call that far ahead of
// the clock does not overwrite the ticks that the ring is for.
const maxRingAhead = ringSlots / 2

// A ring is the source of numbers of a term under Backfill. In place of one word it has one
// for each of the last 256 ticks, in slot tick % 256. A slot holds the last number,
// tick<<sequenceBits | sequence, that was taken in it. A call goes to the slot of the wall
// clock's tick:
//
//   - If the slot has an earlier tick, the call takes the slot over, from the sequence start
//     on.
//   - If the slot has this tick, the call takes the next number. If the tick is full, it tries
//     the following ticks, up to the run-ahead, and then waits.
//   - If the slot has a later tick, this tick is forgotten, and the call fails.
//
// A slot changes only by a compare-and-swap to a greater number, and each number belongs to
// one slot. As in a term, each CAS takes numbers that no other takes, so no number is taken
// twice.
//
// Published rings often make one of two mistakes. One keeps counting in a full tick after a
// step back, where the sequence overflows or starts over: with two numbers per tick, the
// clock readings 0, 0, 1, 0 then repeat a number. The other sets the last tick back to the
// clock and enters the later tick anew, as the readings 1, 0, 1 show. The test of all
// readings finds both, and finds neither here.
//
// Ticks before the generator was made are refused, because the ring does not know what an
// earlier process did in them.
//
// The word of such a term stays at the number before the first tick of the ring.
type ring struct {
	slots []atomic.Uint64 // nil under the other policies

	born    int64 // the wall clock's tick when the ring was made
	first   int64 // the first tick whose numbers are the ring's; never 0, which is what an empty slot has
	startup int64 // how many ticks first was above the ceiling then, at most
	leased  bool  // waiting for the first tick counts as waiting for the lease
}

// addRing gives t its ring, which begins with the tick after the word's.
func (t *term) addRing(wall, startup int64, leased bool) {
	last := t.state.Load() | t.mask
	t.state.Store(last)
	t.ring = ring{
		slots:   make([]atomic.Uint64, ringSlots),
		born:    wall / t.unit,
		first:   int64(last>>t.sequenceBits) + 1,
		startup: startup,
		leased:  leased,
	}
}

// backfill is reserve for the policy Backfill. All numbers are of one tick.
//
// A goroutine that is stopped after it has read the clock may find its tick forgotten although
// the clock did not step, so backfill believes a step only when it has met it three times.
func (t *term) backfill(ctx context.Context, want uint64, p *patience) (first, n uint64, err error) {
	for met := 0; ; {
		wall, _ := t.clock.both()
		first, n, err = t.backfillAt(wall, want)
		switch {
		case n > 0:
			return first, n, nil
		case err != nil && met < 2 && errors.Is(err, ErrClockBack):
			met++
			continue
		case errors.Is(err, errBeyond):
			err = t.awaitRing(ctx, first, wall, p)
		case err == nil:
			next := max((wall+t.ahead)/t.unit+1, t.ring.first) // the next tick that has numbers
			err = t.wait(ctx, next*t.unit-t.ahead-wall)
		}
		if err != nil {
			return 0, 0, err
		}
	}
}

// awaitRing waits until the clock is at the first tick and number n is below the limit, or the
// term is sealed. The clock, which shows wall, may be wrong, so the wait is short and the
// caller reads the clock again.
func (t *term) awaitRing(ctx context.Context, n uint64, wall int64, p *patience) error {
	changed := t.changes.listen()
	early := t.ring.first*t.unit - t.ahead - wall
	if t.isSealed() || early <= 0 && t.limit.Load() > n {
		return nil
	}
	d := maxWait
	if early > 0 {
		d = min(d, early)
	}
	return p.await(ctx, t.leaseWait, time.Duration(d), changed)
}

// backfillAt takes up to want numbers at the given wall time, or none if all are used up to the
// ceiling. With errBeyond, first is the number that is missing.
func (t *term) backfillAt(wall int64, want uint64) (first, n uint64, err error) {
	ceiling := (wall + t.ahead) / t.unit
	if first = uint64(t.ring.first) << t.sequenceBits; first >= t.limit.Load() {
		return first, 0, refusal(t, first, t.end)
	}
	switch missing := t.ring.first - ceiling; {
	case missing <= 0:
	case missing > t.ring.startup || wall/t.unit < t.ring.born:
		// This is neither the wait for the first tick after New nor for a lease that begins
		// in the future: the clock has stepped back to before that.
		return 0, 0, &ClockBackError{Behind: time.Duration(t.ring.first*t.unit - wall)}
	case t.isSealed():
		return 0, 0, errSealed
	case t.ring.leased:
		return first, 0, errBeyond
	}
	begin := t.begin.sequence(t.mask) // of the clock's tick; later ticks begin at zero
	for tick := max(wall/t.unit, t.ring.first); tick <= ceiling; tick++ {
		first, n, err = t.takeOf(uint64(tick), want, begin)
		if errors.Is(err, errForgotten) {
			newest := int64(t.newest() >> t.sequenceBits)
			return 0, 0, &ClockBackError{Behind: time.Duration((newest-int64(len(t.ring.slots))+1)*t.unit - wall)}
		}
		if n > 0 || err != nil {
			return first, n, err
		}
		begin = 0
	}
	return 0, 0, nil
}

// errForgotten is the error of takeOf for a tick whose slot has a later one.
var errForgotten = errors.New("core: tick overwritten")

// takeOf takes up to want numbers of a tick, from begin on if they are its first, or none if
// they are used up.
func (t *term) takeOf(tick, want, begin uint64) (first, n uint64, err error) {
	number := min(tick, t.end>>t.sequenceBits) << t.sequenceBits // as in floor
	if err := refusal(t, number, t.end); err != nil {
		return number, 0, err
	}
	slot := &t.ring.slots[tick%uint64(len(t.ring.slots))]
	for {
		last := slot.Load()
		switch had := last >> t.sequenceBits; {
		case last >= sealed:
			return 0, 0, errSealed
		case had > tick:
			return 0, 0, errForgotten
		case had == tick && last&t.mask == t.mask:
			return 0, 0, nil
		case had == tick:
			first = last + 1
		default:
			first = tick<<t.sequenceBits + begin
		}
		n = min(want, t.mask-first&t.mask+1)
		if slot.CompareAndSwap(last, first+n-1) {
			return first, n, nil
		}
	}
}

// seal seals each slot, and returns the greatest number taken, or 0 if there is none. Since the
// swap of a slot returns its last number, a number is either taken before the swap and counted,
// or never taken.
func (r *ring) seal() (last uint64) {
	for i := range r.slots {
		if n := r.slots[i].Swap(sealed); n < sealed {
			last = max(last, n)
		}
	}
	return last
}

// newest returns the greatest number taken, or 0 if there is none.
func (r *ring) newest() (newest uint64) {
	for i := range r.slots {
		if n := r.slots[i].Load(); n < sealed {
			newest = max(newest, n)
		}
	}
	return newest
}
