package sqlxhelper

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"github.com/snowkey/snowkey/types"
)

// A batch is the argument of a call, taken apart.
type batch struct {
	typ     reflect.Type  // the struct type
	value   reflect.Value // the slice, or the one struct; invalid for no rows
	many    bool          // value is a slice
	pointer bool          // of pointers
}

// oneRow takes a *struct apart.
func oneRow(method string, row any) (batch, error) {
	v := reflect.ValueOf(row)
	if v.Kind() != reflect.Pointer || v.Type().Elem().Kind() != reflect.Struct {
		return batch{}, fmt.Errorf("%w: %s takes a pointer to a struct, got %T", ErrArgument, method, row)
	}
	if v.IsNil() {
		return batch{}, fmt.Errorf("%w: %s got a nil %T", ErrArgument, method, row)
	}
	return batch{typ: v.Type().Elem(), value: v.Elem()}, nil
}

// manyRows takes []T, []*T or a pointer to either apart.
func manyRows(method string, rows any) (batch, error) {
	v := reflect.ValueOf(rows)
	if v.Kind() == reflect.Pointer && v.Type().Elem().Kind() == reflect.Slice {
		if v.IsNil() {
			return batch{}, fmt.Errorf("%w: %s got a nil %T", ErrArgument, method, rows)
		}
		v = v.Elem()
	}
	if v.Kind() == reflect.Slice {
		t := v.Type().Elem()
		b := batch{typ: t, value: v, many: true}
		if t.Kind() == reflect.Pointer {
			b.typ, b.pointer = t.Elem(), true
		}
		if b.typ.Kind() == reflect.Struct {
			return b, nil
		}
	}
	if method == "InsertGraph" {
		hint := ""
		if v.Kind() == reflect.Struct {
			hint = ": pass &row"
		}
		return batch{}, fmt.Errorf("%w: %s takes a *struct, a []struct or a []*struct; got %T%s", ErrArgument, method, rows, hint)
	}
	return batch{}, fmt.Errorf("%w: %s takes []T, []*T or a pointer to one of them, with a struct T, got %T", ErrArgument, method, rows)
}

// A group is the rows that go into one table.
type group struct {
	table string
	plan  *plan
	rows  []reflect.Value // addressable structs
}

// A node is a row in a walk.
type node struct {
	row    reflect.Value
	plan   *plan
	table  string
	parent int       // its index in the walk, -1 for a root
	via    *relation // from the parent, nil for a root
	place  int       // in the slice that holds it, -1 if none does
	depth  int
}

// A walk is all rows of a call, every parent before its children, level by
// level. It is built and checked first, then given keys, then written.
type walk struct {
	nodes []node
	seen  map[any]int // pointer to a row: its index in nodes
	deep  bool        // children too
}

// newWalk finds all rows and refuses those that cannot be inserted. It changes
// none.
func newWalk(b batch, p *plan, table string, deep bool) (*walk, error) {
	w := &walk{deep: deep}
	if deep || b.pointer {
		// The elements of one slice are different rows. Pointers can meet, and so
		// can slices that two parents share.
		w.seen = map[any]int{}
	}
	root := node{plan: p, table: table, parent: -1, place: -1}
	if !b.many {
		root.row = b.value
		if err := w.add(root, false); err != nil {
			return nil, err
		}
	} else {
		w.nodes = make([]node, 0, b.value.Len())
		if err := w.addAll(root, b.value, b.pointer); err != nil {
			return nil, err
		}
	}
	// The list grows while it is read: this is the level order.
	for i := 0; deep && i < len(w.nodes); i++ {
		if err := w.addChildren(i); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// addAll adds the elements of a slice. n is what they have in common.
func (w *walk) addAll(n node, slice reflect.Value, pointers bool) error {
	for i := range slice.Len() {
		n.place, n.row = i, slice.Index(i)
		if err := w.add(n, pointers); err != nil {
			return err
		}
	}
	return nil
}

// addChildren adds the children of a node.
func (w *walk) addChildren(i int) error {
	parent := w.nodes[i]
	for j := range parent.plan.relations {
		r := &parent.plan.relations[j]
		n := node{plan: r.child, table: r.table, parent: i, via: r, place: -1, depth: parent.depth + 1}
		f := parent.row.FieldByIndex(r.index)
		if r.many {
			if err := w.addAll(n, f, r.pointer); err != nil {
				return err
			}
		} else if !f.IsNil() {
			n.row = f
			if err := w.add(n, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// add checks a row and adds it.
func (w *walk) add(n node, pointer bool) error {
	if pointer {
		if n.row.IsNil() {
			return w.fail(n, nil, "it is nil")
		}
		n.row = n.row.Elem()
	}
	if w.seen != nil {
		ptr := n.row.Addr().Interface()
		if first, ok := w.seen[ptr]; ok {
			return w.fail(n, nil, "it is the same struct as %s, and one row cannot be inserted twice", w.path(w.nodes[first]))
		}
		w.seen[ptr] = len(w.nodes)
	}
	for _, e := range n.plan.embedded {
		if n.row.FieldByIndex(e.index).IsNil() {
			return w.fail(n, nil, "the embedded pointer %s is nil", e.field)
		}
	}
	for _, fk := range n.plan.foreign {
		c := &n.plan.columns[fk]
		id, null := c.foreignKey(n.row)
		if n.via == nil || n.via.fk != fk {
			if id == 0 && !null {
				return w.fail(n, ErrForeignKey, "%s is a foreign key and zero; make it a *types.Snowflake or types.NullSnowflake, which can say that there is none", c.field)
			}
			continue
		}
		if id == 0 {
			continue
		}
		parent := w.nodes[n.parent]
		if key := *parent.plan.id(parent.row); key != id {
			has := "has key " + key.String()
			if key == 0 {
				has = "has no key yet"
			}
			return w.fail(n, ErrForeignKey, "%s is %d, and the parent that holds it %s", c.field, id, has)
		}
	}
	w.nodes = append(w.nodes, n)
	return nil
}

func (w *walk) fail(n node, err error, format string, args ...any) error {
	return &RowError{Path: w.path(n), Problem: fmt.Sprintf(format, args...), Err: err}
}

// path names a node: "shop.Order[3].Items[0]".
func (w *walk) path(n node) string {
	var path string
	if n.via == nil {
		path = n.plan.typ.String()
	} else {
		path = w.path(w.nodes[n.parent]) + "." + n.via.field
	}
	if n.place >= 0 {
		path += "[" + strconv.Itoa(n.place) + "]"
	}
	return path
}

// assign gives a key to every row that lacks one, and then its parent's key to
// every child. If the source fails, nothing was assigned.
func (w *walk) assign(ctx context.Context, src Source) error {
	var missing []*types.Snowflake
	for i := range w.nodes {
		if id := w.nodes[i].plan.id(w.nodes[i].row); *id == 0 {
			missing = append(missing, id)
		}
	}
	if len(missing) > 0 {
		ids, err := take(ctx, src, len(missing))
		if err != nil {
			return err
		}
		for i, id := range missing {
			*id = ids[i]
		}
	}
	for i := range w.nodes {
		n := &w.nodes[i]
		if n.via == nil {
			continue
		}
		parent := &w.nodes[n.parent]
		key, fk := *parent.plan.id(parent.row), &n.plan.columns[n.via.fk]
		if id, _ := fk.foreignKey(n.row); id != key {
			fk.setForeignKey(n.row, key)
		}
	}
	return nil
}

// A target is a table and the type of rows that go into it. Two types may share
// a table; they have different columns.
type target struct {
	table string
	plan  *plan
}

// groups sorts the rows by table, parents first.
//
// Where no table is its own ancestor by way of another one, there is one group
// per table, in an order in which every table comes after those that it refers
// to. A table that refers to itself is no exception: within the group the rows
// are in level order, and MySQL, which checks foreign keys row by row and not at
// the end of the statement, finds each parent. Where tables refer to each other
// in a circle no such order exists, and there is one group per table and level.
func (w *walk) groups() []group {
	if len(w.nodes) == 0 {
		return nil
	}
	var rank map[target]int
	circle := false
	if w.deep {
		rank, circle = order(target{w.nodes[0].table, w.nodes[0].plan})
	}
	type place struct {
		depth int
		target
	}
	at := map[place]int{} // to index in found
	type ranked struct {
		place
		group
	}
	var found []ranked
	last, lastPlace := -1, place{}
	for i := range w.nodes {
		n := &w.nodes[i]
		p := place{target: target{n.table, n.plan}}
		if circle {
			p.depth = n.depth
		}
		if last < 0 || p != lastPlace {
			j, ok := at[p]
			if !ok {
				j = len(found)
				at[p] = j
				found = append(found, ranked{p, group{table: n.table, plan: n.plan}})
			}
			last, lastPlace = j, p
		}
		found[last].rows = append(found[last].rows, n.row)
	}
	slices.SortStableFunc(found, func(a, b ranked) int {
		if a.depth != b.depth {
			return a.depth - b.depth
		}
		return rank[a.target] - rank[b.target]
	})
	groups := make([]group, len(found))
	for i := range found {
		groups[i] = found[i].group
	}
	return groups
}

// order ranks all tables below root so that each comes after those that refer
// to it as children, and tells whether there is a circle of several tables, in
// which case the ranks mean nothing.
//
// It is a depth-first search; a target that is left gets a smaller rank than
// all that were left before it, and those include everything below it.
func order(root target) (rank map[target]int, circle bool) {
	rank = map[target]int{}
	open := map[target]bool{}
	var visit func(t target)
	visit = func(t target) {
		open[t] = true
		for i := len(t.plan.relations) - 1; i >= 0; i-- {
			r := &t.plan.relations[i]
			child := target{r.table, r.child}
			if child == t {
				continue
			}
			if open[child] {
				circle = true
			} else if _, done := rank[child]; !done {
				visit(child)
			}
		}
		open[t] = false
		rank[t] = -len(rank)
	}
	visit(root)
	return rank, circle
}
