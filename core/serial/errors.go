package serial

import (
	"errors"
	"fmt"

	"github.com/snowkey/snowkey/core"
)

// ErrCheckDigit matches the error of [Codec.Parse] and [Series.Parse] for a text with wrong check
// digits, which as a rule was mistyped.
var ErrCheckDigit = errors.New("serial: wrong check digits")

// The errors of counters, for errors.Is. The errors that wrap them name the series, the values and
// the limit.
var (
	// ErrSeriesFull means that the period has given out its last number, because numbers never get
	// more digits.
	ErrSeriesFull = errors.New("serial: the series is full")

	// ErrPeriodClosed means that the period was closed.
	ErrPeriodClosed = errors.New("serial: the period is closed")

	// ErrPeriodOpen means that a period to reopen is open.
	ErrPeriodOpen = errors.New("serial: the period is open")

	// ErrCounted means that the counter has already given numbers of a period into which the
	// numbers of another program are to be moved.
	ErrCounted = errors.New("serial: the counter has given numbers of the period")

	// ErrBackdated means that the date is before the date of the last number of a Chronological
	// series.
	ErrBackdated = errors.New("serial: a later date has a number already")

	// ErrNotInTransaction means that a number without gaps was asked for outside of a transaction,
	// where it would exist without its row.
	ErrNotInTransaction = errors.New("serial: not in a transaction")

	// ErrNoSeries means that the series has no definition in the store.
	ErrNoSeries = errors.New("serial: no such series")

	// ErrDefinition means that the store has a different definition of the series, because a program
	// or its configuration was changed, or the name belongs to another series.
	ErrDefinition = errors.New("serial: the store has another definition of the series")

	// ErrMeets means that a series could write a text of another series of its Scope.
	ErrMeets = errors.New("serial: another series writes the same texts")

	// ErrClosed is the error of a call after [Counter.Close]. It matches core.ErrClosed.
	ErrClosed = fmt.Errorf("serial: %w", core.ErrClosed)
)

func invalid(name, value, want string) *core.ValueError {
	return &core.ValueError{Package: "serial", Name: name, Value: value, Want: want}
}
