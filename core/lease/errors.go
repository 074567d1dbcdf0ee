package lease

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/snowkey/snowkey/core"
)

var (
	// ErrNoFreeWorker is matched by every [*NoFreeWorkerError].
	ErrNoFreeWorker = errors.New("lease: no worker number is free")

	// ErrLost is matched by every [*LostError].
	ErrLost = errors.New("lease: the worker number is lost")

	// ErrLayout is matched by every [*LayoutError].
	ErrLayout = errors.New("lease: the layout differs from the stored one")

	// ErrClockSkew is matched by every [*ClockSkewError].
	ErrClockSkew = errors.New("lease: the clocks are too far apart")

	// ErrAhead is matched by every [*AheadError].
	ErrAhead = errors.New("lease: the clock is too far behind the IDs")

	// ErrPermanent is matched by errors that do not pass by themselves. Somebody has to
	// change a setting, a right or a table. Acquire does not try again after one.
	// [Permanent] makes them. Each [*core.ValueError] of this package or a Store and [*LayoutError] matches too.
	ErrPermanent = errors.New("lease: trying again does not help")

	// ErrClosed is returned by core.New and by [Lease.Check] for a lease that is closed. It
	// matches core.ErrClosed.
	ErrClosed error = closedError{}

	// ErrBound is returned by core.New if another generator has or had the lease. Acquire
	// one lease for each generator.
	ErrBound = errors.New("lease: the lease has a generator already")
)

type closedError struct{}

func (closedError) Error() string { return "lease: the lease is closed" }
func (closedError) Unwrap() error { return core.ErrClosed }

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

// Permanent returns an error that matches ErrPermanent, and is err in all else. A store
// uses it if it is certain that trying again does not help.
func Permanent(err error) error { return &permanentError{err} }

type permanentError struct{ err error }

func (e *permanentError) Error() string        { return e.err.Error() }
func (e *permanentError) Unwrap() error        { return e.err }
func (e *permanentError) Is(target error) bool { return target == ErrPermanent }

// A NoFreeWorkerError answers a claim when every row is reserved.
type NoFreeWorkerError struct {
	Namespace  string
	Datacenter int64
	Rows       int           // how many there are that would do
	Earliest   time.Time     // when the first of them is free, by the store's clock, if nobody renews it
	Wait       time.Duration // until then

	// Ahead are the workers whose rows are reserved more than an hour beyond any window.
	// The clock of a store or of a holder must have been wrong.
	Ahead []int64
}

func (e *NoFreeWorkerError) Error() string {
	where := fmt.Sprintf("namespace %q, datacenter %d", e.Namespace, e.Datacenter)
	if e.Rows == 0 {
		return "lease: no worker number is free: there is none to choose from in " + where
	}
	text := fmt.Sprintf("lease: no worker number is free: all %d of %s are reserved; the earliest is free at %s, in %s, unless it is renewed",
		e.Rows, where, e.Earliest.Format(time.RFC3339Nano), e.Wait)
	if len(e.Ahead) > 0 {
		shown := e.Ahead[:min(len(e.Ahead), 8)]
		text += fmt.Sprintf("; reserved more than an hour ahead, as by a wrong clock: %d rows, among them workers %d", len(e.Ahead), shown)
	}
	return text
}

// Unwrap returns ErrNoFreeWorker.
func (e *NoFreeWorkerError) Unwrap() error { return ErrNoFreeWorker }

// A Reason is why a row was lost.
type Reason string

// The reasons that this package gives. A store may give others.
const (
	TakenOver Reason = "another lease has claimed its row, or an operator has fenced it" + orForgotten
	Copied    Reason = "a copy of this process has renewed its row" + orForgotten
	Gone      Reason = "its row is gone: somebody has deleted it, which must never be done" + orForgotten
	Lapsed    Reason = "it was not renewed in time for the loss guard"

	orForgotten = ", or the store has lost a write (failover to a replica that lagged, restore)"
)

// A LostError says that a lease does not have its row any more. The store is sure of it,
// and has not done the request.
type LostError struct {
	Worker int64
	Epoch  int64
	Reason Reason
}

func (e *LostError) Error() string {
	return fmt.Sprintf("lease: worker %d, epoch %d, is lost: %s", e.Worker, e.Epoch, string(e.Reason))
}

// Unwrap returns ErrLost.
func (e *LostError) Unwrap() error { return ErrLost }

// A LayoutError says that a namespace belongs to another layout. Or the loss guard is on
// for one of the two and off for the other. Two layouts in one table would repeat
// IDs, and nobody could tell them apart. And the guard protects nobody from a process
// that is without it.
type LayoutError struct {
	Namespace string
	Stored    string // the fingerprint in the store: see Space.Layout
	Own       string // that of the claimant
}

func (e *LayoutError) Error() string {
	stored, guarded := strings.CutSuffix(e.Stored, guardMark)
	own, guards := strings.CutSuffix(e.Own, guardMark)
	want := "the stored one, or a namespace of its own"
	switch {
	case stored == own && guarded && !guards:
		want = "Config.LossGuard on, as in the other processes"
	case stored == own && guards && !guarded:
		want = "Config.LossGuard off (negative), as in the other processes"
	}
	return fmt.Sprintf("%v: namespace %q has %q, this process %q: want %s", ErrLayout, e.Namespace, e.Stored, e.Own, want)
}

// Unwrap returns ErrLayout.
func (e *LayoutError) Unwrap() error { return ErrLayout }

// Is reports whether target is ErrPermanent.
func (e *LayoutError) Is(target error) bool { return target == ErrPermanent }

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

// A ClockSkewError refuses a claim because the clocks of store and claimant are
// further apart than is permitted. Nothing was written.
type ClockSkewError struct {
	Store, Local time.Time
	Max          time.Duration
}

func (e *ClockSkewError) Error() string {
	return fmt.Sprintf("lease: the clocks are too far apart: the store shows %s, this process %s: want at most %s between them",
		e.Store.Format(time.RFC3339Nano), e.Local.Format(time.RFC3339Nano), e.Max)
}

// Unwrap returns ErrClockSkew.
func (e *ClockSkewError) Unwrap() error { return ErrClockSkew }
