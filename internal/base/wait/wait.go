// Package wait waits for time and for calls, no longer than a context allows.
package wait

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
)

// Sleep waits for d, or until ctx ends. In both cases it returns the error of ctx.
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

// Cause returns err, the error of a call with ctx, and wraps the error of ctx as well if ctx has
// ended, because drivers report its end as errors of their own.
//
// A server or a socket that was given the deadline may be faster than the timer of ctx, so a
// deadline that has passed counts even while ctx.Err() is nil.
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

// For receives from done, such as when it is closed, or returns the error of ctx if ctx ends first. If
// both have happened, done counts.
func For(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-done:
		return nil
	default:
		return ctx.Err()
	}
}

// Start calls f in a goroutine of its own, and returns a function that waits for the result of f, or
// for the end of ctx, whose error it then returns. f goes on without its caller.
func Start[T any](f func() (T, error)) func(ctx context.Context) (T, error) {
	var result T
	var err error
	done := make(chan struct{})
	go func() {
		result, err = f()
		close(done)
	}()
	return func(ctx context.Context) (T, error) {
		if ended := For(ctx, done); ended != nil {
			var none T
			return none, ended
		}
		return result, err
	}
}

// Grace is how long a call may take to return after its context has ended. A call that honours its
// context has cleaned up by then, and its result is certain.
const Grace = 100 * time.Millisecond

var (
	// ErrNoAnswer means that a call was abandoned.
	ErrNoAnswer = errors.New("no answer, outcome unknown")

	// ErrNotTried means that a call was not made, because earlier ones hang.
	ErrNotTried = errors.New("not tried")
)

// Calls limits calls to something that may hang. It counts those that hang, which were abandoned
// and have not returned yet; each of them holds goroutines and a thread or a connection. It must
// not be copied.
type Calls struct {
	Max  int32 // while this many calls hang, no further one is made
	hang atomic.Int32
}

// Call calls f and returns its result. If f has not returned [Grace] after the end of ctx, Call
// abandons it and returns an error that matches [ErrNoAnswer] and the error of ctx; f goes on, with
// an unknown outcome. If Max calls hang, Call does not call f and returns an error that matches
// [ErrNotTried].
//
// If f panics or ends its goroutine, so does Call.
//
// If f succeeds after it was abandoned, its result is passed to late, unless late is nil. Exactly
// one of Call's caller and late gets the result, because done is not buffered: either Call
// receives the result, or f learns that it was abandoned.
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
					panic(o.panicked) // Call cannot report it any more
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

// An outcome is the end of a call.
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
