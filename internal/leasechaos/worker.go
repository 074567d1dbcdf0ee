//go:build unix

package leasechaos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os/signal"
	"syscall"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/internal/chaos"
	"github.com/snowkey/snowkey/types"
)

// work returns IDs of one generator, with one lease, until the process is killed.
// SIGTERM asks it to end: it then closes the generator.
func work(o order, open Open) error {
	if open == nil {
		return fmt.Errorf("leasechaos: no store %q in the map of Main", o.Store)
	}
	asked, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	beneath, err := open(o.DSN)
	if err != nil {
		return err
	}
	j, err := openJournal(o.Files + journalEnd)
	if err != nil {
		return err
	}
	source := func(n uint64) *rand.Rand { return rand.New(rand.NewPCG(o.Seed, n)) }
	var c clock
	if machine, ok := beneath.(Clocked); ok {
		c.truth = machine.Now
	}
	if !o.Calm {
		go c.jump(source(0), o.Rules.jump())
	}
	h, err := openHistory(o.History)
	if err != nil {
		return err
	}
	s := &store{Store: beneath, rules: o.Rules, rows: o.Rows, real: o.Real, journal: j, history: h, now: c.now, intN: shared(source(1))}

	l, err := acquire(asked, s, lease.Config{
		Namespace:   o.Namespace,
		Layout:      layout(),
		Window:      cmp.Or(o.Window, o.Rules.configWindow(o.Seed)),
		LossGuard:   o.Rules.lossGuard(),
		AcquireWait: -1,
		OnLost:      j.lost,
		Logger:      slog.New(slog.DiscardHandler),
		Now:         c.now,
	})
	if asked.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	g, err := core.New(core.Config{Layout: layout(), Worker: l, MaxLeaseWait: leaseWindow / 8})
	if err != nil {
		return err
	}

	// Two goroutines of one generator, which both race with its end.
	ended := make(chan error, 2)
	stalls := newStalls()
	issuer := func(n uint64) *issuer {
		return &issuer{random: source(n), journal: j, stalls: stalls, real: o.Real}
	}
	go func() { ended <- issuer(2).issue(o.Files+"-next"+idsEnd, one(g)) }()
	go func() { ended <- issuer(3).issue(o.Files+"-fill"+idsEnd, all(g)) }()
	for range cap(ended) {
		select {
		case err = <-ended:
		case <-asked.Done():
			ctx, cancel := context.WithTimeout(context.Background(), leaseWindow/2)
			_ = g.Close(ctx) // the store has faults, so it may fail
			cancel()
			err = <-ended
		}
		if err != nil {
			return err
		}
	}
	return nil
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

// A source sets as many elements of ids to new IDs as it can, from the first, and returns
// how many.
type source func(ids []types.Snowflake) (int, error)

// one takes one ID after the other.
func one(g *core.Generator) source {
	return func(ids []types.Snowflake) (int, error) {
		for i := range ids {
			var err error
			if ids[i], err = g.Next(context.Background()); err != nil {
				return i, err
			}
		}
		return len(ids), nil
	}
}

// all takes all IDs at once.
func all(g *core.Generator) source {
	return func(ids []types.Snowflake) (int, error) {
		if err := g.Fill(context.Background(), ids); err != nil {
			return 0, err
		}
		return len(ids), nil
	}
}

// An issuer is a goroutine that takes IDs.
type issuer struct {
	random  *rand.Rand
	journal *journal
	stalls  *stalls
	real    bool
}

// rest returns how long to rest between two bursts. A run on a real store takes minutes,
// and a third of the IDs of a short run is enough.
func (i *issuer) rest() time.Duration {
	if i.real {
		return chaos.Between(i.random, 0, 15*time.Millisecond)
	}
	return chaos.Between(i.random, 0, 5*time.Millisecond)
}

// issue writes bursts of IDs to a file until the generator is closed.
func (i *issuer) issue(path string, from source) error {
	w, err := chaos.NewWriter(path)
	if err != nil {
		return err
	}
	ids := make([]types.Snowflake, 200)
	var last time.Time // when the last ID came
	var stalled time.Duration
	for {
		n, failed := from(ids[:1+i.random.IntN(len(ids))])
		if n > 0 {
			if pause := time.Since(last) - (i.stalls.all() - stalled); !last.IsZero() && pause > noted {
				i.journal.paused(pause)
			}
			last, stalled = time.Now(), i.stalls.all()
		}
		if err := w.Write(ids[:n]); err != nil {
			return err
		}
		switch {
		case errors.Is(failed, core.ErrClosed):
			return nil
		case failed != nil && !errors.Is(failed, core.ErrReservationExhausted):
			return failed
		}
		time.Sleep(i.rest())
	}
}
