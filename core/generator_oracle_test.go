package core

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/snowkey/snowkey/types"
)

// An oracle is the plain generator: one mutex, tick and sequence as two
// integers, both clocks read every time, sleeping with the lock held. It follows
// the rules of the term comment literally. It shares no code with it but the clock
// and Layout.Compose. One suite runs over both. On any schedule both must return
// the same IDs.
type oracle struct {
	mu        sync.Mutex
	layout    Layout
	worker    int64
	clock     clock
	runAhead  int64 // ticks
	tick, seq int64 // the last number
	logical   int64 // offset of the logical clock
	closed    bool
}

func newOracle(config Config, step func() time.Duration) *oracle {
	o := &oracle{
		layout:   config.Layout,
		worker:   int64(config.Worker.(staticWorker)),
		clock:    newClock(config.Layout.Epoch, movedBy(step)),
		runAhead: int64(defaultRunAhead / config.Layout.Unit),
	}
	wall, monotonic := o.clock.both()
	o.logical = wall - monotonic
	o.tick, o.seq = o.ticks(wall)+o.runAhead, ones(o.layout.SequenceBits)
	return o
}

func (o *oracle) ticks(ns int64) int64 { return ns / int64(o.layout.Unit) }

// sync is the rule for the offset: follow the wall clock. If it is behind, do not
// go below the last number, nor above what the offset was.
func (o *oracle) sync() {
	wall, monotonic := o.clock.both()
	next := o.tick
	if o.seq == ones(o.layout.SequenceBits) {
		next++
	}
	hold := min(o.logical, next*int64(o.layout.Unit)-monotonic)
	o.logical = max(wall-monotonic, hold)
}

func (o *oracle) Next(ctx context.Context) (types.Snowflake, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if o.closed {
			return 0, errClosed
		}
		_, monotonic := o.clock.both()
		if o.ticks(o.logical+monotonic) > o.tick || o.seq == ones(o.layout.SequenceBits) {
			o.sync()
		}
		tick, seq := o.tick, o.seq+1
		if seq > ones(o.layout.SequenceBits) {
			tick, seq = tick+1, 0
		}
		if now := o.ticks(o.logical + monotonic); now > tick {
			tick, seq = now, 0
		}
		if tick > ones(o.layout.TimeBits) {
			return 0, ErrTimeExhausted
		}
		if due := (tick-o.runAhead)*int64(o.layout.Unit) - o.logical - monotonic; due > 0 {
			time.Sleep(time.Duration(due))
			continue
		}
		o.tick, o.seq = tick, seq
		return o.layout.Compose(Parts{
			Time:     o.layout.Epoch.Add(time.Duration(tick) * o.layout.Unit),
			Worker:   o.worker,
			Sequence: seq,
		})
	}
}

// Fill is Next for each element, with one exception. A slice that will leave the
// present tick reads the wall clock once more, at its beginning.
func (o *oracle) Fill(ctx context.Context, ids []types.Snowflake) error {
	o.mu.Lock()
	if o.seq+int64(len(ids)) > ones(o.layout.SequenceBits) {
		o.sync()
	}
	o.mu.Unlock()
	for i := range ids {
		id, err := o.Next(ctx)
		if err != nil {
			clear(ids)
			return err
		}
		ids[i] = id
	}
	return nil
}

func (o *oracle) Close(context.Context) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	return nil
}

// A source is what the suite runs over.
type source interface {
	Next(context.Context) (types.Snowflake, error)
	Fill(context.Context, []types.Snowflake) error
	Close(context.Context) error
}

var (
	_ source = (*Generator)(nil)
	_ source = (*oracle)(nil)

	errAny = errors.New("any")
)
