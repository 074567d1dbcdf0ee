package sqlxhelper

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
)

// A station is a table, and the rows of one type that a call writes into it. Two
// types may share a table; they have different columns.
type station struct {
	table string
	plan  *plan
	leads []*station // by relation of the plan, where the rows in its field go

	// seen has the rows that were found, by their addresses. Stations of one
	// type share it. It is nil, and slices takes its place, if nothing leads to
	// the rows but the slices of structs in one field. There a map would take a
	// quarter of the time of InsertGraph on SQLite.
	seen   map[uintptr]int
	slices []span

	// The place in the order of writing, see sortStations.
	circle int
	rank   int
	turns  bool // its rows may refer to each other, in a circle of tables or within it

	// What the options of the call say, see config.apply.
	columns []column  // that are written
	keys    []*column // those of them that hold a key
	own     keySpan   // of the keys that rows have before the call, see orderRows
	foreign keySpan   // of those to which they refer
	upsert  *upsert   // or nil
	read    []destination
}

// A group is rows of a station that are written together.
type group struct {
	*station
	rows []reflect.Value // addressable structs
}

// findStations finds the stations of all rows that there may be.
func (w *walk) findStations(b batch, table string, p *plan) {
	w.findStation(table, p, b.many && b.pointer)
	if !w.deep {
		return
	}
	for i := 0; i < len(w.stations); i++ { // which grows
		s := w.stations[i]
		for j := range s.plan.relations {
			r := &s.plan.relations[j]
			s.leads = append(s.leads, w.findStation(r.table, r.plan, false))
		}
	}
	w.sortStations()
}

// findStation returns the station of a table and a type. The first one is that of the
// call. If pointers, two rows of the call may be one struct.
func (w *walk) findStation(table string, p *plan, pointers bool) *station {
	s := &station{table: table, plan: p, columns: p.columns}
	for _, o := range w.stations {
		if o.plan == p {
			if o.table == table {
				return o
			}
			s.seen = o.seen
		}
	}
	root := len(w.stations) == 0
	if s.seen == nil && (pointers || w.deep && (p.ways > 1 || root && p.ways > 0)) {
		s.seen = map[uintptr]int{}
	}
	w.stations = append(w.stations, s)
	return s
}

// sortStations gives the stations their ranks, so that each comes after all to
// which its rows may refer. Those that refer to each other in a circle have no right
// order and come one after the other, with one number for the circle.
func (w *walk) sortStations() {
	refers := w.references()
	rank := 0
	var visit func(s *station)
	visit = func(s *station) {
		if s.rank > 0 {
			return
		}
		for _, o := range w.stations {
			if refers[s][o] && !refers[o][s] {
				visit(o)
			}
		}
		circle := rank
		for _, o := range w.stations {
			if o == s || refers[s][o] && refers[o][s] {
				rank++
				o.rank, o.circle, o.turns = rank, circle, refers[o][o]
			}
		}
	}
	for _, s := range w.stations {
		visit(s)
	}
}

// references tells for each station to which others its rows may refer, also by way
// of others.
func (w *walk) references() map[*station]map[*station]bool {
	refers := map[*station]map[*station]bool{}
	for _, s := range w.stations {
		refers[s] = map[*station]bool{}
	}
	for _, s := range w.stations {
		for j, o := range s.leads {
			if s.plan.relations[j].belongs {
				refers[s][o] = true
			} else {
				refers[o][s] = true
			}
		}
	}
	for _, by := range w.stations {
		for _, from := range w.stations {
			if refers[from][by] {
				maps.Copy(refers[from], refers[by])
			}
		}
	}
	return refers
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
	waits := make([]int, len(w.nodes)) // for so many rows, by row
	first := make([]int, len(w.nodes)) // by row, the first link to it, counted from 1
	next := make([]int, len(w.links))  // by link, the next one to the same row
	for i, l := range slices.Backward(w.links) {
		if within(l) {
			waits[l.from]++
			next[i], first[l.to] = first[l.to], i+1
		}
	}
	ready := make([]int, 0, len(w.nodes))
	for i, n := range waits {
		if n == 0 {
			ready = append(ready, i)
		}
	}
	for i := 0; i < len(ready); i++ { // which grows
		to := &w.nodes[ready[i]]
		for l := first[ready[i]]; l > 0; l = next[l-1] {
			row := w.links[l-1].from
			from, level := &w.nodes[row], to.level
			if from.station != to.station {
				level++
			}
			from.level = max(from.level, level)
			if waits[row]--; waits[row] == 0 {
				ready = append(ready, row)
			}
		}
	}
	w.sorted = ready
	if len(ready) == len(w.nodes) {
		return nil
	}
	return w.circleError(slices.DeleteFunc(slices.Clone(w.links), func(l link) bool {
		return !within(l) || waits[l.from] == 0 || waits[l.to] == 0
	}))
}

// circleError names two rows of a circle. links are those between the rows that are
// stuck. Each of these rows refers to another one. So following the links ends in a
// circle.
func (w *walk) circleError(links []link) error {
	refers := map[int]link{} // by row, the first of its links
	for _, l := range slices.Backward(links) {
		refers[l.from] = l
	}
	row := links[0].from
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
		return []group{{w.stations[0], w.structs}}
	}
	rows, order := w.structs, w.sorted
	if order == nil {
		order = make([]int, len(rows))
		for i := range order {
			order[i] = i
		}
	}
	turn := func(a, b int) int {
		a0, b0 := &w.nodes[a], &w.nodes[b]
		return cmp.Or(a0.circle-b0.circle, a0.level-b0.level, a0.rank-b0.rank)
	}
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
			groups = append(groups, group{s, rows[start:end]})
			start = end
		}
	}
	return groups
}
