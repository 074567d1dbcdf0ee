package leasetest

import (
	"slices"
	"testing"
	"time"
)

// SetCallTimeout changes how long an operation may take.
func SetCallTimeout(d time.Duration) { callTimeout = d }

// RunOnly is Run with some of the claims; nil: with all.
func RunOnly(t *testing.T, names []string, open func(t *testing.T) Harness) {
	t.Helper()
	for _, claim := range claims {
		if names == nil || slices.Contains(names, claim.name) {
			t.Run(claim.name, func(t *testing.T) { claim.check(newSuite(t, open(t))) })
		}
	}
}
