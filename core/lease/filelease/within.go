package filelease

import (
	"context"
	"fmt"
	"time"
)

// grace is how long an operation may take to notice that ctx has ended. One that
// waits for a lock has given up by then, and what it says is certain.
const grace = 100 * time.Millisecond

// maxLeft is how many operations of one Store may be under way that nobody waits for
// any more. Each keeps a thread of the process, of which there are 10,000. A lease asks
// again several times in each window, as long as the disk hangs.
const maxLeft = 32

// within calls f and returns what it returns, but stops waiting soon after ctx has
// ended. Calls on files know no context, and on a disk that hangs a sync may take
// minutes, or for ever. The call that was left ends in its own time. It gives back its
// locks then, and writes nothing that it had not begun to write. What it does is
// unknown.
//
// If f succeeds after it was left, late is called with the result, unless late is nil.
// Exactly one of the two gets it. The channel has no room, so a result is either
// received, or f knows that nobody will.
func within[T any](ctx context.Context, s *Store, f func() (T, error), late func(T)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done, left := make(chan outcome), make(chan struct{})
	go func() {
		value, err := f()
		select {
		case done <- outcome{value, err}:
		case <-left:
			if err == nil && late != nil {
				late(value)
			}
			s.leave(-1)
		}
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case o := <-done:
		return o.value, o.err
	case <-timer.C:
	}
	s.leave(+1)
	close(left)
	var none T
	return none, fmt.Errorf("filelease: no answer from the file system, outcome unknown: %w", ctx.Err())
}

// leave counts the operations that were left and have not ended.
func (s *Store) leave(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left += n
}
