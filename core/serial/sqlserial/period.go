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
)

// MoveIn continues the numbers that another program has given in a period: after last = 417 the
// next number is 418. Other periods still begin with Series.First. Stop the other program first,
// and then look up its last number.
//
// MoveIn never lowers the counter, so a program may call it at each start. If the counter has
// given numbers of its own, except after an earlier MoveIn of this number or a greater one, the
// error is [serial.ErrCounted], because some of them may exist twice. A closed period is
// [serial.ErrPeriodClosed]. [Store.Gaps] does not look for numbers that were moved in, and a
// Chronological series accepts no date before the period from then on.
func (s *Store) MoveIn(ctx context.Context, series, period string, last int64) error {
	known, err := s.definedPeriod(series, period)
	if err == nil {
		err = known.validateLast(last)
	}
	if err != nil {
		return s.explain("move in", series, err)
	}
	return s.changePeriod(ctx, "move in", known, period, "", func(c counter, events []Event) (counter, What, error) {
		moved := movedIn(events, known.first)
		switch {
		case last <= moved:
			return c, 0, nil
		case c.closed:
			return c, 0, refusal(c, known, period)
		case c.last > moved:
			return c, 0, fmt.Errorf("%w: period %q: it has given %d to %d; want MoveIn before the first of them", serial.ErrCounted, period, moved+1, c.last)
		}
		c.last = last
		return c, MovedIn, nil
	})
}

// Raise leaves out the numbers of a period up to last, which may be in use although the counter does
// not know them, because a backup was restored. They become a gap: [Store.Gaps] reports those that
// are in no row as missing, and the reason, 1 to 255 characters, is kept with the time, see
// [Store.Events]. Stop all programs of the series before.
//
// Raise never lowers the counter; if it has given last already, nothing changes. A closed period is
// [serial.ErrPeriodClosed].
func (s *Store) Raise(ctx context.Context, series, period string, last int64, reason string) error {
	known, err := s.definedPeriod(series, period)
	if err == nil {
		err = validateReason(reason)
	}
	if err == nil {
		err = known.validateLast(last)
	}
	if err != nil {
		return s.explain("raise", series, err)
	}
	return s.changePeriod(ctx, "raise", known, period, reason, func(c counter, _ []Event) (counter, What, error) {
		switch {
		case last <= c.last:
			return c, 0, nil
		case c.closed:
			return c, 0, refusal(c, known, period)
		}
		c.last = last
		return c, Raised, nil
	})
}

// ClosePeriod makes later numbers of the period of a moment fail with [serial.ErrPeriodClosed]. A
// period may be closed before its first number, and twice. A series without periods is closed as
// a whole. A [serial.Counter] that holds numbers of the period still returns them.
//
// ClosePeriod waits for transactions that have taken a number of the period.
func (s *Store) ClosePeriod(ctx context.Context, series string, at time.Time) error {
	known, period, err := s.periodOf(series, at)
	if err != nil {
		return s.explain("close period", series, err)
	}
	return s.changePeriod(ctx, "close period", known, period, "", func(c counter, _ []Event) (counter, What, error) {
		if c.closed {
			return c, 0, nil
		}
		c.closed = true
		return c, Closed, nil
	})
}

// ReopenPeriod opens the period of a moment again after [Store.ClosePeriod]. The reason, 1 to 255
// characters, is kept with the time, see [Store.Events]. A period that is not closed is
// [serial.ErrPeriodOpen].
func (s *Store) ReopenPeriod(ctx context.Context, series string, at time.Time, reason string) error {
	known, period, err := s.periodOf(series, at)
	if err == nil {
		err = validateReason(reason)
	}
	if err != nil {
		return s.explain("reopen period", series, err)
	}
	return s.changePeriod(ctx, "reopen period", known, period, reason, func(c counter, _ []Event) (counter, What, error) {
		if !c.closed {
			return c, 0, fmt.Errorf("%w: period %q", serial.ErrPeriodOpen, period)
		}
		c.closed = false
		return c, Reopened, nil
	})
}

// changePeriod replaces the counter of a period by the result of f, and adds an event. A What of 0
// changes nothing. f may run several times.
func (s *Store) changePeriod(ctx context.Context, operation string, series *validSeries, period, reason string, f func(counter, []Event) (counter, What, error)) error {
	_, err := tables.Do(ctx, s.db, func(t *tx) (done struct{}, err error) {
		// The series before the counter, as NextIn locks them.
		if err := s.hold(ctx, t, series); err != nil {
			return done, err
		}
		before, err := s.row(ctx, t, t.Text.look, series, period)
		if err != nil {
			return done, err
		}
		events, err := s.events(ctx, t, series.Name, period)
		if err != nil {
			return done, err
		}
		after, what, err := f(before, events)
		if err != nil || what == 0 {
			return done, err
		}
		if what == MovedIn && series.Chronological {
			if begin := begin(series.Series, period); begin > 0 { // no earlier date is accepted from now on
				if _, err := s.number(ctx, t, t.Text.date, begin, series.Name); err != nil {
					return done, err
				}
			}
		}
		if err := s.write(ctx, t, before, after, series, period); err != nil {
			return done, err
		}
		_, err = t.Exec(ctx, t.Text.event, series.Name, period, len(events)+1, int(what), t.Now.UnixMilli(), after.last, reason)
		return done, err
	})
	return s.explain(operation, series.Name, err)
}

// begin returns the first date of a valid period, as the number 20261122, or 0 for Never.
func begin(s serial.Series, period string) int64 {
	if s.Period == serial.Never {
		return 0
	}
	date, _ := strconv.ParseInt((period + "0101")[:8], 10, 64) // digits alone
	if s.YearBegins > time.January {
		date += int64(s.YearBegins-time.January) * 100
	}
	if s.YearByEnd {
		date -= 10000
	}
	return date
}

// definedPeriod returns the series of this name, unless it has no such period.
func (s *Store) definedPeriod(name, period string) (*validSeries, error) {
	series, err := s.defined(name)
	if err == nil {
		err = series.ValidatePeriod(period)
	}
	return series, err
}

// periodOf returns the series of this name and its period of a moment.
func (s *Store) periodOf(name string, at time.Time) (*validSeries, string, error) {
	series, err := s.defined(name)
	if err != nil {
		return series, "", err
	}
	period, err := series.PeriodOf(at)
	return series, period, err
}

// validateLast returns an error for a last number that no period can have.
func (s *validSeries) validateLast(last int64) error {
	if last < 0 || last > s.last {
		return invalid("last", strconv.FormatInt(last, 10), fmt.Sprintf("0 to %d", s.last))
	}
	return nil
}

func validateReason(reason string) error {
	const most = 255
	if !utf8.ValidString(reason) || strings.TrimSpace(reason) == "" || utf8.RuneCountInString(reason) > most || strings.ContainsFunc(reason, unicode.IsControl) {
		return invalid("reason", fmt.Sprintf("%.64q", reason), "a text of 1 to 255 characters, in one line")
	}
	return nil
}
