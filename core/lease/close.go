package lease

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/internal/base/wait"
)

// Close ends the lease. Call Generator.Close instead, which calls it. The generator
// returns [core.ErrClosed] from then on. The worker number is given back, and anyone may
// claim it at once. If ctx has ended already, nothing is sent.
//
// Close returns when ctx ends at the latest. Its request takes at most a quarter of the
// window. If it fails, the number is simply not free before Status.Limit.
//
// If the number was lost, Close gives nothing back and returns no error. Closing twice is
// harmless: the second call returns what the first did, when that is done.
func (l *Lease) Close(ctx context.Context) error {
	l.mu.Lock()
	first, owned := !l.closing, l.owned
	l.closing = true
	// Before anything else, and without waiting for run. The row may only be given back
	// once no ID of it can come.
	if first && l.binding != nil {
		l.binding.Close()
	}
	end := l.seal()
	l.mu.Unlock()
	if first {
		l.closeErr = l.giveBack(ctx, end)
		if owned != nil {
			l.closeErr = errors.Join(l.closeErr, owned.Close())
		}
		close(l.closed)
	}
	if err := wait.For(ctx, l.closed); err != nil {
		return l.notGivenBack(err)
	}
	return l.closeErr
}

// Own makes Close close c as well, after the last request to the store: a pool or a client that
// serves this lease alone. A later Own replaces c. Call it before Close can be called.
func (l *Lease) Own(c io.Closer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.owned = c
}

// giveBack ends run and releases the row, whose IDs end at end.
func (l *Lease) giveBack(ctx context.Context, end leasestore.Millis) error {
	l.stop()
	select {
	case <-l.stopped:
	case <-ctx.Done():
	}
	if err := ctx.Err(); err != nil {
		return l.notGivenBack(err)
	}
	r, held := l.protocol.release(end)
	if !held {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, l.protocol.deadline())
	defer cancel()
	err := l.store.Release(ctx, r)
	log := l.config.Logger.With("worker", r.Worker, "epoch", r.Epoch)
	switch {
	case errors.Is(err, ErrLost):
		log.Warn("lease: nothing to give back: the worker number was lost before", "error", err)
	case err != nil:
		err = l.notGivenBack(err)
		log.Warn("lease: giving the worker number back was not confirmed; it is free at its limit at the latest", "error", err)
		return err
	default:
		log.Debug("lease: gave the worker number back", "end", r.End.Time())
	}
	l.mu.Lock()
	l.status.Held = false
	l.mu.Unlock()
	return nil
}

// notGivenBack returns the error of Close.
func (l *Lease) notGivenBack(err error) error {
	s := l.Status()
	if !s.Held {
		return failed("closed while claiming", err)
	}
	return failed(fmt.Sprintf("giving worker %d back was not confirmed; it is free at %s at the latest", s.Worker, s.Limit.Format(time.RFC3339Nano)), err)
}
