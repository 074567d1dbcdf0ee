//go:build unix

package chaos

import (
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/segment"
)

// Segments are chaos for a store of segments, with its table and no row.
type Segments struct {
	Name string // in the map of Main
	DSN  string // for the function of that map; in no error and no log
	SegmentStore

	// Torn makes the processes read the row and write it in two steps. Then numbers must
	// be repeated.
	Torn bool
}

// segmentTag is the tag of a run's row.
const segmentTag = "chaos"

// segmentPatience is how long a process that was asked to end may take.
const segmentPatience = 2 * time.Second

// Run makes the row, runs the processes and checks their numbers.
func (c Segments) Run(t *testing.T) {
	t.Helper()
	must(t, c.Create(t.Context(), segment.Row{Tag: segmentTag, Next: 1, Step: 100, Stride: 1}))
	g := newGroup(t, c.Name, segmenting, order[any]{Store: c.Name, DSN: c.DSN, Work: segmentWork{c.Torn}})
	g.stop, g.patience = time.Second, segmentPatience
	g.conduct(script{processes: 5, lasts: *lasts, enough: func() bool {
		count, repeated := g.numbers().duplicates()
		if c.Torn {
			return len(repeated) > 0
		}
		return count >= 2000 && g.restarts >= 4 && g.stops >= 4
	}})
	numbers := g.numbers()
	count, repeated := numbers.duplicates()
	t.Logf("%s, torn %t: %d numbers, %d of them repeated; %s", c.Name, c.Torn, count, len(repeated), g.sum())
	if c.Torn {
		if len(repeated) == 0 {
			t.Error("no number was repeated; want some, or the chaos proves nothing")
		}
		return
	}
	if len(repeated) > 0 {
		t.Errorf("%d numbers were repeated; want none. The first is %d, from %s", len(repeated), repeated[0], numbers.files(repeated[0]))
	}
	c.checkRow(t, numbers)
}

// checkRow fails the test if a number was returned that the row has not passed.
func (c Segments) checkRow(t *testing.T, numbers numberFiles) {
	t.Helper()
	rows, err := c.Rows(t.Context())
	if err != nil || len(rows) != 1 {
		t.Errorf("Rows = %+v, %v; want one row", rows, err)
		return
	}
	for name, list := range numbers {
		if len(list) > 0 && int64(list[len(list)-1]) >= rows[0].Next {
			t.Errorf("%s has %d; want a row that has passed it, of %+v", name, list[len(list)-1], rows[0])
		}
	}
}
