package lease

import (
	"context"
	"fmt"
	"time"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// Fence ends all leases in the namespace and datacenter of config, and lets every later lease
// begin at until or later. It is for operators whose store has lost writes without the loss guard,
// because a backup was restored or a failover went to a replica that lagged.
//
// Stop all processes first. until must be later than the time of every ID that they have returned:
// take the greatest key of the tables, get its time from core.Layout.Parts, and add a second. If a
// process cannot be stopped, until must also be later than its limit; it goes on to that limit with
// its old worker number, then finds the row taken and claims another. With the loss guard every
// process must be stopped, because the old holder keeps its row if the store forgets the fence.
//
// Rows can be claimed again once the store's clock has reached until, less Config.MaxClockSkew;
// with the loss guard, a window and the guard earlier.
//
// Fence never lowers a limit and may be repeated. It makes the rows of a new namespace, so that it
// can also start a namespace after the IDs of another generator. Config.Workers does not restrict
// it.
//
// A raised limit cannot be taken back, so until may be at most an hour and ten minutes ahead of the
// clock. Errors:
//
//   - A [*core.ValueError] if until is later, if a setting is out of range, or if store is no
//     [leasestore.Fencer].
//   - A [*LayoutError] if the stored layout is another.
//   - After any other error some rows may be raised and others not: call Fence again.
func Fence(ctx context.Context, store Store, config Config, until time.Time) error {
	fencer, ok := store.(leasestore.Fencer)
	if !ok {
		return invalid("store", fmt.Sprintf("a %T", store), "a store with a method Fence")
	}
	config, settings, err := config.resolveRows(store)
	if err != nil {
		return err
	}
	if latest := config.now().Add(leasestore.MaxAhead.Duration() + maxWindow); until.After(latest) {
		return invalid("until", until.UTC().Format(time.RFC3339Nano), "at most an hour and ten minutes ahead of the clock, "+latest.UTC().Format(time.RFC3339Nano))
	}
	at := leasestore.MillisOf(until)
	if at.Time().Before(until) {
		at++
	}
	if err := fencer.Fence(ctx, leasestore.Fencing{Space: settings.Space, Nonce: token(), Until: at}); err != nil {
		return failed("fencing was not confirmed; some rows may be as before; call Fence again", err)
	}
	return nil
}
