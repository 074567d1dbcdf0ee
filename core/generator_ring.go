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

// maxRingAhead bounds the run-ahead under Backfill, in ticks, so that a call that far ahead of
// the clock does not overwrite the ticks that the ring is for.
const maxRingAhead = ringSlots / 2

// A ring is the counter under Backfill. Where a term has one word, a ring has one for each of
// the last 256 ticks, in slot tick % 256, which holds the last number of that tick that was
// taken, tick<<countBits | sequence. A call goes to the slot of the wall clock's tick:
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
type ring struct {
	reservedCounter
	slots []atomic.Uint64

	born    int64 // the wall clock's tick when the ring was made
	first   int64 // the first tick whose numbers are the ring's; never 0, which is what an empty slot has
	startup int64 // how many ticks first was above the ceiling then, at most
	leased  bool  // waiting for the first tick counts as waiting for the lease
}

// newRing returns a ring for a worker number that is not leased. It leaves time free to an
// earlier process as newTerm does, but at least the default run-ahead: its own may be less with
// short ticks, but that process may have had another policy.
func newRing(c counterConfig, stop uint64) *ring {
	wall, _ := c.clock.both()
	left := max(c.ahead, int64(defaultRunAhead))
	last := max(c.floor(wall+left), stop)
	r := makeRing(c, wall, int64(last>>c.countBits)+1, c.end)
	r.startup = (left-c.ahead)/c.unit + 2 // without what stop adds
	return r
}

// newReservedRing returns a ring whose numbers are those in [first, limit), both the first of a
// tick, of a lease that begins at number from.
func newReservedRing(c counterConfig, from, first, limit uint64) *ring {
	wall, _ := c.clock.both()
	r := makeRing(c, wall, max(1, int64(first>>c.countBits)), limit)
	r.startup = max(0, int64(from>>c.countBits)-(wall+c.ahead)/c.unit) + 1
	r.leased = true
	return r
}

func makeRing(c counterConfig, wall, first int64, limit uint64) *ring {
	r := &ring{reservedCounter: reservedCounter{counterConfig: c}, slots: make([]atomic.Uint64, ringSlots), born: wall / c.unit, first: first}
	r.limit.Store(limit)
	return r
}

// next takes one number and returns its ID.
func (r *ring) next(ctx context.Context, w *waited) (types.Snowflake, error) {
	n, _, err := r.reserve(ctx, 1, w)
	if err != nil {
		return 0, err
	}
	return r.compose(n), nil
}

// reserve takes up to want numbers, at least one, all of one tick, and waits until there is one.
//
// A goroutine that is stopped after it has read the clock may find its tick forgotten although
// the clock did not step, so reserve believes a step only when it has met it three times.
func (r *ring) reserve(ctx context.Context, want uint64, w *waited) (first, n uint64, err error) {
	for met := 0; ; {
		wall, _ := r.clock.both()
		first, n, err = r.reserveAt(wall, want)
		switch {
		case n > 0:
			return first, n, nil
		case err != nil && met < 2 && errors.Is(err, ErrClockBack):
			met++
			continue
		case errors.Is(err, errBeyond):
			err = r.await(ctx, first, wall, w)
		case err == nil:
			next := max((wall+r.ahead)/r.unit+1, r.first) // the next tick that has numbers
			err = r.wait(ctx, next*r.unit-r.ahead-wall)
		}
		if err != nil {
			return 0, 0, err
		}
	}
}

// await waits until the clock is at the first tick and number n is below the limit, or the
// ring is sealed. The clock, which shows wall, may be wrong, so the wait is short and the
// caller reads the clock again.
func (r *ring) await(ctx context.Context, n uint64, wall int64, w *waited) error {
	changed := r.changes.listen()
	early := r.first*r.unit - r.ahead - wall
	if r.isSealed() || early <= 0 && r.limit.Load() > n {
		return nil
	}
	d := maxWait
	if early > 0 {
		d = min(d, early)
	}
	return w.await(ctx, r.leaseWait, time.Duration(d), changed)
}

// reserveAt takes up to want numbers at the given wall time, or none if all are used up to the
// ceiling. With errBeyond, first is the number that is missing.
func (r *ring) reserveAt(wall int64, want uint64) (first, n uint64, err error) {
	ceiling := (wall + r.ahead) / r.unit
	if first = uint64(r.first) << r.countBits; first >= r.limit.Load() {
		return first, 0, refusal(r, first, r.end)
	}
	switch missing := r.first - ceiling; {
	case missing <= 0:
	case missing > r.startup || wall/r.unit < r.born:
		// This is neither the wait for the first tick after New nor for a lease that begins
		// in the future: the clock has stepped back to before that.
		return 0, 0, &ClockBackError{Behind: time.Duration(r.first*r.unit - wall)}
	case r.isSealed():
		return 0, 0, errSealed
	case r.leased:
		return first, 0, errBeyond
	}
	begin := r.begin.sequence(r.mask) // of the clock's tick; later ticks begin at zero
	for tick := max(wall/r.unit, r.first); tick <= ceiling; tick++ {
		first, n, err = r.takeOf(uint64(tick), want, begin)
		if errors.Is(err, errForgotten) {
			newest := int64(r.newest() >> r.countBits)
			return 0, 0, &ClockBackError{Behind: time.Duration((newest-int64(len(r.slots))+1)*r.unit - wall)}
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
func (r *ring) takeOf(tick, want, begin uint64) (first, n uint64, err error) {
	number := min(tick, r.end>>r.countBits) << r.countBits // as in floor
	if number >= r.limit.Load() {                          // a number below it needs no look at the seal, which the slot has
		if err := refusal(r, number, r.end); err != nil {
			return number, 0, err
		}
	}
	slot := &r.slots[tick%uint64(len(r.slots))]
	for {
		last := slot.Load()
		switch had := last >> r.countBits; {
		case last >= sealed:
			return 0, 0, errSealed
		case had > tick:
			return 0, 0, errForgotten
		case had == tick && last&r.mask == r.mask:
			return 0, 0, nil
		case had == tick:
			first = last + 1
		default:
			first = tick<<r.countBits + begin
		}
		n = min(want, r.mask-first&r.mask+1)
		if slot.CompareAndSwap(last, first+n-1) {
			return first, n, nil
		}
	}
}

// seal seals each slot. Since the swap of a slot returns its last number, a number is either
// taken before the swap and counted, or never taken.
func (r *ring) seal() (last uint64) {
	last = r.before()
	for i := range r.slots {
		if n := r.slots[i].Swap(sealed); n < sealed {
			last = max(last, n)
		}
	}
	return last
}

// isSealed looks at the slot that seal seals first.
func (r *ring) isSealed() bool { return r.slots[0].Load() >= sealed }

func (r *ring) newest() (newest uint64) {
	newest = r.before()
	for i := range r.slots {
		newest = max(newest, r.slots[i].Load())
	}
	return newest
}

// before returns the number before the first of the ring.
func (r *ring) before() uint64 { return uint64(r.first)<<r.countBits - 1 }

// outdated reports whether id is too far behind the wall clock by now.
func (r *ring) outdated(id types.Snowflake) bool {
	wall, _ := r.clock.both()
	return r.tick(id) < r.oldest(wall)
}
