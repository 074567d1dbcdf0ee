//go:build unix

package leasechaos

import (
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// A clock is a wall clock that jumps. The zero clock shows the truth.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time {
	return time.Now().Round(0).Add(time.Duration(c.ahead.Load()))
}

// jump lets the clock jump every 0.1 to 1 s, for as long as the process lives. It is at
// most most from the truth, either way. Small jumps are more frequent, because IDs do not
// follow a clock back. With large ones alone all leases would soon be as far ahead as the
// largest takes them.
func (c *clock) jump(r *rand.Rand, most time.Duration) {
	for {
		u := 2*r.Float64() - 1
		c.ahead.Store(int64(u * u * u * float64(most)))
		time.Sleep(between(r, 100*time.Millisecond, time.Second))
	}
}

// between returns a random length of time.
func between(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64(most-least)+1))
}
