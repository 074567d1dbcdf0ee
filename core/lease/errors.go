package lease

import (
	"errors"
	"fmt"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/internal/base/errtext"
)

var (
	// ErrNoFreeWorker is matched by every [*NoFreeWorkerError].
	ErrNoFreeWorker = leasestore.ErrNoFreeWorker

	// ErrLost is matched by every [*LostError].
	ErrLost = leasestore.ErrLost

	// ErrLayout is matched by every [*LayoutError].
	ErrLayout = leasestore.ErrLayout

	// ErrClockSkew is matched by every [*ClockSkewError].
	ErrClockSkew = leasestore.ErrClockSkew

	// ErrPermanent is matched by errors that do not pass by themselves: a setting, a right or a
	// table has to change first. Acquire does not try again after one. Each [*core.ValueError] of
	// this package or a store and each [*LayoutError] matches too.
	ErrPermanent = leasestore.ErrPermanent

	// ErrAhead is matched by every [*AheadError].
	ErrAhead = errors.New("lease: the clock is too far behind the IDs")

	// ErrClosed is returned by core.New and by [Lease.Check] for a lease that is closed. It
	// matches core.ErrClosed.
	ErrClosed = fmt.Errorf("lease: the lease is %w", core.ErrClosed)

	// ErrBound is returned by core.New if another generator has or had the lease. Acquire
	// one lease for each generator.
	ErrBound = errors.New("lease: the lease has a generator already")
)

// Errors that stores make. Package leasestore describes their fields.
type (
	// A NoFreeWorkerError answers a claim when every row is reserved.
	NoFreeWorkerError = leasestore.NoFreeWorkerError

	// A LostError says that a lease does not have its row any more.
	LostError = leasestore.LostError

	// A LayoutError says that a namespace belongs to another layout, or that the loss guard is on
	// for one of the two and off for the other.
	LayoutError = leasestore.LayoutError

	// A ClockSkewError refuses a claim because the clocks of store and claimant are further apart
	// than is permitted.
	ClockSkewError = leasestore.ClockSkewError
)

// failed returns the error of an operation. That of a store may begin with the name of this package
// too, which is not said twice.
func failed(operation string, err error) error {
	return errtext.Prefix("lease: "+operation+": ", "lease: ", err)
}

// inRange returns nil if least <= v <= most, and a *core.ValueError otherwise. why goes on after
// the range.
func inRange[T int64 | time.Duration](name string, v, least, most T, why string) error {
	if least <= v && v <= most {
		return nil
	}
	return invalid(name, fmt.Sprint(v), fmt.Sprintf("%v..%v%s", least, most, why))
}

// invalid returns a *core.ValueError of this package, which matches ErrPermanent.
func invalid(name, value, want string) *core.ValueError {
	return &core.ValueError{Package: "lease", Name: name, Value: value, Want: want, Err: ErrPermanent}
}

// An AheadError says that no further time is reserved for a lease. Its IDs are too far
// ahead of the clock, which was set back, or was wrong before. The lease keeps its worker
// number, and IDs go on to its limit. They go on again when the clock comes near. A new
// process need not wait: it takes another worker number.
type AheadError struct {
	Next  time.Time // no ID to come has a time before this
	Clock time.Time
	Max   time.Duration
}

func (e *AheadError) Error() string {
	return fmt.Sprintf("%v: the next ID has the time %s, the clock shows %s: want at most %s between them: wait for the clock, or restart the process",
		ErrAhead, e.Next.Format(time.RFC3339Nano), e.Clock.Format(time.RFC3339Nano), e.Max)
}

// Unwrap returns ErrAhead.
func (e *AheadError) Unwrap() error { return ErrAhead }
