package segment

import (
	"sync/atomic"

	"github.com/snowkey/snowkey/types"
)

// A link is one range of an Allocator. Links form a chain, and callers take numbers
// from the first that has some left.
//
// The hot path is one atomic addition and one load:
//
//	i := l.taken.Add(1)
//	if i <= l.mark.Load() { return the i-th number }
//
// No two calls get the same number. Each addition returns another i, each i up to size is
// another number of the range, and ranges do not overlap. What follows is why the forms
// that look simpler were rejected.
//
// One absolute word for all ranges, compared with a limit that the fetcher raises:
// caller A adds and gets a value above the limit, which belongs to nobody. The fetcher
// appends a range that begins elsewhere and raises the limit over that value. A
// compares late, and returns a number that another process has. With the word
// raised first it is caller B who adds between the two. Compared at both ends the form is
// right, but a call that fails has then taken a number of the next range.
//
// A position in the range beside a pointer to it, in two words: A loads the pointer,
// the range changes, A adds to the position of the new range and reads its number
// from the old one.
//
// A load, a comparison and a compare-and-swap: right, and slower with several
// callers, because all but one of them try again.
//
// Two comparisons, with the mark and with the size, in place of one: right, and 4 %
// slower. mark is never above size, so one comparison serves.
//
// Positions count from 1 in each link, whatever its numbers are. So calls in vain move
// taken away from numbers of nobody, and no number of calls makes it overflow.
type link struct {
	taken atomic.Int64 // positions that were asked for; above size: in vain
	_     [64 - 8]byte // taken changes with each call; what follows is read by each

	// mark is at most size. Whoever gets a position above mark, and not above size,
	// wakes the fetcher. It is there to ask for the next range in time.
	mark   atomic.Int64
	size   int64 // numbers
	base   int64 // the number at position i is base + i·stride
	stride int64
	next   atomic.Pointer[link] // set once

	got  Range // what the store gave; numbers above Config.Last are not in size
	used int64 // positions that callers have, after seal
}

// sealed is above every size, by more than the calls of a century can add.
const sealed = 1 << 62

// newLink returns a link of the numbers of r whose k is not above last. Its mark is 0, so
// the first caller wakes the fetcher.
func newLink(r Range, last int64) *link {
	return &link{
		size:   last - r.First + 1,
		base:   r.number(r.First) - r.Stride,
		stride: r.Stride,
		got:    r,
	}
}

func (l *link) number(position int64) types.Snowflake {
	return types.Snowflake(l.base + position*l.stride)
}

// fill writes as many numbers into ids as the link has left, and returns how many.
func (l *link) fill(ids []types.Snowflake) (n int, marked bool) {
	end := l.taken.Add(int64(len(ids)))
	first := end - int64(len(ids)) + 1
	last := min(end, l.size)
	if first > last {
		return 0, false
	}
	ids = ids[:last-first+1]
	number := l.base + first*l.stride
	for i := range ids {
		ids[i] = types.Snowflake(number)
		number += l.stride
	}
	return len(ids), last > l.mark.Load()
}

// left returns how many numbers nobody has.
func (l *link) left() int64 { return l.size - min(l.taken.Load(), l.size) }

// seal makes every later call one in vain, and notes how many came before. The swap
// orders seal with each addition: what was added before is in used, what is added after
// gets a position above size.
func (l *link) seal() {
	if old := l.taken.Swap(sealed); old < sealed {
		l.used = min(old, l.size)
	}
}

// unused returns the longest end of the chain from l on that no caller has, and that
// one GiveBack may return. It is to be called after seal.
//
// The end may span several ranges if each begins where the one before it ended, on
// the same row, with no write between the two Takes. Without the look at offset and
// version, ranges of two databases could seem to be neighbours. The second row would go
// back below numbers that it gave to somebody long ago.
func unused(l *link) (g GiveBack, ok bool) {
	for before := (*link)(nil); l != nil; before, l = l, l.next.Load() {
		first := l.got.First + l.used
		if first > l.got.Last {
			ok = false
			continue
		}
		joined := ok && l.used == 0 && before.got.Last+1 == l.got.First && before.got.Version+1 == l.got.Version &&
			before.got.Offset == l.got.Offset && before.got.Stride == l.got.Stride
		if !joined {
			g.First = first
		}
		g.End, g.Version, ok = l.got.Last+1, l.got.Version, true
	}
	return g, ok
}
