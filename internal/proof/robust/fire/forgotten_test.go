//go:build linux

package fire

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/internal/proof/robust/chaos"
)

// forgotten describes a confirmed write that the store has forgotten, or returns "". Each write
// of a row has a greater number than all before it, so the store has forgotten a write if a
// later one has the same number or a smaller one.
//
// CheckHistory finds more, but not in reasonable time, because a failover leaves many writes
// with unknown outcomes.
func forgotten(operations []chaos.Operation) string {
	of := map[int64][]chaos.Operation{} // confirmed, by worker
	for _, o := range operations {
		if o.Outcome == chaos.Done && o.Release == nil {
			of[o.Reply.Row.Worker] = append(of[o.Reply.Row.Worker], o)
		}
	}
	for worker, writes := range of {
		slices.SortFunc(writes, func(a, b chaos.Operation) int { return cmp.Compare(a.Begin, b.Begin) })
		for i, after := range writes {
			for _, before := range writes[:i] {
				a, b := before.Reply.Row.Renewals, after.Reply.Row.Renewals
				if a == b || a > b && before.End < after.Begin {
					return fmt.Sprintf("write %d of row %d, confirmed to process %s; process %s had write %d after that", a, worker, before.Process, after.Process, b)
				}
			}
		}
	}
	return ""
}

func TestForgottenWritesAreFound(t *testing.T) {
	write := func(worker, number, begin, end int64) chaos.Operation {
		return chaos.Operation{Claim: &leasestore.Claim{}, Outcome: chaos.Done, Begin: begin, End: end,
			Reply: leasestore.Reply{Row: leasestore.Row{Worker: worker, Renewals: number}}}
	}
	for _, test := range []struct {
		name string
		of   []chaos.Operation
		want bool
	}{
		{"in order", []chaos.Operation{write(0, 1, 1, 2), write(0, 2, 3, 4)}, false},
		{"at one time", []chaos.Operation{write(0, 2, 1, 4), write(0, 1, 2, 3)}, false},
		{"of two rows", []chaos.Operation{write(0, 2, 1, 2), write(1, 1, 3, 4)}, false},
		{"unknown", []chaos.Operation{{Claim: &leasestore.Claim{}, Begin: 1, Reply: leasestore.Reply{Row: leasestore.Row{Renewals: 7}}}, write(0, 1, 3, 4)}, false},
		{"smaller", []chaos.Operation{write(0, 3, 1, 2), write(0, 2, 3, 4)}, true},
		{"the same", []chaos.Operation{write(0, 2, 1, 4), write(0, 2, 2, 3)}, true},
	} {
		if got := forgotten(test.of); (got != "") != test.want {
			t.Errorf("%s: forgotten = %q; want some: %t", test.name, got, test.want)
		}
	}
}
