package answers

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// An index is the leaves of a B-tree: sorted keys in pages that are split when full.
type index struct {
	pages   [][]uint64
	touched map[int]bool // pages, since it was last set
}

const perPage = 64

func (x *index) insert(k uint64) {
	if len(x.pages) == 0 {
		x.pages = [][]uint64{nil}
	}
	at, _ := slices.BinarySearchFunc(x.pages, k, func(page []uint64, k uint64) int {
		if len(page) == 0 || page[0] <= k {
			return -1
		}
		return 1
	})
	at = max(at-1, 0)
	page := x.pages[at]
	i, _ := slices.BinarySearch(page, k)
	page = slices.Insert(page, i, k)
	x.pages[at] = page
	if len(page) > perPage {
		half := len(page) / 2
		if i == len(page)-1 {
			half = len(page) - 1 // at the end databases leave the page full
		}
		x.pages = slices.Insert(x.pages, at+1, slices.Clone(page[half:]))
		x.pages[at] = page[:half:half]
	}
	if x.touched != nil {
		x.touched[at] = true
	}
}

// A thousand rows write to most pages of a table if keys are random, and to the last ones
// if they increase.
func TestRandomKeysWriteToMostPagesOfAnIndex(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for _, c := range []struct {
		name string
		next func(i uint64) uint64
		most bool
	}{
		{"UUIDv4", func(uint64) uint64 { return random.Uint64() }, true},
		{"increasing", func(i uint64) uint64 { return i }, false},
	} {
		var x index
		for i := range uint64(20_000) {
			x.insert(c.next(i))
		}
		x.touched = map[int]bool{}
		for i := range uint64(1000) {
			x.insert(c.next(20_000 + i))
		}
		share := float64(len(x.touched)) / float64(len(x.pages))
		if c.most && share < 0.5 || !c.most && share > 0.1 {
			t.Errorf("%s: 1,000 keys write to %.0f %% of the pages", c.name, 100*share)
		}
	}
}

// A UUIDv7 without a counter, which its RFC allows, has random bits below the millisecond.
func TestUUIDsOfOneMillisecondAreInNoOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	v7 := func(ms uint64) uint64 { return ms<<16 | random.Uint64()>>48 } // its upper 64 bits, shortened
	backward := 0
	last := v7(1)
	for range 1000 {
		id := v7(1)
		if id <= last {
			backward++
		}
		last = id
	}
	if backward < 400 {
		t.Errorf("%d of 1,000 UUIDs are below the one before; want about half", backward)
	}
	if v7(2) <= last {
		t.Error("a UUID of the next millisecond is below one of this; want above")
	}
}
