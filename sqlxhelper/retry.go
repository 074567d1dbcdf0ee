package sqlxhelper

import (
	"context"
	"errors"
)

// What runs again, and how often, beside the function of InTx. Everything else is sent once.
const (
	// maxSends is how often a single statement without an answer is sent, as database/sql does,
	// see single. The look between two of them takes idle connections that the server has ended
	// out of the pool, and leaves one that works.
	maxSends = 3
	// stalePlans is how often a call sends its rows per load, see retryStale. A load has three or
	// four texts of look-ups as a rule, and each may fail once on each connection.
	stalePlans = 8
)

// retryStale sends all rows, and sends them again after a look-up has failed because a table
// has changed since pgx prepared the look-up on this connection. Everything that was sent is
// undone then, and pgx prepares that look-up anew; others that were prepared before, here and
// on other connections, fail once each.
func (w *writer) retryStale(ctx context.Context, send func() error) error {
	for try := 1; ; try++ {
		err := send()
		if err == nil || !w.stale || try > stalePlans*len(w.loads) || errors.Is(err, ErrTxBroken) || ctx.Err() != nil {
			return err
		}
		w.restart(err)
	}
}

// restart resets w after an attempt that has failed with err.
func (w *writer) restart(err error) {
	w.restoreKeys()
	w.learn(err)
	w.stale, w.readings, w.tables = false, nil, nil
	for i := range w.loads {
		w.loads[i].affected = 0
	}
}
