//go:build unix

package chaos

import (
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// A clock is a wall clock that jumps, and runs 1 % too fast or too slow in between. The
// zero clock shows the truth.
type clock struct {
	last atomic.Pointer[jump]
}

// A jump is where a clock was set to, and when.
type jump struct {
	at    time.Time
	ahead time.Duration
	drift float64 // seconds per second
}

func (c *clock) now() time.Time {
	now := time.Now()
	if j := c.last.Load(); j != nil {
		now = now.Add(j.ahead + time.Duration(j.drift*float64(now.Sub(j.at))))
	}
	return now.Round(0)
}

// jump lets the clock jump every 0.1 to 1 s, for as long as the process lives. It is at
// most most from the truth, either way. Small jumps are more frequent, because IDs do not
// follow a clock back. With large ones alone all leases would soon be as far ahead as the
// largest takes them.
func (c *clock) jump(r *rand.Rand, most time.Duration) {
	for {
		u := 2*r.Float64() - 1
		c.last.Store(&jump{
			at:    time.Now(),
			ahead: time.Duration(u * u * u * float64(most)),
			drift: 0.01 * float64(1-2*r.IntN(2)),
		})
		time.Sleep(between(r, 100*time.Millisecond, time.Second))
	}
}
