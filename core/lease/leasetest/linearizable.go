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
	type place struct {
		done string
		state
	}
	done := make([]byte, len(ops)) // 1: yes
	been := map[place]bool{}

	var search func(s state) bool
	search = func(s state) bool {
		var quiet []int // done here because they change nothing
		defer func() {
			for _, i := range quiet {
				done[i] = 0
			}
		}()
	again:
		// An operation may be next if none that has to be done returned before its call.
		first := int64(math.MaxInt64)
		for i, o := range ops {
			if done[i] == 0 { // one that need not be done never returned
				first = min(first, o.ret)
				if o.left.Renewals != 0 && (s.row.Renewals > o.left.Renewals || s.row.Epoch > o.left.Epoch) {
					return false
				}
			}
		}
		if first == math.MaxInt64 {
			return true // what is left need not have been done
		}
		for i, o := range ops {
			if done[i] == 1 || o.may || o.call > first {
				continue
			}
			if after, ok := o.next(s); ok && after == s {
				done[i] = 1
				quiet = append(quiet, i)
				goto again
			}
		}

		at := place{string(done), s}
		if been[at] || len(been) == most {
			return false
		}
		been[at] = true
		for i, o := range ops {
			if done[i] == 1 || o.call > first {
				continue
			}
			if after, ok := o.next(s); ok {
				done[i] = 1
				if search(after) {
					return true
				}
				done[i] = 0
			}
		}
		return false
	}
	switch {
	case search(state{sure: true}):
		return ordered
	case len(been) == most:
		return undecided
	}
	return disorder
}
