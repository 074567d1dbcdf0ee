package sqlxhelper

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unsafe"

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

// A node is a row in a walk.
type node struct {
	*station
	row   reflect.Value // an addressable struct
	from  int           // the node through which it was found, -1 for a root
	via   *relation     // of from, nil for a root
	place int           // in the slice in which it was found, -1 if in none
	held  int           // the link to its parent; isRoot or isLoose if it has none
	level int           // see setLevels
}

// What a node is held by, if not by a link.
const (
	isRoot  = -1 // the argument of the call
	isLoose = -2 // nothing: only belongs_to leads to it
)

// A link is a row that refers to another one: the key of the node to becomes the
// foreign key of the node from.
type link struct {
	from, to int
	via      *relation // through which it was found
}

// A walk is all rows of a call. Each is in it once: it is held once, as a root
// or by the field that makes it a child, and besides belongs_to may lead to it
// from anywhere. A walk is built and checked first, then given keys, then
// written.
type walk struct {
	stations []*station   // that of the roots first
	circles  [][]*station // see sortStations
	nodes    []node
	links    []link
	sorted   []int // the nodes, see setLevels; nil if they are in order
	deep     bool  // relations too
}

// newWalk finds all rows and refuses those that cannot be inserted. It changes
// none.
func newWalk(b batch, p *plan, table string, deep bool) (*walk, error) {
	w := &walk{deep: deep}
	w.findStations(b, target{table, p})
	root := node{station: w.stations[0], from: -1, place: -1, held: isRoot}
	if !b.many {
		root.row = b.value
		if err := w.add(root); err != nil {
			return nil, err
		}
	} else {
		w.nodes = make([]node, 0, b.value.Len())
		if err := w.addAll(root, b.value, b.pointer); err != nil {
			return nil, err
		}
	}
	if deep {
		// Level by level and not by recursion: data may be a list of a million
		// rows, each of which holds the next.
		for done := 0; done < len(w.nodes); {
			end := len(w.nodes)
			w.reserve(w.nodes[done:end])
			for ; done < end; done++ {
				if err := w.expand(done); err != nil {
					return nil, err
				}
			}
		}
		if err := w.checkSlices(); err != nil {
			return nil, err
		}
	}
	if err := w.checkForeignKeys(); err != nil {
		return nil, err
	}
	if err := w.checkShared(); err != nil {
		return nil, err
	}
	return w, w.setLevels()
}

// reserve makes room for the children of the nodes of a level. What they belong
// to is not counted, because that is often the same row.
func (w *walk) reserve(level []node) {
	n := 0
	for i := range level {
		relations := level[i].plan.relations
		for j := range relations {
			if r := &relations[j]; r.many {
				n += level[i].row.FieldByIndex(r.index).Len()
			}
		}
	}
	w.nodes = slices.Grow(w.nodes, n)
	w.links = slices.Grow(w.links, n)
}

// expand adds the rows to which the relations of a node lead.
func (w *walk) expand(i int) error {
	t, row := w.nodes[i].station, w.nodes[i].row
	for j := range t.plan.relations {
		r := &t.plan.relations[j]
		n := node{station: t.leads[j], from: i, via: r, place: -1}
		if r.belongs {
			n.held = isLoose
		}
		f := row.FieldByIndex(r.index)
		if r.many {
			if err := w.addAll(n, f, r.pointer); err != nil {
				return err
			}
		} else if !f.IsNil() {
			n.row = f.Elem()
			if err := w.add(n); err != nil {
				return err
			}
		}
	}
	return nil
}

// addAll adds the elements of a slice. n is what they have in common.
func (w *walk) addAll(n node, slice reflect.Value, pointers bool) error {
	count := slice.Len()
	if count > 0 && n.seen == nil {
		n.slices = append(n.slices, span{first: len(w.nodes), count: count})
	}
	for i := range count {
		n.place, n.row = i, slice.Index(i)
		if pointers {
			if n.row.IsNil() {
				return w.fail(n, nil, "it is nil")
			}
			n.row = n.row.Elem()
		}
		if err := w.add(n); err != nil {
			return err
		}
	}
	return nil
}

// add adds a row, unless it is there already, and links it to n.from.
func (w *walk) add(n node) error {
	at := len(w.nodes)
	if n.seen != nil {
		ptr := unsafe.Pointer(n.row.UnsafeAddr())
		if first, ok := n.seen[ptr]; ok {
			at = first
		} else {
			n.seen[ptr] = at
		}
	}
	if n.via != nil && !n.via.belongs {
		n.held = len(w.links)
	}
	if at < len(w.nodes) {
		if err := w.meet(&w.nodes[at], n); err != nil {
			return err
		}
	} else {
		for _, e := range n.plan.embedded {
			if n.row.FieldByIndex(e.index).IsNil() {
				return w.fail(n, nil, "the embedded pointer %s is nil", e.field)
			}
		}
		w.nodes = append(w.nodes, n)
	}
	switch {
	case n.via == nil:
	case n.via.belongs:
		w.links = append(w.links, link{from: n.from, to: at, via: n.via})
	default:
		w.links = append(w.links, link{from: at, to: n.from, via: n.via})
	}
	return nil
}

// meet lets again be one more way to a row that is known, or refuses it.
func (w *walk) meet(known *node, again node) error {
	if known.held != isLoose && again.held != isLoose {
		return w.fail(again, nil, "it is the same struct as %s, and one row cannot be inserted twice", w.path(*known))
	}
	if known.station != again.station {
		return w.fail(again, nil, "it is the same struct as %s, which goes into table %s and not into %s", w.path(*known), known.table, again.table)
	}
	if known.held == isLoose {
		known.held = again.held
	}
	return nil
}

// A span is the nodes of one slice of structs.
type span struct{ first, count int }

// checkSlices refuses slices that share elements, of the types to which nothing
// but the slices of one field leads. All other types have their rows in a map.
func (w *walk) checkSlices() error {
	for _, t := range w.stations {
		start := func(s span) uintptr { return w.nodes[s.first].row.UnsafeAddr() }
		slices.SortStableFunc(t.slices, func(a, b span) int { return cmp.Compare(start(a), start(b)) })
		size := t.plan.typ.Size()
		for i := range max(len(t.slices), 1) - 1 {
			a, b := t.slices[i], t.slices[i+1]
			if apart := (start(b) - start(a)) / size; apart < uintptr(a.count) {
				first, again := w.nodes[a.first+int(apart)], w.nodes[b.first]
				if a.first > b.first {
					first, again = again, first
				}
				return w.meet(&first, again)
			}
		}
	}
	return nil
}

// checkForeignKeys refuses foreign keys that contradict what they refer to, and
// those that would be written as zero.
func (w *walk) checkForeignKeys() error {
	for i := range w.nodes {
		n := &w.nodes[i]
		for _, j := range n.plan.foreign {
			fk := &n.plan.columns[j]
			if id, null := fk.foreignKey(n.row); id == 0 && !null {
				if problem := w.unset(n, fk); problem != "" {
					return w.fail(*n, ErrForeignKey, "%s is a foreign key and zero; %s", fk.field, problem)
				}
			}
		}
	}
	for _, l := range w.links {
		from, to := &w.nodes[l.from], &w.nodes[l.to]
		name := "the parent that holds it"
		if l.via.belongs {
			name = l.via.field
			if from.held >= 0 {
				if parent := w.links[from.held]; parent.via.fk == l.via.fk && parent.to != l.to {
					return w.fail(*from, ErrForeignKey, "%s is for the key of the parent that holds it, and %s is another row", l.via.fk.field, name)
				}
			}
		}
		id, _ := l.via.fk.foreignKey(from.row)
		if id == 0 {
			continue
		}
		if key := *to.plan.id(to.row); key != id {
			has := "has key " + key.String()
			if key == 0 {
				has = "has no key yet"
			}
			return w.fail(*from, ErrForeignKey, "%s is %d, and %s %s", l.via.fk.field, id, name, has)
		}
	}
	return nil
}

// checkShared refuses rows that share a key, or a foreign key that cannot be right
// for both, because an embedded pointer is the same in them. The last one would
// win, and the first ones be stored with what is the other's.
func (w *walk) checkShared() error {
	type slot struct {
		row int
		fk  *column
	}
	type key struct {
		*station
		at unsafe.Pointer
	}
	set := map[slot]bool{}
	links := map[unsafe.Pointer]link{} // by foreign key, the first one
	shared := func(n *node, fk *column, first link) error {
		return w.fail(*n, ErrForeignKey, "it shares %s with %s, which refers to another row", fk.field, w.path(w.nodes[first.from]))
	}
	for _, l := range w.links {
		from, fk := &w.nodes[l.from], l.via.fk
		if !fk.at.indirect() {
			continue
		}
		set[slot{l.from, fk}] = true
		if first, ok := links[fk.at.in(from.row)]; !ok {
			links[fk.at.in(from.row)] = l
		} else if first.to != l.to {
			return shared(from, fk, first)
		}
	}
	keys := map[key]int{} // the first row with the key
	for i := range w.nodes {
		n := &w.nodes[i]
		if c := &n.plan.columns[n.plan.key]; c.at.indirect() {
			k := key{n.station, c.at.in(n.row)}
			if first, ok := keys[k]; ok {
				return w.fail(*n, nil, "it shares %s with %s, and one key cannot be that of two rows", c.field, w.path(w.nodes[first]))
			}
			keys[k] = i
		}
		for _, j := range n.plan.foreign {
			fk := &n.plan.columns[j]
			if !fk.at.indirect() || set[slot{i, fk}] {
				continue
			}
			if first, ok := links[fk.at.in(n.row)]; ok {
				return shared(n, fk, first)
			}
		}
	}
	return nil
}

// unset returns what to do about a foreign key of zero, or "" if it will be set.
func (w *walk) unset(n *node, fk *column) string {
	if n.held >= 0 && w.links[n.held].via.fk == fk {
		return ""
	}
	for i := range n.plan.relations {
		r := &n.plan.relations[i]
		if !r.belongs || r.fk != fk || n.row.FieldByIndex(r.index).IsNil() {
			continue
		}
		if w.deep {
			return ""
		}
		return "only InsertGraph takes it from " + r.field
	}
	return "make it a *types.Snowflake or types.NullSnowflake, which can say that there is none"
}

func (w *walk) fail(n node, err error, format string, args ...any) error {
	return &RowError{Path: w.path(n), Problem: fmt.Sprintf(format, args...), Err: err}
}

// pathSteps is how many fields of a path are named at either end of it.
const pathSteps = 16

// path names a node: "shop.Order[3].Items[0]". A path of very many fields is
// shortened in the middle.
func (w *walk) path(n node) string {
	depth := 0
	for at := n; at.via != nil; at = w.nodes[at.from] {
		depth++
	}
	var steps []string // the last one first
	for i := depth; ; i-- {
		switch {
		case i > depth-pathSteps || i <= pathSteps:
			step := n.plan.typ.String()
			if n.via != nil {
				step = "." + n.via.field
			}
			if n.place >= 0 {
				step += "[" + strconv.Itoa(n.place) + "]"
			}
			steps = append(steps, step)
		case i == pathSteps+1:
			steps = append(steps, fmt.Sprintf(".(%d more)", depth-2*pathSteps))
		}
		if n.via == nil {
			break
		}
		n = w.nodes[n.from]
	}
	slices.Reverse(steps)
	return strings.Join(steps, "")
}

// assign gives a key to every row that lacks one, and then the foreign keys to
// all that refer to others. If the source fails, nothing was assigned.
func (w *walk) assign(ctx context.Context, src Source) error {
	missing := make([]*types.Snowflake, 0, len(w.nodes))
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
	w.relink()
	return nil
}

// relink sets all foreign keys to the keys that the rows have now. An upsert
// changes keys to those of the rows that it found.
func (w *walk) relink() {
	for _, l := range w.links {
		from, to := &w.nodes[l.from], &w.nodes[l.to]
		key := *to.plan.id(to.row)
		if id, _ := l.via.fk.foreignKey(from.row); id != key {
			l.via.fk.setForeignKey(from.row, key)
		}
	}
}
