package roworder_test

import (
	"slices"
	"testing"

	"github.com/snowkey/snowkey/internal/base/roworder"
)

func TestRowsComeAfterTheirParentsAndElseInTheirOrder(t *testing.T) {
	for _, c := range []struct {
		parents [][]int // of each row
		want    []int
	}{
		{nil, []int{}},
		{[][]int{{}, {}, {}}, []int{0, 1, 2}},
		{[][]int{{1, 2}, {}, {}}, []int{1, 2, 0}},
		{[][]int{{2, 1}, {}, {}}, []int{2, 1, 0}},
		{[][]int{{3}, {2, 3}, {}, {}}, []int{3, 0, 2, 1}},
		{[][]int{{1, 2}, {2}, {}}, []int{2, 1, 0}},
		{[][]int{{2, 1, 2}, {2, 2}, {}}, []int{2, 1, 0}},
		{[][]int{{1}, {2}, {0}}, []int{2, 1, 0}},           // a circle
		{[][]int{{0}, {1, 0}}, []int{0, 1}},                // rows that are their own parents
		{[][]int{{1, 3}, {2}, {1}, {}}, []int{2, 1, 3, 0}}, // a circle above a row
	} {
		got := roworder.ParentsFirst(len(c.parents), func(row int, yield func(parent int)) {
			for _, parent := range c.parents[row] {
				yield(parent)
			}
		})
		if !slices.Equal(got, c.want) {
			t.Errorf("ParentsFirst(%v) = %v; want %v", c.parents, got, c.want)
		}
	}
}

func TestAChainOfAnyLengthIsSorted(t *testing.T) {
	const n = 1_000_000
	order := roworder.ParentsFirst(n, func(row int, yield func(parent int)) {
		if row+1 < n {
			yield(row + 1)
		}
	})
	for i, row := range order {
		if row != n-1-i {
			t.Fatalf("row %d of the order = %d; want %d", i, row, n-1-i)
		}
	}
}
