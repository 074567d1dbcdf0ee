package filelease

import (
	"context"
	"errors"
	"fmt"

	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/internal/base/wait"
)

// maxLeft is how many operations of one Store may be under way that nobody waits for
// any more. Each keeps a thread of the process, of which there are 10,000. A lease asks
// again several times in each window, as long as the disk hangs.
const maxLeft = 32

// within does an operation on a space: it calls f and returns what it returns. But it
// stops waiting soon after ctx has ended, as package wait says. Calls on files know no
// context, and on a disk that hangs a sync may take minutes, or for ever. The call that
// was left gives back its locks in the end, and writes nothing that it had not begun to
// write. If it succeeds, late is called with the result, unless late is nil.
func within[T any](ctx context.Context, s *Store, sp leasestore.Space, f func() (T, error), late func(T)) (T, error) {
	if err := s.begin(ctx, sp); err != nil {
		var none T
		return none, err
	}
	result, err := wait.Call(ctx, &s.calls, f, late)
	if errors.Is(err, wait.ErrNoAnswer) || errors.Is(err, wait.ErrNotTried) {
		err = fmt.Errorf("filelease: the file system: %w; look at the disk", err)
	}
	return result, err
}

// begin returns an error if an operation must not begin.
func (s *Store) begin(ctx context.Context, sp leasestore.Space) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("filelease: %w", err)
	}
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return leasestore.Permanent(ErrClosed)
	}
	return sp.Validate()
}
