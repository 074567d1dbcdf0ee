package leasetest

import (
	"math"
	"slices"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// An op is an operation on one row, and its outcome.
type op struct {
	call, ret int64 // when it was called and returned, in events; never: math.MaxInt64
	may       bool  // its outcome is unknown: it may as well not have been done
	text      string

	// left is the row that the operation has left, if a reply says so.
	left leasestore.Row

	// next returns the state after the operation. It returns false if in this state the
	// operation cannot have had the outcome that it had.
	next func(state) (state, bool)
}

// A state is the row, and whether its Until is known. It is not known after a write whose
// reply was lost. It then depends on the store's clock at the time.
type state struct {
	row  leasestore.Row
	sure bool
}

// A verdict is what a search for an order has found.
type verdict string

const (
	ordered   verdict = "there is an order"
	disorder  verdict = "there is no order"
	undecided verdict = "too many orders to try"
)

// most is how many states a search visits. Where no outcome is unknown it needs
// about one per operation.
const most = 300_000

// linearizable says whether one order explains the outcomes of all operations. They are
// done on one row that was new, one after the other, each between its call and its
// return. One whose outcome is unknown may have been done at any time after its call, or
// not at all.
//
// It searches by depth and remembers where it has been. Three rules keep it from trying
// what cannot help:
//
//   - An operation that may be next and changes nothing is next. In any order that has it
//     later it can be moved here: what it passes does not depend on it.
//   - Writes number the row. A state is dead if its number is already past that of a row
//     that must still be left.
//   - Operations that must have been done go before those that need not.
func linearizable(ops []op) verdict {
	ops = slices.SortedFunc(slices.Values(ops), func(a, b op) int {
		if a.may != b.may {
			if b.may {
				return -1
			}
			return 1
		}
		return int(a.call - b.call)
	})
	x := search{ops: ops, done: make([]byte, len(ops)), been: map[place]bool{}}
	switch {
	case x.find(state{sure: true}):
		return ordered
	case len(x.been) == most:
		return undecided
	}
	return disorder
}

// A search looks for an order of ops.
type search struct {
	ops  []op
	done []byte // 1: yes
	been map[place]bool
}

// A place is where a search has been: what was done, and the state after it.
type place struct {
	done string
	state
}

// find reports whether what is left can be done from s on.
func (x *search) find(s state) bool {
	var quiet []int // done here because they change nothing
	defer func() {
		for _, i := range quiet {
			x.done[i] = 0
		}
	}()
	var first int64
	for i := 0; i >= 0; {
		var dead bool
		if first, dead = x.first(s); dead {
			return false
		}
		if first == math.MaxInt64 {
			return true // what is left need not have been done
		}
		if i = x.quiet(s, first); i >= 0 {
			x.done[i] = 1
			quiet = append(quiet, i)
		}
	}

	at := place{string(x.done), s}
	if x.been[at] || len(x.been) == most {
		return false
	}
	x.been[at] = true
	for i, o := range x.ops {
		if x.done[i] == 1 || o.call > first {
			continue
		}
		if after, ok := o.next(s); ok {
			x.done[i] = 1
			if x.find(after) {
				return true
			}
			x.done[i] = 0
		}
	}
	return false
}

// first returns when the first of the operations that have to be done has returned. Only
// those that were called before it may be next. dead says that the state leads nowhere.
func (x *search) first(s state) (first int64, dead bool) {
	first = math.MaxInt64
	for i, o := range x.ops {
		if x.done[i] == 1 {
			continue
		}
		first = min(first, o.ret) // one that need not be done never returned
		if o.left.Renewals != 0 && (s.row.Renewals > o.left.Renewals || s.row.Epoch > o.left.Epoch) {
			return 0, true
		}
	}
	return first, false
}

// quiet returns an operation that may be next and changes nothing, or -1.
func (x *search) quiet(s state, first int64) int {
	for i, o := range x.ops {
		if x.done[i] == 1 || o.may || o.call > first {
			continue
		}
		if after, ok := o.next(s); ok && after == s {
			return i
		}
	}
	return -1
}
