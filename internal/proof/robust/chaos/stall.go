//go:build unix

package chaos

import (
	"sync/atomic"
	"time"
)

// noted is how long a pause must be to be in the journal.
const noted = 200 * time.Millisecond

// A stalls measures for how long the process did not run, because it was stopped or the machine
// was busy. A pause without IDs at such a time is not the store's.
type stalls struct{ sum atomic.Int64 }

// newStalls returns a stalls that measures from now on, for as long as the process lives.
func newStalls() *stalls {
	const tick = 20 * time.Millisecond
	s := new(stalls)
	go func() {
		last := time.Now()
		for {
			time.Sleep(tick)
			now := time.Now()
			if late := now.Sub(last) - tick; late > tick {
				s.sum.Add(int64(late))
			}
			last = now
		}
	}()
	return s
}

// all returns for how long the process did not run so far.
func (s *stalls) all() time.Duration { return time.Duration(s.sum.Load()) }
