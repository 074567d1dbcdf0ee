package feed

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/snowkey/snowkey/types"
)

func open(names ...string) map[string]struct{} { return setOf(names) }

// A gate for each call, however many there were, is what these compare with.
func TestTheHorizonIsThatOfAllGatesThatWereEverMade(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 0))
		var f Feed
		var all []gate
		now := open()
		var want, got types.Snowflake
		for key := range types.Snowflake(200) {
			if random.IntN(3) == 0 && len(now) < 12 {
				now[fmt.Sprint(key)] = struct{}{}
			}
			for name := range now {
				if random.IntN(40) == 0 {
					delete(now, name)
				}
			}
			named := random.IntN(10) > 0
			all = append(all, gate{key, maps.Clone(now)})
			for _, g := range all {
				ended := named
				for name := range g.open {
					if _, open := now[name]; open {
						ended = false
					}
				}
				if ended {
					want = max(want, g.key)
				}
			}
			if key, ok := f.pass(gate{key, maps.Clone(now)}, named); ok {
				if key <= got && got > 0 {
					t.Fatalf("seed %d: pass() = %d after %d; want more", seed, key, got)
				}
				got = key
			}
			if got != want {
				t.Fatalf("seed %d, call %d: pass() = %d; want %d", seed, key, got, want)
			}
		}
	}
}

func TestAsManyGatesAreKeptAsWaitForDifferentTransactions(t *testing.T) {
	var f Feed
	for key := range types.Snowflake(500) {
		if _, ok := f.pass(gate{key, open("a", "b")}, true); ok || len(f.gates) != 1 {
			t.Fatalf("pass() in call %d = %t, with %d gates; want false, and 1", key, ok, len(f.gates))
		}
	}
	f = Feed{}
	now := open()
	for key := range types.Snowflake(500) {
		now[fmt.Sprint(key)] = struct{}{}
		if f.pass(gate{key, maps.Clone(now)}, true); len(f.gates) > mostGates {
			t.Fatalf("%d gates after %d calls; want %d at most", len(f.gates), key, mostGates)
		}
		delete(now, fmt.Sprint(key-150))
	}
}
