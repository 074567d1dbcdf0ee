package segment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/snowkey/snowkey/core"
)

const (
	// passOver is how long a database may take before the next one is asked.
	passOver = time.Second

	// A database that has failed is asked again after firstAbsence, which doubles with each further
	// failure up to lastAbsence. If it hangs, one fetch per minute takes passOver longer.
	firstAbsence = time.Second
	lastAbsence  = time.Minute
)

// Spread returns a Store over several databases. Each has a row for the tag, all with the same
// stride and each with an offset of its own: with three databases the stride 3 and the offsets
// 0, 1 and 2. No number then belongs to two of them. A database that is unreachable costs no
// numbers and no wait; it is tried again after a second and, if it stays unreachable, once a
// minute. The log of an Allocator says when a database fails and when it is back, and [Stats]
// has an entry for each. Spread is experimental.
//
// Numbers still increase: each range is above all numbers that this Store has returned, and the
// row that it comes from is raised to there, which leaves gaps in a database that lags behind.
//
// A database is refused with ErrStride if its row has another stride than the others, an offset
// that another one has (as one database that is named twice does), or a stride that is less than
// the number of databases. An impossible range is a [*core.ValueError]. Every range is checked
// before it is used, and a mistake is reported even while other databases are correct.
func Spread(stores ...Store) (Store, error) {
	if len(stores) == 0 {
		return nil, invalid("stores", "empty", "one store or more")
	}
	for i, s := range stores {
		if s == nil {
			return nil, invalid(fmt.Sprintf("stores[%d]", i), "nil", "a Store")
		}
	}
	return &spread{stores: stores, tags: map[string]*spreadTag{}}, nil
}

type spread struct {
	stores []Store
	mu     sync.Mutex
	tags   map[string]*spreadTag
}

// A spreadTag is the state of a spread for one tag.
type spreadTag struct {
	turn    chan struct{} // guards the fields up to next; held for a Take or a GiveBack
	stride  int64         // 0: not known
	changed bool          // the stride has changed, and not every database has confirmed the new one
	top     int64         // the greatest number that was returned
	ranges  int64         // how many ranges were returned
	members []member
	next    int // the member to ask first

	mu    sync.Mutex // guards lines, which are read without turn
	lines []Database
}

// A member is the row of a tag in one database.
type member struct {
	busy    chan struct{} // held by a call, which may have been passed over
	offset  int64         // -1: not known
	version int64         // of its last range; 0: none
	issued  int64         // the Version under which the spread returned that range; 0: none
	absence time.Duration // how long it is not asked after a failure; 0: its last call returned a range
	until   time.Time     // the end of the absence
}

func (s *spread) tag(name string) *spreadTag {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tags[name]
	if t == nil {
		t = &spreadTag{turn: make(chan struct{}, 1), members: make([]member, len(s.stores)), lines: make([]Database, len(s.stores))}
		for i := range t.members {
			t.members[i] = member{busy: make(chan struct{}, 1), offset: -1}
		}
		s.tags[name] = t
	}
	return t
}

// Take asks one database after the other, those that have failed last.
func (s *spread) Take(ctx context.Context, t Take) (Range, error) {
	tag := s.tag(t.Tag)
	if err := tag.lock(ctx); err != nil {
		return Range{}, err
	}
	defer tag.unlock()
	var errs, ends []error
	for _, i := range tag.order(time.Now()) {
		r, err := s.takeFrom(ctx, tag, i, t)
		if tag.changed || errors.Is(err, ErrStride) && !errors.Is(err, ErrFrozen) && tag.stride != 0 {
			if err = s.restart(ctx, tag, t); err == nil {
				r, err = s.takeFrom(ctx, tag, i, t)
			}
		}
		if err == nil {
			tag.next = (i + 1) % len(s.stores)
			// GiveBack finds the database by the version that is returned. By the row's own
			// version and k it could find another database with the same values, whose row would
			// then go back below numbers that it gave away.
			tag.ranges++
			tag.members[i].issued, r.Version = tag.ranges, tag.ranges
			return r, nil
		}
		if tag.changed || isMistake(err) || ctx.Err() != nil {
			return Range{}, err
		}
		tag.members[i].fail(time.Now())
		if errors.Is(err, ErrExhausted) {
			ends = append(ends, err)
		} else {
			errs = append(errs, err)
		}
	}
	if len(errs) == 0 {
		return Range{}, errors.Join(ends...)
	}
	// Databases that have failed otherwise may have numbers left, so the result must not match
	// ErrExhausted.
	for _, err := range ends {
		errs = append(errs, errors.New(err.Error()))
	}
	return Range{}, errors.Join(errs...)
}

// isMistake reports whether err means that the databases do not fit together, which must be
// reported even if another database would answer.
func isMistake(err error) bool {
	return errors.Is(err, ErrStride) || errors.Is(err, ErrWentBack) || errors.Is(err, ErrNoTag) || errors.As(err, new(*core.ValueError))
}

// fail notes that a member has returned no range.
func (m *member) fail(now time.Time) {
	m.absence = min(max(2*m.absence, firstAbsence), lastAbsence)
	m.until = now.Add(m.absence)
}

// restart forgets the stride and the offsets and asks every database for them, which costs one
// number of each. No range is used until all have answered, because a database that still has the
// old stride could return numbers of the others.
func (s *spread) restart(ctx context.Context, tag *spreadTag, t Take) error {
	tag.changed, tag.stride = true, 0
	for i := range tag.members {
		tag.members[i].offset = -1
	}
	for i := range tag.members {
		if _, err := s.takeFrom(ctx, tag, i, Take{Tag: t.Tag, Count: 1, Above: t.Above, Waited: t.Waited}); err != nil {
			return fmt.Errorf("after a change of the stride every database must answer: %w", err)
		}
	}
	tag.changed = false
	return nil
}

// takeFrom asks one database and passes it over after a second. A range that it returns later is
// lost.
func (s *spread) takeFrom(ctx context.Context, tag *spreadTag, i int, t Take) (Range, error) {
	m := &tag.members[i]
	select {
	case m.busy <- struct{}{}:
	default:
		return Range{}, fmt.Errorf("segment: database %d of %d has not answered an earlier call", i+1, len(s.stores))
	}
	t.Above, t.Stride = max(t.Above, tag.top), tag.stride
	type answer struct {
		r   Range
		err error
	}
	answers := make(chan answer, 1)
	ctx, cancel := context.WithTimeout(ctx, passOver)
	defer cancel() // not in the goroutine, where the answer and the end of ctx would compete
	go func() {
		r, err := s.stores[i].Take(ctx, t)
		<-m.busy
		answers <- answer{r, err}
	}()
	var got answer
	select {
	case got = <-answers:
	case <-ctx.Done():
		got.err = fmt.Errorf("no answer: %w", ctx.Err())
	}
	if got.err == nil {
		got.err = tag.check(i, got.r, t.Above)
	}
	if got.err != nil {
		tag.note(i, 0, got.err)
		return Range{}, fmt.Errorf("segment: database %d of %d: %w", i+1, len(s.stores), got.err)
	}
	m.absence, m.offset, m.version = 0, got.r.Offset, got.r.Version
	tag.stride, tag.top = got.r.Stride, got.r.number(got.r.Last)
	tag.note(i, tag.top, nil)
	return got.r, nil
}

// note counts a call of member i, which has returned numbers up to top or has failed.
func (tag *spreadTag) note(i int, top int64, err error) {
	tag.mu.Lock()
	defer tag.mu.Unlock()
	line := &tag.lines[i]
	if line.Err = err; err != nil {
		line.Failures++
		return
	}
	line.Fetches++
	line.Max = top
}

// Databases implements [Several].
func (s *spread) Databases(tag string) []Database {
	t := s.tag(tag)
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.lines)
}

// check returns an error unless a range of member i may be used.
func (tag *spreadTag) check(i int, r Range, above int64) error {
	if err := r.check(); err != nil {
		return err
	}
	m := tag.members[i]
	switch {
	case tag.stride != 0 && r.Stride != tag.stride:
		return fmt.Errorf("%w: the row has stride %d, another database %d", ErrStride, r.Stride, tag.stride)
	case r.Stride < int64(len(tag.members)):
		return fmt.Errorf("%w: the row has stride %d, but there are %d databases", ErrStride, r.Stride, len(tag.members))
	case m.offset >= 0 && m.offset != r.Offset:
		return fmt.Errorf("%w: the row has offset %d, and had %d", ErrStride, r.Offset, m.offset)
	// A restored row is raised above the others like any row that lags behind; only its version
	// shows that it was restored.
	case m.version > 0 && r.Version <= m.version:
		return fmt.Errorf("%w: the row has version %d, and had %d", ErrWentBack, r.Version, m.version)
	case above > 0 && r.number(r.First) <= above:
		return fmt.Errorf("%w: the row offers %d, which is not above %d", ErrWentBack, r.number(r.First), above)
	}
	for j, other := range tag.members {
		if j != i && other.offset == r.Offset {
			return fmt.Errorf("%w: the row has offset %d, as database %d has; is it the same one?", ErrStride, r.Offset, j+1)
		}
	}
	return nil
}

// order returns the members to ask, from next on, with those that have just failed at the end.
func (tag *spreadTag) order(now time.Time) []int {
	var here, away []int
	for i := range tag.members {
		i = (tag.next + i) % len(tag.members)
		if m := tag.members[i]; m.absence > 0 && now.Before(m.until) {
			away = append(away, i)
		} else {
			here = append(here, i)
		}
	}
	return append(here, away...)
}

// GiveBack asks the database that the range came from. Only the last range of a database can be
// given back, because its row has moved on from the earlier ones.
func (s *spread) GiveBack(ctx context.Context, g GiveBack) error {
	tag := s.tag(g.Tag)
	if err := tag.lock(ctx); err != nil {
		return err
	}
	defer tag.unlock()
	for i, m := range tag.members {
		if g.Version > 0 && m.issued == g.Version {
			g.Version = m.version
			return s.stores[i].GiveBack(ctx, g)
		}
	}
	return nil
}

func (tag *spreadTag) lock(ctx context.Context) error {
	select {
	case tag.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (tag *spreadTag) unlock() { <-tag.turn }
