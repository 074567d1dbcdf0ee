package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// ErrUsed is matched by the error of [Retire] for a worker number under which IDs may exist.
var ErrUsed = errors.New("lease: the worker number was used before")

// Retire takes a worker number of the namespace and datacenter of config out of use for good: no
// lease gets it any more, also none of a process with an older version of this package. The number
// is then free for keys that no [core.Generator] makes, such as those of package backfill. Retiring
// a retired number changes nothing and returns nil, so that a program may call Retire each time it
// starts. It makes the rows of a new namespace.
//
// Only a number that no lease has ever had can be retired, whether that lease has ended or not,
// because IDs of a lease may have any time since the namespace began. Lease numbers are drawn at
// random, so retire one early. For people, the row keeps when it was retired, and as its holder
// reason and Config.Holder, cut to 64 characters. Config.Workers does not restrict Retire, [Fence]
// passes over retired numbers, and [Reinstate] undoes Retire.
//
// A store that has lost a claim, such as Redis after a failover, may take a used number for an
// unused one; retire the number there before the first program takes a lease. If the store loses
// the retirement, leases of the number begin later than the moment of the retirement, so that
// keys dated before that moment stay unique.
//
// Errors:
//
//   - One that matches [ErrUsed] if a lease has had the number, or Fence has raised its row. If
//     the store is a [leasestore.Lister], it says who had it, until when, and which others are
//     unused.
//   - A [*core.ValueError] if worker or a setting is out of range, or if reason is empty or holds
//     other than printable ASCII.
//   - A [*LayoutError] or [*ClockSkewError], as for Acquire.
//   - After any other error the number may be retired or not: call Retire again.
func Retire(ctx context.Context, store Store, config Config, worker int64, reason string) error {
	config, claim, err := resolveNumber(store, config, worker)
	if err != nil {
		return err
	}
	if reason == "" {
		return invalid("reason", `""`, "why the number is retired, for people")
	}
	claim.Only, claim.Retire = []int64{worker}, true
	claim.Owner, claim.Nonce, claim.Now = token(), token(), leasestore.MillisOf(config.now())
	claim.Holder = fmt.Sprintf("retired: %s, by %s", reason, config.Holder)
	claim.Holder = claim.Holder[:min(len(claim.Holder), maxHolder)]
	if v := (*core.ValueError)(nil); errors.As(claim.Check(claim.Now), &v) {
		return invalid("reason", v.Value, "printable characters of ASCII")
	}
	reply, err := store.Claim(ctx, claim)
	switch none := (*NoFreeWorkerError)(nil); {
	case err == nil && !reply.Row.Retired():
		return fmt.Errorf("lease: worker %d is not retired, but claimed for %s: a %T does not know leasestore.Claim.Retire", worker, config.Window, store)
	case errors.As(err, &none) && none.Retired > 0:
		return nil
	case errors.As(err, &none) && none.Rows > 0:
		return fmt.Errorf("%w: worker %d%s", ErrUsed, worker, uses(ctx, store, claim.Space, worker))
	case err != nil:
		return failed(fmt.Sprintf("worker %d is not known to be retired; call Retire again", worker), err)
	}
	return nil
}

// Reinstate gives a number that was retired by mistake back to the leases, from an hour and ten
// minutes ahead of the clock on, which is later than a [Fence] meanwhile may have asked for. It
// cannot be retired again. No key may be made outside of leases any more under the number. A
// number that is not retired is left alone.
//
// It returns the errors of Retire but ErrUsed, and a [*core.ValueError] if store is no
// [leasestore.Lister].
func Reinstate(ctx context.Context, store Store, config Config, worker int64) error {
	config, claim, err := resolveNumber(store, config, worker)
	if err != nil {
		return err
	}
	lister, ok := store.(leasestore.Lister)
	if !ok {
		return invalid("store", fmt.Sprintf("a %T", store), "a store with a method Rows")
	}
	rows, _, err := lister.Rows(ctx, claim.Space)
	for _, row := range rows {
		if err == nil && row.Worker == worker && row.Retired() {
			end := config.now().Add(leasestore.MaxAhead.Duration() + maxWindow)
			err = store.Release(ctx, leasestore.Release{
				Space: claim.Space, Worker: worker, Epoch: row.Epoch, Owner: row.Owner,
				Known: []string{row.Nonce}, Nonce: token(), End: leasestore.MillisOf(end),
			})
		}
	}
	if err != nil {
		return failed(fmt.Sprintf("worker %d is not known to be reinstated; call Reinstate again", worker), err)
	}
	return nil
}

// resolveNumber returns resolved settings and their claim, unless worker is out of range.
func resolveNumber(store Store, config Config, worker int64) (Config, leasestore.Claim, error) {
	if store == nil {
		return Config{}, leasestore.Claim{}, invalid("store", "nil", "a Store")
	}
	config, claim, err := config.resolveRows(store)
	if err == nil {
		err = inRange("worker", worker, 0, claim.Space.Workers-1, "")
	}
	return config, claim, err
}

// uses says what the row of a used number tells, and which numbers are unused, if the store can
// list its rows.
func uses(ctx context.Context, store Store, space leasestore.Space, worker int64) string {
	lister, ok := store.(leasestore.Lister)
	if !ok {
		return ""
	}
	rows, _, err := lister.Rows(ctx, space)
	if err != nil {
		return ""
	}
	var text string
	var unused []int64
	for _, row := range rows {
		switch {
		case row == leasestore.Row{Worker: row.Worker}:
			unused = append(unused, row.Worker)
		case row.Worker == worker && row.Owner != "":
			text = fmt.Sprintf(", held by %q until %s", row.Holder, row.Until.Time().Format(time.RFC3339Nano))
		case row.Worker == worker:
			text = ", whose IDs end before " + row.Until.Time().Format(time.RFC3339Nano)
		}
	}
	if len(unused) == 0 {
		return text + ": no number of the namespace is unused"
	}
	last := unused[max(0, len(unused)-8):]
	return fmt.Sprintf("%s: retire one of the %d unused numbers, such as %d", text, len(unused), last)
}
