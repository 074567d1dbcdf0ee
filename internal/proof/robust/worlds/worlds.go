// Package worlds keeps what a search of a model has reached. The models of core, core/lease and
// core/segment are searched breadth first, through some 100,000 worlds each.
package worlds

import "hash/maphash"

// chunk is how many worlds have their memory together: one list that grows would be copied again
// and again, which takes longer than the search.
const chunk = 1 << 9

// An Index is a list of different worlds. It is what a list and a map[W]int32 would be, if the map
// did not keep each world a second time.
type Index[W comparable] struct {
	chunks [][]W
	len    int
	slots  []slot // a power of two, at most half full
	seed   maphash.Seed
}

type slot struct {
	hash uint32 // some bits of it
	at   int32  // position in the list, plus one
}

// New returns a list of one world.
func New[W comparable](first W) *Index[W] {
	x := &Index[W]{slots: make([]slot, 1<<10), seed: maphash.MakeSeed()}
	x.Add(first)
	return x
}

// Len returns the number of worlds.
func (x *Index[W]) Len() int { return x.len }

// At returns a world, which must not be changed. It stays where it is.
func (x *Index[W]) At(k int) *W { return &x.chunks[k/chunk][k%chunk] }

// Add returns the position of w in the list, to which it adds w if necessary.
func (x *Index[W]) Add(w W) (at int32, added bool) {
	if x.len > len(x.slots)/2 {
		old := x.slots
		x.slots = make([]slot, 2*len(old))
		for _, s := range old {
			if s.at > 0 {
				*x.find(s.hash, nil) = s
			}
		}
	}
	hash := uint32(maphash.Comparable(x.seed, w))
	s := x.find(hash, &w)
	if s.at > 0 {
		return s.at - 1, false
	}
	if x.len%chunk == 0 {
		x.chunks = append(x.chunks, make([]W, 0, chunk))
	}
	last := &x.chunks[x.len/chunk]
	*last = append(*last, w)
	x.len++
	*s = slot{hash, int32(x.len)}
	return s.at - 1, true
}

// find returns the slot of w, or the empty one where it belongs.
func (x *Index[W]) find(hash uint32, w *W) *slot {
	for k := hash; ; k++ {
		s := &x.slots[k&uint32(len(x.slots)-1)]
		if s.at == 0 || w != nil && s.hash == hash && *x.At(int(s.at - 1)) == *w {
			return s
		}
	}
}
