package sqlrow

import (
	"slices"
	"testing"
)

func TestTheVisibleSchemaIsTheFirstThatHasTheTableOrElseTheFirst(t *testing.T) {
	for _, test := range []struct {
		all  []Schema
		want string
	}{
		{nil, ""},
		{[]Schema{{"elsewhere", 0, true}}, ""},
		{[]Schema{{"second", 2, false}, {"first", 1, false}, {"third", 3, false}}, "first"},
		{[]Schema{{"second", 2, true}, {"first", 1, false}, {"third", 3, true}, {"elsewhere", 0, true}}, "second"},
		{[]Schema{{"elsewhere", 0, true}, {"first", 1, false}}, "first"},
		{[]Schema{{"third", 3, true}, {"first", 1, true}, {"second", 2, true}}, "first"},
	} {
		for range len(test.all) + 1 { // in each order of a circle, and backward
			for range 2 {
				if home, ok := Visible(test.all); home != test.want || ok != (home != "") {
					t.Errorf("Visible(%+v) = %q, %t; want %q", test.all, home, ok, test.want)
				}
				slices.Reverse(test.all)
			}
			if len(test.all) > 0 {
				test.all = append(test.all[1:], test.all[0])
			}
		}
	}
}
