package segment

import (
	"fmt"
	"math"
)

// A Row is the row of a tag. Its methods define the effect of each operation of a Store, which
// reads the row and stores their result in one atomic step.
type Row struct {
	Tag    string // 1 to 128 printable characters of ASCII
	Next   int64  // max_id: the first k that has not been given out; at least 0
	Step   int64  // the count of a Take that names none; 1 to MaxCount
	Stride int64  // 1 to 1<<31-1
	Offset int64  // 0 to Stride-1
	// Version grows with each write of a Store, from 0 on. GiveBack compares it to find out whether
	// the row has been written since.
	Version     int64
	Frozen      bool   // every Take is refused: the stride is being changed
	Description string // for people; at most 256 bytes
}

// checkTag returns a *core.ValueError unless tag has 1 to 128 printable characters of ASCII,
// including the space.
func checkTag(tag string) error {
	const want = "1 to 128 printable characters of ASCII"
	if len(tag) == 0 || len(tag) > 128 {
		return invalid("tag", fmt.Sprintf("%.140q", tag), want)
	}
	for _, c := range []byte(tag) {
		if c < ' ' || c > '~' {
			return invalid("tag", fmt.Sprintf("%q", tag), want)
		}
	}
	return nil
}

// Validate returns a *core.ValueError if a value of the row is out of range.
func (r Row) Validate() error {
	if err := checkTag(r.Tag); err != nil {
		return err
	}
	for _, v := range []struct {
		name        string
		value       int64
		least, most int64
	}{
		{"Row.Next", r.Next, 0, math.MaxInt64},
		{"Row.Step", r.Step, 1, MaxCount},
		{"Row.Stride", r.Stride, 1, math.MaxInt32},
		{"Row.Offset", r.Offset, 0, r.Stride - 1},
		{"Row.Version", r.Version, 0, math.MaxInt64 - 1}, // it can grow
	} {
		if v.value < v.least || v.value > v.most {
			return invalid(v.name, v.value, fmt.Sprintf("%d to %d", v.least, v.most))
		}
	}
	if len(r.Description) > 256 {
		return invalid("Row.Description", fmt.Sprintf("%d bytes long", len(r.Description)), "at most 256")
	}
	return nil
}

// After returns the first k whose number is above n, or 1<<63-1, from which no Take succeeds,
// if there is none.
func (r Row) After(n int64) int64 {
	if n < r.Offset {
		return 0
	}
	return min((n-r.Offset)/r.Stride, math.MaxInt64-1) + 1
}

// Take returns the row after t and the range that t gets. The arithmetic is done here rather
// than in the databases, so that no number passes 1<<63-1 in any of them.
func (r Row) Take(t Take) (Row, Range, error) {
	if err := r.Validate(); err != nil {
		return r, Range{}, err
	}
	if t.Count < 0 || t.Count > MaxCount {
		return r, Range{}, invalid("Take.Count", t.Count, fmt.Sprintf("0 to %d", MaxCount))
	}
	if r.Frozen {
		return r, Range{}, fmt.Errorf("%w: tag %s; if that has stopped half way, run Restride again", ErrFrozen, r.Tag)
	}
	if t.Stride != 0 && t.Stride != r.Stride {
		return r, Range{}, fmt.Errorf("%w: tag %s has stride %d, want %d", ErrStride, r.Tag, r.Stride, t.Stride)
	}
	count := t.Count
	if count == 0 {
		count = r.Step
	}
	most := (math.MaxInt64 - r.Offset) / r.Stride // the greatest k with a number
	first := r.Next
	if t.Above > 0 {
		first = max(first, r.After(t.Above))
	}
	// Next must fit too, so the last number of all is never given.
	if first > most-count {
		return r, Range{}, fmt.Errorf("%w: tag %s: %d numbers from k = %d on pass %d", ErrExhausted, r.Tag, count, first, int64(math.MaxInt64))
	}
	r.Next = first + count
	r.Version++
	return r, Range{First: first, Last: first + count - 1, Stride: r.Stride, Offset: r.Offset, Version: r.Version, Step: r.Step}, nil
}

// GiveBack returns the row after g, or the unchanged row if it has been written since.
//
// Both comparisons are needed. With max_id alone, a request that arrives twice lowers a row
// that was given back and has reached the same max_id again. With the version alone, it lowers
// a row that was raised by a client without versions, such as a Leaf server. In both cases the
// numbers have been given to another process. A row of version 0 has given no range, so none
// can come back to it.
func (r Row) GiveBack(g GiveBack) Row {
	if g.Version > 0 && r.Version == g.Version && r.Next == g.End && 0 <= g.First && g.First < g.End && !r.Frozen {
		r.Next = g.First
		r.Version++
	}
	return r
}

// Raise returns the row with Next at least next.
func (r Row) Raise(next int64) Row {
	if next > r.Next {
		r.Next = next
		r.Version++
	}
	return r
}

// Freeze returns the frozen row.
func (r Row) Freeze() Row {
	if !r.Frozen {
		r.Frozen = true
		r.Version++
	}
	return r
}

// Thaw returns the row with Next, Stride and Offset of to, and no longer frozen.
func (r Row) Thaw(to Row) (Row, error) {
	if !r.Frozen {
		return r, fmt.Errorf("segment: tag %s is not frozen", r.Tag)
	}
	if top := r.top(); to.Next < to.After(top) {
		return r, invalid("Row.Next", to.Next, fmt.Sprintf("at least %d: numbers up to %d were given", to.After(top), top))
	}
	r.Next, r.Stride, r.Offset, r.Frozen = to.Next, to.Stride, to.Offset, false
	r.Version++
	return r, r.Validate()
}

// top returns the greatest number that the row can have given, or -1.
func (r Row) top() int64 {
	if r.Next == 0 {
		return -1
	}
	return (r.Next-1)*r.Stride + r.Offset
}
