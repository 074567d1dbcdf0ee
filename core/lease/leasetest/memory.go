package leasetest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/snowkey/snowkey/core/lease"
)

// A Memory is a [lease.Store] that keeps its rows in memory. It is for tests and
// simulations, and shows a correct Store in few lines. It cannot share worker numbers,
// since no other process sees it.
//
// It answers as the contract of [lease.Store] says and injects no faults. Wrap it to
// delay, repeat or lose calls. Use [Memory.Snapshot] and [Memory.Restore], [Memory.Set]
// and [Memory.Delete] to do to its rows what a faulty store does.
//
// The zero Memory is empty and ready to use. A Memory is safe for concurrent use and must
// not be copied. With IntN and the clock given, and one call at a time, it answers the
// same each time.
type Memory struct {
	// IntN returns a random number below n. It chooses the row of a claim. Calls do not
	// overlap, so a method of an unlocked [rand.Rand] will do. Nil: [rand.IntN]. It must
	// not be changed after the first claim.
	IntN func(n int) int

	now func() time.Time // nil: time.Now

	mu   sync.Mutex // guards what follows, and calls of IntN and now
	data Snapshot
}

// A Snapshot is all that a Memory knows at one moment. It does not change. The
// zero Snapshot is that of an empty store.
type Snapshot struct {
	layouts map[string]string        // by namespace
	spaces  map[spaceKey][]lease.Row // in the order of the workers
}

// A spaceKey is the name of a space.
type spaceKey struct {
	namespace  string
	datacenter int64
}

func keyOf(s lease.Space) spaceKey { return spaceKey{s.Namespace, s.Datacenter} }

var (
	_ lease.Store  = (*Memory)(nil)
	_ lease.Lister = (*Memory)(nil)
	_ lease.Fencer = (*Memory)(nil)
)

// NewMemory returns an empty store with the clock now; nil is [time.Now]. Calls of now do
// not overlap. now must not call the store.
func NewMemory(now func() time.Time) *Memory { return &Memory{now: now} }

// Claim implements [lease.Store].
func (m *Memory) Claim(ctx context.Context, c lease.Claim) (reply lease.Reply, err error) {
	err = m.do(ctx, c.Space, func(now lease.Millis) error {
		if err := c.Check(now); err != nil {
			return err
		}
		if err := m.checkLayout(c.Space); err != nil {
			return err
		}
		m.create(c.Space)
		intN := m.IntN
		if intN == nil {
			intN = rand.IntN
		}
		before, err := c.Choose(m.data.spaces[keyOf(c.Space)], now, intN)
		if err != nil {
			return err
		}
		row, _ := c.Apply(before, now) // which is free: Choose has found it so at the same now
		m.put(c.Space, row)
		reply = lease.Reply{Row: row, Before: before.Until, Now: now}
		return nil
	})
	return reply, err
}

// Renew implements [lease.Store].
func (m *Memory) Renew(ctx context.Context, r lease.Renewal) (reply lease.Reply, err error) {
	err = m.do(ctx, r.Space, func(now lease.Millis) error {
		i, ok := m.find(r.Space, r.Worker)
		if !ok {
			return r.Lost(lease.Gone)
		}
		before := m.data.spaces[keyOf(r.Space)][i]
		row, err := r.Apply(before, now)
		if err != nil {
			return err
		}
		m.put(r.Space, row)
		reply = lease.Reply{Row: row, Before: before.Until, Now: now}
		return nil
	})
	return reply, err
}

// Release implements [lease.Store].
func (m *Memory) Release(ctx context.Context, r lease.Release) error {
	return m.do(ctx, r.Space, func(lease.Millis) error {
		i, ok := m.find(r.Space, r.Worker)
		if !ok {
			return r.Lost(lease.Gone)
		}
		row, err := r.Apply(m.data.spaces[keyOf(r.Space)][i])
		if err == nil {
			m.put(r.Space, row)
		}
		return err
	})
}

// Fence implements [lease.Fencer].
func (m *Memory) Fence(ctx context.Context, f lease.Fencing) error {
	return m.do(ctx, f.Space, func(lease.Millis) error {
		if err := m.checkLayout(f.Space); err != nil {
			return err
		}
		m.create(f.Space)
		rows := m.data.spaces[keyOf(f.Space)]
		for i, row := range rows {
			rows[i] = f.Apply(row)
		}
		return nil
	})
}

// LosesWrites implements [lease.Store] and returns false. [Memory.Restore] makes a Memory
// forget; a test of that wraps it in a store that says so.
func (m *Memory) LosesWrites() bool { return false }

// Rows implements [lease.Lister]. A space in which nobody has claimed has none.
func (m *Memory) Rows(ctx context.Context, s lease.Space) (rows []lease.Row, now lease.Millis, err error) {
	err = m.do(ctx, s, func(at lease.Millis) error {
		rows, now = slices.Clone(m.data.spaces[keyOf(s)]), at
		return nil
	})
	return rows, now, err
}

// Snapshot returns what the store knows now.
func (m *Memory) Snapshot() Snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.data.clone()
}

// Restore makes the store forget all but what it knew at s. It has then lost the writes
// since, like a restored backup, or a replica that lags behind.
func (m *Memory) Restore(s Snapshot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.data = s.clone()
}

// Set writes a row by hand, past all rules. If nobody has claimed in the space, Set makes
// it, as a first claim does.
func (m *Memory) Set(s lease.Space, row lease.Row) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.create(s)
	m.put(s, row)
}

// Delete removes a row by hand. Never do that to a store in use.
func (m *Memory) Delete(s lease.Space, worker int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i, ok := m.find(s, worker); ok {
		m.data.spaces[keyOf(s)] = slices.Delete(m.data.spaces[keyOf(s)], i, i+1)
	}
}

// do does an operation on a space, f, with the clock's reading, while no other runs.
func (m *Memory) do(ctx context.Context, s lease.Space, f func(now lease.Millis) error) error {
	if err := s.Check(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("leasetest: the context ended before the operation began: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	clock := m.now
	if clock == nil {
		clock = time.Now
	}
	return f(lease.MillisOf(clock()))
}

// The methods below require mu.

func (m *Memory) checkLayout(s lease.Space) error {
	if stored, ok := m.data.layouts[s.Namespace]; ok && stored != s.Layout {
		return &lease.LayoutError{Namespace: s.Namespace, Stored: stored, Own: s.Layout}
	}
	return nil
}

// create makes the rows of a space once. A space whose rows are all gone is still there,
// and stays as it is.
func (m *Memory) create(s lease.Space) {
	if _, ok := m.data.spaces[keyOf(s)]; ok {
		return
	}
	if m.data.spaces == nil {
		m.data = Snapshot{layouts: map[string]string{}, spaces: map[spaceKey][]lease.Row{}}
	}
	if _, ok := m.data.layouts[s.Namespace]; !ok {
		m.data.layouts[s.Namespace] = s.Layout
	}
	m.data.spaces[keyOf(s)] = newRows(s)
}

// find returns where the row of a worker is, or would be if it were there.
func (m *Memory) find(s lease.Space, worker int64) (i int, ok bool) {
	return slices.BinarySearchFunc(m.data.spaces[keyOf(s)], worker, func(row lease.Row, worker int64) int {
		return cmp.Compare(row.Worker, worker)
	})
}

// put writes a row of a space that is there.
func (m *Memory) put(s lease.Space, row lease.Row) {
	rows := m.data.spaces[keyOf(s)]
	i, ok := m.find(s, row.Worker)
	if !ok {
		rows = slices.Insert(rows, i, lease.Row{})
	}
	rows[i] = row
	m.data.spaces[keyOf(s)] = rows
}

// newRows returns the rows of a space as its first claim makes them.
func newRows(s lease.Space) []lease.Row {
	rows := make([]lease.Row, s.Workers)
	for i := range rows {
		rows[i].Worker = int64(i)
	}
	return rows
}

func (s Snapshot) clone() Snapshot {
	c := Snapshot{layouts: maps.Clone(s.layouts), spaces: maps.Clone(s.spaces)}
	for key, rows := range c.spaces {
		c.spaces[key] = slices.Clone(rows)
	}
	return c
}
