package segment

import (
	"errors"
	"fmt"

	"github.com/snowkey/snowkey/core"
)

// The errors of an Allocator, for errors.Is. The errors that wrap them name the tag, the values
// and what to do.
var (
	// ErrClosed is the error of a call after Close. It matches core.ErrClosed.
	ErrClosed = fmt.Errorf("segment: %w", core.ErrClosed)

	// ErrUnavailable is the error of a call that has waited for a range until its context
	// or Config.MaxWait ended. It matches core.ErrReservationExhausted. The error that wraps
	// it also matches the context's error and the store's last one.
	ErrUnavailable error = &kind{"segment: no range from the store", core.ErrReservationExhausted}

	// ErrNoTag means that the store has no row for the tag. The next call asks again.
	ErrNoTag = errors.New("segment: no such tag")

	// ErrExhausted means that the next number would be above Config.Last or 1<<63-1. It is
	// final.
	ErrExhausted = errors.New("segment: the last number was returned")

	// ErrWentBack means that the store offers numbers that it has given away before, or
	// numbers that are not above Config.Floor, because a backup was restored or max_id was
	// lowered. It is final for an Allocator, which also drops the numbers that it holds,
	// since another process may be given the same ones. Stop every program of the tag, raise
	// the row above every number in use, and start them again.
	ErrWentBack = errors.New("segment: the store went back")

	// ErrStride means that the stride or the offset of a row has changed, or does not fit
	// those of the other databases.
	ErrStride = errors.New("segment: stride or offset changed")

	// ErrFrozen means that [Restride] is changing the stride of the row. It matches
	// ErrStride. Calls wait for the end of the change; a call whose wait ends first returns
	// [ErrUnavailable], which wraps it.
	ErrFrozen error = &kind{"segment: the stride is being changed", ErrStride}

	// ErrOneConnection is the error of every fetch from a pool of one connection if
	// Config.Hold turns prefetch off, because the caller may hold that connection in a
	// transaction and would wait for itself.
	ErrOneConnection = errors.New("segment: the store's pool has one connection, and Config.Hold turns prefetch off: " +
		"a transaction that needs a number would wait for itself; give the store a pool of its own, or two connections")
)

// A kind is an error that matches another one but has a text of its own, because the texts of
// package core speak of leases.
type kind struct {
	text string
	of   error
}

func (k *kind) Error() string { return k.text }
func (k *kind) Unwrap() error { return k.of }

// atOnce reports whether a waiting call returns err instead of waiting for the next fetch.
func atOnce(err error) bool {
	if errors.Is(err, ErrFrozen) {
		return false // the change takes a moment
	}
	return errors.Is(err, ErrNoTag) || errors.Is(err, ErrStride) || errors.Is(err, ErrOneConnection)
}

func invalid(name string, value any, want string) *core.ValueError {
	return &core.ValueError{Package: "segment", Name: name, Value: fmt.Sprint(value), Want: want}
}
