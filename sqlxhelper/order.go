package sqlxhelper

import (
	"cmp"
	"reflect"
	"slices"
	"unsafe"
)

// A target is a table and the type of rows that go into it. Two types may share
// a table; they have different columns.
type target struct {
	table string
	plan  *plan
}

// A station is a target on a walk.
type station struct {
	target
	leads  []*station // by relation of the plan, where the rows in its field go
	circle int        // in walk.circles
	turns  bool       // its rows may refer to each other, in a circle of tables or within it
	rank   int        // in the order of writing, see groups

	// seen has the rows that were found, by their addresses. Stations of one
	// type share it. It is nil, and slices takes its place, if nothing leads to
	// the rows but the slices of structs in one field.
	seen   map[unsafe.Pointer]int
	slices []span
}

// A group is the rows that go into one table.
type group struct {
	table string
	plan  *plan
	rows  []reflect.Value // addressable structs
}

// findStations finds the stations of all rows that there may be.
func (w *walk) findStations(b batch, root target) {
	at := func(t target) *station {
		for _, d := range w.stations {
			if d.target == t {
				return d
			}
		}
		ways := 0
		if w.deep {
			ways = t.plan.ways
		}
		if t == root {
			ways++
			if b.many && b.pointer {
				ways++
			}
		}
		d := &station{target: t}
		if ways > 1 {
			d.seen = map[unsafe.Pointer]int{}
		}
		for _, o := range w.stations {
			if o.plan == t.plan {
				d.seen = o.seen
			}
		}
		w.stations = append(w.stations, d)
		return d
	}
	at(root)
	if !w.deep {
		return
	}
	for i := 0; i < len(w.stations); i++ { // which grows
		d := w.stations[i]
		for j := range d.plan.relations {
			r := &d.plan.relations[j]
			d.leads = append(d.leads, at(target{r.table, r.plan}))
		}
	}
	w.sortStations()
}

// sortStations puts the stations into w.circles so that each comes after all to
// which its rows may refer. Those that refer to each other in a circle have no
// right order, and are put together. Any other is a circle of one.
//
// It is Tarjan's algorithm, by recursion over tables and not over rows.
func (w *walk) sortStations() {
	refers := map[*station][]*station{}
	for _, s := range w.stations {
		for j, o := range s.leads {
			from, to := o, s
			if s.plan.relations[j].belongs {
				from, to = s, o
			}
			refers[from] = append(refers[from], to)
			from.turns = from.turns || from == to
		}
	}
	number := map[*station]int{} // in the order of the visits, from 1 on
	done := map[*station]bool{}  // it is in w.circles
	var path []*station
	// visit returns the lowest number on the path to which s leads.
	var visit func(s *station) int
	visit = func(s *station) int {
		number[s] = len(number) + 1
		low, start := number[s], len(path)
		path = append(path, s)
		for _, to := range refers[s] {
			if number[to] == 0 {
				low = min(low, visit(to))
			} else if !done[to] {
				low = min(low, number[to])
			}
		}
		if low == number[s] { // nothing before s, so what comes after it is complete
			circle := slices.Clone(path[start:])
			path = path[:start]
			for _, c := range circle {
				done[c] = true
				c.circle = len(w.circles)
				c.turns = c.turns || len(circle) > 1
			}
			w.circles = append(w.circles, circle)
		}
		return low
	}
	for _, s := range w.stations {
		if number[s] == 0 {
			visit(s)
		}
	}
}

// setLevels sorts the rows, so that each comes after those of its circle of tables
// to which it refers. It also sets their levels: how often a path of such
// references goes from one table to another, at most. It refuses rows that refer to
// each other in a circle.
//
// A row is ready when all to which it refers are.
func (w *walk) setLevels() error {
	if !slices.ContainsFunc(w.stations, func(s *station) bool { return s.turns }) {
		return nil
	}
	within := func(l link) bool { return w.nodes[l.from].circle == w.nodes[l.to].circle }
	waits := make([]int, len(w.nodes))   // for so many rows, by row
	first := make([]int, len(w.nodes)+1) // where the row's part of waiting ends, and later where it begins
	for _, l := range w.links {
		if within(l) {
			waits[l.from]++
			first[l.to]++
		}
	}
	for i := range w.nodes {
		first[i+1] += first[i]
	}
	waiting := make([]int, first[len(w.nodes)]) // the rows that wait for row 0, those that wait for row 1, …
	for _, l := range slices.Backward(w.links) {
		if within(l) {
			first[l.to]--
			waiting[first[l.to]] = l.from
		}
	}
	ready := make([]int, 0, len(w.nodes))
	for i, n := range waits {
		if n == 0 {
			ready = append(ready, i)
		}
	}
	for i := 0; i < len(ready); i++ { // which grows
		at := &w.nodes[ready[i]]
		for _, j := range waiting[first[ready[i]]:first[ready[i]+1]] {
			next, level := &w.nodes[j], at.level
			if next.station != at.station {
				level++
			}
			next.level = max(next.level, level)
			if waits[j]--; waits[j] == 0 {
				ready = append(ready, j)
			}
		}
	}
	w.sorted = ready
	if len(ready) == len(w.nodes) {
		return nil
	}
	return w.circleError(func(i int) bool { return waits[i] > 0 }, within)
}

// circleError names two rows of a circle. Each row that is stuck refers to one that
// is stuck. So following them ends in a circle.
func (w *walk) circleError(stuck func(i int) bool, within func(l link) bool) error {
	refers := map[int]link{} // by row, the first of its links
	row := -1
	for _, l := range w.links {
		if within(l) && stuck(l.from) && stuck(l.to) {
			if _, ok := refers[l.from]; !ok {
				refers[l.from] = l
			}
			if row < 0 {
				row = l.from
			}
		}
	}
	for seen := map[int]bool{}; !seen[row]; row = refers[row].to {
		seen[row] = true
	}
	l := refers[row]
	from, to := w.nodes[l.from], w.nodes[l.to]
	if l.from == l.to {
		return w.fail(from, nil, "%s refers to the row itself", l.via.fk.field)
	}
	how := "that one back to it"
	if refers[l.to].to != l.from {
		how = "that one, by way of others, back to it"
	}
	return w.fail(from, nil, "%s refers to %s, and %s, so that none can be inserted before the others", l.via.fk.field, w.path(to), how)
}

// groups divides the rows by table, those first to which others refer.
//
// There is one group per station. Where several stations refer to each other in a
// circle, there is one per level and station. A station that refers to itself needs
// one group only, because its rows are sorted. MySQL checks foreign keys row by
// row.
func (w *walk) groups() []group {
	if len(w.structs) == 0 {
		return nil
	}
	if !w.deep {
		return []group{{w.stations[0].table, w.stations[0].plan, w.structs}}
	}
	rank := 0
	for _, circle := range w.circles {
		for _, s := range circle {
			s.rank = rank
			rank++
		}
	}
	rows, order := w.structs, w.sorted
	if order == nil {
		order = make([]int, len(rows))
		for i := range order {
			order[i] = i
		}
	}
	turn := func(a, b int) int { return compareTurns(&w.nodes[a], &w.nodes[b]) }
	// Most graphs are found in order: all parents, then all children.
	if w.sorted != nil || !slices.IsSortedFunc(order, turn) {
		slices.SortStableFunc(order, turn)
		rows = make([]reflect.Value, len(order))
		for i, row := range order {
			rows[i] = w.structs[row]
		}
	}
	var groups []group
	for start, end := 0, 1; end <= len(rows); end++ {
		s := w.nodes[order[start]].station
		if end == len(rows) || w.nodes[order[end]].station != s {
			groups = append(groups, group{s.table, s.plan, rows[start:end]})
			start = end
		}
	}
	return groups
}

// compareTurns compares the turns at which two rows are written.
func compareTurns(a, b *node) int {
	return cmp.Or(a.circle-b.circle, a.level-b.level, a.rank-b.rank)
}
