package segment

import (
	"sync/atomic"

	"github.com/snowkey/snowkey/types"
)

// A link is one range of an Allocator. Links form a chain, and callers take numbers from the first
// link that has some left.
//
// The hot path is one atomic addition and one load:
//
//	i := l.taken.Add(1)
//	if i <= l.mark.Load() { return the i-th number }
//
// No two calls get the same number, because each addition returns another i, each i up to size is
// another number of the range, and ranges do not overlap. Forms that look simpler were rejected:
//
// One absolute word for all ranges, compared with a limit that the fetcher raises. Caller A adds and
// gets a value above the limit, which belongs to no range. The fetcher appends a range that begins
// elsewhere and raises the limit above that value. A compares late and returns a number of another
// process. If the word is raised first, the same happens to a caller that adds between the two.
// Compared at both ends the form is correct, but a call that fails takes a number of the next range.
//
// A position in the range and a pointer to it, in two words. A loads the pointer, the range changes,
// and A adds to the position of the new range but computes its number from the old one.
//
// A load, a comparison and a compare-and-swap. It is correct, and slower with several callers,
// because all but one of them try again.
//
// Two comparisons, with the mark and with the size. They are correct and 4 % slower than the one that
// suffices because mark never exceeds size.
//
// Positions count from 1 in each link, whatever its numbers are, so that the additions of calls that
// find no number left lead to no number at all, and cannot overflow taken.
type link struct {
	taken atomic.Int64 // positions that were asked for, more than size if calls found none left
	_     [64 - 8]byte // keeps what each call reads off the cache line that each call writes

	// mark is at most size. A caller whose position is above mark, and not above size, wakes the
	// fetcher, so that the next range is fetched in time.
	mark   atomic.Int64
	size   int64 // numbers
	base   int64 // the number at position i is base + i·stride
	stride int64
	next   atomic.Pointer[link] // set once

	got  Range // as the store returned it; size leaves out numbers above Config.Last
	used int64 // positions that callers got, after seal
}

// sealed exceeds every size, and the calls of a century cannot make it overflow.
const sealed = 1 << 62

// newLink returns a link of the numbers of r whose k is not above last. Its mark is 0, so that the
// first caller wakes the fetcher.
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

// fill sets the first n of ids to numbers of the link, as many as it has left. passed reports that
// the mark was passed.
func (l *link) fill(ids []types.Snowflake) (n int, passed bool) {
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

// left returns how many numbers are left.
func (l *link) left() int64 { return l.size - min(l.taken.Load(), l.size) }

// seal ends the link: no later call gets a number. The swap orders seal with every addition, so that
// a position added before counts in used, and one added after is above size.
func (l *link) seal() {
	if old := l.taken.Swap(sealed); old < sealed {
		l.used = min(old, l.size)
	}
}

// unused returns the longest unused end of the chain from l on that a single GiveBack may return. It
// requires seal.
//
// The end may span several ranges if each begins where the one before it ended, in the same row,
// without a write between the two Takes. If offset and version were not compared, ranges of two
// databases could seem to be neighbours, and the second row would go back below numbers that it gave
// away long ago.
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
