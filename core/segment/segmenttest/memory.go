package segmenttest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/snowkey/snowkey/core/segment"
)

// A Memory is a segment.Store in memory, for tests. Its zero value has no rows. It is
// safe for concurrent use.
type Memory struct {
	mu   sync.Mutex
	rows map[string]segment.Row
}

var _ interface {
	Store
	segment.Freezer
} = (*Memory)(nil)

// change replaces the row of a tag by the result of f.
func (m *Memory) change(ctx context.Context, tag string, f func(segment.Row) (segment.Row, error)) (segment.Row, error) {
	if err := ctx.Err(); err != nil {
		return segment.Row{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	row, ok := m.rows[tag]
	if !ok {
		return row, fmt.Errorf("%w: %s; make it with Create", segment.ErrNoTag, tag)
	}
	row, err := f(row)
	if err == nil {
		m.rows[tag] = row
	}
	return row, err
}

// Take implements segment.Store.
func (m *Memory) Take(ctx context.Context, t segment.Take) (got segment.Range, err error) {
	_, err = m.change(ctx, t.Tag, func(r segment.Row) (segment.Row, error) {
		r, got, err = r.Take(t)
		return r, err
	})
	return got, err
}

// GiveBack implements segment.Store.
func (m *Memory) GiveBack(ctx context.Context, g segment.GiveBack) error {
	_, err := m.change(ctx, g.Tag, func(r segment.Row) (segment.Row, error) { return r.GiveBack(g), nil })
	return err
}

// Raise implements segment.Keeper.
func (m *Memory) Raise(ctx context.Context, tag string, next int64) (segment.Row, error) {
	return m.change(ctx, tag, func(r segment.Row) (segment.Row, error) { return r.Raise(next), nil })
}

// Freeze implements segment.Freezer.
func (m *Memory) Freeze(ctx context.Context, tag string) (segment.Row, error) {
	return m.change(ctx, tag, func(r segment.Row) (segment.Row, error) { return r.Freeze(), nil })
}

// Thaw implements segment.Freezer.
func (m *Memory) Thaw(ctx context.Context, to segment.Row) error {
	_, err := m.change(ctx, to.Tag, func(r segment.Row) (segment.Row, error) { return r.Thaw(to) })
	return err
}

// Rows implements segment.Lister.
func (m *Memory) Rows(ctx context.Context) ([]segment.Row, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := slices.Collect(maps.Values(m.rows))
	slices.SortFunc(list, func(a, b segment.Row) int { return cmp.Compare(a.Tag, b.Tag) })
	return list, ctx.Err()
}

// Create implements segment.Keeper.
func (m *Memory) Create(ctx context.Context, r segment.Row) error {
	if err := cmp.Or(ctx.Err(), r.Validate()); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.rows[r.Tag]; ok {
		return fmt.Errorf("segmenttest: tag %s exists", r.Tag)
	}
	if m.rows == nil {
		m.rows = map[string]segment.Row{}
	}
	m.rows[r.Tag] = r
	return nil
}
