package coretest

import (
	"sync"
	"time"
)

// Start returns 2026-01-01 00:00 UTC, the time in all keys of a [Generator] without a clock,
// and the one that a zero [Clock] shows. It never changes, because golden files depend on it.
func Start() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

// A Clock stands still at the time that a test has set, until [Clock.Set] or [Clock.Advance]
// moves it. Pass the method value Now to [Config], to [NewStore], to lease.Config, or to
// gorm.Config as NowFunc.
//
// The zero Clock shows [Start]. A Clock is safe for concurrent use and must not be copied.
type Clock struct {
	mu    sync.Mutex // guards shown
	shown time.Time  // zero: Start
}

// NewClock returns a Clock that shows t.
func NewClock(t time.Time) *Clock { return &Clock{shown: t} }

// Now returns the time that the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now()
}

// Set moves the clock to t, which may be earlier than before.
func (c *Clock) Set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shown = t
}

// Advance moves the clock by d, backwards if d is negative.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shown = c.now().Add(d)
}

// now requires mu.
func (c *Clock) now() time.Time {
	if c.shown.IsZero() {
		return Start()
	}
	return c.shown
}
