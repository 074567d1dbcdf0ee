package core

import (
	"errors"
	"fmt"

	"github.com/snowkey/snowkey/types"
)

// The errors of a Generator, for errors.Is.
var (
	// ErrClosed is matched by the error of Next and Fill after the generator, or its lease, was
	// closed. It is [types.ErrClosed].
	ErrClosed = types.ErrClosed

	// ErrTimeExhausted is returned by Next and Fill when the last number of the layout has been
	// taken or the clock has passed it; see Layout.Exhausted. Numbers are never reused.
	ErrTimeExhausted = errors.New("core: the time bits of the layout are exhausted; new IDs need another layout")

	// ErrReservationExhausted is returned by Next and Fill with a leased worker number when its
	// reserved time is used up, or the lease has no number, and the wait for the lease
	// (Config.MaxLeaseWait) has not helped because its store is unreachable. Time that is
	// further behind the clock than Config.MaxBehind counts as used up. Calls succeed again as
	// soon as the lease is renewed or replaced.
	ErrReservationExhausted = errors.New("core: the reserved time of the leased worker is used up")

	// ErrWorkerInUse is returned by New when this process has a live generator for the same
	// layout, datacenter and worker. A generator that was dropped without Close counts as live.
	// Close it first, or share it, since a Generator is safe for concurrent use. Leases from
	// two stores with one namespace cause it too, and lease.Config.Workers keeps fixed and
	// leased numbers apart.
	ErrWorkerInUse = errors.New("core: a live generator in this process has this worker")
)

// errClosed is what calls return after Close.
var errClosed = fmt.Errorf("core: generator is %w", ErrClosed)

// A ValueError reports a field of a configuration, an argument or a part of an ID that is refused.
// This package and every package below it return it. It is [types.ArgumentError].
type ValueError = types.ArgumentError

func invalid(name, value, want string) *ValueError {
	return &ValueError{Package: "core", Name: name, Value: value, Want: want}
}
