//go:build linux

package fire

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/internal/leasechaos"
)

// CheckHistory returns an error unless the operations on each row are linearizable:
// there is an order of them in which each does to the row what package lease defines, and
// in which one that had ended before another began comes first.
//
// What the store forgets makes a history that is not linearizable. So does a store that
// has two primaries.
func CheckHistory(operations []leasechaos.Operation, patience time.Duration) error {
	for worker := range int64(Rows) {
		var of []porcupine.Operation
		for i, o := range operations {
			if !concerns(o, worker) {
				continue
			}
			end := o.End
			if o.Outcome == leasechaos.Unknown {
				end = math.MaxInt64 // it may be done at any later time
			}
			of = append(of, porcupine.Operation{ClientId: i, Input: o, Call: o.Begin, Output: nil, Return: end})
		}
		of = withoutTraceless(of)
		switch result, _ := porcupine.CheckOperationsVerbose(model(worker), of, patience); result {
		case porcupine.Ok:
		case porcupine.Illegal:
			return fmt.Errorf("fire: the %d operations on row %d are not linearizable", len(of), worker)
		default:
			return fmt.Errorf("fire: whether the %d operations on row %d are linearizable was not found out in %v", len(of), worker, patience)
		}
	}
	return nil
}

// concerns reports whether an operation may have changed or seen the row of a worker.
// Claims that found no free row have seen them all. What they say of one row alone
// depends on the store's clock, so they are left out.
func concerns(o leasechaos.Operation, worker int64) bool {
	switch {
	case o.Outcome == leasechaos.NoFree, o.Outcome == leasechaos.Refused:
		return false
	case o.Renewal != nil:
		return o.Renewal.Worker == worker
	case o.Release != nil:
		return o.Release.Worker == worker
	case o.Outcome == leasechaos.Done:
		return o.Reply.Row.Worker == worker
	}
	return true // a claim whose outcome is unknown may have taken any row
}

// withoutTraceless removes the unknown claims that need not be considered. Each write adds
// one to the row's Renewals. So as many unknown ones as numbers are missing, up to the
// last reply, may have been done. All leave the same row: see perhaps. Each may have been
// done at any time after its beginning. So the first ones can stand for any others, and
// what came after the last reply nobody has seen.
//
// Without this every outage leaves some dozens of claims that may be done anywhere, in
// each of the rows, and the search takes too long.
func withoutTraceless(of []porcupine.Operation) []porcupine.Operation {
	last, known := int64(0), int64(0)
	var unknown []int64 // when they began
	for _, p := range of {
		switch o := p.Input.(leasechaos.Operation); {
		case o.Outcome == leasechaos.Done && o.Release == nil:
			known++
			last = max(last, o.Reply.Row.Renewals)
		case o.Outcome == leasechaos.Unknown && o.Claim != nil:
			unknown = append(unknown, p.Call)
		}
	}
	missing := max(0, last-known)
	if missing >= int64(len(unknown)) {
		return of
	}
	slices.Sort(unknown)
	return slices.DeleteFunc(of, func(p porcupine.Operation) bool {
		o := p.Input.(leasechaos.Operation)
		return o.Outcome == leasechaos.Unknown && o.Claim != nil && p.Call >= unknown[missing]
	})
}

// A state is what a row may be. Its limit is not known after an operation of which nobody
// knows when it was done: that depends on the store's clock.
type state struct {
	row   lease.Row
	vague bool // Until is not known
}

func model(worker int64) porcupine.Model {
	return (&porcupine.NondeterministicModel{
		Init: func() []any { return []any{state{row: lease.Row{Worker: worker}}} },
		Step: func(from, input, _ any) []any {
			var next []any
			for _, s := range from.(state).after(input.(leasechaos.Operation)) {
				next = append(next, s)
			}
			return next
		},
		Equal: func(a, b any) bool { return a == b },
		DescribeOperation: func(input, _ any) string {
			o := input.(leasechaos.Operation)
			return fmt.Sprintf("%s/%d %+v", o.Process, o.N, o)
		},
	}).ToModel()
}

// after returns the states that the row may have after o. There is none if o cannot have
// come out as it did.
func (s state) after(o leasechaos.Operation) []state {
	switch {
	case o.Outcome == leasechaos.Done && o.Release != nil:
		return s.released(o.Release)
	case o.Outcome == leasechaos.Done:
		return s.replied(o)
	case o.Outcome == leasechaos.Lost:
		if s.loses(o) {
			return []state{s}
		}
		return nil
	}
	return append(s.perhaps(o), s)
}

func (s state) released(r *lease.Release) []state {
	if row, err := r.Apply(s.row); err == nil {
		return []state{{row: row}}
	}
	return nil
}

// replied is after for a claim or a renewal that the store has answered. The answer tells
// the limit before it.
func (s state) replied(o leasechaos.Operation) []state {
	if !s.vague && s.row.Until != o.Reply.Before {
		return nil
	}
	s.row.Until = o.Reply.Before
	var next lease.Row
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

// loses reports whether the row refuses a renewal or a release. Under the guard a renewal
// may also have come too late.
func (s state) loses(o leasechaos.Operation) bool {
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

// perhaps returns the state after an operation of which nobody knows whether and when it
// was done, if it was done now.
func (s state) perhaps(o leasechaos.Operation) []state {
	switch {
	case o.Release != nil:
		return s.released(o.Release)
	case o.Renewal != nil:
		r := *o.Renewal
		r.Guard = 0 // it may have come in time
		if row, err := r.Apply(s.row, r.Now); err == nil {
			row.Until = 0
			return []state{{row, true}}
		}
		return nil
	}
	// Nobody uses the token of an unknown claim again. So all of them leave the same row,
	// and the search has fewer states.
	const nobody = "?"
	once := state{lease.Row{
		Worker: s.row.Worker, Epoch: s.row.Epoch + 1, Owner: nobody, Nonce: nobody, Renewals: s.row.Renewals + 1,
	}, true}
	twice := once
	twice.row.Renewals++
	return []state{once, twice}
}
