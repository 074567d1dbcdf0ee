package segment

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/snowkey/snowkey/types"
)

// setFetches is how many fetches of one Set run at a time.
const setFetches = 4

// A Set has one Allocator per tag, made when it is first asked for. NewSet makes it; the
// zero value is not usable. It is safe for concurrent use.
//
// Tags come from the program and not from its users: a tag keeps its Allocator, and
// a goroutine, until Close.
type Set struct {
	store  Store
	config Config
	slots  chan struct{}
	byTag  sync.Map // of *Allocator; read without a lock

	mu     sync.Mutex // of making one
	closed bool
}

// NewSet returns a Set. All its Allocators have the values of c, whose Tag is empty. At
// most four fetches run at a time. A Config whose values are out of range is a
// [*ValueError].
func NewSet(store Store, c Config) (*Set, error) {
	if store == nil {
		return nil, &ValueError{"store", "nil", "a Store"}
	}
	if c.Tag != "" {
		return nil, &ValueError{"Config.Tag", c.Tag, "empty: the calls of a Set name their tags"}
	}
	c.Tag = "any" // to check the other values
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Set{store: store, config: c, slots: make(chan struct{}, setFetches)}, nil
}

// Next returns a number of the tag, as [Allocator.Next] does.
func (s *Set) Next(ctx context.Context, tag string) (types.Snowflake, error) {
	return s.Source(tag).Next(ctx)
}

// Source returns the Allocator of the tag. The calls of an Allocator with a tag that is
// out of range fail with a [*ValueError], and after Close they fail with [ErrClosed].
// Set.Close closes it.
func (s *Set) Source(tag string) *Allocator {
	if a, ok := s.byTag.Load(tag); ok {
		return a.(*Allocator)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if a, ok := s.byTag.Load(tag); ok {
		return a.(*Allocator)
	}
	c := s.config
	c.Tag = tag
	a := newAllocator(s.store, c, s.slots)
	if a.final = CheckTag(tag); a.final != nil {
		return a
	}
	if s.closed {
		a.final = ErrClosed
		return a
	}
	s.byTag.Store(tag, a)
	return a
}

// Stats returns those of all tags, sorted by tag.
func (s *Set) Stats() []Stats {
	var list []Stats
	for _, a := range s.byTag.Range {
		list = append(list, a.(*Allocator).Stats())
	}
	slices.SortFunc(list, func(x, y Stats) int { return cmp.Compare(x.Tag, y.Tag) })
	return list
}

// Close closes all Allocators, at most four at a time. It returns their errors, joined.
func (s *Set) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		errs []error
		free = make(chan struct{}, setFetches)
	)
	for _, a := range s.byTag.Range {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			if err := a.(*Allocator).Close(ctx); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
