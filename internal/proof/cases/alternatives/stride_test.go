package alternatives

import (
	"testing"

	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/core/segment/segmenttest"
)

// The third row is there before Restride, which raises it above all that the others gave. A
// row that is made after it, and begins at 1, repeats what they gave.
func TestRestrideWithTheNewRowGivesNoNumberTwice(t *testing.T) {
	for _, late := range []bool{false, true} {
		stores := []*segmenttest.Memory{new(segmenttest.Memory), new(segmenttest.Memory), new(segmenttest.Memory)}
		create := func(i int, stride int64) {
			err := stores[i].Create(t.Context(), segment.Row{Tag: "a", Next: 1, Step: 1, Stride: stride, Offset: int64(i)})
			if err != nil {
				t.Fatal(err)
			}
		}
		given, twice := map[int64]bool{}, 0
		take := func(i, n int) {
			for range n {
				id := takeOne(t, stores[i])
				if given[id] {
					twice++
				}
				given[id] = true
			}
		}
		create(0, 2)
		create(1, 2)
		take(0, 10)
		take(1, 15)
		rows := []segment.Freezer{stores[0], stores[1], stores[2]}
		if late {
			rows = rows[:2]
		} else {
			create(2, 3)
		}
		if err := segment.Restride(t.Context(), "a", 3, rows...); err != nil {
			t.Fatal(err)
		}
		if late {
			create(2, 3)
		}
		for range 20 {
			take(0, 2)
			take(1, 3)
			take(2, 1)
		}
		if late != (twice > 0) {
			t.Errorf("the third row is made late: %v; %d numbers are given twice", late, twice)
		}
	}
}
