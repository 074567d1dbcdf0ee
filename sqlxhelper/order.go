package sqlxhelper

import (
	"cmp"
	"errors"
	"maps"
	"reflect"
	"slices"

	"github.com/snowkey/snowkey/types"
)

// findTables finds the tables of all rows that a walk may visit, and sorts them.
func (r *rows) findTables(b batch, root *table) {
	r.addTable(root, b.many && b.pointer)
	for i := 0; i < len(r.tables); i++ { // which grows
		t := r.tables[i]
		for j := range t.plan.relations {
			o := &t.plan.relations[j]
			t.related = append(t.related, r.addTable(&table{name: o.table, plan: o.plan, columns: o.plan.columns}, false))
		}
	}
	r.sortTables()
}

// addTable adds a table, unless it is there already, and returns it. With pointers, two rows of
// the call may be one struct.
func (r *rows) addTable(t *table, pointers bool) *table {
	for _, o := range r.tables {
		if o.plan == t.plan {
			if o.name == t.name {
				return o
			}
			t.seen = o.seen
		}
	}
	root := len(r.tables) == 0
	if t.seen == nil && (pointers || t.plan.ways > 1 || root && t.plan.ways > 0) {
		t.seen = map[uintptr]int{}
	}
	r.tables = append(r.tables, t)
	return t
}

// sortTables ranks the tables so that each comes after all to which its rows may refer. Tables
// that refer to each other in a circle follow each other and share the number of the circle.
func (r *rows) sortTables() {
	refers := r.references()
	rank := 0
	var visit func(t *table)
	visit = func(t *table) {
		if t.rank > 0 {
			return
		}
		for _, o := range r.tables {
			if refers[t][o] && !refers[o][t] {
				visit(o)
			}
		}
		circle := rank
		for _, o := range r.tables {
			if o == t || refers[t][o] && refers[o][t] {
				rank++
				o.rank, o.circle, o.turns = rank, circle, refers[o][o]
			}
		}
	}
	for _, t := range r.tables {
		visit(t)
	}
}

// references returns, for each table, the tables to which its rows may refer, directly or
// through others.
func (r *rows) references() map[*table]map[*table]bool {
	refers := map[*table]map[*table]bool{}
	for _, t := range r.tables {
		refers[t] = map[*table]bool{}
	}
	for _, t := range r.tables {
		for j, o := range t.related {
			if t.plan.relations[j].belongs {
				refers[t][o] = true
			} else {
				refers[o][t] = true
			}
		}
	}
	for _, by := range r.tables {
		for _, from := range r.tables {
			if refers[from][by] {
				maps.Copy(refers[from], refers[by])
			}
		}
	}
	return refers
}

// setLevels sorts the rows of tables in a circle, so that each comes after those to which it
// refers, and sets their levels: the greatest number of times that a path of such references
// changes the table. It refuses rows that refer to each other in a circle.
//
// A row is ready when all rows are to which it refers.
func (r *rows) setLevels() error {
	if !slices.ContainsFunc(r.tables, func(t *table) bool { return t.turns }) {
		return nil
	}
	within := func(l link) bool { return r.nodes[l.from].circle == r.nodes[l.to].circle }
	waits := make([]int, len(r.nodes)) // by row, the number of rows that it waits for
	first := make([]int, len(r.nodes)) // by row, the first link to it, counted from 1
	next := make([]int, len(r.links))  // by link, the next one to the same row
	for i, l := range slices.Backward(r.links) {
		if within(l) {
			waits[l.from]++
			next[i], first[l.to] = first[l.to], i+1
		}
	}
	ready := make([]int, 0, len(r.nodes))
	for i, n := range waits {
		if n == 0 {
			ready = append(ready, i)
		}
	}
	for i := 0; i < len(ready); i++ { // which grows
		to := &r.nodes[ready[i]]
		for l := first[ready[i]]; l > 0; l = next[l-1] {
			row := r.links[l-1].from
			from, level := &r.nodes[row], to.level
			if from.table != to.table {
				level++
			}
			from.level = max(from.level, level)
			if waits[row]--; waits[row] == 0 {
				ready = append(ready, row)
			}
		}
	}
	r.sorted = ready
	if len(ready) == len(r.nodes) {
		return nil
	}
	return r.circleError(slices.DeleteFunc(slices.Clone(r.links), func(l link) bool {
		return !within(l) || waits[l.from] == 0 || waits[l.to] == 0
	}))
}

// circleError names two rows of a circle. The links are those between the rows that are never
// ready. Each of these rows refers to another one, so following the links ends in a circle.
func (r *rows) circleError(links []link) error {
	refers := map[int]link{} // by row, the first of its links
	for _, l := range slices.Backward(links) {
		refers[l.from] = l
	}
	row := links[0].from
	for seen := map[int]bool{}; !seen[row]; row = refers[row].to {
		seen[row] = true
	}
	l := refers[row]
	if l.from == l.to {
		return refuse(r.path(l.from), nil, "%s refers to the row itself", l.via.fk.field)
	}
	how := "that one back to it"
	if refers[l.to].to != l.from {
		how = "that one, by way of others, back to it"
	}
	return refuse(r.path(l.from), nil, "%s refers to %s, and %s, so that none can be inserted before the others", l.via.fk.field, r.path(l.to), how)
}

// inTurn divides the rows of a walk into one group per table, or, where tables refer to each
// other in a circle, one per level and table. A table that refers only to itself is one group
// because its rows are sorted; MySQL checks foreign keys row by row.
func (r *rows) inTurn() []group {
	rows, order := r.structs, r.sorted
	if order == nil {
		order = make([]int, len(rows))
		for i := range order {
			order[i] = i
		}
	}
	turn := func(a, b int) int {
		a0, b0 := &r.nodes[a], &r.nodes[b]
		return cmp.Or(a0.circle-b0.circle, a0.level-b0.level, a0.rank-b0.rank)
	}
	// A walk meets most graphs in order: all parents, then all children.
	if r.sorted != nil || !slices.IsSortedFunc(order, turn) {
		slices.SortStableFunc(order, turn)
		rows = make([]reflect.Value, len(order))
		for i, row := range order {
			rows[i] = r.structs[row]
		}
	}
	groups := make([]group, 0, len(r.tables)) // unless they refer to each other in a circle
	for start, end := 0, 1; end <= len(rows); end++ {
		t := r.nodes[order[start]].table
		if end == len(rows) || r.nodes[order[end]].table != t {
			groups = append(groups, group{t, rows[start:end], order[start:end]})
			start = end
		}
	}
	return groups
}

// order moves each row of the load behind the rows of the load to which it refers by a key that
// both had before the call. InsertMany follows no relations, but keys tell as much. In a circle
// one row has to be ahead of the one to which it refers.
//
// PostgreSQL and SQLite check foreign keys when a statement ends, and MySQL row by row. In the
// order of the caller, a row ahead of its parent would be stored or refused depending on the
// database and on where a statement ends. Unrelated rows keep their order.
func (l *load) order() {
	if refers := l.refersAhead(); refers != nil {
		l.permute(inOrder(len(l.rows), refers))
	}
}

// refersAhead returns a function that calls yield for each row to which row i refers, or nil if
// all of these come before the row that refers.
func (l *load) refersAhead() func(i int, yield func(to int)) {
	at := make(map[types.Snowflake]int, len(l.rows))
	for i, row := range l.rows {
		at[*l.plan.id(row)] = i
	}
	refers := func(i int, yield func(to int)) {
		for _, c := range l.keys {
			if l.isOwn(c) {
				continue
			}
			id, null := c.key.Key(c.in(l.rows[i]))
			if to, known := at[id]; known && !null && to != i {
				yield(to)
			}
		}
	}
	for i := range l.rows {
		ahead := false
		refers(i, func(to int) { ahead = ahead || to > i })
		if ahead {
			return refers
		}
	}
	return nil
}

// inOrder returns the numbers below n, each behind those to which it refers.
func inOrder(n int, refers func(i int, yield func(to int))) []int {
	order := make([]int, 0, n)
	entered, done := make([]bool, n), make([]bool, n)
	var stack []int // no recursion: a chain may have as many links as there are rows
	for i := range n {
		stack = append(stack, i)
		for len(stack) > 0 {
			top := stack[len(stack)-1]
			if entered[top] { // and all to which it refers are done
				stack = stack[:len(stack)-1]
				if !done[top] {
					done[top] = true
					order = append(order, top)
				}
				continue
			}
			entered[top] = true
			refers(top, func(to int) {
				if !entered[to] {
					stack = append(stack, to)
				}
			})
		}
	}
	return order
}

// permute puts the rows of the load into another order.
func (l *load) permute(order []int) {
	l.rows = permuted(l.rows, order)
	l.fresh = permuted(l.fresh, order)
	if l.at == nil {
		l.at = order
	} else {
		l.at = permuted(l.at, order)
	}
	if l.assigned >= 0 {
		l.assigned = slices.Index(order, l.assigned)
	}
}

// permuted returns a copy of list in another order; nil stays nil.
func permuted[T any](list []T, order []int) []T {
	if list == nil {
		return nil
	}
	changed := make([]T, len(order))
	for i, was := range order {
		changed[i] = list[was]
	}
	return changed
}

// asGiven makes the error of a call without a walk count the rows as they were given.
func (w *writer) asGiven(err error) error {
	e := (*InsertError)(nil)
	if w.all.nodes != nil || w.loads[0].at == nil || !errors.As(err, &e) {
		return err
	}
	at := w.loads[0].at
	sent := at[e.First : e.Last+1]
	e.First, e.Last = slices.Min(sent), slices.Max(sent)
	if e.Row >= 0 {
		e.Row = at[e.Row]
	}
	return err
}
