package lease

import (
	"context"
	"fmt"
	"time"
)

// Fence ends all leases of the namespace and datacenter of config. Every later lease
// begins at until or after it. Operators need it when a store has lost writes without the
// loss guard. A backup was restored, or a failover went to a replica that lagged.
//
// Stop all processes first. until must be later than the time of every ID that they have
// returned. Take the greatest key in the tables, get its time by core.Layout.Parts, and
// add a second, say. If a process cannot be stopped, until must also be later than its
// limit. That process goes on to its limit with its old worker number. Then it finds the
// row taken and claims anew. With the loss guard every process must be stopped. Otherwise,
// if the store forgets the fence, the old holder keeps its row.
//
// Rows can be claimed again when the store's clock has come to until, less
// Config.MaxClockSkew. With the loss guard it is a window and the guard earlier.
//
// Fence never lowers a limit, and may be repeated. It makes the rows of a new namespace,
// so it also serves to begin after the IDs of another generator. Config.Workers does not
// restrict it.
//
// Nothing takes a raised limit back. So until may be at most an hour and ten minutes
// ahead of the clock. Errors:
//
//   - A [*core.ValueError] if until is later, if a setting is out of range, or if store is no
//     [Fencer].
//   - A [*LayoutError] if the stored layout is another.
//   - After any other error some rows may be raised and others not: repeat it.
func Fence(ctx context.Context, store Store, config Config, until time.Time) error {
	fencer, ok := store.(Fencer)
	if !ok {
		return invalid("store", fmt.Sprintf("a %T", store), "a store with a method Fence")
	}
	config, settings, err := config.resolve(store.LosesWrites())
	if err != nil {
		return err
	}
	if latest := config.now().Add(maxAhead.Duration() + maxWindow); until.After(latest) {
		return invalid("until", until.UTC().Format(time.RFC3339Nano), "at most an hour and ten minutes ahead of the clock, "+latest.UTC().Format(time.RFC3339Nano))
	}
	at := MillisOf(until)
	if at.Time().Before(until) {
		at++
	}
	if err := fencer.Fence(ctx, Fencing{Space: settings.Space, Nonce: token(), Until: at}); err != nil {
		return fmt.Errorf("lease: fencing was not confirmed; some rows may be as before; call Fence again: %w", err)
	}
	return nil
}
