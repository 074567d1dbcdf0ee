package leasetest

import "time"

// SetPatience changes how long an operation may take.
func SetPatience(d time.Duration) { patience = d }
