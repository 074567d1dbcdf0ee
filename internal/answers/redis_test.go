package answers

import (
	"maps"
	"testing"
)

// A cache is a server of Redis with a replica that gets the writes later.
type cache struct{ primary, replica map[string]int64 }

func newCache() *cache { return &cache{map[string]int64{}, map[string]int64{}} }

func (c *cache) incr(key string) int64 { c.primary[key]++; return c.primary[key] }
func (c *cache) replicate()            { c.replica = maps.Clone(c.primary) }
func (c *cache) failover()             { c.primary = maps.Clone(c.replica) }
func (c *cache) restart()              { c.primary = map[string]int64{} } // nothing was saved

// Redis answers before its replica has the write.
func TestACounterOfRedisRepeatsAfterAFailover(t *testing.T) {
	c := newCache()
	c.incr("id")
	c.replicate()
	issued := c.incr("id")
	c.failover()
	if again := c.incr("id"); again != issued {
		t.Errorf("after the failover INCR returns %d; want %d again", again, issued)
	}
}

// A counter per millisecond survives the loss of its keys, unless the clock comes back to a
// millisecond that was counted. Each caller has a clock of its own.
func TestACounterPerMillisecondRepeatsAfterALossAndAStepBack(t *testing.T) {
	c := newCache()
	issued := c.incr("ms:1000")
	c.restart()
	if again := c.incr("ms:1000"); again != issued { // a caller whose clock is behind
		t.Errorf("in the same millisecond INCR returns %d; want %d again", again, issued)
	}
}

// The key expires, and a caller whose clock is behind by more comes late.
func TestAKeyThatHasExpiredStartsOver(t *testing.T) {
	c := newCache()
	issued := c.incr("ms:1000")
	delete(c.primary, "ms:1000") // PEXPIRE
	if again := c.incr("ms:1000"); again != issued {
		t.Errorf("INCR returns %d; want %d again", again, issued)
	}
}

// Each start of a process counts, and the count modulo 1,024 is the worker number.
func TestAWorkerCountedModulo1024MeetsOneThatLives(t *testing.T) {
	c := newCache()
	worker := func() int64 { return c.incr("workers") % 1024 }
	old := worker() // lives on
	var last int64
	for range 1024 { // a process that crashes and restarts, or a year of deployments
		last = worker()
	}
	if last != old {
		t.Errorf("the 1,024th start after it has worker %d; want %d, which lives", last, old)
	}
}

// The script of a lock compares before it deletes. A script that does not delete what
// another process has by now.
func TestALeaseWithoutAnOwnerIsReleasedByTheProcessBefore(t *testing.T) {
	holder := map[int]string{}
	claim := func(who string) bool {
		if holder[7] != "" {
			return false
		}
		holder[7] = who
		return true
	}
	claim("A")
	delete(holder, 7) // the lease of A ends while A is stopped
	claim("B")
	delete(holder, 7) // A goes on, and gives back "its" number
	if !claim("C") {
		t.Error("C gets no number; want that of B, which lives")
	}

	release := func(who string) {
		if holder[7] == who {
			delete(holder, 7)
		}
	}
	release("A")
	if claim("D") {
		t.Error("a release by another than the holder frees the number; want it kept")
	}
}
