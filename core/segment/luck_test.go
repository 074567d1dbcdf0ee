package segment

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"
)

// The n-th fetcher of a run draws the same pauses each time.
func TestMain(m *testing.M) {
	var fetchers atomic.Uint64
	luck = func() func(time.Duration) time.Duration {
		rng := rand.New(rand.NewPCG(1, fetchers.Add(1)))
		return func(most time.Duration) time.Duration {
			switch rng.IntN(8) { // the ends are where a test that counts is wrong
			case 0:
				return 0
			case 1:
				return most - 1
			}
			return time.Duration(rng.Int64N(int64(most)))
		}
	}
	m.Run()
}
