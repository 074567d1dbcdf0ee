// Package region assigns a datacenter number to each region, so that no two regions have one. It is
// for programs whose regions have a database each; lease.Config.Region takes a [Region], and
// package lease asks the rest of this package.
//
// A region is all processes whose leases are in one store, its own; it has one number, which it
// keeps for good. lease.Acquire asks the store that all regions reach for a number once, and then
// the region's own store remembers it, so that a region that is cut off goes on, and starts
// processes too.
//
//	l, err := lease.Acquire(ctx, own, lease.Config{
//		Namespace: "shop",
//		Layout:    layout, // with DatacenterBits
//		Region:    &region.Region{Name: "eu-west-1", Store: common},
//	})
//	…
//	gen, err := core.New(core.Config{Layout: layout, Datacenter: l.Status().Datacenter, Worker: l})
//
// A number is never taken from a region because time has passed: one that is cut off lives. Only
// an operator takes it; see "Regions" in docs/workers.md. About once a minute one process of the
// region marks the assignment in both stores anew, which finds what a copy of the region's store
// would otherwise hide: of the region and its copy, the one that comes second finds a mark that is
// not its own. Its leases end then, and no process of it gets a new one.
//
// Uniqueness across regions rests on these conditions:
//
//   - The common store keeps what it has acknowledged. After it was restored, wait until each
//     region has run for two minutes with it before a new region starts.
//   - A copy of a region's store has a Name of its own, or reaches the common store. A copy with
//     the same name that starts before the next mark runs until then, and one that is cut off runs
//     until it no longer is. Processes that end within a minute and a half make no marks.
//   - An operator takes a number from a region only when all its processes have ended.
//
// This package is experimental.
package region

import (
	"fmt"
	"strconv"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// A Region names the region of a process, for lease.Config.Region. The zero value is not valid.
type Region struct {
	// Name names the region, in 1..40 of the characters a-z A-Z 0-9 . _ -. It never changes.
	// The region's own store keeps it and refuses every other, because a process that gives
	// another name runs with a copy of another region's store.
	Name string

	// Store is the one that all regions reach, which may be the own store of one of them. It
	// must be a [leasestore.Lister], and neither store may be one that LosesWrites.
	Store leasestore.Store

	// Datacenters restricts the region to these numbers. A region that has made IDs with a number
	// of its own choice names that one here. Each is in 0..1<<Layout.DatacenterBits-1.
	//
	// Defaults to all.
	Datacenters []int64
}

// The rows. In the common store the space "<namespace>.regions" has a row for each datacenter
// number. In a region's own store the space "<namespace>.home" has one row, the home, whose Holder
// is "<number> <name>". They have names of their own because both may be in one store. All are
// ordinary rows of a [leasestore.Store], so every store can keep them. What makes them last is a
// claim with the window leasestore.Retired, after which a row counts as retired: no claim takes
// it, whatever the time is.
//
// An Owner is the token of one assignment, the same in both rows. A Nonce is a mark, and Until is
// its version. The home gets a new mark first and the number's row then copies it, so the region
// knows every mark that it may have written, however it crashes. A mark may be copied over an
// unknown one only if its version is greater. A mark's version is the previous one plus one. Two
// copies produce the same next version, and the one that writes second is refused: with times for
// versions, or without them, the two would write over each other for ever.
//
// A home that was claimed and not marked since is a proposal. It becomes the region's number only
// when the number's row has its owner. The other way round, a region that is cut off in between
// would go on with what another region has. The home comes first nonetheless, so that two
// processes that start at once propose one number, and no crash leaves a number taken to which no
// home refers.
//
// model_test.go visits all states of this, and shows what each rule is for.

const (
	regionsSuffix = ".regions"
	homeSuffix    = ".home"
	maxName       = 40

	maxDatacenterBits = 16 // each number is a row
	maxNamespace      = 64 // of a Space
)

// Validate returns an error for the first setting of a lease that does not fit its Region.
func (r *Region) Validate(namespace string, l core.Layout) error {
	_, lists := r.Store.(leasestore.Lister)
	named := (leasestore.Space{Namespace: r.Name, Workers: 1}).Validate() == nil && len(r.Name) <= maxName
	switch {
	case !named:
		return invalid("Config.Region.Name", fmt.Sprintf("%.64q", r.Name), fmt.Sprintf("1..%d of the characters a-z A-Z 0-9 . _ -", maxName))
	case r.Store == nil:
		return invalid("Config.Region.Store", "nil", "the store that all regions reach")
	case !lists:
		return invalid("Config.Region.Store", fmt.Sprintf("a %T", r.Store), "a store with a method Rows")
	case r.Store.LosesWrites():
		return invalid("Config.Region.Store", fmt.Sprintf("a %T", r.Store), "a store that does not lose writes: two regions would have one number")
	case l.DatacenterBits < 1 || l.DatacenterBits > maxDatacenterBits:
		return invalid("Config.Layout.DatacenterBits", strconv.Itoa(l.DatacenterBits), fmt.Sprintf("1..%d with Config.Region", maxDatacenterBits))
	case len(namespace)+len(regionsSuffix) > maxNamespace:
		return invalid("Config.Namespace", strconv.Quote(namespace), fmt.Sprintf("at most %d characters with Config.Region", maxNamespace-len(regionsSuffix)))
	case r.Datacenters != nil && len(r.Datacenters) == 0:
		return invalid("Config.Region.Datacenters", "empty", "at least one datacenter number, or nil for all")
	}
	last := int64(1)<<l.DatacenterBits - 1
	for i, n := range r.Datacenters {
		if n < 0 || n > last {
			return invalid(fmt.Sprintf("Config.Region.Datacenters[%d]", i), strconv.FormatInt(n, 10), fmt.Sprintf("0..%d", last))
		}
	}
	return nil
}
