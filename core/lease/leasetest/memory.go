package leasetest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// A Memory is a [leasestore.Register] that keeps its rows in memory, and the [leasestore.Store]
// over it. It is for tests and simulations, and shows a correct Register in few lines. It
// cannot share worker numbers between processes.
//
// It follows the contract of [leasestore.Register] and injects no faults. Wrap it to delay,
// repeat or lose calls, and use [Memory.Snapshot] and [Memory.Restore], [Memory.Set] and
// [Memory.Delete] to do to its rows what a faulty store does.
//
// The zero Memory is empty and ready to use. A Memory is safe for concurrent use and must not
// be copied. Given a deterministic clock and sequential calls, its answers are deterministic.
type Memory struct {
	now func() time.Time // nil: time.Now

	mu   sync.Mutex // guards what follows, and calls of now
	data Snapshot
}

// A Snapshot is the state of a Memory at one moment, and does not change. The zero Snapshot
// describes an empty store.
type Snapshot struct {
	layouts map[string]string             // by namespace
	spaces  map[spaceKey][]leasestore.Row // in the order of the workers
	records map[rowKey][]string           // the newest first
}

// A rowKey is the name of a row.
type rowKey struct {
	spaceKey
	worker int64
}

// A spaceKey is the name of a space.
type spaceKey struct {
	namespace  string
	datacenter int64
}

func keyOf(s leasestore.Space) spaceKey { return spaceKey{s.Namespace, s.Datacenter} }

var (
	_ leasestore.HistoryRegister = (*Memory)(nil)
	_ leasestore.Store           = (*Memory)(nil)
	_ leasestore.Lister          = (*Memory)(nil)
	_ leasestore.Fencer          = (*Memory)(nil)
	_ leasestore.History         = (*Memory)(nil)
	_ leasestore.Catalog         = (*Memory)(nil)
)

// NewMemory returns an empty store with the clock now, or [time.Now] if now is nil. Calls of
// now do not overlap. now must not call the store.
func NewMemory(now func() time.Time) *Memory { return &Memory{now: now} }

// Read implements [leasestore.Register].
func (m *Memory) Read(ctx context.Context, s leasestore.Space, workers []int64) (v leasestore.View, err error) {
	err = m.do(ctx, s, func(now leasestore.Millis) {
		rows, made := m.data.spaces[keyOf(s)]
		v = leasestore.View{Layout: m.data.layouts[s.Namespace], Made: made, Now: now}
		for _, row := range rows {
			if _, asked := slices.BinarySearch(workers, row.Worker); asked || workers == nil {
				v.Rows = append(v.Rows, leasestore.Seen{Row: row})
			}
		}
	})
	return v, err
}

// Find implements [leasestore.Register].
func (m *Memory) Find(ctx context.Context, s leasestore.Space, h leasestore.Hint) (leasestore.View, error) {
	return m.Read(ctx, s, h.Only)
}

// Make implements [leasestore.Register].
func (m *Memory) Make(ctx context.Context, s leasestore.Space) error {
	return m.do(ctx, s, func(leasestore.Millis) { m.create(s) })
}

// Swap implements [leasestore.Register].
func (m *Memory) Swap(ctx context.Context, s leasestore.Space, from leasestore.Seen, to leasestore.Row) (done bool, err error) {
	err = m.do(ctx, s, func(leasestore.Millis) {
		i, ok := m.find(s, from.Row.Worker)
		if done = ok && m.data.spaces[keyOf(s)][i] == from.Row && m.data.layouts[s.Namespace] == s.Layout; done {
			m.put(s, to)
			if key := (rowKey{keyOf(s), to.Worker}); from.Record != "" {
				records := append([]string{from.Record}, m.data.records[key]...)
				m.data.records[key] = records[:min(len(records), leasestore.HistoryLength)]
			}
		}
	})
	return done, err
}

// Records implements [leasestore.HistoryRegister].
func (m *Memory) Records(ctx context.Context, s leasestore.Space, worker int64) (records []string, err error) {
	err = m.do(ctx, s, func(leasestore.Millis) { records = m.data.records[rowKey{keyOf(s), worker}] })
	return records, err
}

// History implements [leasestore.History].
func (m *Memory) History(ctx context.Context, s leasestore.Space, worker int64) ([]leasestore.Holder, error) {
	return leasestore.FromRegister(m).History(ctx, s, worker)
}

// Claim implements [leasestore.Store].
func (m *Memory) Claim(ctx context.Context, c leasestore.Claim) (leasestore.Reply, error) {
	return leasestore.FromRegister(m).Claim(ctx, c)
}

// Renew implements [leasestore.Store].
func (m *Memory) Renew(ctx context.Context, r leasestore.Renewal) (leasestore.Reply, error) {
	return leasestore.FromRegister(m).Renew(ctx, r)
}

// Release implements [leasestore.Store].
func (m *Memory) Release(ctx context.Context, r leasestore.Release) error {
	return leasestore.FromRegister(m).Release(ctx, r)
}

// Fence implements [leasestore.Fencer].
func (m *Memory) Fence(ctx context.Context, f leasestore.Fencing) error {
	return leasestore.FromRegister(m).Fence(ctx, f)
}

// Rows implements [leasestore.Lister]. A space that was never claimed in has no rows.
func (m *Memory) Rows(ctx context.Context, s leasestore.Space) ([]leasestore.Row, leasestore.Millis, error) {
	return leasestore.FromRegister(m).Rows(ctx, s)
}

// Spaces implements [leasestore.Catalog].
func (m *Memory) Spaces(context.Context) (spaces []leasestore.Space, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for at, rows := range m.data.spaces {
		spaces = append(spaces, leasestore.Space{Namespace: at.namespace, Datacenter: at.datacenter, Workers: int64(len(rows)), Layout: m.data.layouts[at.namespace]})
	}
	return spaces, nil
}

// LosesWrites implements [leasestore.Store] and [leasestore.Register], and returns false.
// [Memory.Restore] makes a Memory forget; a test that uses it wraps the Memory in a store that
// returns true.
func (m *Memory) LosesWrites() bool { return false }

// Snapshot returns the present state of the store.
func (m *Memory) Snapshot() Snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.data.clone()
}

// Restore returns the store to its state at s. It has then lost the writes since, like a
// restored backup or a replica that lags behind.
func (m *Memory) Restore(s Snapshot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.data = s.clone()
}

// Set writes a row by hand, without any check. If the space was never claimed in, Set makes it,
// as a first claim does.
func (m *Memory) Set(s leasestore.Space, row leasestore.Row) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.create(s)
	m.put(s, row)
}

// Delete removes a row by hand. Never do that to a store in use.
func (m *Memory) Delete(s leasestore.Space, worker int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i, ok := m.find(s, worker); ok {
		m.data.spaces[keyOf(s)] = slices.Delete(m.data.spaces[keyOf(s)], i, i+1)
	}
}

// do calls f with the clock's reading, to perform an operation on a space while no other runs.
func (m *Memory) do(ctx context.Context, s leasestore.Space, f func(now leasestore.Millis)) error {
	if err := s.Validate(); err != nil {
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
	f(leasestore.MillisOf(clock()))
	return nil
}

// The methods below require mu.

// create makes the rows of a space once. A space whose rows are all deleted still exists and is
// left unchanged.
func (m *Memory) create(s leasestore.Space) {
	if _, ok := m.data.spaces[keyOf(s)]; ok {
		return
	}
	if m.data.spaces == nil {
		m.data = Snapshot{layouts: map[string]string{}, spaces: map[spaceKey][]leasestore.Row{}, records: map[rowKey][]string{}}
	}
	if _, ok := m.data.layouts[s.Namespace]; !ok {
		m.data.layouts[s.Namespace] = s.Layout
	}
	m.data.spaces[keyOf(s)] = newRows(s)
}

// find returns the index of a worker's row, or where it would be inserted.
func (m *Memory) find(s leasestore.Space, worker int64) (i int, ok bool) {
	return slices.BinarySearchFunc(m.data.spaces[keyOf(s)], worker, func(row leasestore.Row, worker int64) int {
		return cmp.Compare(row.Worker, worker)
	})
}

// put writes a row of a space that exists.
func (m *Memory) put(s leasestore.Space, row leasestore.Row) {
	rows := m.data.spaces[keyOf(s)]
	i, ok := m.find(s, row.Worker)
	if !ok {
		rows = slices.Insert(rows, i, leasestore.Row{})
	}
	rows[i] = row
	m.data.spaces[keyOf(s)] = rows
}

// newRows returns the rows of a space as its first claim makes them.
func newRows(s leasestore.Space) []leasestore.Row {
	rows := make([]leasestore.Row, s.Workers)
	for i := range rows {
		rows[i].Worker = int64(i)
	}
	return rows
}

func (s Snapshot) clone() Snapshot {
	c := Snapshot{layouts: maps.Clone(s.layouts), spaces: maps.Clone(s.spaces), records: maps.Clone(s.records)}
	for key, rows := range c.spaces {
		c.spaces[key] = slices.Clone(rows)
	}
	return c
}
