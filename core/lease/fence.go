package lease

import (
	"context"
	"fmt"
	"time"
)

// Fence ends all leases of the namespace and datacenter of config, and makes every
// later lease begin at until or after it. It is for operators, for a store that has
// lost writes without the loss guard: a backup that was restored, a failover to a
// replica that lagged behind.
//
// Stop all processes first. until must be later than the time of every ID that they
// have returned: that of the greatest key in the tables, by core.Layout.Parts, and a
// second, say. If a process cannot be stopped, it must also be later than its limit:
// that process goes on to there with its old worker number, before it finds the row
// taken and claims anew. Rows are claimed again when the store's clock has come to
// until, less Config.MaxClockSkew.
//
// Fence never lowers a limit, and may be repeated. It makes the rows of a namespace
// that is new, so it also serves to begin after the IDs of another generator.
// Config.Workers does not restrict it.
//
// until may be at most an hour and ten minutes ahead of the clock, since nothing
// takes it back: a [*ValueError] otherwise, as for a setting out of range, or a
// store that is no [Fencer]. Another layout than the stored one is a [*LayoutError].
// After any other error some rows may be raised and others not: repeat it.
func Fence(ctx context.Context, store Store, config Config, until time.Time) error {
	fencer, ok := store.(Fencer)
	if !ok {
		return &ValueError{Name: "store", Value: fmt.Sprintf("a %T", store), Want: "a store with a method Fence"}
	}
	config, settings, err := config.resolve(losesWrites(store))
	if err != nil {
		return err
	}
	now := time.Now()
	if config.Now != nil {
		now = config.Now()
	}
	if latest := now.Add(maxAhead.Duration() + maxWindow); until.After(latest) {
		return &ValueError{Name: "until", Value: until.UTC().Format(time.RFC3339Nano),
			Want: "at most an hour and ten minutes ahead of the clock, " + latest.UTC().Format(time.RFC3339Nano)}
	}
	at := MillisOf(until)
	if at.Time().Before(until) {
		at++
	}
	if err := fencer.Fence(ctx, Fencing{Space: settings.Space, Nonce: token(), Until: at}); err != nil {
		return fmt.Errorf("lease: the rows are perhaps not all fenced: %w", err)
	}
	return nil
}

// losesWrites reports whether a store is lossy.
func losesWrites(store Store) bool {
	s, ok := store.(Lossy)
	return ok && s.LosesWrites()
}
