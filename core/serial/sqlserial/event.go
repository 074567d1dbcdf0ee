package sqlserial

import (
	"context"
	"strconv"
	"time"

	"github.com/snowkey/snowkey/core/internal/tables"
)

// A What is a kind of [Event].
type What int

const (
	// MovedIn is a [Store.MoveIn].
	MovedIn What = iota + 1
	// Closed is a [Store.ClosePeriod].
	Closed
	// Reopened is a [Store.ReopenPeriod].
	Reopened
	// Raised is a [Store.Raise].
	Raised
)

// String returns the name of the constant.
func (w What) String() string {
	if w < MovedIn || w > Raised {
		return "What(" + strconv.Itoa(int(w)) + ")"
	}
	return [...]string{"MovedIn", "Closed", "Reopened", "Raised"}[w-MovedIn]
}

// An Event is a change of a period by hand. Events are kept for auditors.
type Event struct {
	What   What
	At     time.Time // by the clock of the database
	Last   int64     // the last number of the period at that time
	Reason string    // of ReopenPeriod and Raise
}

// Events returns the events of a period, the earliest first.
func (s *Store) Events(ctx context.Context, series, period string) ([]Event, error) {
	_, err := s.definedPeriod(series, period)
	if err != nil {
		return nil, s.explain("events", series, err)
	}
	events, err := tables.Do(ctx, s.db, func(t *tx) ([]Event, error) { return s.events(ctx, t, series, period) })
	return events, s.explain("events", series, err)
}

func (s *Store) events(ctx context.Context, t *tx, series, period string) (events []Event, err error) {
	err = t.Each(ctx, func(scan func(...any) error) error {
		var e Event
		var at int64
		if err := scan(&e.What, &at, &e.Last, &e.Reason); err != nil {
			return err
		}
		e.At = time.UnixMilli(at)
		events = append(events, e)
		return nil
	}, t.Text.events, series, period)
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
