package sqlxhelper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/snowkey/snowkey/types"
)

// A batch is the argument of a call, taken apart.
type batch struct {
	typ     reflect.Type  // the struct type
	value   reflect.Value // the slice, or the one struct; invalid for no rows
	many    bool          // value is a slice
	pointer bool          // of pointers
	held    []held        // what was kept of rows of a sequence, row by row
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

// A node is the place of a row in a walk.
type node struct {
	*station
	from  int       // the row through which it was found, -1 for a root
	via   *relation // of from, nil for a root
	place int       // in the slice in which it was found, -1 if in none
	held  int       // the link to its parent; isRoot or isLoose if it has none
	level int       // see setLevels
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
	fk       any       // a pointer to the foreign key
}

// A walk is all rows of a call. Each is in it once. It is held once, as a root or
// by the field that makes it a child. belongs_to may also lead to it from anywhere.
// A walk is built and checked first, then given keys, then written.
type walk struct {
	stations []*station         // that of the roots first
	structs  []reflect.Value    // the rows, addressable
	ids      []*types.Snowflake // their primary keys
	nodes    []node             // by row; nil if flat
	links    []link
	sorted   []int // the rows, see setLevels; nil if they are in order
	deep     bool  // relations too
	// flat: the rows are the elements of one slice, which says their places. A
	// node for each would be a fifth of what InsertMany costs beside the driver,
	// most of it in the garbage collector.
	flat bool
	held []held // see batch
}

// node returns the place of a row.
func (w *walk) node(row int) node {
	if w.flat {
		return node{station: w.stations[0], from: -1, place: row, held: isRoot}
	}
	return w.nodes[row]
}

// station returns the station of a row.
func (w *walk) station(row int) *station {
	if w.flat {
		return w.stations[0]
	}
	return w.nodes[row].station
}

// newWalk finds all rows and refuses those that cannot be inserted. It changes
// none.
func newWalk(b batch, p *plan, table string, deep bool) (*walk, error) {
	w := &walk{deep: deep, flat: b.many && !deep, held: b.held}
	w.findStations(b, table, p)
	root := node{station: w.stations[0], from: -1, place: -1, held: isRoot}
	if !b.many {
		if err := w.add(root, b.value); err != nil {
			return nil, err
		}
	} else {
		w.reserve(b.value.Len())
		if err := w.addAll(root, b.value, b.pointer); err != nil {
			return nil, err
		}
	}
	if deep {
		// Level by level and not by recursion: data may be a list of a million
		// rows, each of which holds the next.
		for done := 0; done < len(w.structs); {
			end := len(w.structs)
			n := w.children(done, end)
			w.reserve(n)
			w.links = slices.Grow(w.links, n)
			for ; done < end; done++ {
				if err := w.expand(done); err != nil {
					return nil, err
				}
			}
		}
	}
	for _, check := range []func() error{w.checkSlices, w.checkForeignKeys, w.checkShared, w.setLevels} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// reserve makes room for n rows.
func (w *walk) reserve(n int) {
	w.structs, w.ids = slices.Grow(w.structs, n), slices.Grow(w.ids, n)
	if !w.flat {
		w.nodes = slices.Grow(w.nodes, n)
	}
}

// children counts the children of the rows from first to end. What they belong to
// is not counted, because that is often the same row.
func (w *walk) children(first, end int) int {
	n := 0
	for i := first; i < end; i++ {
		relations := w.nodes[i].plan.relations
		for j := range relations {
			if r := &relations[j]; r.many {
				n += w.structs[i].FieldByIndex(r.index).Len()
			}
		}
	}
	return n
}

// expand adds the rows to which the relations of a row lead.
func (w *walk) expand(i int) error {
	t, row := w.nodes[i].station, w.structs[i]
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
			if err := w.add(n, f.Elem()); err != nil {
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
		n.slices = append(n.slices, span{first: len(w.structs), count: count})
	}
	for i := range count {
		row := slice.Index(i)
		n.place = i
		if pointers {
			if row.IsNil() {
				return w.fail(n, nil, "it is nil")
			}
			row = row.Elem()
		}
		if err := w.add(n, row); err != nil {
			return err
		}
	}
	return nil
}

// add adds a row, unless it is there already, and links it to n.from.
func (w *walk) add(n node, row reflect.Value) error {
	at := len(w.structs)
	if n.seen != nil {
		ptr := row.UnsafeAddr()
		if first, ok := n.seen[ptr]; ok {
			at = first
		} else {
			n.seen[ptr] = at
		}
	}
	if n.via != nil && !n.via.belongs {
		n.held = len(w.links)
	}
	if at < len(w.structs) {
		if err := w.meet(at, n); err != nil {
			return err
		}
	} else {
		for _, e := range n.plan.embedded {
			if row.FieldByIndex(e.index).IsNil() {
				return w.fail(n, nil, "the embedded pointer %s is nil", e.field)
			}
		}
		w.structs, w.ids = append(w.structs, row), append(w.ids, n.plan.id(row))
		if !w.flat {
			w.nodes = append(w.nodes, n)
		}
	}
	if n.via != nil {
		l := link{from: at, to: n.from, via: n.via}
		if n.via.belongs {
			l.from, l.to = n.from, at
		}
		l.fk = n.via.fk.ref(w.structs[l.from])
		w.links = append(w.links, l)
	}
	return nil
}

// meet accepts again as one more way to a row that was found, or refuses it.
func (w *walk) meet(row int, again node) error {
	known := w.node(row)
	if known.held != isLoose && again.held != isLoose {
		return w.fail(again, nil, "it is the same struct as %s, and one row cannot be inserted twice", w.path(known))
	}
	if known.station != again.station {
		return w.fail(again, nil, "it is the same struct as %s, which goes into table %s and not into %s", w.path(known), known.table, again.table)
	}
	if known.held == isLoose {
		w.nodes[row].held = again.held
	}
	return nil
}

// A span is the rows of one slice of structs.
type span struct{ first, count int }

// checkSlices refuses slices that share elements, of the types to which nothing
// but the slices of one field leads. All other types have their rows in a map.
func (w *walk) checkSlices() error {
	for _, t := range w.stations {
		start := func(s span) uintptr { return w.structs[s.first].UnsafeAddr() }
		slices.SortStableFunc(t.slices, func(a, b span) int { return cmp.Compare(start(a), start(b)) })
		size := t.plan.typ.Size()
		for i := range max(len(t.slices), 1) - 1 {
			a, b := t.slices[i], t.slices[i+1]
			if apart := (start(b) - start(a)) / size; apart < uintptr(a.count) {
				first, again := a.first+int(apart), b.first
				if a.first > b.first {
					first, again = again, first
				}
				return w.meet(first, w.nodes[again])
			}
		}
	}
	return nil
}

// checkForeignKeys refuses foreign keys that contradict what they refer to, and
// those that would be written as zero.
func (w *walk) checkForeignKeys() error {
	for i, row := range w.structs {
		p := w.station(i).plan
		for _, j := range p.foreign {
			fk := &p.columns[j]
			if id, null := foreignKey(fk.ref(row)); id == 0 && !null {
				if problem := w.unset(i, fk); problem != "" {
					return w.fail(w.node(i), ErrForeignKey, "%s is a foreign key and zero; %s", fk.field, problem)
				}
			}
		}
	}
	for _, l := range w.links {
		from := &w.nodes[l.from]
		name := "the parent that holds it"
		if l.via.belongs {
			name = l.via.field
			if from.held >= 0 {
				if parent := w.links[from.held]; parent.via.fk == l.via.fk && parent.to != l.to {
					return w.fail(*from, ErrForeignKey, "%s is for the key of the parent that holds it, and %s is another row", l.via.fk.field, name)
				}
			}
		}
		id, _ := foreignKey(l.fk)
		if id <= 0 {
			continue // checkKeys refuses it below zero
		}
		if key := *w.ids[l.to]; key != id {
			has := "has key " + key.String()
			if key == 0 {
				has = "has no key yet"
			}
			return w.fail(*from, ErrForeignKey, "%s is %d, and %s %s", l.via.fk.field, id, name, has)
		}
	}
	return nil
}

// checkKeys refuses keys that types.Snowflake would not scan: one such row would fail every
// SELECT that reads it. It looks at what is written, and so comes after the options.
func (w *walk) checkKeys() error {
	for _, s := range w.stations {
		s.keys, s.own, s.foreign = s.keys[:0], keySpan{}, keySpan{}
		for i := range s.columns {
			if c := &s.columns[i]; c.holdsKey() {
				s.keys = append(s.keys, c)
			}
		}
	}
	for i, row := range w.structs {
		s := w.station(i)
		for _, c := range s.keys {
			ref := c.ref(row)
			id, null := foreignKey(ref)
			if id >= 0 {
				s.note(c, ref, id, null)
				continue
			}
			err := types.ErrRange
			if s.plan.isForeign(c.name) {
				err = errors.Join(ErrForeignKey, err)
			}
			return w.fail(w.node(i), err, "%s is %d, want 0..%d", c.field, id, int64(math.MaxInt64))
		}
	}
	return nil
}

// checkShared refuses rows that share a key by the same embedded pointer. It also
// refuses rows that so share a foreign key that cannot be right for both. The last
// one would win. The first ones would be stored with the key of another row.
func (w *walk) checkShared() error {
	if !slices.ContainsFunc(w.stations, func(s *station) bool { return len(s.plan.embedded) > 0 }) {
		return nil
	}
	type slot struct {
		row int
		fk  *column
	}
	type key struct {
		*station
		at uintptr
	}
	set := map[slot]bool{}
	links := map[uintptr]link{} // by foreign key, the first one
	shared := func(row int, fk *column, first link) error {
		return w.fail(w.node(row), ErrForeignKey, "it shares %s with %s, which refers to another row", fk.field, w.path(w.node(first.from)))
	}
	for _, l := range w.links {
		row, fk := w.structs[l.from], l.via.fk
		if !fk.shared {
			continue
		}
		set[slot{l.from, fk}] = true
		if first, ok := links[fk.in(row).UnsafeAddr()]; !ok {
			links[fk.in(row).UnsafeAddr()] = l
		} else if first.to != l.to {
			return shared(l.from, fk, first)
		}
	}
	keys := map[key]int{} // the first row with the key
	for i, row := range w.structs {
		p := w.station(i).plan
		if c := &p.columns[p.key]; c.shared {
			k := key{w.node(i).station, c.in(row).UnsafeAddr()}
			if first, ok := keys[k]; ok {
				return w.fail(w.node(i), nil, "it shares %s with %s, and one key cannot be that of two rows", c.field, w.path(w.node(first)))
			}
			keys[k] = i
		}
		for _, j := range p.foreign {
			fk := &p.columns[j]
			if !fk.shared || set[slot{i, fk}] {
				continue
			}
			if first, ok := links[fk.in(row).UnsafeAddr()]; ok {
				return shared(i, fk, first)
			}
		}
	}
	return nil
}

// unset returns what to do about a foreign key of zero, or "" if it will be set.
func (w *walk) unset(row int, fk *column) string {
	n := w.node(row)
	if n.held >= 0 && w.links[n.held].via.fk == fk {
		return ""
	}
	for i := range n.plan.relations {
		r := &n.plan.relations[i]
		if !r.belongs || r.fk != fk || w.structs[row].FieldByIndex(r.index).IsNil() {
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

// path names the row in a place: "shop.Order[3].Items[0]". A path of very many
// fields is shortened in the middle.
func (w *walk) path(n node) string {
	var steps []string // the last one first
	for {
		step := n.plan.typ.String()
		if n.via != nil {
			step = "." + n.via.field
		}
		if n.place >= 0 {
			step += "[" + strconv.Itoa(n.place) + "]"
		}
		steps = append(steps, step)
		if n.via == nil {
			break
		}
		n = w.nodes[n.from]
	}
	slices.Reverse(steps)
	if more := len(steps) - 1 - 2*pathSteps; more > 0 {
		steps = slices.Replace(steps, 1+pathSteps, 1+pathSteps+more, fmt.Sprintf(".(%d more)", more))
	}
	return strings.Join(steps, "")
}

// assign gives a key to every row that lacks one, and then the foreign keys to
// all that refer to others. If the source fails, nothing was assigned.
func (w *walk) assign(ctx context.Context, src Source) error {
	missing := 0
	for _, id := range w.ids {
		if *id == 0 {
			missing++
		}
	}
	if missing > 0 {
		keys := make([]types.Snowflake, missing)
		if err := take(ctx, src, keys); err != nil {
			return err
		}
		for _, id := range w.ids {
			if *id == 0 {
				*id, keys = keys[0], keys[1:]
			}
		}
	}
	w.relink()
	return nil
}

// relink sets all foreign keys to the keys that the rows have now. An upsert
// changes keys to those of the rows that it found.
func (w *walk) relink() {
	for _, l := range w.links {
		key := *w.ids[l.to]
		if id, _ := foreignKey(l.fk); id != key {
			setForeignKey(l.fk, key)
		}
	}
}
