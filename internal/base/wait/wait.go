// Package wait waits, and stops waiting when a context ends.
package wait

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
)

// Sleep waits for d, or until ctx ends. It returns the error of ctx, in both cases.
func Sleep(ctx context.Context, d time.Duration) error {
	if ctx.Done() == nil {
		time.Sleep(d) // costs less than a timer
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// Cause returns err, the error of a call that was given ctx. If ctx has ended, the
// error of ctx is added. Drivers report its end in words of their own.
//
// A server or a socket that was given the deadline may be faster than the timer of ctx.
// So a deadline that is over counts, though ctx.Err() is still nil.
func Cause(ctx context.Context, err error) error {
	cause := ctx.Err()
	if deadline, limited := ctx.Deadline(); cause == nil && limited && !time.Now().Before(deadline) {
		cause = context.DeadlineExceeded
	}
	if err == nil || cause == nil || errors.Is(err, cause) {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// Grace is how long a call may take to notice that its context has ended. One that
// heeds it has cleaned up after itself by then, and its answer is certain.
const Grace = 100 * time.Millisecond

var (
	// ErrNoAnswer means that a call was left.
	ErrNoAnswer = errors.New("no answer, outcome unknown")

	// ErrNotTried means that a call was not made, because others hang.
	ErrNotTried = errors.New("not tried")
)

// Calls are those to something that may hang. It counts the calls that hang: that have
// not ended though nobody waits for them any more. Each keeps goroutines, and a thread
// or a connection. It must not be copied.
type Calls struct {
	Max  int32 // no further call is made while so many hang
	hang atomic.Int32
}

// Hanging returns how many calls hang.
func (c *Calls) Hanging() int { return int(c.hang.Load()) }

// Call calls f and returns its result. It stops waiting [Grace] after ctx has ended.
// Then the error matches [ErrNoAnswer] and that of ctx. The call that was left ends in
// its own time, and what it does is unknown. If Max calls hang, f is not
// called, and the error matches [ErrNotTried].
//
// If f panics or ends its goroutine, Call does so too.
//
// If f succeeds after it was left, late is called with the result, unless late is nil.
// Exactly one of Call's caller and late gets a result. The channel has no room: a result
// is either received, or f knows that nobody will.
func Call[T any](ctx context.Context, c *Calls, f func() (T, error), late func(T)) (T, error) {
	var none T
	if n := c.hang.Load(); n >= c.Max {
		return none, fmt.Errorf("%w: %d calls before this one still hang, the limit; find out why they get no answer", ErrNotTried, n)
	}
	done, left := make(chan outcome[T]), make(chan struct{})
	go func() {
		o := outcome[T]{ended: true}
		defer func() {
			if o.ended {
				o.panicked = recover()
			}
			select {
			case done <- o:
			case <-left:
				if o.panicked != nil {
					panic(o.panicked) // which nobody else can report
				}
				if !o.ended && o.err == nil && late != nil {
					late(o.result)
				}
				c.hang.Add(-1)
			}
		}()
		o.result, o.err = f()
		o.ended = false
	}()
	select {
	case o := <-done:
		return o.get()
	case <-ctx.Done():
	}
	timer := time.NewTimer(Grace)
	defer timer.Stop()
	select {
	case o := <-done:
		return o.get()
	case <-timer.C:
	}
	c.hang.Add(1)
	close(left)
	return none, fmt.Errorf("%w: %w", ErrNoAnswer, ctx.Err())
}

// An outcome is how a call has ended.
type outcome[T any] struct {
	result   T
	err      error
	ended    bool // by a panic, or by runtime.Goexit
	panicked any
}

func (o outcome[T]) get() (T, error) {
	switch {
	case o.panicked != nil:
		panic(o.panicked)
	case o.ended:
		runtime.Goexit()
	}
	return o.result, o.err
}
