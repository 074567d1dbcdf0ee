package leasetest

import (
	"math"
	"slices"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// An op is an operation on one row, and its outcome.
type op struct {
	call, ret int64 // when it was called and returned, in events; never: math.MaxInt64
	may       bool  // its outcome is unknown: it may not have been performed
	text      string

	// left is the row that the operation has left, if a reply says so.
	left leasestore.Row

	// next returns the state after the operation, and false if the operation cannot have had
	// its outcome in the given state.
	next func(state) (state, bool)
}

// A state is the row, and whether its Until is known. It is not after a write whose reply was
// lost, because it then depends on the store's clock at that time.
type state struct {
	row  leasestore.Row
	sure bool
}

// A verdict is the result of a search for an order.
type verdict string

const (
	ordered   verdict = "there is an order"
	disorder  verdict = "there is no order"
	undecided verdict = "too many orders to try"
)

// most bounds the states that a search visits. Where every outcome is known it needs about one
// per operation.
const most = 300_000

// linearizable reports whether one order explains the outcomes of all operations on a new row,
// one after the other, each between its call and its return. An operation with an unknown
// outcome may have taken effect at any time after its call, or never.
//
// It searches depth-first and remembers visited states. Three rules prune the search:
//
//   - An operation that may be next and changes nothing is next. Any order that has it later
//     can be rearranged, because the operations in between do not depend on it.
//   - Writes number the row, so a state is dead once its number exceeds that of a row that
//     still has to be left.
//   - Operations that must have taken effect go before those that need not.
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

// A place is a node of the search: the operations performed, and the state after them.
type place struct {
	done string
	state
}

// find reports whether the remaining operations can be performed from s on.
func (x *search) find(s state) bool {
	var quiet []int // performed here because they change nothing
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
			return true // the remaining operations need not have taken effect
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

// first returns when the first of the operations that must take effect has returned; only
// operations that were called before may be next. dead means that the state leads nowhere.
func (x *search) first(s state) (first int64, dead bool) {
	first = math.MaxInt64
	for i, o := range x.ops {
		if x.done[i] == 1 {
			continue
		}
		first = min(first, o.ret) // an optional operation never returned
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
