package segment

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/snowkey/snowkey/types"
)

// setFetches is the number of fetches of one Set that may run at a time.
const setFetches = 4

// A Set has one Allocator per tag, created when the tag is first used. NewSet creates a Set;
// the zero value is not usable. It is safe for concurrent use.
//
// Tags must come from the program and not from its users, because a tag keeps its Allocator and
// a goroutine until Close.
type Set struct {
	store  Store
	config Config
	slots  chan struct{}
	byTag  sync.Map // tag to *Allocator

	mu     sync.Mutex // held to add an Allocator
	closed bool
}

// NewSet returns a Set whose Allocators all have the values of c, in which Tag is empty. At
// most four fetches run at a time. A value of c that is out of range is a [*core.ValueError].
func NewSet(store Store, c Config) (*Set, error) {
	if store == nil {
		return nil, invalid("store", "nil", "a Store")
	}
	if c.Tag != "" {
		return nil, invalid("Config.Tag", c.Tag, "empty: the calls of a Set name their tags")
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

// Source returns the Allocator of the tag, which Set.Close closes. If the tag is out of range,
// calls of the Allocator fail with a [*core.ValueError]; after Close they fail with [ErrClosed].
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
	if a.final = checkTag(tag); a.final != nil {
		return a
	}
	if s.closed {
		a.final = ErrClosed
		return a
	}
	s.byTag.Store(tag, a)
	return a
}

// Stats returns the state of all tags, sorted by tag.
func (s *Set) Stats() []Stats {
	var list []Stats
	for _, a := range s.byTag.Range {
		list = append(list, a.(*Allocator).Stats())
	}
	slices.SortFunc(list, func(x, y Stats) int { return cmp.Compare(x.Tag, y.Tag) })
	return list
}

// Close closes all Allocators, at most four at a time, and returns their errors, joined.
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
