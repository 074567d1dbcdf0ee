package leasetest

import (
	"slices"
	"testing"
	"time"
)

// SetPatience changes how long an operation may take.
func SetPatience(d time.Duration) { patience = d }

// RunOnly is Run with some of the claims; nil: with all.
func RunOnly(t *testing.T, names []string, open func(t *testing.T) Harness) {
	t.Helper()
	for _, claim := range claims {
		if names == nil || slices.Contains(names, claim.name) {
			t.Run(claim.name, func(t *testing.T) { claim.check(newSuite(t, open(t))) })
		}
	}
}
