//go:build linux

package fire

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/internal/proof/robust/chaos"
)

// CheckHistory returns an error unless the operations on each row are linearizable, that is,
// unless there is an order in which each of them does to the row what package lease defines,
// and which keeps the order of operations that did not overlap.
//
// A store that forgets a write, or has two primaries, yields a history that is not
// linearizable.
//
// dirtyReads allows a store more than package lease does: a holder may find its row lost in a state that
// a failover undoes. A PostgreSQL without a standby shows a write whose wait for the standby was cancelled and
// whose client was told that the outcome is unknown. That is safe, because a holder that finds its row lost
// writes nothing and issues no ID, so such an operation is left out if there was such a write. All writes must
// still have an order: one that reads such a state and then writes is confirmed only once the standby has both.
func CheckHistory(operations []chaos.Operation, patience time.Duration, dirtyReads bool) error {
	for worker := range int64(Rows) {
		var of []porcupine.Operation
		for i, o := range operations {
			if !concerns(o, worker) || dirtyReads && dirty(o, operations, worker) {
				continue
			}
			end := o.End
			if o.Outcome == chaos.Unknown {
				end = math.MaxInt64 // it may take effect at any later time
			}
			of = append(of, porcupine.Operation{ClientId: i, Input: o, Call: o.Begin, Output: nil, Return: end})
		}
		of = append(of, porcupine.Operation{ClientId: len(operations), Input: ended{}, Call: lastReturn(of) + 1, Return: math.MaxInt64})
		switch result, _ := porcupine.CheckOperationsVerbose(model(worker, known(of)), of, patience); result {
		case porcupine.Ok:
		case porcupine.Illegal:
			return fmt.Errorf("fire: the %d operations on row %d are not linearizable", len(of), worker)
		default:
			return fmt.Errorf("%w: the %d operations on row %d, in %v", errUndecided, len(of), worker, patience)
		}
	}
	return nil
}

// lingers bounds how long a server may continue a write that its client has abandoned.
const lingers = 5 * time.Second

// dirty reports whether o may have found a worker's row lost in a write with an unknown
// outcome. That write began before o ended. It is not much older than the last confirmed write,
// which would have confirmed it as well.
func dirty(o chaos.Operation, all []chaos.Operation, worker int64) bool {
	if o.Outcome != chaos.Lost {
		return false
	}
	var confirmed int64
	for _, w := range all {
		if concerns(w, worker) && w.Outcome == chaos.Done && w.End < o.Begin {
			confirmed = max(confirmed, w.Begin)
		}
	}
	return slices.ContainsFunc(all, func(w chaos.Operation) bool {
		return concerns(w, worker) && w.Outcome == chaos.Unknown && w.Begin < o.End && w.Begin > confirmed-int64(lingers)
	})
}

// errUndecided is the error of CheckHistory when the search has taken too long.
var errUndecided = errors.New("fire: whether they are linearizable was not found out")

// concerns reports whether an operation may have changed or seen the row of a worker. Claims
// that found no free row have seen every row, but are left out, because what they say about a
// single row depends on the store's clock.
func concerns(o chaos.Operation, worker int64) bool {
	switch {
	case o.Outcome == chaos.NoFree, o.Outcome == chaos.Refused:
		return false
	case o.Renewal != nil:
		return o.Renewal.Worker == worker
	case o.Release != nil:
		return o.Release.Worker == worker
	case o.Outcome == chaos.Done:
		return o.Reply.Row.Worker == worker
	}
	return true // a claim with an unknown outcome may have taken any row
}

// An ended is an operation after all others with a known outcome. An operation that had not
// taken effect by then never did, so each one before it did, and the search need not try both.
type ended struct{}

func lastReturn(of []porcupine.Operation) (last int64) {
	for _, p := range of {
		if p.Return < math.MaxInt64 {
			last = max(last, p.Return)
		}
	}
	return last
}

// A facts has the known writes of a row. Each write increments the row's Renewals, and each
// claim and release its Epoch, so no other operation can have made the same step. Without this,
// every outage leaves some dozens of claims that may have taken effect anywhere, in each of the
// rows, and the search takes too long.
type facts struct {
	written map[int64]bool // Renewals after a write
	passed  map[int64]bool // Epoch before a claim or a release
}

func known(of []porcupine.Operation) facts {
	f := facts{map[int64]bool{}, map[int64]bool{}}
	for _, p := range of {
		o, ok := p.Input.(chaos.Operation)
		switch {
		case !ok || o.Outcome != chaos.Done:
		case o.Release != nil:
			f.passed[o.Release.Epoch] = true
		default:
			f.written[o.Reply.Row.Renewals] = true
			if o.Claim != nil {
				f.passed[o.Reply.Row.Epoch-1] = true
			}
		}
	}
	return f
}

// A state is a possible state of the row. Its limit is unknown after an operation that took
// effect at an unknown time, because the limit depends on the store's clock.
type state struct {
	row   leasestore.Row
	vague bool // Until is not known
	ended bool
}

func model(worker int64, f facts) porcupine.Model {
	return (&porcupine.NondeterministicModel{
		Init: func() []any { return []any{state{row: leasestore.Row{Worker: worker}}} },
		Step: func(from, input, _ any) []any {
			s := from.(state)
			o, ok := input.(chaos.Operation)
			if !ok {
				s.ended = true
				return []any{s}
			}
			var next []any
			for _, s := range s.after(o, f) {
				next = append(next, s)
			}
			return next
		},
		Equal: func(a, b any) bool { return a == b },
	}).ToModel()
}

// after returns the states that the row may have after o, or none if o cannot have had its
// outcome.
func (s state) after(o chaos.Operation, f facts) []state {
	switch {
	case s.ended:
		return []state{s}
	case o.Outcome == chaos.Done && o.Release != nil:
		return s.released(o.Release)
	case o.Outcome == chaos.Done:
		return s.replied(o)
	case o.Outcome == chaos.Lost:
		if s.loses(o) {
			return []state{s}
		}
		return nil
	}
	if f.written[s.row.Renewals+1] || o.Renewal == nil && f.passed[s.row.Epoch] {
		return nil
	}
	return s.perhaps(o)
}

func (s state) released(r *leasestore.Release) []state {
	if row, err := r.Apply(s.row); err == nil {
		return []state{{row: row}}
	}
	return nil
}

// replied is after for a claim or a renewal that the store has answered. The answer shows the
// limit before it.
func (s state) replied(o chaos.Operation) []state {
	if !s.vague && s.row.Until != o.Reply.Before {
		return nil
	}
	s.row.Until = o.Reply.Before
	var next leasestore.Row
	var ok bool
	if o.Claim != nil {
		next, ok = o.Claim.Apply(s.row, o.Reply.Now)
		if next.Renewals+1 == o.Reply.Row.Renewals {
			next.Renewals++ // package sqllease writes the row again if the COMMIT has failed
		}
	} else {
		var err error
		next, err = o.Renewal.Apply(s.row, o.Reply.Now)
		ok = err == nil
	}
	if !ok || next != o.Reply.Row {
		return nil
	}
	return []state{{row: next}}
}

// loses reports whether the row refuses a renewal or a release. Under the guard a renewal may
// also have come too late.
func (s state) loses(o chaos.Operation) bool {
	if o.Renewal == nil {
		return len(s.released(o.Release)) == 0
	}
	r := *o.Renewal
	if r.Guard > 0 {
		return true
	}
	_, err := r.Apply(s.row, r.Now)
	return err != nil
}

// perhaps returns the state after an operation with an unknown outcome if it took effect now.
func (s state) perhaps(o chaos.Operation) []state {
	switch {
	case o.Release != nil:
		return s.released(o.Release)
	case o.Renewal != nil:
		r := *o.Renewal
		r.Guard = 0 // it may have arrived in time
		if row, err := r.Apply(s.row, r.Now); err == nil {
			row.Until = 0
			return []state{{row: row, vague: true}}
		}
		return nil
	}
	// The token of an unknown claim is never used again, so all of these claims leave the same
	// row, which reduces the states of the search.
	const nobody = "?"
	once := state{row: leasestore.Row{
		Worker: s.row.Worker, Epoch: s.row.Epoch + 1, Owner: nobody, Nonce: nobody, Renewals: s.row.Renewals + 1,
	}, vague: true}
	twice := once
	twice.row.Renewals++
	return []state{once, twice}
}
