package redislease

import (
	"regexp"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease/leasestore"
)

func invalid(name, value, want string) *core.ValueError {
	return &core.ValueError{Package: "redislease", Name: name, Value: value, Want: want, Err: leasestore.ErrPermanent}
}

// plainPrefix is the form of a prefix. Braces in it would send the keys of a namespace
// to several servers of a cluster.
var plainPrefix = regexp.MustCompile(`^[a-zA-Z0-9._:/-]{1,64}$`)
