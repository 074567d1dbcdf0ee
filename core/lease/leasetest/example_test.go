package leasetest_test

import (
	"testing"

	"github.com/snowkey/snowkey/core/lease/leasetest"
)

// The test of a store of your own.
func ExampleRun() { //nolint:testableexamples // Run needs the T of a test
	TestStoreConforms := func(t *testing.T) {
		leasetest.Run(t, func(*testing.T) leasetest.Harness {
			place := leasetest.NewMemory(nil) // a fresh, empty place: a schema, a directory
			return leasetest.Harness{
				Open: func(*testing.T) leasetest.Store { return place }, // a new handle
			}
		})
	}
	_ = TestStoreConforms
}
