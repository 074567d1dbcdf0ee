package sqlxhelper

import (
	"slices"
	"testing"
)

func TestRowsComeBehindThoseTheyReferToAndElseInTheirOrder(t *testing.T) {
	for _, c := range []struct {
		refers [][]int // of each row
		want   []int
	}{
		{[][]int{{}, {}, {}}, []int{0, 1, 2}},
		{[][]int{{1, 2}, {}, {}}, []int{1, 2, 0}},
		{[][]int{{3}, {2, 3}, {}, {}}, []int{3, 0, 2, 1}},
		{[][]int{{1}, {2}, {0}}, []int{2, 1, 0}}, // in a circle
	} {
		got := inOrder(len(c.refers), func(i int, yield func(to int)) {
			for _, to := range c.refers[i] {
				yield(to)
			}
		})
		if !slices.Equal(got, c.want) {
			t.Errorf("inOrder(%v) = %v; want %v", c.refers, got, c.want)
		}
	}
}
