package segment_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/types"
)

// The numbers continue those of the scenarios of package lease. 46 and 47 also run on databases, in
// sqlsegment and in internal/proof/servers/suites.
func TestNoScenarioBreaksThePromise(t *testing.T) {
	bubble(t, "46 commit of a segment unknown", func(t *testing.T) {
		store := &lossy{faulty: newStore(t, 1, 10), lose: 3}
		a := start(t, store, segment.Config{Hold: -1})
		last := types.Snowflake(0)
		for range 100 {
			id := next(t, a)
			if id <= last {
				t.Fatalf("Next = %d after %d", id, last)
			}
			last = id
		}
		// Of the three ranges that the store has given and not told, no number is returned.
		if last != 130 {
			t.Errorf("the hundredth number is %d; want 130: three ranges of ten are burnt", last)
		}
	})
	bubble(t, "48 both buffers empty", func(t *testing.T) {
		store := newStore(t, 1, 10)
		a := start(t, store, segment.Config{Rule: segment.Leaf})
		next(t, a)
		time.Sleep(time.Second) // the second buffer
		store.delay.Store(int64(2 * time.Second))
		for range a.Stats().Held {
			next(t, a)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if id, err := a.Next(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("Next = %d, %v after %v; want the end of the context, after 1s", id, err, time.Since(began))
		}
		if id, err := a.Next(t.Context()); err != nil || time.Since(began) > 2*time.Second {
			t.Errorf("Next = %d, %v after %v; want a number when the store has answered", id, err, time.Since(began))
		}
	})
}

// A lossy store does the first Takes, and loses their replies.
type lossy struct {
	*faulty
	lose int
}

func (l *lossy) Take(ctx context.Context, t segment.Take) (segment.Range, error) {
	r, err := l.faulty.Take(ctx, t)
	if l.lose > 0 {
		l.lose--
		return segment.Range{}, errors.Join(err, errNetwork)
	}
	return r, err
}
