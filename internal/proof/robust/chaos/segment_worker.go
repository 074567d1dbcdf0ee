//go:build unix

package chaos

import (
	"context"
	"log/slog"
	"time"

	"github.com/snowkey/snowkey/core/segment"
)

// A segmentWork is to return numbers of one allocator.
type segmentWork struct{ Torn bool }

func (w segmentWork) work(asked context.Context, own files, beneath SegmentStore) error {
	faults := faults{intN: shared(own.random(1)), late: 300 * time.Millisecond, deadline: segmentPatience}
	a, err := segment.New(&faulty{beneath, w.Torn, faults}, segmentConfig(own.Seed))
	if err != nil {
		return err
	}
	i := &issuer{burst: 60, rest: 5 * time.Millisecond, passes: segment.ErrUnavailable}
	return i.run(asked, a, own, segmentPatience)
}

// segmentConfig returns one of the ways to hold numbers. All hold few, so that there are many
// fetches.
func segmentConfig(seed uint64) segment.Config {
	c := segment.Config{Tag: segmentTag, MaxStep: 1000, MaxWait: time.Second, Logger: slog.New(slog.DiscardHandler)}
	switch seed % 4 {
	case 0:
		c.Hold = 20 * time.Millisecond
	case 1:
		c.Rule = segment.Leaf
	case 2:
		c.Hold = -1
	case 3:
		c.Hold, c.Step = -1, 1
	}
	return c
}

// A faulty is a store as a run shows it to an allocator. It injects faults. If it is torn,
// it reads the row and writes it in two steps.
type faulty struct {
	SegmentStore
	torn   bool
	faults faults
}

// Take implements [segment.Store].
func (f *faulty) Take(ctx context.Context, t segment.Take) (segment.Range, error) {
	return call(ctx, f.faults, func(ctx context.Context) (segment.Range, error) {
		if !f.torn {
			return f.SegmentStore.Take(ctx, t)
		}
		rows, err := f.Rows(ctx)
		if err != nil {
			return segment.Range{}, err
		}
		row, r, err := rows[0].Take(t)
		if err == nil {
			_, err = f.Raise(ctx, t.Tag, row.Next)
		}
		return r, err
	})
}

// GiveBack implements [segment.Store]. A torn store refuses: it would go back below
// ranges that others have.
func (f *faulty) GiveBack(ctx context.Context, g segment.GiveBack) error {
	if f.torn {
		return nil
	}
	_, err := call(ctx, f.faults, func(ctx context.Context) (struct{}, error) { return struct{}{}, f.SegmentStore.GiveBack(ctx, g) })
	return err
}
