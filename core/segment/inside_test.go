package segment

import "context"

// What tests outside of the package need of its inside. The first two are mistakes that an
// Allocator could have. The simulation has to find them.

// CloseBeforeSeal is Close with the two steps in the wrong order: it gives back, and only
// then seals.
func CloseBeforeSeal(ctx context.Context, a *Allocator) error {
	first := a.cur.Load()
	for l := first; l != nil; l = l.next.Load() {
		l.used = min(l.taken.Load(), l.size)
	}
	if g, ok := unused(first); ok {
		g.Tag = a.config.Tag
		_ = a.store.GiveBack(ctx, g)
	}
	return a.Close(ctx)
}

// AcceptBelow makes a new Allocator use every range, also one below what it has seen.
func AcceptBelow(a *Allocator) {
	a.mu.Lock()
	defer a.mu.Unlock()
	ctx, stop := context.WithCancel(context.Background())
	a.stop, a.stopped = stop, make(chan struct{})
	f := newFetcher(a)
	a.store = forgetful{a.store, f}
	go f.run(ctx, a.stopped)
}

type forgetful struct {
	Store
	f *fetcher
}

func (s forgetful) Take(ctx context.Context, t Take) (Range, error) {
	s.f.some = false
	return s.Store.Take(ctx, t)
}

// Locked runs f while all that an Allocator's mutex guards is locked.
func Locked(a *Allocator, f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
}
