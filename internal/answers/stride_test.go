package answers

import (
	"testing"

	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/core/segment/segmenttest"
)

// A counter is a database with an increment and an offset, as MySQL has
// auto_increment_increment and auto_increment_offset.
type counter struct{ last, increment, offset int64 }

// next is the least number above last that is offset + n·increment.
func (c *counter) next() int64 {
	n := c.last + 1
	for n < c.offset || (n-c.offset)%c.increment != 0 {
		n++
	}
	c.last = n
	return n
}

// Two databases become three. Their increments are set one after the other, as operators
// do it, and each goes on from its own number.
func TestAThirdDatabaseGivesNumbersOfTheFirstTwo(t *testing.T) {
	first, second := &counter{0, 2, 1}, &counter{0, 2, 2}
	given := map[int64]string{}
	twice := int64(0)
	take := func(name string, c *counter, n int) {
		for range n {
			id := c.next()
			if given[id] != "" {
				twice = id
			}
			given[id] = name
		}
	}
	take("first", first, 10) // 1, 3, …, 19
	take("second", second, 10)
	first.increment, first.offset = 3, 1
	take("first", first, 3) // 22, 25, 28
	take("second", second, 5)
	if twice != 28 {
		t.Errorf("the number given twice is %d; want 28: the second has still the increment 2", twice)
	}
	// Even when all three are set, the third begins with numbers that were given.
	second.increment, second.offset = 3, 2
	twice = 0
	take("third", &counter{0, 3, 3}, 1)
	if twice != 3 {
		t.Errorf("the number given twice is %d; want 3: the third begins at the start", twice)
	}
}

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
