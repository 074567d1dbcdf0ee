// Package placement decides on which shards the new rows of a graph are, for both plugins. What
// users are told of it is docs/sharding.md, "Who chooses the shard".
//
// # The rule
//
// A row with a key is on the shard of its key. Any other row is on the shard of the row that it
// follows, which is the first of these that there is:
//
//  1. what its field with the tag refers to: a key of the caller, which says a shard, or a row of
//     the graph, whose key is going to be in the field (Target)
//  2. the row in whose has-one, has-many or slice of children it is (Parent)
//  3. the row from which it was first reached by a belongs-to or many-to-many (From)
//
// A row that follows no other is on the shard of the context (Wish), or else on any.
//
// # Circles
//
// Rows can follow each other in a circle: an order is on the shard of its new customer, and the
// customer, which has no tag, on that of the row from which it was reached, the order. All of
// them can be obeyed: the rows of a circle are on one shard. The circle then counts as one row,
// and follows, as a row would,
//
//  1. the parent of one of its rows that follows its tagged field, if the parent is outside
//  2. the row from which the first of its rows was reached; first in the order of the walk
//
// and otherwise takes the Wish of its first row, or any shard. If that leads into a circle
// again, the larger circle counts as one row, and so on.
//
// The rule gives every row a shard: each step follows a row that was not followed before, or
// makes one row of several. The first row of a circle was reached from outside of it, because
// From is always an earlier row, so a circle ends only where no row is before it. And the rule
// gives only one: two parents of a circle are a choice only if they are on two shards, and then
// the row that has the other one contradicts its parent ([ConflictOf]), whichever is chosen. For if
// there is no contradiction, then every row is where its Target and its Parent are, as far as
// it has them; and a circle that goes by its first row has no Target and no Parent outside. So
// it is a strongly connected set of rows with no way out, and these do not depend on a choice.
//
// Two other rules were tried. Looking one step far, to follow a new row that the field refers to
// unless that one was reached from the row itself, leaves circles of three to the order in which
// rows are asked. Climbing from a row that is being asked to the first row on the way to the root
// that is not passes by the parent of another row of the circle, and then refuses a graph that
// could be stored.
package placement

import (
	"slices"
	"strconv"
)

// None is no shard.
const None = -1

// A Row says on what the shard of a row of a graph depends. Rows are named by their index.
type Row struct {
	Shard  int64 // of its key, or else of the key of the caller in its tagged field, or None
	Target int   // the row that its tagged field is going to refer to, or -1
	Parent int   // the row that has it as a child, or -1
	From   int   // the row from which it was first reached, which is before it, or -1
	Wish   int64 // the shard that it is on if it follows no row, or None, as in a row that was reached from another
}

// At returns the Row of a row with a key, which stays on the shard of its key whatever the rest says.
func At(shard int64) Row { return Row{Shard: shard, Target: -1, Parent: -1, From: -1, Wish: None} }

// A Spot is where a row is. Two rows are on one shard for certain if their spots are equal, and
// not if they happen to be: all shards that are still to be chosen are different.
type Spot struct {
	Shard int64 // or None, if it is still to be chosen
	Of    int   // the row for which it is chosen then, or -1
}

// String returns what errors call s.
func (s Spot) String() string {
	if s.Of >= 0 {
		return "one that is still to be chosen"
	}
	return "shard " + strconv.FormatInt(s.Shard, 10)
}

// Resolve returns the spots of rows. It takes time and memory in proportion to their number, and
// a chain of rows that follow each other may have as many links as there are rows.
func Resolve(rows []Row) []Spot {
	r := resolver{rows: rows, spots: make([]Spot, len(rows)), at: make([]int, len(rows))}
	for i := range rows {
		if r.at[i] != unseen {
			continue
		}
		switch next := rows[i].follows(); {
		case next < 0: // most rows of most graphs are roots, or children of rows before them
			r.spots[i], r.at[i] = rows[i].end(i), settled
		case r.at[next] == settled:
			r.spots[i], r.at[i] = r.spots[next], settled
		default:
			r.walk(i)
		}
	}
	return r.spots
}

// follows returns the row that r follows, or -1, but for circles.
func (r *Row) follows() int {
	switch {
	case r.Shard != None:
		return -1
	case r.Target >= 0:
		return r.Target
	case r.Parent >= 0:
		return r.Parent
	default:
		return r.From
	}
}

// end returns the spot of r, which is row i, if it follows no row.
func (r *Row) end(i int) Spot {
	switch {
	case r.Shard != None:
		return Spot{r.Shard, -1}
	case r.Wish != None:
		return Spot{r.Wish, -1}
	default:
		return Spot{None, i}
	}
}

// What a row is in resolver.at, unless it is on the path.
const (
	unseen  = 0
	settled = -1
)

// A resolver follows rows from one to the next, until it comes to a shard or to a row whose spot
// is known. It finds circles as Gabow's algorithm finds strongly connected components: the path
// is divided into stretches, each of them a row or a circle, and a way back to the path makes one
// stretch of all from there to the end. Nothing but the last stretch ever grows or goes on.
type resolver struct {
	rows  []Row
	spots []Spot
	at    []int // the place of each row on the path, from 1, or settled, or unseen

	path    []int     // the rows
	circles []stretch // of the path
	parents []int     // the rows of the path that follow their targets, and their parents not yet
}

// A stretch is part of the path, up to the next one.
type stretch struct {
	start int // the place of its first row on the path
	first int // its first row in the order of the walk
}

// walk settles row i and all rows that it follows.
func (r *resolver) walk(i int) {
	r.path, r.circles, r.parents = r.path[:0], r.circles[:0], r.parents[:0]
	next := r.push(i)
	for {
		for next >= 0 && r.at[next] > 0 { // the way leads back to the path
			next = r.close(next)
		}
		switch {
		case next < 0:
			first := r.circles[len(r.circles)-1].first
			r.settle(r.rows[first].end(first))
			return
		case r.at[next] == settled:
			r.settle(r.spots[next])
			return
		}
		next = r.push(next)
	}
}

// push adds row i to the path. It returns the row that it follows, or -1.
func (r *resolver) push(i int) (next int) {
	r.path = append(r.path, i)
	r.at[i] = len(r.path)
	r.circles = append(r.circles, stretch{start: r.at[i], first: i})
	row := &r.rows[i]
	if row.Shard == None && row.Target >= 0 && row.Parent >= 0 {
		r.parents = append(r.parents, i)
	}
	return row.follows()
}

// close makes a circle of the end of the path, because its last stretch follows row i. It returns
// the row that the circle follows, or -1.
func (r *resolver) close(i int) (next int) {
	last := len(r.circles) - 1
	for ; r.circles[last].start > r.at[i]; last-- {
		r.circles[last-1].first = min(r.circles[last-1].first, r.circles[last].first)
	}
	r.circles = r.circles[:last+1]
	circle := r.circles[last]
	if n := len(r.parents) - 1; n >= 0 && r.at[r.parents[n]] >= circle.start {
		next = r.rows[r.parents[n]].Parent
		r.parents = r.parents[:n]
		return next
	}
	if next = r.rows[circle.first].From; next >= circle.first {
		return -1 // no walk has rows in this order
	}
	return next
}

// settle puts all rows of the path on a spot.
func (r *resolver) settle(s Spot) {
	for _, i := range r.path {
		r.spots[i], r.at[i] = s, settled
	}
}

// A Conflict is a row on two shards, which both plugins refuse.
type Conflict struct {
	Row    int
	At     Spot // by its tagged field
	Other  Spot // where it would be without that
	Parent int  // the row that is there, or -1 if the wish says so
}

// ConflictOf returns the conflict of row i, or nil: its tagged field says another spot than its
// parent or, for a row that was reached from no other, than its wish.
func ConflictOf(rows []Row, spots []Spot, i int) *Conflict {
	row, other := &rows[i], spots[i]
	switch {
	case row.Shard == None && row.Target < 0: // no tagged field says anything
		return nil
	case row.Parent >= 0:
		other = spots[row.Parent]
	case row.Wish != None:
		other = Spot{row.Wish, -1}
	}
	if other == spots[i] {
		return nil
	}
	return &Conflict{Row: i, At: spots[i], Other: other, Parent: row.Parent}
}

// Shards returns the shards of the rows at given, whose keys are from the source and can still
// move. keyShard returns the shard of the key that a row has, which it stays on if the rule leaves
// the choice. If a row has a Conflict, none may move.
func Shards(rows []Row, given []int, keyShard func(row int) int64) (shards []int64, c *Conflict) {
	spots := Resolve(rows)
	shards = make([]int64, len(given))
	for n, i := range given {
		if c := ConflictOf(rows, spots, i); c != nil {
			return nil, c
		}
		if shards[n] = spots[i].Shard; spots[i].Of >= 0 {
			shards[n] = keyShard(spots[i].Of)
		}
	}
	return shards, nil
}

// Follow is [Shards] after some rows have met stored ones. An upsert gives a row the key of the
// stored row, which may be on another shard. Whatever was expected of them, all rows that have
// keys, for which keyShard does not return None, are then where their keys are, but for those at
// unsent: these follow them, or each other, by the rule.
func Follow(rows []Row, unsent []int, keyShard func(row int) int64) (shards []int64, c *Conflict) {
	now, moves := slices.Clone(rows), make([]bool, len(rows))
	for _, i := range unsent {
		moves[i] = true
	}
	for i := range now {
		if shard := keyShard(i); shard != None && !moves[i] {
			now[i] = At(shard)
		}
	}
	return Shards(now, unsent, keyShard)
}
