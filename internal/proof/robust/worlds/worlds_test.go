package worlds

import (
	"math/rand/v2"
	"testing"
)

func TestAnIndexIsAListWithAMap(t *testing.T) {
	type world struct{ a, b int }
	random := rand.New(rand.NewPCG(1, 1))
	x := New(world{})
	list, at := []world{{}}, map[world]int32{{}: 0}
	for range 5 * chunk * chunk / 100 {
		w := world{random.IntN(80), random.IntN(80)}
		want, known := at[w]
		if !known {
			want = int32(len(list))
			list, at[w] = append(list, w), want
		}
		if got, added := x.Add(w); got != want || added == known {
			t.Fatalf("Add(%v) = %d, %t; want %d, %t", w, got, added, want, !known)
		}
	}
	if x.Len() != len(list) || len(list) < 3*chunk {
		t.Fatalf("Len() = %d; want %d, and more than three chunks", x.Len(), len(list))
	}
	for k, want := range list {
		if got := *x.At(k); got != want {
			t.Errorf("At(%d) = %v; want %v", k, got, want)
		}
	}
}
