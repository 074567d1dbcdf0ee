package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/types"
)

// An assignment is what the parent tells a replica: one line of JSON on its
// standard input. In the arguments, everybody on the machine could read it.
type assignment struct {
	Run     string        `json:"run"`
	Replica string        `json:"replica"`
	Place   place         `json:"place"`
	Window  time.Duration `json:"window"`
	Batch   int           `json:"batch"`          // rows per transaction
	Only    []int64       `json:"only,omitempty"` // worker numbers; nil: all
}

// beat is the time from one batch to the next.
const beat = 100 * time.Millisecond

// closePatience is how long a replica tries to give its worker number back.
const closePatience = 10 * time.Second

// replica is the program of a replica. It writes rows until in ends: the parent
// closes it, or has itself ended.
func replica(in io.Reader, out io.Writer) error {
	to := newReporter(out)
	decoder := json.NewDecoder(in)
	var a assignment
	if err := decoder.Decode(&a); err != nil {
		return fmt.Errorf("reading the assignment: %w", err)
	}
	ctx, end := context.WithCancel(context.Background())
	defer end()
	go func() {
		defer end()
		_, _ = io.Copy(io.Discard, decoder.Buffered())
		_, _ = io.Copy(io.Discard, in)
	}()

	if err := work(ctx, a, to); err != nil {
		return errors.Join(err, to.send(report{What: failed, Why: err.Error()}))
	}
	return to.send(report{What: bye})
}

// work writes rows until ctx ends. These are the lines to copy.
func work(ctx context.Context, a assignment, to *reporter) (err error) {
	db, err := openDatabase(a.Place)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.close()) }()
	store, err := db.store()
	if err != nil {
		return err
	}

	worker, err := acquire(ctx, journal{Store: store, to: to}, a)
	if err != nil {
		return unlessEnded(ctx, err)
	}
	keys, err := core.New(core.Config{Worker: worker})
	if err != nil {
		return errors.Join(err, worker.Close(ctx))
	}
	// Closing gives the number back, so that another has it at once. If that fails,
	// the lease has logged it, and the number is free when its time is over.
	defer func() {
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), closePatience)
		defer stop()
		_ = keys.Close(ctx)
	}()

	return writeRows(ctx, db, keys, a, to)
}

// acquire gets a worker number from the database that all replicas share.
func acquire(ctx context.Context, store journal, a assignment) (*lease.Lease, error) {
	config := lease.Config{
		Namespace:   "replicas", // the same for all who write to one table
		Window:      a.Window,
		Workers:     a.Only,
		AcquireWait: -1, // until ctx ends
		OnLost: func(e *lease.LostError) {
			_ = store.to.send(report{What: lost, reservation: reservation{Worker: e.Worker, Epoch: e.Epoch}, Why: string(e.Reason)})
		},
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	}
	for {
		worker, err := lease.Acquire(ctx, store, config)
		// A replica has nothing else to do while the store is too slow.
		if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			return worker, err
		}
	}
}

// writeRows writes a batch of rows per beat until ctx ends.
func writeRows(ctx context.Context, db *database, keys *core.Generator, a assignment, to *reporter) error {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		// The keys are there before the row is, and without a round trip.
		ids := make([]types.Snowflake, a.Batch)
		switch err := keys.Fill(ctx, ids); {
		case errors.Is(err, core.ErrReservationExhausted) && ctx.Err() == nil:
			// The store of the leases has been away for long. A service would
			// refuse requests now; it goes on by itself when the store is back.
			if err := to.send(report{What: waiting}); err != nil {
				return err
			}
			continue
		case err != nil:
			return unlessEnded(ctx, err)
		}
		if err := write(ctx, db, author{Run: a.Run, Replica: a.Replica, PID: os.Getpid()}, ids); err != nil {
			return err
		}
		if err := to.send(report{What: wrote, IDs: ids}); err != nil {
			return err
		}
	}
}

// write inserts the rows. It does not end with ctx, which would leave open
// whether they are in the database.
func write(ctx context.Context, db *database, from author, ids []types.Snowflake) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), writePatience)
	defer stop()
	return db.insert(ctx, from, ids)
}

// unlessEnded returns err, but nil if it comes from the end of ctx.
func unlessEnded(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil && errors.Is(err, cause) {
		return nil
	}
	return err
}
