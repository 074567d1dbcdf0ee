//go:build unix

package chaos

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"
)

// The faults. Each happens to one call in twenty.
const (
	requestLost = iota
	replyLost
	replyLate
	zombie
	oneIn = 20
)

// errInjected is all that a process learns about a lost request.
var errInjected = errors.New("chaos: injected: no reply")

// faults make requests to a store go wrong.
type faults struct {
	intN     func(n int) int // a random number below n; it may be called at any time
	late     time.Duration   // the maximum delay of replies, and half that of zombies
	deadline time.Duration   // of a zombie
}

// delay returns a random length of time up to most.
func (f faults) delay(most time.Duration) time.Duration {
	return time.Duration(f.intN(int(most/time.Millisecond)+1)) * time.Millisecond
}

// call makes one request. One in five goes wrong.
func call[T any](ctx context.Context, f faults, do func(context.Context) (T, error)) (T, error) {
	var none T
	switch f.intN(oneIn) {
	case requestLost:
		return none, errInjected
	case replyLost:
		_, _ = do(ctx)
		return none, errInjected
	case replyLate: // after the deadline, and accepted, as by a process that was stopped
		reply, err := do(ctx)
		<-ctx.Done()
		time.Sleep(f.delay(f.late))
		return reply, err
	case zombie: // performed after the caller has stopped waiting
		later := f.delay(2 * f.late)
		go func() {
			time.Sleep(later)
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.deadline)
			defer cancel()
			_, _ = do(ctx)
		}()
		return none, errInjected
	default:
		return do(ctx)
	}
}

// shared returns a source of random numbers for several goroutines.
func shared(r *rand.Rand) (intN func(n int) int) {
	var mu sync.Mutex
	return func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return r.IntN(n)
	}
}
