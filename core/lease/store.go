package lease

import "github.com/snowkey/snowkey/core/lease/leasestore"

// A Store keeps the rows of the leases, one per worker number. Packages sqllease, redislease,
// etcdlease and zklease have one each; package leasestore says how to write another.
type Store = leasestore.Store
