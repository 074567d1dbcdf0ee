package region

import (
	"errors"
	"fmt"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/internal/base/errtext"
)

// ErrRefused is matched by every [*Error]. Users have it as lease.ErrRegion.
var ErrRefused = errors.New("lease: no datacenter number for the region")

// An Error says why a region may not use the number that it has, or gets none. Acquire returns it
// at once. It ends the leases of a process that runs, which tries again as after any loss.
// "Regions" in docs/workers.md says what an operator does about it.
type Error struct {
	Region     string // Region.Name
	Datacenter int64  // the number; -1: none
	Problem    string
}

func (e *Error) Error() string {
	if e.Datacenter < 0 {
		return fmt.Sprintf("%v %q: %s", ErrRefused, e.Region, e.Problem)
	}
	return fmt.Sprintf("%v %q: number %d: %s", ErrRefused, e.Region, e.Datacenter, e.Problem)
}

// Unwrap returns ErrRefused.
func (e *Error) Unwrap() error { return ErrRefused }

// Is reports whether target is leasestore.ErrPermanent.
func (e *Error) Is(target error) bool { return target == leasestore.ErrPermanent }

// invalid returns the error of a setting of a lease, which matches leasestore.ErrPermanent.
func invalid(name, value, want string) *core.ValueError {
	return &core.ValueError{Package: "lease", Name: name, Value: value, Want: want, Err: leasestore.ErrPermanent}
}

// failure returns the error of a store with the region's name. It begins with the package that users
// know, and the store's own text may too.
func (r *Region) failure(err error) error {
	return errtext.Prefix(fmt.Sprintf("lease: region %q: ", r.Name), "lease: ", err)
}
