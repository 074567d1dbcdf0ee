// Package roworder sorts rows that refer to each other, for both plugins.
package roworder

import "slices"

// ParentsFirst returns the numbers below n, each after its parents, for which parents calls yield.
// Otherwise they rise. In a circle one row has to be before its parent; that parent is the row of the
// circle that was reached first.
//
// A chain may have as many links as there are rows, so there is no recursion.
func ParentsFirst(n int, parents func(row int, yield func(parent int))) []int {
	order := make([]int, 0, n)
	entered, done := make([]bool, n), make([]bool, n)
	var path []int
	enter := func(row int) {
		if !entered[row] {
			path = append(path, row)
		}
	}
	for row := range n {
		enter(row)
		for len(path) > 0 {
			top := path[len(path)-1]
			if entered[top] { // and its parents are done, or are waiting for it
				path = path[:len(path)-1]
				if !done[top] { // more than one row may have put it there
					done[top] = true
					order = append(order, top)
				}
				continue
			}
			entered[top] = true
			from := len(path)
			parents(top, enter)
			slices.Reverse(path[from:]) // the first is on top
		}
	}
	return order
}
