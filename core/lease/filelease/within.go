package filelease

import (
	"context"
	"errors"
	"fmt"

	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/internal/base/wait"
)

// maxLeft bounds the operations of one Store that are still under way after their callers have
// stopped waiting. Each keeps a thread of the process, of which Go allows 10,000, and a lease
// retries several times per window as long as the disk hangs.
const maxLeft = 32

// within performs an operation on a space: it calls f and returns its results, but stops
// waiting soon after ctx has ended, as package wait describes, because calls on files take no
// context and a sync on a hanging disk may take minutes or never return. A call that was left
// behind gives its locks back in the end, and writes nothing that it had not begun to write. If
// it succeeds, late is called with the result, unless late is nil.
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
