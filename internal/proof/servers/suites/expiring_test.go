package servers

import (
	"context"
	"time"
)

// hangs is after how long a call that has not returned never will: on a busy machine calls take
// seconds, and a driver that waits for a silent server does so for ever.
const hangs = 3 * time.Minute

// An expiring context reaches its deadline when over is closed, which a test does once the call has come
// to where it is to be cut off. A deadline by the clock may come before that on a busy machine.
type expiring struct {
	context.Context
	over <-chan struct{}
}

func (c expiring) Done() <-chan struct{} { return c.over }

func (c expiring) Err() error {
	select {
	case <-c.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// Deadline says that there is one, because with a deadline calls send the server limits of their own.
func (c expiring) Deadline() (time.Time, bool) {
	if c.Err() != nil {
		return time.Now(), true
	}
	return time.Now().Add(faultMost), true
}

// poll waits until holds, and returns false if ctx ends before that.
func poll(ctx context.Context, holds func() bool) bool {
	for ; ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		if holds() {
			return true
		}
	}
	return false
}
