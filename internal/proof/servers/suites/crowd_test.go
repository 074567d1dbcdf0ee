package servers

import (
	"sync"
	"testing"
)

// A crowd runs subtests that mostly wait, so many at a time as it was made for. t.Parallel
// would run one per core. Subtests of one crowd share no rows and no settings of a server.
type crowd struct {
	t       *testing.T
	slots   chan struct{}
	running sync.WaitGroup
}

func newCrowd(t *testing.T, size int) *crowd { return &crowd{t: t, slots: make(chan struct{}, size)} }

// run starts a subtest as soon as there is room.
func (c *crowd) run(name string, subtest func(t *testing.T)) {
	c.slots <- struct{}{}
	c.running.Go(func() {
		defer func() { <-c.slots }()
		c.t.Run(name, subtest)
	})
}

// wait waits for all subtests. Call it before the test ends.
func (c *crowd) wait() { c.running.Wait() }
