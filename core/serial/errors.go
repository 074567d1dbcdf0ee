package serial

import (
	"errors"

	"github.com/snowkey/snowkey/core"
)

// ErrCheckDigit is within the error of [Codec.Parse] and [Series.Parse] for a text whose
// check digits are wrong. Somebody has mistyped it, as a rule.
var ErrCheckDigit = errors.New("serial: wrong check digits")

// The errors of counters, for errors.Is. What wraps them names the series, the values and
// the limit.
var (
	// ErrSeriesFull means that the period has given out its last number. A number never
	// gets more digits.
	ErrSeriesFull = errors.New("serial: the series is full")

	// ErrPeriodClosed means that somebody has closed the period.
	ErrPeriodClosed = errors.New("serial: the period is closed")

	// ErrPeriodOpen means that a period that is to be opened again is open.
	ErrPeriodOpen = errors.New("serial: the period is open")

	// ErrCounted means that the counter has given numbers of a period, into which others
	// are to be moved.
	ErrCounted = errors.New("serial: the counter has given numbers of the period")

	// ErrBackdated means that the date is before that of the last number of a series that
	// is Chronological.
	ErrBackdated = errors.New("serial: a later date has a number already")

	// ErrNotInTransaction means that a number without gaps was asked for outside of a
	// transaction. It would be there without its row.
	ErrNotInTransaction = errors.New("serial: not in a transaction")

	// ErrNoSeries means that the series has no definition in the store.
	ErrNoSeries = errors.New("serial: no such series")

	// ErrDefinition means that the series is defined otherwise in the store. Somebody has
	// changed a program or its configuration, or has taken the name of another series.
	ErrDefinition = errors.New("serial: the series is defined otherwise")

	// ErrMeets means that a series would write texts of another one of its Scope.
	ErrMeets = errors.New("serial: another series writes the same texts")

	// ErrClosed is the error of a call after [Counter.Close]. It matches core.ErrClosed.
	ErrClosed error = closedError{}
)

type closedError struct{}

func (closedError) Error() string { return "serial: closed" }
func (closedError) Unwrap() error { return core.ErrClosed }

func invalid(name, value, want string) *core.ValueError {
	return &core.ValueError{Package: "serial", Name: name, Value: value, Want: want}
}
