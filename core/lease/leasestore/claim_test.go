package leasestore

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestCandidatesAreTheWorkersThatWillDoEachOnce(t *testing.T) {
	for name, only := range map[string][]int64{"nil": nil, "some": {7, 3, 3, -1, 0, 1000, 9, 7}, "none": {}} {
		c := Claim{Space: Space{Workers: 10}, Only: only, Owner: "a"}
		want := map[string][]int64{"nil": {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, "some": {0, 3, 7, 9}}[name]
		first := c.Candidates()
		if got := slices.Sorted(slices.Values(first)); !slices.Equal(got, want) {
			t.Errorf("Only %v: Candidates() = %d; want %d in any order", only, first, want)
		}
		if again := c.Candidates(); !slices.Equal(first, again) {
			t.Errorf("Only %v: Candidates() = %d, then %d; want the same for a token", only, first, again)
		}
	}
	orders := map[string]bool{}
	for i := range 100 {
		c := Claim{Space: Space{Workers: 100}, Owner: fmt.Sprint(i)}
		orders[fmt.Sprint(c.Candidates())] = true
	}
	if len(orders) != 100 {
		t.Errorf("100 tokens have %d orders; want 100", len(orders))
	}
}

// Stores may hold a lock while they look at the rows. A pass over Only for each of 65,536
// rows takes two seconds, and a set for each of them minutes.
func TestAClaimOfEveryWorkerByNameIsAsCheapAsOneOfAny(t *testing.T) {
	const workers = 1 << 16
	var rows []Row
	c := Claim{Space: Space{Workers: workers}, Owner: "me", Window: 1000}
	for worker := range int64(workers) {
		c.Only = append(c.Only, worker)
		rows = append(rows, Row{Worker: worker, Owner: "x", Until: 5000})
	}
	rows[777].Owner = ""
	rows[777].Until = 0
	allocated := testing.AllocsPerRun(3, func() {
		if row, err := c.Choose(rows, 0, rand.IntN); err != nil || row.Worker != 777 {
			t.Errorf("Choose() = worker %d, %v; want 777", row.Worker, err)
		}
		if len(c.Candidates()) != workers {
			t.Error("Candidates() has not all workers")
		}
	})
	if free := testing.AllocsPerRun(1000, func() { c.Free(rows[777], 0) }); free > 4 || allocated > 10_000 {
		t.Errorf("Free() allocates %v times, Choose() and Candidates() %v; want no set for one row", free, allocated)
	}
}
