package segmenttest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/segment"
)

// A Store is an implementation that the suite certifies.
type Store interface {
	segment.Store
	segment.Keeper
	segment.Lister
}

// A Harness opens the Stores that the suite tests. Only Open is required.
type Harness struct {
	// Open returns another Store over the same table, as another process would open it. The suite
	// creates rows whose tags begin with "suite".
	Open func(t *testing.T) Store

	// LosesReplies returns a Store over the same table that executes each request and then fails,
	// as if the reply had been lost. If it is nil, lost replies are not tested.
	LosesReplies func(t *testing.T) Store

	// Foreign returns a Store over a table of its own, whose columns accept any value, as another
	// program may have created it. The table has the columns of package sqlsegment and a row for
	// the tag, in which one column has the value: nil for NULL, an integer, a float64 or a string.
	// With the value [NoColumn] the table lacks the column. If Foreign is nil, no other program
	// can write to the rows.
	Foreign func(t *testing.T, tag, column string, value any) Store
}

// NoColumn is a value of Harness.Foreign.
const NoColumn = "no such column"

// Run runs the suite.
func Run(t *testing.T, h Harness) {
	for _, c := range []struct {
		name string
		run  func(*suite)
	}{
		{"a take without a count is one step", (*suite).step},
		{"takes from many processes share nothing and leave no gap", (*suite).concurrent},
		{"a take whose context ends shares nothing with others", (*suite).cancelled},
		{"a range whose reply is lost is never given out", (*suite).lostReply},
		{"a restart continues at the row", (*suite).restart},
		{"a take is above what it asks for", (*suite).above},
		{"stride and offset come from the row", (*suite).stride},
		{"another stride is refused", (*suite).otherStride},
		{"the end of the numbers is not passed", (*suite).exhausted},
		{"a tag without a row is ErrNoTag until it is created", (*suite).noTag},
		{"tags that look alike are different", (*suite).tags},
		{"the end of the last range is accepted back", (*suite).giveBack},
		{"a range that is given back twice is accepted once", (*suite).giveBackTwice},
		{"a range is accepted back only if none was taken since", (*suite).giveBackLate},
		{"a row that gave nothing takes nothing back", (*suite).giveBackNothing},
		{"raise never lowers", (*suite).raise},
		{"create keeps an existing row", (*suite).create},
		{"create refuses values out of range", (*suite).badRows},
		{"a context that has ended changes nothing", (*suite).ended},
		{"values that others wrote are refused by column, value and range", (*suite).foreign},
		{"a table of another form is refused", (*suite).otherTable},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			s := &suite{T: t, harness: h, open: h.Open, store: h.Open(t)}
			s.tag = fmt.Sprintf("suite %s %d", c.name[:min(40, len(c.name))], rand.Uint32())
			c.run(s)
		})
	}
}

type suite struct {
	*testing.T
	harness Harness
	open    func(*testing.T) Store
	store   Store
	tag     string
}

// make creates the row of the test.
func (s *suite) make(next, step, stride, offset int64) {
	s.Helper()
	row := segment.Row{Tag: s.tag, Next: next, Step: step, Stride: stride, Offset: offset}
	if err := s.store.Create(s.Context(), row); err != nil {
		s.Fatalf("Create(%+v) = %v", row, err)
	}
}

func (s *suite) take(t segment.Take) segment.Range {
	s.Helper()
	t.Tag = s.tag
	r, err := s.store.Take(s.Context(), t)
	if err != nil {
		s.Fatalf("Take(%+v) = %v", t, err)
	}
	return r
}

// want checks the row of the test.
func (s *suite) want(next int64) segment.Row {
	s.Helper()
	row := s.row(s.tag)
	if row.Next != next {
		s.Errorf("the row has next = %d; want %d", row.Next, next)
	}
	return row
}

func (s *suite) row(tag string) segment.Row {
	s.Helper()
	rows, err := s.open(s.T).Rows(s.Context())
	if err != nil {
		s.Fatalf("Rows = %v", err)
	}
	for _, r := range rows {
		if r.Tag == tag {
			return r
		}
	}
	s.Fatalf("Rows has no tag %q", tag)
	return segment.Row{}
}

func (s *suite) step() {
	s.make(1, 7, 1, 0)
	want := segment.Range{First: 1, Last: 7, Stride: 1, Version: 1, Step: 7}
	if got := s.take(segment.Take{}); got != want {
		s.Errorf("the first Take = %+v; want %+v", got, want)
	}
	want = segment.Range{First: 8, Last: 10, Stride: 1, Version: 2, Step: 7}
	if got := s.take(segment.Take{Count: 3}); got != want {
		s.Errorf("Take of 3 = %+v; want %+v", got, want)
	}
	if row := s.want(11); row.Version != 2 || row.Step != 7 {
		s.Errorf("the row is %+v; want version 2 and step 7", row)
	}
}

// concurrent checks that Takes are linearizable. A Take adds to the row and returns what it held, so
// only the order of the ranges can explain what all of them got. It does so if each range begins
// where the one before it ended, and if no Take that began after another had returned got an earlier
// range.
func (s *suite) concurrent() {
	s.make(5, 3, 1, 0)
	const stores, callers, takes = 3, 4, 15
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex
		ranges []segment.Range
		top    atomic.Int64 // the greatest end of a Take that has returned
	)
	var opened [stores]Store // opened before the first caller starts, because open may end the test
	for i := range opened {
		opened[i] = s.open(s.T)
	}
	for _, store := range opened {
		for range callers {
			wg.Go(func() {
				for i := range takes {
					before := top.Load()
					r, err := store.Take(s.Context(), segment.Take{Tag: s.tag, Count: int64(i%4) * 5})
					if err != nil {
						s.Errorf("Take = %v", err)
						return
					}
					s.follows(&top, before, r)
					mu.Lock()
					ranges = append(ranges, r)
					mu.Unlock()
				}
			})
		}
	}
	wg.Wait()
	end := disjoint(s.T, ranges)
	total := int64(5)
	for _, r := range ranges {
		total += r.Last - r.First + 1
	}
	if end != total {
		s.Errorf("the last range ends before %d; want %d: a gap without a failure", end, total)
	}
	if row := s.want(end); row.Version != stores*callers*takes {
		s.Errorf("the version after %d takes is %d", stores*callers*takes, row.Version)
	}
}

// follows checks that a range is above before, the greatest end of a Take that had returned when this
// one began, and raises top to its end.
func (s *suite) follows(top *atomic.Int64, before int64, r segment.Range) {
	s.Helper()
	if r.First <= before {
		s.Errorf("Take = %+v, begun after one that ended with %d had returned", r, before)
	}
	for t := top.Load(); t < r.Last && !top.CompareAndSwap(t, r.Last); t = top.Load() {
	}
}

// disjoint returns the end of the last range.
func disjoint(t *testing.T, ranges []segment.Range) (end int64) {
	t.Helper()
	slices.SortFunc(ranges, func(a, b segment.Range) int { return int(a.First - b.First) })
	for _, r := range ranges {
		if r.Last < r.First || r.First < end {
			t.Fatalf("the range %+v begins before %d, where another ended", r, end)
		}
		end = r.Last + 1
	}
	return end
}

// cancelled ends contexts at random moments. The outcome of such a Take is unknown, the caller uses
// no number of it, and it may take effect at any later time, so that the other ranges may have gaps.
// They are linearizable if they are disjoint and follow each other.
func (s *suite) cancelled() {
	s.make(1, 10, 1, 0)
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex
		ranges []segment.Range
		top    atomic.Int64
	)
	for range 4 {
		store := s.open(s.T)
		wg.Go(func() {
			for range 15 {
				before := top.Load()
				ctx, cancel := context.WithTimeout(s.Context(), rand.N(3*time.Millisecond))
				r, err := store.Take(ctx, segment.Take{Tag: s.tag})
				cancel()
				if err == nil {
					s.follows(&top, before, r)
					mu.Lock()
					ranges = append(ranges, r)
					mu.Unlock()
				} else if r != (segment.Range{}) {
					s.Errorf("Take = %+v beside the error %v; want no range", r, err)
				}
			}
		})
	}
	wg.Wait()
	ranges = append(ranges, s.take(segment.Take{}))
	s.want(disjoint(s.T, ranges))
}

// lostReply takes a range whose reply is lost. The range must be burnt, and the request must not be
// executed a second time.
func (s *suite) lostReply() {
	if s.harness.LosesReplies == nil {
		s.Skip("the harness has no LosesReplies")
	}
	s.make(1, 10, 1, 0)
	lossy := s.harness.LosesReplies(s.T)
	r, err := lossy.Take(s.Context(), segment.Take{Tag: s.tag})
	if err == nil || r != (segment.Range{}) {
		s.Errorf("Take whose reply is lost = %+v, %v; want an error, and no range", r, err)
	}
	for _, refused := range []error{segment.ErrNoTag, segment.ErrExhausted, segment.ErrStride} {
		if errors.Is(err, refused) {
			s.Errorf("Take whose reply is lost = %v, which says that the row was not moved", err)
		}
	}
	s.want(11)
	got := s.take(segment.Take{})
	if got.First != 11 {
		s.Errorf("the next Take begins with %d; want 11", got.First)
	}
	if err := lossy.GiveBack(s.Context(), segment.GiveBack{Tag: s.tag, First: 15, End: 21, Version: got.Version}); err == nil {
		s.Error("GiveBack whose reply is lost = nil; want an error")
	}
	s.want(15)
}

// restart opens the table anew after each operation.
func (s *suite) restart() {
	s.make(1, 10, 1, 0)
	for i := range int64(3) {
		s.store = s.open(s.T)
		r := s.take(segment.Take{})
		if r.First != 1+5*i {
			s.Errorf("the Take after %d restarts begins with %d; want %d", i, r.First, 1+5*i)
		}
		s.store = s.open(s.T)
		s.giveBackOK(segment.GiveBack{First: r.First + 5, End: r.Last + 1, Version: r.Version})
	}
	s.want(16)
}

func (s *suite) above() {
	s.make(1, 10, 3, 2) // numbers 5, 8, 11, …
	for _, c := range []struct{ above, first int64 }{
		{0, 1},   // 1..10
		{4, 11},  // already above
		{62, 21}, // 62 is the number of k = 20
		{100, 33},
		{101, 43},
		{1000, 333},
	} {
		if r := s.take(segment.Take{Count: 10, Above: c.above}); r.First != c.first {
			s.Errorf("Take above %d begins with k = %d, the number %d; want %d", c.above, r.First, r.First*3+2, c.first)
		}
	}
	s.want(343)
}

func (s *suite) stride() {
	s.make(0, 2, 5, 4)
	want := segment.Range{First: 0, Last: 1, Stride: 5, Offset: 4, Version: 1, Step: 2}
	if got := s.take(segment.Take{Stride: 5}); got != want {
		s.Errorf("Take = %+v; want %+v", got, want)
	}
}

func (s *suite) otherStride() {
	s.make(1, 2, 2, 0)
	if r, err := s.store.Take(s.Context(), segment.Take{Tag: s.tag, Stride: 3}); !errors.Is(err, segment.ErrStride) || r != (segment.Range{}) {
		s.Errorf("Take with stride 3 of a row with 2 = %+v, %v; want %v", r, err, segment.ErrStride)
	}
	if row := s.want(1); row.Version != 0 {
		s.Errorf("the version is %d; want 0", row.Version)
	}
}

func (s *suite) exhausted() {
	for i, c := range []struct{ next, stride, offset, count, above int64 }{
		{math.MaxInt64 - 10, 1, 0, 20, 0},
		{1, 1, 0, 1, math.MaxInt64},
		{1, 1, 0, segment.MaxCount, math.MaxInt64 - 5},
		{math.MaxInt64/3 - 5, 3, 2, 10, 0},
		{math.MaxInt64, 1, 0, 1, 0},
	} {
		s.tag += fmt.Sprint(i)
		s.make(c.next, 1, c.stride, c.offset)
		r, err := s.store.Take(s.Context(), segment.Take{Tag: s.tag, Count: c.count, Above: c.above})
		if !errors.Is(err, segment.ErrExhausted) || r != (segment.Range{}) {
			s.Errorf("Take of %+v = %+v, %v; want %v", c, r, err, segment.ErrExhausted)
		}
		s.want(c.next)
	}
	s.tag += "last"
	s.make(math.MaxInt64-10, 1, 1, 0)
	if r := s.take(segment.Take{Count: 10}); r.Last != math.MaxInt64-1 {
		s.Errorf("Take of the last ten = %+v; want it to end with %d", r, int64(math.MaxInt64-1))
	}
	s.want(math.MaxInt64)
}

func (s *suite) noTag() {
	if _, err := s.store.Take(s.Context(), segment.Take{Tag: s.tag}); !errors.Is(err, segment.ErrNoTag) || !strings.Contains(err.Error(), s.tag) {
		s.Errorf("Take = %v; want an error that matches %v and names the tag", err, segment.ErrNoTag)
	}
	if _, err := s.store.Raise(s.Context(), s.tag, 5); !errors.Is(err, segment.ErrNoTag) {
		s.Errorf("Raise = %v; want %v", err, segment.ErrNoTag)
	}
	s.make(1, 1, 1, 0)
	s.take(segment.Take{})
}

func (s *suite) tags() {
	base := s.tag
	for _, tag := range []string{base + "a", base + "A", base + "a ", base + " a", base + "'\"`\\", base + "%_", base + "?$1:a"} {
		s.tag = tag
		row := segment.Row{Tag: tag, Next: 1, Step: 1, Stride: 1}
		if err := s.store.Create(s.Context(), row); err != nil {
			// MySQL ignores trailing spaces. It may refuse the second of two tags, but must not take
			// one for the other.
			if _, err := s.store.Take(s.Context(), segment.Take{Tag: tag}); tag != base+"a " || !errors.Is(err, segment.ErrNoTag) {
				s.Errorf("Create of tag %q = %v, then Take = %v", tag, row, err)
			}
			continue
		}
		if r := s.take(segment.Take{}); r.First != 1 {
			s.Errorf("the first k of tag %q is %d; want 1: another tag was taken for it", tag, r.First)
		}
	}
}

func (s *suite) giveBack() {
	s.make(1, 10, 1, 0)
	r := s.take(segment.Take{})
	s.giveBackOK(segment.GiveBack{First: 4, End: 11, Version: r.Version})
	if row := s.want(4); row.Version <= r.Version {
		s.Errorf("the version after GiveBack is %d; want more than %d", row.Version, r.Version)
	}
	if again := s.take(segment.Take{}); again.First != 4 {
		s.Errorf("the next Take begins with %d; want 4", again.First)
	}
}

func (s *suite) giveBackOK(g segment.GiveBack) {
	s.Helper()
	g.Tag = s.tag
	if err := s.store.GiveBack(s.Context(), g); err != nil {
		s.Errorf("GiveBack(%+v) = %v; want nil", g, err)
	}
}

func (s *suite) giveBackTwice() {
	s.make(1, 10, 1, 0)
	first := s.take(segment.Take{})
	back := segment.GiveBack{First: 6, End: 11, Version: first.Version}
	s.giveBackOK(back)
	s.take(segment.Take{Count: 5}) // next is 11 again
	s.giveBackOK(back)
	s.want(11)
}

func (s *suite) giveBackLate() {
	s.make(1, 10, 1, 0)
	r := s.take(segment.Take{})
	s.take(segment.Take{})
	s.giveBackOK(segment.GiveBack{First: 5, End: 11, Version: r.Version})
	s.want(21)
	// The same max_id but another version.
	s.giveBackOK(segment.GiveBack{First: 5, End: 21, Version: r.Version})
	s.want(21)
	// The same version but another max_id, as after a client that has no versions.
	s.giveBackOK(segment.GiveBack{First: 5, End: 11, Version: r.Version + 1})
	s.want(21)
	// No number, and less than none.
	s.giveBackOK(segment.GiveBack{First: 21, End: 21, Version: r.Version + 1})
	s.giveBackOK(segment.GiveBack{First: 25, End: 21, Version: r.Version + 1})
	s.want(21)
}

// giveBackNothing offers the zero range, as a client does that has taken none.
func (s *suite) giveBackNothing() {
	s.make(1, 10, 2, 1)
	s.giveBackOK(segment.GiveBack{First: 0, End: 1})
	s.want(1)
}

func (s *suite) raise() {
	s.make(10, 1, 1, 0)
	r := s.take(segment.Take{})
	for _, c := range []struct{ next, want int64 }{{5, 11}, {11, 11}, {50, 50}, {49, 50}, {-3, 50}} {
		row, err := s.store.Raise(s.Context(), s.tag, c.next)
		if err != nil || row.Next != c.want {
			s.Errorf("Raise to %d = %+v, %v; want next = %d", c.next, row, err, c.want)
		}
	}
	s.giveBackOK(segment.GiveBack{First: 10, End: 11, Version: r.Version})
	s.want(50)
}

func (s *suite) create() {
	s.make(100, 5, 1, 0)
	if err := s.store.Create(s.Context(), segment.Row{Tag: s.tag, Next: 1, Step: 1, Stride: 1}); err == nil {
		s.Error("a second Create = nil; want an error")
	}
	s.want(100)
}

func (s *suite) badRows() {
	good := segment.Row{Tag: s.tag, Next: 1, Step: 1, Stride: 1}
	for name, change := range map[string]func(*segment.Row){
		"no tag":             func(r *segment.Row) { r.Tag = "" },
		"a tag of 129 bytes": func(r *segment.Row) { r.Tag = strings.Repeat("x", 129) },
		"a tag with a NUL":   func(r *segment.Row) { r.Tag += "\x00" },
		"a tag with ü":       func(r *segment.Row) { r.Tag += "ü" },
		"a negative next":    func(r *segment.Row) { r.Next = -1 },
		"step 0":             func(r *segment.Row) { r.Step = 0 },
		"a huge step":        func(r *segment.Row) { r.Step = segment.MaxCount + 1 },
		"stride 0":           func(r *segment.Row) { r.Stride = 0 },
		"offset 1 of 1":      func(r *segment.Row) { r.Offset = 1 },
		"a negative offset":  func(r *segment.Row) { r.Offset = -1 },
	} {
		row := good
		change(&row)
		var value *core.ValueError
		if err := s.store.Create(s.Context(), row); !errors.As(err, &value) {
			s.Errorf("Create with %s = %v; want a *core.ValueError", name, err)
		}
	}
}

func (s *suite) ended() {
	s.make(1, 1, 1, 0)
	r := s.take(segment.Take{})
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	if _, err := s.store.Take(ctx, segment.Take{Tag: s.tag}); !errors.Is(err, context.Canceled) {
		s.Errorf("Take = %v; want %v", err, context.Canceled)
	}
	if err := s.store.GiveBack(ctx, segment.GiveBack{Tag: s.tag, First: 1, End: 2, Version: r.Version}); !errors.Is(err, context.Canceled) {
		s.Errorf("GiveBack = %v; want %v", err, context.Canceled)
	}
	s.want(2)
}

func (s *suite) foreign() {
	if s.harness.Foreign == nil {
		s.Skip("the harness has no Foreign")
	}
	for i, c := range []struct {
		column string
		value  any
	}{
		{"max_id", nil},
		{"max_id", -1},
		{"max_id", 1.5},
		{"max_id", "x"},
		{"step", nil},
		{"step", 0},
		{"step", -5},
		{"step", 2.5},
		{"step", int64(segment.MaxCount + 1)},
		{"stride", nil},
		{"stride", 0},
		{"stride", int64(1 << 40)},
		{"number_offset", nil},
		{"number_offset", -1},
		{"number_offset", 1}, // the stride is 1
		{"version", nil},
		{"version", -1},
		{"version", int64(math.MaxInt64)},
	} {
		tag := fmt.Sprint("suite ", i)
		store := s.harness.Foreign(s.T, tag, c.column, c.value)
		r, err := store.Take(s.Context(), segment.Take{Tag: tag})
		s.refused("Take", err, c.column, c.value)
		if r != (segment.Range{}) {
			s.Errorf("Take with %s = %v is %+v; want no range", c.column, c.value, r)
		}
		s.refused("GiveBack", store.GiveBack(s.Context(), segment.GiveBack{Tag: tag, First: 1, End: 2}), c.column, c.value)
		_, err = store.Raise(s.Context(), tag, 100)
		s.refused("Raise", err, c.column, c.value)
		_, err = store.Rows(s.Context())
		s.refused("Rows", err, c.column, c.value)
		if err == nil || !strings.Contains(err.Error(), tag) {
			s.Errorf("Rows with %s = %v: %v; want that it names the tag %q", c.column, c.value, err, tag)
		}
	}
}

// refused checks that an error names the column, the value and the range.
func (s *suite) refused(what string, err error, column string, value any) {
	s.Helper()
	text := fmt.Sprint(value)
	if value == nil {
		text = "NULL"
	}
	var wrong *core.ValueError
	if !errors.As(err, &wrong) || !strings.Contains(wrong.Name, column) || !strings.Contains(fmt.Sprint(wrong.Value), text) || wrong.Want == "" {
		s.Errorf("%s with %s = %v: %v; want a *core.ValueError with column, value and range", what, column, value, err)
	}
}

func (s *suite) otherTable() {
	if s.harness.Foreign == nil {
		s.Skip("the harness has no Foreign")
	}
	for i, column := range []string{"version", "max_id"} {
		tag := fmt.Sprint("suite other ", i)
		store := s.harness.Foreign(s.T, tag, column, NoColumn)
		if r, err := store.Take(s.Context(), segment.Take{Tag: tag}); err == nil || r != (segment.Range{}) || !strings.Contains(err.Error(), column) {
			s.Errorf("Take from a table without %s = %+v, %v; want an error that names it", column, r, err)
		}
	}
}
