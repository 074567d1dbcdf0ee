package sqlserial

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"

	"github.com/snowkey/snowkey/core/internal/tables"
)

// maxGaps is how many gaps Gaps lists.
const maxGaps = 1000

// ErrManyGaps means that there are more than 1,000 gaps. The first 1,000 are listed.
var ErrManyGaps = errors.New("too many gaps")

// A Kind is what is wrong with numbers of a table.
type Kind int

const (
	// Missing is a number that was given out and is not in the table.
	Missing Kind = iota + 1
	// Repeated is a number that is in the table more than once.
	Repeated
	// Foreign is a number that was never given out.
	Foreign
)

// String returns the name of the constant.
func (k Kind) String() string {
	if k < Missing || k > Foreign {
		return "Kind(" + strconv.Itoa(int(k)) + ")"
	}
	return [...]string{"Missing", "Repeated", "Foreign"}[k-Missing]
}

// A Gap is the numbers from First to Last, all of one Kind.
type Gap struct {
	Kind        Kind
	First, Last int64
}

// Gaps compares the numbers of a period with its counter and returns what is wrong, in ascending
// order. The numbers come from a column of the user's table, in ascending order;
// [serial.Series.Parse] reads them from texts. Memory is constant, however many there are. Numbers
// that were moved in may be absent, since the other program may have left some out.
//
// Numbers that are taken meanwhile are not listed if the rows are read after the call has begun,
// as an iterator reads them. In a fast series, the numbers that a process holds or has lost are
// missing.
//
// A period that the series cannot have, and numbers that are not in order, are a
// [*core.ValueError], without gaps beside it.
func (s *Store) Gaps(ctx context.Context, series, period string, numbers iter.Seq[int64]) ([]Gap, error) {
	list, err := s.gaps(ctx, series, period, numbers)
	return list, s.explain("gaps", series, err)
}

func (s *Store) gaps(ctx context.Context, name, period string, numbers iter.Seq[int64]) ([]Gap, error) {
	series, err := s.definedPeriod(name, period)
	if err != nil {
		return nil, err
	}
	// What is committed before the rows are read must be among them. What is read must be
	// committed afterwards.
	before, moved, err := s.lastOf(ctx, series, period)
	if err != nil {
		return nil, err
	}
	found := gaps{first: series.first, end: before, next: moved + 1}
	var many error
	for n := range numbers {
		if many = found.add(n); many != nil {
			break
		}
	}
	if many == nil && found.next <= before {
		many = found.note(Missing, found.next, before)
	}
	if many != nil && !errors.Is(many, ErrManyGaps) {
		return nil, many
	}
	after, _, err := s.lastOf(ctx, series, period)
	if err != nil {
		return nil, err
	}
	return found.without(after), many
}

// lastOf returns the last number of a period that was given out, and the last one that was moved
// in. Each is the first number less 1 if there is none.
func (s *Store) lastOf(ctx context.Context, series *validSeries, period string) (last, moved int64, err error) {
	type both struct{ last, moved int64 }
	found, err := tables.Do(ctx, s.db, func(t *tx) (both, error) {
		c, err := s.row(ctx, t, t.Text.last, series, period)
		if err != nil {
			return both{}, err
		}
		events, err := s.events(ctx, t, series.Name, period)
		return both{c.last, movedIn(events, series.first)}, err
	})
	return found.last, found.moved, err
}

// gaps collects what is wrong.
type gaps struct {
	first, end int64 // the numbers that were given out before the rows were read
	list       []Gap
	next       int64 // the number that is expected next
	last       int64 // the number before, if some is set
	some       bool
}

// add looks at a number of the table. A number above end may be new.
func (g *gaps) add(n int64) error {
	if g.some && n <= g.last {
		if n < g.last {
			return invalid("number", strconv.FormatInt(n, 10), fmt.Sprintf("%d or more, which came before: sort the numbers", g.last))
		}
		return g.note(Repeated, n, n)
	}
	g.last, g.some = n, true
	if n < g.first {
		return g.note(Foreign, n, n)
	}
	known := min(n-1, g.end)
	if g.next <= known {
		if err := g.note(Missing, g.next, known); err != nil {
			return err
		}
	}
	g.next = max(g.next, min(n, g.end)+1)
	if n > g.end {
		return g.note(Foreign, n, n)
	}
	return nil
}

// note adds to the list. Neighbours of one kind are one gap, unless end is between them.
func (g *gaps) note(kind Kind, first, last int64) error {
	if n := len(g.list); n > 0 {
		before := &g.list[n-1]
		if before.Kind == kind && before.Last >= first-1 && (before.Last > g.end || first <= g.end) {
			before.Last = last
			return nil
		}
	}
	if len(g.list) == maxGaps {
		return fmt.Errorf("%w: want %d at most", ErrManyGaps, maxGaps)
	}
	g.list = append(g.list, Gap{kind, first, last})
	return nil
}

// without leaves out the foreign numbers that were given out meanwhile, which are above end and
// not above after.
func (g *gaps) without(after int64) []Gap {
	var kept []Gap
	for _, gap := range g.list {
		if gap.Kind == Foreign && gap.First > g.end {
			gap.First = max(gap.First, after+1)
		}
		if gap.First <= gap.Last {
			kept = append(kept, gap)
		}
	}
	return kept
}
