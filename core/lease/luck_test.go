package lease

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
)

var luckSeed = flag.Uint64("lease.seed", 1, "the seed of the tokens and the random moments of leases")

// luckOf is the test whose leases draw, and how many have begun to.
var luckOf struct {
	sync.Mutex
	test  string
	draws uint64
}

// TestMain is not run by the processes that tests start: their tokens must differ.
func TestMain(m *testing.M) {
	luck = func() (func() string, func() float64) {
		luckOf.Lock()
		defer luckOf.Unlock()
		luckOf.draws++
		rng := rand.New(rand.NewPCG(*luckSeed, luckOf.draws))
		token := func() string { return fmt.Sprintf("%016x%016x", rng.Uint64(), rng.Uint64()) }
		return token, func() float64 {
			switch rng.IntN(8) { // the ends are where a test that counts is wrong
			case 0:
				return 0
			case 1:
				return math.Nextafter(1, 0)
			}
			return rng.Float64()
		}
	}
	m.Run()
}

// SeedLuck makes the luck of a test depend on the seed and on nothing else, such as the tests
// before it, and returns the seed. Bubbles of one test go on with its luck.
func SeedLuck(t *testing.T) uint64 {
	luckOf.Lock()
	defer luckOf.Unlock()
	if luckOf.test != t.Name() {
		luckOf.test, luckOf.draws = t.Name(), 0
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("play it again with -lease.seed=%d", *luckSeed)
		}
	})
	return *luckSeed
}
