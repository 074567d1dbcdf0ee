package leasetest_test

import (
	"testing"

	"github.com/snowkey/snowkey/core/lease/leasetest"
)

func TestMemoryPassesTheSuite(t *testing.T) {
	leasetest.Run(t, func(*testing.T) leasetest.Harness {
		m := leasetest.NewMemory(nil)
		return leasetest.Harness{Seed: 1, Open: func(*testing.T) leasetest.Store { return m }, Delete: nil}
	})
}

func TestMemoryWithEveryHookPassesTheSuite(t *testing.T) {
	leasetest.Run(t, func(*testing.T) leasetest.Harness { return newWorld().harness(nil) })
}

func TestUnknownOutcomesPassTheSuite(t *testing.T) {
	leasetest.Run(t, func(*testing.T) leasetest.Harness {
		h := newWorld().harness(func(_ *world, right leasetest.Store) leasetest.Store { return flaky{right} })
		h.SetClock, h.Namespace = nil, "a-long-name-to-begin-with"
		h.Stall, h.LosesReplies = nil, nil // their calls have near deadlines too
		return h
	})
}
