package core

import "errors"

var (
	// ErrClosed is returned by Next and Fill after the generator, or its lease, was closed.
	ErrClosed = errors.New("core: generator is closed")

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

// A ValueError reports a field of a configuration, an argument or a part of an ID that is refused.
// This package and every package below it return it.
type ValueError struct {
	Package string // the package that refuses the value; empty: core
	Name    string // the field or argument, as a Go reader writes it: "Config.Datacenter"
	Value   string // what it held, without passwords; empty: not shown
	Want    string // the range or form that is accepted
	Err     error  // an error that this one also matches, or nil
}

func (e *ValueError) Error() string {
	text := e.Package
	if text == "" {
		text = "core"
	}
	text += ": " + e.Name
	if e.Value != "" {
		text += " is " + e.Value
	}
	return text + ": want " + e.Want
}

// Unwrap returns e.Err.
func (e *ValueError) Unwrap() error { return e.Err }

func invalid(name, value, want string) *ValueError {
	return &ValueError{Name: name, Value: value, Want: want}
}
