package core

import "errors"

var (
	// ErrClosed is returned by Next and Fill once the generator, or its lease, has
	// been closed.
	ErrClosed = errors.New("core: generator is closed")

	// ErrTimeExhausted is returned by Next and Fill when the last number that
	// the layout's time bits can hold has been taken, or the clock is past it
	// (Layout.Exhausted). Numbers are never reused to go on.
	ErrTimeExhausted = errors.New("core: the time bits of the layout are exhausted")

	// ErrReservationExhausted is returned by Next and Fill when all the time that a
	// leased worker number is reserved for is used up, or there is no worker number
	// at the moment, and waiting for the lease did not help: its store has been away
	// for long. What is left of the time counts as used up when it is further behind
	// the clock than Config.MaxBehind. They go on as soon as the lease is renewed or
	// replaced.
	ErrReservationExhausted = errors.New("core: the reserved time of the leased worker is used up")

	// ErrWorkerInUse is returned by New when this process already has a live
	// generator for the same layout, datacenter and worker, or had one that was
	// dropped without Close. Close that one first, or share it: a Generator is
	// safe for concurrent use. Leases of one namespace meet it when two stores are
	// used for it; lease.Config.Workers keeps fixed and leased numbers apart.
	ErrWorkerInUse = errors.New("core: a live generator in this process has this worker")
)

// A ValueError says which setting or part of an ID is outside its range. It is
// the error of Layout.Validate, Layout.Compose and New for such values.
type ValueError struct {
	Name  string // the field, as a Go reader writes it: "Config.Datacenter", "Layout.WorkerBits"
	Value string // what it held
	Want  string // the range or form that it must have
}

func (e *ValueError) Error() string {
	if e.Value == "" {
		return "core: " + e.Name + ": want " + e.Want
	}
	return "core: " + e.Name + " is " + e.Value + ": want " + e.Want
}
