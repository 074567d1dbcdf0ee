//go:build unix

package segmentchaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/internal/chaos"
	"github.com/snowkey/snowkey/types"
)

// A Store is what a run needs of a store.
type Store interface {
	segment.Store
	segment.Lister
	segment.Keeper
}

// An Open opens a store at an address. It is called in a process of its own, which never
// closes the store: it is mostly killed.
type Open func(dsn string) (Store, error)

// variable is an environment variable that holds an order. A test binary that finds it set
// is a process of a run.
const variable = "SNOWKEY_SEGMENTCHAOS_ORDER"

// tag is that of the row of a run.
const tag = "chaos"

// An order says what a process is to do.
type order struct {
	Store string // in the map of Main
	DSN   string
	Torn  bool
	Seed  uint64
	Files string // begins the path of every file that the process writes
}

// Main returns at once in a test binary that was started to run tests. In a process of a
// run it does what that is there for, and does not return. Call it in an init function.
// The map has an Open for every store that a test of the binary has chaos for.
func Main(stores map[string]Open) {
	chaos.Main(variable, func(text []byte) error {
		var o order
		if err := json.Unmarshal(text, &o); err != nil {
			return err
		}
		return work(o, stores[o.Store])
	})
}

// late is how late replies are at most.
const late = 300 * time.Millisecond

// work returns numbers of one allocator until the process is killed. SIGTERM asks it to
// end: it then closes the allocator.
func work(o order, open Open) error {
	if open == nil {
		return fmt.Errorf("segmentchaos: no store %q in the map of Main", o.Store)
	}
	asked, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	beneath, err := open(o.DSN)
	if err != nil {
		return err
	}
	a, err := segment.New(newFaulty(beneath, o), config(o.Seed))
	if err != nil {
		return err
	}
	// Two goroutines of one allocator, which both race with its end.
	var returned atomic.Int64 // the greatest number so far
	ended := make(chan error, 2)
	for n, name := range []string{"next", "fill"} {
		i := &issuer{a: a, random: rand.New(rand.NewPCG(o.Seed, uint64(n))), returned: &returned}
		go func() { ended <- i.issue(o.Files + "-" + name + chaos.NumbersEnd) }()
	}
	for range cap(ended) {
		select {
		case err = <-ended:
		case <-asked.Done():
			ctx, cancel := context.WithTimeout(context.Background(), patience/2)
			_ = a.Close(ctx) // the store has faults, so it may fail
			cancel()
			err = <-ended
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// config returns one of the ways to hold numbers. All hold few, so that there are many
// fetches.
func config(seed uint64) segment.Config {
	c := segment.Config{Tag: tag, MaxStep: 1000, MaxWait: time.Second, Logger: slog.New(slog.DiscardHandler)}
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

// An issuer is a goroutine that takes numbers.
type issuer struct {
	a        *segment.Allocator
	random   *rand.Rand
	returned *atomic.Int64
}

// issue writes bursts of numbers to a file until the allocator is closed.
func (i *issuer) issue(path string) error {
	w, err := chaos.NewWriter(path)
	if err != nil {
		return err
	}
	for {
		before := i.returned.Load()
		numbers, failed := i.burst()
		if err := w.Write(numbers); err != nil {
			return err
		}
		if len(numbers) > 0 {
			if int64(numbers[0]) <= before {
				return fmt.Errorf("segmentchaos: %d is returned after %d", numbers[0], before)
			}
			last := int64(numbers[len(numbers)-1])
			for v := before; v < last && !i.returned.CompareAndSwap(v, last); v = i.returned.Load() {
			}
		}
		switch {
		case errors.Is(failed, segment.ErrClosed):
			return nil
		case failed != nil && !errors.Is(failed, segment.ErrUnavailable):
			return failed
		}
		time.Sleep(chaos.Between(i.random, 0, 5*time.Millisecond))
	}
}

// burst returns the numbers of one Fill, or of a few calls of Next, and the error that
// ended them.
func (i *issuer) burst() ([]types.Snowflake, error) {
	ctx := context.Background()
	numbers := make([]types.Snowflake, 1+i.random.IntN(60))
	if i.random.IntN(2) == 0 {
		if err := i.a.Fill(ctx, numbers); err != nil {
			return nil, err
		}
		return numbers, nil
	}
	for n := range numbers {
		var err error
		if numbers[n], err = i.a.Next(ctx); err != nil {
			return numbers[:n], err
		}
	}
	return numbers, nil
}

// A faulty is a store as a run shows it to an allocator. It injects faults. If it is torn,
// it reads the row and writes it in two steps.
type faulty struct {
	Store
	torn   bool
	faults chaos.Faults
}

func newFaulty(beneath Store, o order) *faulty {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(o.Seed, 2))
	return &faulty{beneath, o.Torn, chaos.Faults{Late: late, Deadline: patience, IntN: func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return random.IntN(n)
	}}}
}

// Take implements [segment.Store].
func (f *faulty) Take(ctx context.Context, t segment.Take) (segment.Range, error) {
	return chaos.Call(ctx, f.faults, func(ctx context.Context) (segment.Range, error) {
		if !f.torn {
			return f.Store.Take(ctx, t)
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
	_, err := chaos.Call(ctx, f.faults, func(ctx context.Context) (struct{}, error) { return struct{}{}, f.Store.GiveBack(ctx, g) })
	return err
}
