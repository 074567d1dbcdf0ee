package leasestore

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/snowkey/snowkey/core"
)

// Users match these by their names in package lease.
var (
	// ErrNoFreeWorker is matched by every [*NoFreeWorkerError].
	ErrNoFreeWorker = errors.New("lease: no worker number is free")

	// ErrLost is matched by every [*LostError].
	ErrLost = errors.New("lease: the worker number is lost")

	// ErrLayout is matched by every [*LayoutError].
	ErrLayout = errors.New("lease: the layout differs from the stored one")

	// ErrClockSkew is matched by every [*ClockSkewError].
	ErrClockSkew = errors.New("lease: the clocks are too far apart")

	// ErrPermanent is matched by errors that do not pass by themselves: a setting, a right or a
	// table has to change first. [Permanent] makes them. Each [*core.ValueError] of this package
	// or a Store and each [*LayoutError] matches too.
	ErrPermanent = errors.New("lease: trying again does not help")
)

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

// A NoFreeWorkerError answers a claim when every row is reserved, and a claim with Retire when
// every row has been used. That one has no Earliest and no Wait, since waiting does not help it.
type NoFreeWorkerError struct {
	Namespace  string
	Datacenter int64
	Rows       int           // how many there are that would do
	Retired    int           // how many would do if they were not retired
	Earliest   time.Time     // when the first of them is free, by the store's clock, unless it is renewed
	Wait       time.Duration // until then

	// Ahead are the workers whose rows are reserved more than an hour beyond any window.
	// The clock of a store or of a holder must have been wrong.
	Ahead []int64
}

func (e *NoFreeWorkerError) Error() string {
	where := fmt.Sprintf("namespace %q, datacenter %d", e.Namespace, e.Datacenter)
	switch {
	case e.Rows == 0 && e.Retired > 0:
		return fmt.Sprintf("lease: no worker number is free: all %d that would do in %s are retired", e.Retired, where)
	case e.Rows == 0:
		return "lease: no worker number is free: there is none to choose from in " + where
	case e.Earliest.IsZero():
		return fmt.Sprintf("lease: no worker number is free to be retired: all %d of %s have been used", e.Rows, where)
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

// GuardMark ends the Layout of a [Space] whose leases have the loss guard.
const GuardMark = ", loss guard"

// RegionsMark ends the Layout of a [Space] that has no leases, but the datacenter numbers of
// regions: see package region.
const RegionsMark = ", regions"

// A LayoutError says that a namespace belongs to another layout, or that the loss guard is on for
// one of the two and off for the other. Two layouts in one table would repeat IDs that nothing
// tells apart, and the guard does not protect from a process that is without it.
type LayoutError struct {
	Namespace string
	Stored    string // the fingerprint in the store: see Space.Layout
	Own       string // that of the claimant
}

func (e *LayoutError) Error() string {
	stored, guarded := strings.CutSuffix(e.Stored, GuardMark)
	own, guards := strings.CutSuffix(e.Own, GuardMark)
	want := "the stored one, or a namespace of its own"
	switch {
	case stored == own && guarded && !guards:
		want = "Config.LossGuard on, as in the other processes"
	case stored == own && guards && !guarded:
		want = "Config.LossGuard off (negative), as in the other processes"
	}
	text := fmt.Sprintf("%v: namespace %q has %q, this process %q: want %s", ErrLayout, e.Namespace, e.Stored, e.Own, want)
	if command := e.empty(); command != "" {
		text += "; if no program uses it, `" + command + "` gives it this layout"
	}
	return text
}

// empty returns the command that gives an unused namespace the claimant's layout, or "" if it refuses
// to.
func (e *LayoutError) empty() string {
	var epoch, unit, bits string
	for _, layout := range []string{e.Stored, e.Own} {
		if strings.HasSuffix(layout, GuardMark) || strings.HasSuffix(layout, RegionsMark) {
			return ""
		}
		_, err := fmt.Sscanf(strings.ReplaceAll(layout, ",", ""), "epoch %s unit %s bits %s", &epoch, &unit, &bits)
		if datacenter := strings.Split(bits, "/"); err != nil || len(datacenter) < 2 || datacenter[1] != "0" {
			return ""
		}
	}
	return fmt.Sprintf("snowkey workers -namespace %s -epoch %s -unit %s -bits %s empty", e.Namespace, epoch, unit, bits)
}

// Unwrap returns ErrLayout.
func (e *LayoutError) Unwrap() error { return ErrLayout }

// Is reports whether target is ErrPermanent.
func (e *LayoutError) Is(target error) bool { return target == ErrPermanent }

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
