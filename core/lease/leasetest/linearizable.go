package leasetest

import (
	"math"
	"slices"

	"github.com/snowkey/snowkey/core/lease"
)

// An op is an operation on one row, and its outcome.
type op struct {
	call, ret int64 // when it was called and returned, in events; never: math.MaxInt64
	may       bool  // its outcome is unknown: it may as well not have been done
	text      string

	// left is the row that it has left, if a reply says so.
	left lease.Row

	// next returns the state that it leaves, if it can have been done, with the
	// outcome that it had, in this one.
	next func(state) (state, bool)
}

// A state is the row and whether its Until is known, as it is not after a write
// whose reply was lost: it depends on the store's clock at the time.
type state struct {
	row  lease.Row
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

// linearizable says whether the operations, on one row that was new, can have
// been done one after the other, each between its call and its return, so that
// all had the outcome that they had. One whose outcome is unknown may have been
// done at any time after its call, or not at all.
//
// It searches by depth and remembers where it has been. Three rules keep it from
// trying what cannot help:
//
//   - An operation that may be next and changes nothing is next. In any order that
//     has it later it can be moved here: what it passes does not depend on it.
//   - Writes number the row. A state that is past the number of a row that is
//     still to be left leads nowhere.
//   - Those that must have been done go before those that need not.
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

// first returns when the first of the operations that have to be done has returned: only
// those that were called before it may be next. The state leads nowhere if it is dead.
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
