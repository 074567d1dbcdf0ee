package placement_test

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/snowkey/snowkey/internal/base/placement"
)

type (
	row  = placement.Row
	spot = placement.Spot
)

// root is a row that nothing leads to; wish is the shard of the context.
func root(wish int64) row {
	r := placement.At(placement.None)
	r.Wish = wish
	return r
}

// child, belongs and tagged are what rows of a graph are made of.
func child(of int) row   { return row{placement.None, -1, of, of, placement.None} }
func reached(by int) row { return row{placement.None, -1, -1, by, placement.None} }

// A graph is rows, to which tags and parents are added.
type graph []row

func (g graph) tagged(i int, shard int64) graph { g[i].Shard = shard; return g }
func (g graph) refers(i, to int) graph          { g[i].Target = to; return g }
func (g graph) parent(i, of int) graph          { g[i].Parent = of; return g }

const none = placement.None

// on is the spot of a shard, anywhere that of a shard that is chosen for a row.
func on(shard int64) spot   { return spot{shard, -1} }
func anywhere(row int) spot { return spot{none, row} }

func TestTheTableOfThePageIsObeyed(t *testing.T) {
	all := func(n int, s spot) []spot { return slices.Repeat([]spot{s}, n) }
	for name, c := range map[string]struct {
		rows graph
		want []spot
	}{
		"a row with a key stays, and children follow it":                {graph{placement.At(5), child(0), child(1)}, all(3, on(5))},
		"a child with a key stays, and its children follow it":          {graph{root(2), placement.At(5), child(1)}, []spot{on(2), on(5), on(5)}},
		"a tagged field is before the context":                          {graph{root(2)}.tagged(0, 6), all(1, on(6))},
		"a tagged field is before the row that leads to it":             {graph{root(2), reached(0)}.tagged(1, 6), []spot{on(2), on(6)}},
		"children are where their parent is at any depth":               {graph{root(2), child(0), child(1), child(2)}, all(4, on(2))},
		"the parent is before the row that leads first":                 {graph{root(2), placement.At(7), {none, -1, 1, 0, none}}, []spot{on(2), on(7), on(7)}},
		"a row that others belong to is with the first of them":         {graph{root(2), reached(0), child(1)}, all(3, on(2))},
		"the context, else each root for itself":                        {graph{root(2), root(none), child(1), root(none)}, []spot{on(2), anywhere(1), anywhere(1), anywhere(3)}},
		"a tag that refers to a new row follows it":                     {graph{root(2), placement.At(5)}.refers(0, 1), all(2, on(5))},
		"a new row with a tag of its own is followed":                   {graph{root(2), reached(0)}.refers(0, 1).tagged(1, 6), all(2, on(6))},
		"a new row that just follows is where its order is":             {graph{placement.At(5), child(0), reached(1)}.refers(1, 2), all(3, on(5))},
		"so are an order of the context and its customer":               {graph{root(2), reached(0)}.refers(0, 1), all(2, on(2))},
		"and one that goes anywhere":                                    {graph{root(none), reached(0), reached(1)}.refers(0, 1).refers(1, 2), all(3, anywhere(0))},
		"orders of one new customer are together":                       {graph{root(none), root(none), reached(0)}.refers(0, 2).refers(1, 2), all(3, anywhere(0))},
		"the customer's own parent is before the order that leads":      {graph{placement.At(5), child(0), reached(1), placement.At(8), {none, -1, 3, 1, none}}.refers(1, 2).refers(2, 4), []spot{on(5), on(8), on(8), on(8), on(8)}},
		"a customer that is a child of the order's other row":           {graph{root(5), reached(0), {none, -1, 1, 0, none}}.refers(0, 2), all(3, on(5))},
		"tags in a circle are together where the first was reached":     {graph{placement.At(5), reached(0), reached(1), root(2)}.refers(1, 2).refers(2, 1), []spot{on(5), on(5), on(5), on(2)}},
		"the parent of one row of a circle counts for all":              {graph{root(none), placement.At(9), reached(0), {none, -1, 1, 2, none}}.refers(2, 3).refers(3, 2), []spot{anywhere(0), on(9), on(9), on(9)}},
		"parents in a circle are where the first of them was reached":   {graph{root(4), {none, -1, 3, 0, none}, child(1), reached(2)}, all(4, on(4))},
		"a row may follow itself":                                       {graph{placement.At(5), reached(0)}.refers(1, 1), all(2, on(5))},
		"a parent of a row of a circle that follows it is in a larger":  {graph{placement.At(5), reached(0), reached(1), {none, -1, 1, 1, none}}.refers(1, 2).refers(2, 1).parent(2, 3), all(4, on(5))},
		"circles in circles are where the first row of all was reached": {graph{root(3), {none, 2, 4, 0, none}, reached(1), {none, 4, -1, 2, none}, reached(3)}, all(5, on(3))},
	} {
		t.Run(name, func(t *testing.T) {
			got := placement.Resolve(c.rows)
			if !slices.Equal(got, c.want) {
				t.Errorf("Resolve(%v) = %v; want %v", c.rows, got, c.want)
			}
		})
	}
}

func TestARowOnTwoShardsHasAConflict(t *testing.T) {
	for name, c := range map[string]struct {
		rows  graph
		row   int
		other spot
		ok    bool
	}{
		"a tag and a parent":                           {graph{placement.At(5), child(0)}.tagged(1, 6), 1, on(5), true},
		"a tag that agrees with the parent":            {graph{placement.At(5), child(0)}.tagged(1, 5), 1, on(5), false},
		"a tag and the context":                        {graph{root(5)}.tagged(0, 6), 0, on(5), true},
		"a tag and the context of a row further down":  {graph{root(5), reached(0)}.tagged(1, 6), 1, spot{}, false},
		"a new customer and the context":               {graph{root(5), reached(0)}.refers(0, 1).tagged(1, 6), 0, on(5), true},
		"a new customer and a parent":                  {graph{root(5), child(0), reached(1)}.refers(1, 2).tagged(2, 6), 1, on(5), true},
		"a tag below a row that goes anywhere":         {graph{root(none), child(0)}.tagged(1, 6), 1, anywhere(0), true},
		"a customer that goes elsewhere than the root": {graph{placement.At(5), child(0), root(none)}.refers(1, 2), 1, on(5), true},
		"two parents of a circle, the one":             {graph{placement.At(5), placement.At(6), child(0), child(1)}.refers(2, 3).refers(3, 2), 2, on(5), true},
		"a key stays whatever the context says":        {graph{placement.At(5)}, 0, spot{}, false},
		"a child without a tag":                        {graph{root(none), child(0)}, 1, anywhere(0), false},
	} {
		t.Run(name, func(t *testing.T) {
			spots := placement.Resolve(c.rows)
			want := placement.Conflict{Row: c.row, At: spots[c.row], Other: c.other, Parent: c.rows[c.row].Parent}
			if got := placement.ConflictOf(c.rows, spots, c.row); (got != nil) != c.ok || c.ok && *got != want {
				t.Errorf("ConflictOf(%v, %d) = %v; want %v: %v", c.rows, c.row, got, want, c.ok)
			}
		})
	}
}

func TestRowsThatAreNotSentFollowThoseThatMetStoredRows(t *testing.T) {
	// order follows its customer by a tag, item its order, and note its customer by the walk.
	const customer, order, item, note = 0, 1, 2, 3
	graphOf := func(wish int64) graph {
		return graph{root(wish), {none, customer, -1, customer, none}, child(order), reached(customer)}
	}
	for name, c := range map[string]struct {
		rows     graph
		keys     []int64 // the shards of the keys that the rows have now
		unsent   []int
		want     []int64
		conflict *placement.Conflict
	}{
		"all follow the stored customer, one another or both":         {graphOf(none), []int64{9, 3, 3, 3}, []int{order, item, note}, []int64{9, 9, 9}, nil},
		"a row that is sent stays, and its children are with it":      {graphOf(none), []int64{9, 3, 3, 3}, []int{item, note}, []int64{3, 9}, nil},
		"a sent row is where its key is, whatever its tag says":       {graph{placement.At(5), child(0)}.tagged(1, 5), []int64{7, 7}, nil, []int64{}, nil},
		"a row that nothing precedes stays on the shard of its key":   {graphOf(none), []int64{3, 3, 3, 3}, []int{customer, order, item, note}, []int64{3, 3, 3, 3}, nil},
		"so does one whose key the context asked for":                 {graphOf(3), []int64{3, 3, 3, 3}, []int{customer, order}, []int64{3, 3}, nil},
		"a row without a key yet is placed by the rule":               {graphOf(4), []int64{none, 3, 3, 3}, []int{order}, []int64{4}, nil},
		"a tag and a parent that has met a row on another shard":      {graph{root(5), child(0)}.tagged(1, 5), []int64{9, 5}, []int{1}, nil, &placement.Conflict{Row: 1, At: on(5), Other: on(9), Parent: 0}},
		"a tag and a parent that has moved to where the tag is":       {graph{root(5), child(0)}.tagged(1, 9), []int64{9, 5}, []int{1}, []int64{9}, nil},
		"a target that has met a row on another shard than a parent":  {graph{root(5), child(0), reached(1)}.refers(1, 2), []int64{5, 5, 9}, []int{1}, nil, &placement.Conflict{Row: 1, At: on(9), Other: on(5), Parent: 0}},
		"a target that has met a row on another shard than the wish":  {graph{root(5), reached(0)}.refers(0, 1), []int64{5, 9}, []int{0}, nil, &placement.Conflict{Row: 0, At: on(9), Other: on(5), Parent: -1}},
		"a target that has met a row, and no wish":                    {graph{root(none), reached(0)}.refers(0, 1), []int64{5, 9}, []int{0}, []int64{9}, nil},
		"a circle that is not sent stays together":                    {graph{root(none), reached(0), reached(1)}.refers(0, 1).refers(1, 2), []int64{3, 3, 3}, []int{0, 1, 2}, []int64{3, 3, 3}, nil},
		"a circle is open where one of its rows has met a stored one": {graph{root(none), reached(0), reached(1)}.refers(0, 1).refers(1, 2), []int64{3, 3, 9}, []int{0, 1}, []int64{9, 9}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			rows := slices.Clone(c.rows)
			got, conflict := placement.Follow(c.rows, c.unsent, func(row int) int64 { return c.keys[row] })
			if !slices.Equal(got, c.want) || (conflict == nil) != (c.conflict == nil) || conflict != nil && *conflict != *c.conflict {
				t.Errorf("Follow(%v, %v, %v) = %v, %+v; want %v, %+v", c.rows, c.unsent, c.keys, got, conflict, c.want, c.conflict)
			}
			if !slices.Equal(rows, c.rows) {
				t.Errorf("rows after Follow = %v; want %v", c.rows, rows)
			}
		})
	}
}

// A judge says by another way than Resolve where rows are. It looks at sets of rows, and never
// follows one: a row is where all rows are that it reaches by its leads, and a set of rows that
// all reach each other and nothing else has one lead more, the row that led to its first one.
type judge struct {
	rows  graph
	leads []uint // of each row, as a set
	reach []uint
	ends  map[int]spot // of the rows that follow no other
}

func judgeOf(rows graph) *judge {
	j := &judge{rows: rows, leads: make([]uint, len(rows)), ends: map[int]spot{}}
	for i, r := range rows {
		switch {
		case r.Shard != none:
			j.ends[i] = on(r.Shard)
		case r.Target >= 0 && r.Parent >= 0:
			j.leads[i] = 1<<r.Target | 1<<r.Parent
		case r.Target >= 0:
			j.leads[i] = 1 << r.Target
		case r.Parent >= 0:
			j.leads[i] = 1 << r.Parent
		case r.From >= 0:
			j.leads[i] = 1 << r.From
		}
	}
	for j.close(); j.open(); j.close() {
	}
	return j
}

// close finds what each row reaches, itself included.
func (j *judge) close() {
	j.reach = slices.Clone(j.leads)
	for i := range j.reach {
		j.reach[i] |= 1 << i
	}
	for k := range j.reach {
		for i := range j.reach {
			if j.reach[i]>>k&1 == 1 {
				j.reach[i] |= j.reach[k]
			}
		}
	}
}

// open gives a lead to a set of rows that has none, or an end. It reports whether it has found one.
func (j *judge) open() bool {
	for _, set := range j.reach {
		ended, apart := false, false
		for k := range j.rows {
			if set>>k&1 == 1 {
				_, end := j.ends[k]
				ended, apart = ended || end, apart || j.reach[k] != set
			}
		}
		if ended || apart {
			continue
		}
		first := bits.TrailingZeros(set)
		switch r := j.rows[first]; {
		case r.From >= 0:
			j.leads[first] |= 1 << r.From
		case r.Wish != none:
			j.ends[first] = on(r.Wish)
		default:
			j.ends[first] = anywhere(first)
		}
		return true
	}
	return false
}

// spot returns where row i is, and whether all that it reaches says the same.
func (j *judge) spot(i int) (s spot, certain bool) {
	found := false
	for end, at := range j.ends {
		if j.reach[i]>>end&1 == 0 {
			continue
		}
		if found && at != s {
			return s, false
		}
		s, found = at, true
	}
	return s, found
}

// check compares Resolve with the judge.
func check(t *testing.T, rows graph) (contradicts bool) {
	t.Helper()
	got, j, rivals := placement.Resolve(rows), judgeOf(rows), 0
	for i, r := range rows {
		lead := r.From
		if r.Parent >= 0 {
			lead = r.Parent
			if got[i] != got[lead] {
				rivals++
			}
		}
		if r.Target >= 0 {
			lead = r.Target
		}
		switch {
		case r.Shard != none && got[i] != on(r.Shard), r.Shard == none && lead >= 0 && got[i] != got[lead]:
			t.Fatalf("Resolve(%v) = %v; want row %d where what it follows is", rows, got, i)
		}
	}
	tagged := func(r row) bool { return r.Shard != none && r.Parent >= 0 }
	for i := range rows {
		want, certain := j.spot(i)
		contradicts = contradicts || !certain
		if r := rows[i]; tagged(r) {
			parent, ok := j.spot(r.Parent)
			contradicts = contradicts || !ok || parent != want
		}
	}
	if contradicts != (rivals > 0) {
		t.Fatalf("Resolve(%v) = %v, with %d rows elsewhere than their parents; want some: %v", rows, got, rivals, contradicts)
	}
	for i := range rows {
		if want, _ := j.spot(i); !contradicts && got[i] != want {
			t.Fatalf("Resolve(%v) = %v; want row %d on %v", rows, got, i, want)
		}
	}
	return contradicts
}

// forms calls yield with all forms of row i of n: with keys on two shards, with tags on them, and
// with any target, parent and earlier row.
func forms(i, n int, wish int64) (list []row) {
	for shard := range int64(2) {
		list = append(list, placement.At(shard))
	}
	for from := -1; from < i; from++ {
		for parent := -1; parent < n; parent++ {
			w := int64(none)
			if from < 0 {
				w = wish
			}
			for shard := range int64(2) {
				list = append(list, row{shard, -1, parent, from, w})
			}
			for target := -1; target < n; target++ {
				list = append(list, row{none, target, parent, from, w})
			}
		}
	}
	return list
}

func TestEveryGraphOfThreeRowsIsPlacedAsTheJudgeSays(t *testing.T) {
	graphs, contradictory := 0, 0
	for _, wish := range []int64{none, 1} {
		for _, a := range forms(0, 3, wish) {
			for _, b := range forms(1, 3, wish) {
				for _, c := range forms(2, 3, wish) {
					graphs++
					if check(t, graph{a, b, c}) {
						contradictory++
					}
				}
			}
		}
	}
	t.Logf("%d graphs, %d of them contradict themselves", graphs, contradictory)
}

func TestRandomGraphsArePlacedAsTheJudgeSays(t *testing.T) {
	contradictory := 0
	const graphs = 30_000
	for seed := range uint64(graphs) {
		rng := rand.New(rand.NewPCG(seed, 1))
		rows := make(graph, 4+rng.IntN(9))
		or := func(limit, share int) int {
			if limit == 0 || rng.IntN(share) > 0 {
				return -1
			}
			return rng.IntN(limit)
		}
		for i := range rows {
			rows[i] = row{int64(or(3, 8)), or(len(rows), 3), or(len(rows), 4), or(i, 1), none}
			if rows[i].Shard != none {
				rows[i].Target = -1
			}
			if rows[i].From < 0 && seed%3 == 0 {
				rows[i].Wish = 1
			}
		}
		if check(t, rows) {
			contradictory++
		}
	}
	if contradictory < graphs/20 || contradictory > graphs*19/20 {
		t.Errorf("%d of %d graphs contradict themselves; want many of both kinds", contradictory, graphs)
	}
}

// Neither recursion nor a second look at what was followed would end in time, or at all.
func TestAChainAndCirclesOfCirclesAreOneWalk(t *testing.T) {
	const n = 200_000
	chain, nest := make(graph, n), make(graph, n)
	for i := range n {
		chain[i] = row{none, i + 1, -1, i - 1, none}
		// Each row follows the next one, and that one was reached from it: n circles, each
		// around the one before it.
		nest[i] = row{none, i + 1, -1, i - 1, 4}
	}
	chain[n-1] = placement.At(13)
	nest[n-1].Target = -1
	for name, c := range map[string]struct {
		rows graph
		want spot
	}{"a chain": {chain, on(13)}, "circles": {nest, on(4)}} {
		for i, got := range placement.Resolve(c.rows) {
			if got != c.want {
				t.Fatalf("%s: row %d is on %v; want %v", name, i, got, c.want)
			}
		}
	}
}

func BenchmarkResolve(b *testing.B) {
	for _, orders := range []int{1, 1000} {
		rows := make(graph, 0, 6*orders)
		for range orders {
			rows = append(rows, root(none))
		}
		for i := range 5 * orders {
			rows = append(rows, child(i/5))
		}
		b.Run(fmt.Sprintf("orders=%d", orders), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				placement.Resolve(rows)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(rows)), "ns/row")
		})
	}
}
