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
	layouts map[string]string // by namespace
	spaces  map[spaceKey]map[int64]lease.Row
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
func (m *Memory) Claim(ctx context.Context, c lease.Claim) (lease.Reply, error) {
	if err := c.Space.Check(); err != nil {
		return lease.Reply{}, err
	}
	if err := ctx.Err(); err != nil {
		return lease.Reply{}, fmt.Errorf("leasetest: claim: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()

	now := m.clock()
	if err := c.Check(now); err != nil {
		return lease.Reply{}, err
	}
	if err := m.checkLayout(c.Space); err != nil {
		return lease.Reply{}, err
	}
	m.create(c.Space)

	intN := m.IntN
	if intN == nil {
		intN = rand.IntN
	}
	before, err := c.Choose(m.sorted(c.Space), now, intN)
	if err != nil {
		return lease.Reply{}, err
	}
	row, _ := c.Apply(before, now) // which is free: Choose has found it so at the same now
	m.put(c.Space, row)
	return lease.Reply{Row: row, Before: before.Until, Now: now}, nil
}

// Renew implements [lease.Store].
func (m *Memory) Renew(ctx context.Context, r lease.Renewal) (lease.Reply, error) {
	if err := r.Space.Check(); err != nil {
		return lease.Reply{}, err
	}
	if err := ctx.Err(); err != nil {
		return lease.Reply{}, fmt.Errorf("leasetest: renew: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()

	before, ok := m.row(r.Space, r.Worker)
	if !ok {
		return lease.Reply{}, r.Lost(lease.Gone)
	}
	now := m.clock()
	row, err := r.Apply(before, now)
	if err != nil {
		return lease.Reply{}, err
	}
	m.put(r.Space, row)
	return lease.Reply{Row: row, Before: before.Until, Now: now}, nil
}

// Release implements [lease.Store].
func (m *Memory) Release(ctx context.Context, r lease.Release) error {
	if err := r.Space.Check(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("leasetest: release: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()

	before, ok := m.row(r.Space, r.Worker)
	if !ok {
		return r.Lost(lease.Gone)
	}
	row, err := r.Apply(before)
	if err != nil {
		return err
	}
	m.put(r.Space, row)
	return nil
}

// Fence implements [lease.Fencer].
func (m *Memory) Fence(ctx context.Context, f lease.Fencing) error {
	if err := f.Space.Check(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("leasetest: fence: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()

	if err := m.checkLayout(f.Space); err != nil {
		return err
	}
	m.create(f.Space)
	for _, row := range m.sorted(f.Space) {
		m.put(f.Space, f.Apply(row))
	}
	return nil
}

// Rows implements [lease.Lister]. A space in which nobody has claimed has none.
func (m *Memory) Rows(ctx context.Context, s lease.Space) (rows []lease.Row, now lease.Millis, err error) {
	if err := s.Check(); err != nil {
		return nil, 0, err
	}
	if err := ctx.Err(); err != nil {
		return nil, 0, fmt.Errorf("leasetest: rows: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sorted(s), m.clock(), nil
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
	delete(m.data.spaces[keyOf(s)], worker)
}

// The methods below require mu.

func (m *Memory) clock() lease.Millis {
	if m.now == nil {
		return lease.MillisOf(time.Now())
	}
	return lease.MillisOf(m.now())
}

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
		m.data = Snapshot{layouts: map[string]string{}, spaces: map[spaceKey]map[int64]lease.Row{}}
	}
	if _, ok := m.data.layouts[s.Namespace]; !ok {
		m.data.layouts[s.Namespace] = s.Layout
	}
	rows := make(map[int64]lease.Row, s.Workers)
	for worker := range s.Workers {
		rows[worker] = lease.Row{Worker: worker}
	}
	m.data.spaces[keyOf(s)] = rows
}

func (m *Memory) row(s lease.Space, worker int64) (lease.Row, bool) {
	row, ok := m.data.spaces[keyOf(s)][worker]
	return row, ok
}

func (m *Memory) put(s lease.Space, row lease.Row) { m.data.spaces[keyOf(s)][row.Worker] = row }

// sorted returns the rows in the order of the workers. The order of a map would make
// equal seeds choose different rows.
func (m *Memory) sorted(s lease.Space) []lease.Row {
	return slices.SortedFunc(maps.Values(m.data.spaces[keyOf(s)]), func(a, b lease.Row) int {
		return cmp.Compare(a.Worker, b.Worker)
	})
}

func (s Snapshot) clone() Snapshot {
	spaces := make(map[spaceKey]map[int64]lease.Row, len(s.spaces))
	for key, rows := range s.spaces {
		spaces[key] = maps.Clone(rows)
	}
	layouts := maps.Clone(s.layouts)
	if layouts == nil {
		layouts = map[string]string{}
	}
	return Snapshot{layouts: layouts, spaces: spaces}
}
