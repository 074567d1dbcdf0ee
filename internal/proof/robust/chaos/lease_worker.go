//go:build unix

package chaos

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
)

// A leaseWork is the order to return IDs of one generator with one lease.
type leaseWork struct {
	Namespace string
	Rules     Rules
	Rows      int64
	Window    time.Duration // zero: configWindow says it
	Real      bool          // inject no faults
	Calm      bool          // leave the clock alone
}

func (w leaseWork) work(asked context.Context, own files, beneath lease.Store) error {
	j, err := openJournal(own.Files + journalEnd)
	if err != nil {
		return err
	}
	var c clock
	if !w.Calm {
		go c.jump(own.random(0), w.Rules.jump())
	}
	s := &store{Store: beneath, rules: w.Rules, rows: w.Rows, real: w.Real, journal: j, now: c.now, intN: shared(own.random(1))}

	// A process in two lays shards into its keys, and shares the rows with the others all the same.
	layout := layout()
	layout.ShardBits = int(own.Seed % 2 * 3)
	l, err := acquire(asked, s, lease.Config{
		Namespace:   w.Namespace,
		Layout:      layout,
		Window:      cmp.Or(w.Window, w.Rules.configWindow(own.Seed)),
		LossGuard:   w.Rules.lossGuard(),
		AcquireWait: -1,
		OnLost:      j.lost,
		Logger:      slog.New(slog.DiscardHandler),
		Now:         c.now,
	})
	switch {
	case asked.Err() != nil:
		return nil //nolint:nilerr // it ends as it was asked to, without a lease
	case err != nil:
		return err
	}
	g, err := core.New(core.Config{Layout: layout, Worker: l, MaxLeaseWait: leaseWindow / 8})
	if err != nil {
		return err
	}
	i := &issuer{burst: 200, rest: 5 * time.Millisecond, passes: core.ErrReservationExhausted}
	if w.Real {
		i.rest = 15 * time.Millisecond // a run takes minutes, and a third of the IDs is enough
	}
	return i.run(asked, g, own, leaseWindow)
}

// acquire tries until there is a row, or ctx ends.
func acquire(ctx context.Context, s lease.Store, c lease.Config) (*lease.Lease, error) {
	for {
		l, err := lease.Acquire(ctx, s, c)
		var wrong *core.ValueError
		if err == nil || ctx.Err() != nil || errors.As(err, &wrong) || errors.Is(err, lease.ErrLayout) {
			return l, err
		}
		time.Sleep(leaseWindow / 16)
	}
}
