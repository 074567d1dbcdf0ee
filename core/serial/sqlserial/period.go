package sqlserial

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/snowkey/snowkey/core/internal/tables"
	"github.com/snowkey/snowkey/core/serial"
	"github.com/snowkey/snowkey/internal/base/sqlrow"
)

// A What says what was done to a period by hand.
type What int

const (
	// MovedIn is by MoveIn.
	MovedIn What = iota + 1
	// Closed is by ClosePeriod.
	Closed
	// Reopened is by ReopenPeriod.
	Reopened
)

// String returns the name of the constant.
func (w What) String() string {
	switch w {
	case MovedIn:
		return "MovedIn"
	case Closed:
		return "Closed"
	case Reopened:
		return "Reopened"
	}
	return "What(" + strconv.Itoa(int(w)) + ")"
}

// An Event is something that was done to a period by hand. Events are kept, for those who
// check the books.
type Event struct {
	What   What
	At     time.Time // by the clock of the database
	Last   int64     // the last number of the period then
	Reason string    // of ReopenPeriod
}

// Events returns what was done to a period by hand, in the order of time. The series was
// defined by this Store.
func (s *Store) Events(ctx context.Context, name, period string) ([]Event, error) {
	series, err := s.defined(name)
	if err == nil {
		err = series.ValidatePeriod(period)
	}
	if err != nil {
		return nil, s.explain("events", name, err)
	}
	events, err := tables.Do(ctx, s.db, func(t *sqlrow.Tx) ([]Event, error) { return s.events(ctx, t, name, period) })
	return events, s.explain("events", name, err)
}

func (s *Store) events(ctx context.Context, t *sqlrow.Tx, name, period string) (events []Event, err error) {
	err = t.Each(ctx, func(scan func(...any) error) error {
		var e Event
		var at int64
		if err := scan(&e.What, &at, &e.Last, &e.Reason); err != nil {
			return err
		}
		e.At = time.UnixMilli(at)
		events = append(events, e)
		return nil
	}, s.text.events, name, period)
	return events, err
}

// movedIn returns the last number that was moved into a period, or first-1.
func movedIn(events []Event, first int64) int64 {
	top := first - 1
	for _, e := range events {
		if e.What == MovedIn {
			top = max(top, e.Last)
		}
	}
	return top
}

// changePeriod replaces the counter of a period by what f makes of it, and adds an event
// with its last number. A What of 0 changes nothing. A counter that is not there yet has
// found false, and the number before the first as its last. f may run several times.
func (s *Store) changePeriod(ctx context.Context, call string, series serial.Series, period, reason string, f func(counter, []Event) (counter, What, error)) error {
	_, err := tables.Do(ctx, s.db, func(t *sqlrow.Tx) (done struct{}, err error) {
		// In the order of NextIn: the series, then the counter.
		if err := s.hold(ctx, t, series); err != nil {
			return done, err
		}
		before, err := s.row(ctx, t, s.text.look, series.Name, period)
		if err != nil {
			return done, err
		}
		if !before.found {
			first, _ := series.Bounds()
			before.last = first - 1
		}
		events, err := s.events(ctx, t, series.Name, period)
		if err != nil {
			return done, err
		}
		after, what, err := f(before, events)
		if err != nil || what == 0 {
			return done, err
		}
		if what == MovedIn {
			if err := s.raiseDateTo(ctx, t, series, period); err != nil {
				return done, err
			}
		}
		if err := s.write(ctx, t, before, after, series.Name, period); err != nil {
			return done, err
		}
		_, err = t.Exec(ctx, s.text.event, series.Name, period, len(events)+1, int(what), t.Now.UnixMilli(), after.last, reason)
		return done, err
	})
	return s.explain(call, series.Name, err)
}

// raiseDateTo refuses dates before a period from now on, if the series is chronological.
func (s *Store) raiseDateTo(ctx context.Context, t *sqlrow.Tx, series serial.Series, period string) error {
	begin, err := begin(series, period)
	if err != nil || !series.Chronological || begin == 0 {
		return err
	}
	_, err = s.number(ctx, t, s.text.date, begin, series.Name)
	return err
}

// begin returns the first civil date of a period, as the number 20261122, or 0 for Never.
func begin(s serial.Series, period string) (int64, error) {
	if err := s.ValidatePeriod(period); err != nil || s.Period == serial.Never {
		return 0, err
	}
	date, err := strconv.ParseInt((period + "0101")[:8], 10, 64)
	if s.YearBegins > time.January {
		date += int64(s.YearBegins-time.January) * 100
	}
	if s.YearByEnd {
		date -= 10000
	}
	return date, err
}

// MoveIn makes a period go on after numbers that another program has given: with last = 417
// the next one is 418. Other periods begin with Series.First as ever. Stop the other program
// before, and look for its greatest number then. The series was defined by this Store.
//
// MoveIn never lowers, so a program may call it each time it starts. If the counter has
// given numbers of its own before, other than after an earlier MoveIn of this or a greater
// number, the error is [serial.ErrCounted]: some of them may be there twice. A closed period
// is [serial.ErrPeriodClosed]. [Store.Gaps] does not ask for numbers that have moved in, and
// a Chronological series has no date before the period any more.
func (s *Store) MoveIn(ctx context.Context, name, period string, last int64) error {
	series, err := s.defined(name)
	if err == nil {
		err = series.ValidatePeriod(period)
	}
	if err != nil {
		return s.explain("move in", name, err)
	}
	first, greatest := series.Bounds()
	if last < 0 || last > greatest {
		return s.explain("move in", name, invalid("last", strconv.FormatInt(last, 10), fmt.Sprintf("0 to %d", greatest)))
	}
	return s.changePeriod(ctx, "move in", series, period, "", func(c counter, events []Event) (counter, What, error) {
		moved := movedIn(events, first)
		switch {
		case last <= moved:
			return c, 0, nil
		case c.closed:
			return c, 0, refusal(c, period, greatest)
		case c.last > moved:
			return c, 0, fmt.Errorf("%w: period %q: it has given %d to %d; want it before the first of them", serial.ErrCounted, period, moved+1, c.last)
		}
		c.last = last
		return c, MovedIn, nil
	})
}

// ClosePeriod makes later numbers of the period of a moment fail with
// [serial.ErrPeriodClosed]. A period may be closed before its first number, and twice. A
// series of the period Never is closed as a whole. A [serial.Counter] that holds numbers of
// the period still returns these.
//
// It waits for transactions that have taken a number of the period.
func (s *Store) ClosePeriod(ctx context.Context, name string, at time.Time) error {
	series, period, err := s.periodOf(name, at)
	if err != nil {
		return s.explain("close period", name, err)
	}
	return s.changePeriod(ctx, "close period", series, period, "", func(c counter, _ []Event) (counter, What, error) {
		if c.closed {
			return c, 0, nil
		}
		c.closed = true
		return c, Closed, nil
	})
}

// ReopenPeriod opens the period of a moment again, which somebody has closed. The reason,
// 1 to 255 characters, is kept with the time, see [Store.Events]. A period that is not closed
// is [serial.ErrPeriodOpen].
func (s *Store) ReopenPeriod(ctx context.Context, name string, at time.Time, reason string) error {
	series, period, err := s.periodOf(name, at)
	if err == nil {
		err = checkReason(reason)
	}
	if err != nil {
		return s.explain("reopen period", name, err)
	}
	return s.changePeriod(ctx, "reopen period", series, period, reason, func(c counter, _ []Event) (counter, What, error) {
		if !c.closed {
			return c, 0, fmt.Errorf("%w: period %q", serial.ErrPeriodOpen, period)
		}
		c.closed = false
		return c, Reopened, nil
	})
}

// periodOf returns the series of a name that this Store has seen, and its period of a moment.
func (s *Store) periodOf(name string, at time.Time) (serial.Series, string, error) {
	series, err := s.defined(name)
	if err != nil {
		return series, "", err
	}
	period, err := series.PeriodOf(at)
	return series, period, err
}

func checkReason(reason string) error {
	const most = 255
	if !utf8.ValidString(reason) || strings.TrimSpace(reason) == "" || utf8.RuneCountInString(reason) > most || strings.ContainsFunc(reason, unicode.IsControl) {
		return invalid("reason", fmt.Sprintf("%.64q", reason), "a text of 1 to 255 characters, in one line")
	}
	return nil
}
