package sqlxhelper

import (
	"errors"
	"math"
	"reflect"
	"slices"

	"github.com/snowkey/snowkey/types"
)

// A keySpan has the least and the greatest of some keys. The zero value has none.
type keySpan struct{ first, last types.Snowflake }

// note adds what checkKeys has seen in a column of a row: a key of the row, or one that it
// refers to. A pointer to zero may be to the key of another row, which the call assigns.
func (s *station) note(c *column, ref any, id types.Snowflake, null bool) {
	span := &s.own
	if !s.isOwn(c) {
		span = &s.foreign
		if _, pointer := ref.(**types.Snowflake); pointer && id == 0 && !null {
			s.own = keySpan{1, math.MaxInt64}
			id = 1
		}
	}
	if null || id == 0 {
		return
	}
	if span.last == 0 {
		span.first = id
	}
	span.first, span.last = min(span.first, id), max(span.last, id)
}

// isOwn reports whether a column has the keys of the rows themselves.
func (s *station) isOwn(c *column) bool { return c.name == s.plan.columns[s.plan.key].name }

// orderRows moves each row behind those of its load to which it refers: rows whose keys
// stand in one of its columns. InsertMany knows no relations, but a key is nobody else's.
// In a circle one row has to be ahead of the one that it refers to.
//
// PostgreSQL and SQLite check foreign keys when a statement ends, and MySQL row by row. In
// the order of the caller, a row ahead of its parent would be stored or refused by where
// a statement ends, and by the database. The order of unrelated rows stays.
func (w *writer) orderRows() {
	for i := range w.loads {
		l := &w.loads[i]
		// Nearly all foreign keys are of rows that are stored, and so are out of the span of
		// the keys here, or there are no keys before the call assigns them.
		if l.own.last == 0 || l.foreign.last < l.own.first || l.foreign.first > l.own.last {
			continue
		}
		if l.held != nil || len(l.rows) < 2 {
			continue // a sequence goes on after the rows that are here
		}
		if refers := l.refersAhead(); refers != nil {
			l.permute(inOrder(len(l.rows), refers))
		}
	}
}

// refersAhead returns a function that calls yield for each row to which row i refers, or
// nil if all of these are before the row that refers.
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
			id, null := foreignKey(c.ref(l.rows[i]))
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

// permute puts the rows into another order, and remembers which they were.
func (l *load) permute(order []int) {
	rows := make([]reflect.Value, len(order)) // those of the walk stay as they are
	for i, was := range order {
		rows[i] = l.rows[was]
	}
	l.rows, l.order = rows, order
	if l.fresh != nil {
		fresh := make([]bool, len(order))
		for i, was := range order {
			fresh[i] = l.fresh[was]
		}
		l.fresh = fresh
	}
	if l.assigned >= 0 {
		l.assigned = slices.Index(order, l.assigned)
	}
}

// asGiven makes an error of rows without relations count them as they were given.
func (w *writer) asGiven(err error) error {
	e := (*InsertError)(nil)
	if w.walk.deep || w.loads[0].order == nil || !errors.As(err, &e) {
		return err
	}
	order := w.loads[0].order
	sent := order[e.First : e.Last+1]
	e.First, e.Last = slices.Min(sent), slices.Max(sent)
	if e.Row >= 0 {
		e.Row = order[e.Row]
	}
	return err
}
