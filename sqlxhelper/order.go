package sqlxhelper

import (
	"cmp"
	"errors"
	"reflect"
	"slices"

	"github.com/snowkey/snowkey/internal/base/roworder"
	"github.com/snowkey/snowkey/types"
)

// setLevels sorts the rows of tables in a circle, so that each comes after those to which it
// refers, and sets their levels: the greatest number of times that a path of such references
// changes the table. It refuses rows that refer to each other in a circle.
func (r *rows) setLevels() error {
	if !slices.ContainsFunc(r.tables, func(t *table) bool { return t.turns }) {
		return nil
	}
	first := make([]int, len(r.nodes)) // by row, its first link, counted from 1
	next := make([]int, len(r.links))  // by link, the next one of the same row
	for i, l := range slices.Backward(r.links) {
		if r.nodes[l.from].circle == r.nodes[l.to].circle {
			next[i], first[l.from] = first[l.from], i+1
		}
	}
	r.sorted = roworder.ParentsFirst(len(r.nodes), func(row int, yield func(to int)) {
		for l := first[row]; l > 0; l = next[l-1] {
			yield(r.links[l-1].to)
		}
	})
	done := make([]bool, len(r.nodes))
	for _, row := range r.sorted {
		from := &r.nodes[row]
		for l := first[row]; l > 0; l = next[l-1] {
			link := r.links[l-1]
			if !done[link.to] {
				return r.circleError(link)
			}
			to := &r.nodes[link.to]
			level := to.level
			if from.table != to.table {
				level++
			}
			from.level = max(from.level, level)
		}
		done[row] = true
	}
	return nil
}

// circleError names the rows of l, the link that closes a circle.
func (r *rows) circleError(l link) error {
	if l.from == l.to {
		return refuse(r.path(l.from), nil, "%s refers to the row itself", l.via.fk.field)
	}
	how := "that one, by way of others, back to it"
	if slices.ContainsFunc(r.links, func(o link) bool { return o.from == l.to && o.to == l.from }) {
		how = "that one back to it"
	}
	return refuse(r.path(l.from), nil, "%s refers to %s, and %s, so that none can be inserted before the others", l.via.fk.field, r.path(l.to), how)
}

// inTurn divides the rows of a walk into one load per table, or, where tables refer to each
// other in a circle, one per level and table. A table that refers only to itself is one load
// because its rows are sorted; MySQL checks foreign keys row by row.
func (r *rows) inTurn() []load {
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
	loads := make([]load, 0, len(r.tables)) // unless they refer to each other in a circle
	for start, end := 0, 1; end <= len(rows); end++ {
		t := r.nodes[order[start]].table
		if end == len(rows) || r.nodes[order[end]].table != t {
			loads = append(loads, load{table: t, rows: rows[start:end], callIndex: order[start:end]})
			start = end
		}
	}
	return loads
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
		l.permute(roworder.ParentsFirst(len(l.rows), refers))
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
		for _, c := range l.keys[1:] {
			id, null := c.key.Key(c.in(l.rows[i]))
			if to, known := at[id]; known && !null {
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

// permute puts the rows of the load into another order.
func (l *load) permute(order []int) {
	l.rows = permuted(l.rows, order)
	l.fresh = permuted(l.fresh, order)
	if l.callIndex == nil {
		l.callIndex = order
	} else {
		l.callIndex = permuted(l.callIndex, order)
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
	if w.nodes != nil || w.loads[0].callIndex == nil || !errors.As(err, &e) {
		return err
	}
	given := w.loads[0].callIndex
	sent := given[e.First : e.Last+1]
	e.First, e.Last = slices.Min(sent), slices.Max(sent)
	if e.Row >= 0 {
		e.Row = given[e.Row]
	}
	return err
}
