//go:build unix

package chaos

import (
	"context"
	"errors"
	"time"
)

// The faults, each of which a call in twenty has.
const (
	RequestLost = iota
	ReplyLost
	ReplyLate
	Zombie
	OneIn = 20
)

// ErrInjected is all that a process learns of a lost request.
var ErrInjected = errors.New("chaos: injected: no reply")

// Faults make requests to a store go wrong.
type Faults struct {
	IntN     func(n int) int // a random number below n; it may be called at any time
	Late     time.Duration   // replies are so late at most, and zombies twice that
	Deadline time.Duration   // of a zombie
}

// delay returns a random length of time up to most.
func (f Faults) delay(most time.Duration) time.Duration {
	return time.Duration(f.IntN(int(most/time.Millisecond)+1)) * time.Millisecond
}

// Call makes one request, and one of five goes wrong.
func Call[T any](ctx context.Context, f Faults, do func(context.Context) (T, error)) (T, error) {
	var none T
	switch f.IntN(OneIn) {
	case RequestLost:
		return none, ErrInjected
	case ReplyLost:
		_, _ = do(ctx)
		return none, ErrInjected
	case ReplyLate: // after the deadline, and it is believed, as by a process that was stopped
		reply, err := do(ctx)
		<-ctx.Done()
		time.Sleep(f.delay(f.Late))
		return reply, err
	case Zombie: // done when nobody expects it any more
		later := f.delay(2 * f.Late)
		go func() {
			time.Sleep(later)
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.Deadline)
			defer cancel()
			_, _ = do(ctx)
		}()
		return none, ErrInjected
	default:
		return do(ctx)
	}
}
