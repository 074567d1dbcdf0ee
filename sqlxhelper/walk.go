package sqlxhelper

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// A graph is what a walk records of the rows that it visits.
type graph struct {
	nodes   []node // by row
	links   []link
	sorted  []int     // the rows in the order of setLevels; nil for the order of the walk
	visited []visited // by row type, see table.firstOfType
}

// A node is the place in which a walk has met a row. A row has one place as a root or as a
// child; belongs-to relations may lead to it from anywhere.
type node struct {
	*table
	from  int       // the row that holds it, -1 for a root
	via   *relation // of from, nil for a root
	index int       // in the slice that holds it, -1 if that is none
	owner int       // the link to its parent; isRoot or isLoose if it has none
	level int       // see setLevels
}

// The owners that are no link.
const (
	isRoot  = -1 // the argument of the call
	isLoose = -2 // only belongs-to relations lead to it
)

// A link says that a row refers to another: the key of the row to becomes a foreign key of the
// row from.
type link struct {
	from, to int
	via      *relation
	fk       reflect.Value // the foreign key
}

// A visited has the rows of one type that a walk has visited.
type visited struct {
	// seen has them by address. It is nil, and slices takes its place, for a type that only the
	// slices of structs in one field hold: a map would take a quarter of the time of InsertGraph
	// on SQLite.
	seen   map[uintptr]int
	slices []span
}

// A span is the rows of one slice of structs.
type span struct{ first, count int }

// walk visits the rows of a call and all rows to which their relations lead.
func (r *rows) walk(b batch) error {
	r.visited = make([]visited, len(r.tables))
	for i, t := range r.tables {
		// With pointers, two rows of the call may be one struct.
		if t.plan.paths > 1 || i == 0 && (t.plan.paths > 0 || b.many && b.pointer) {
			r.visited[t.firstOfType].seen = map[uintptr]int{}
		}
	}
	root := node{table: r.tables[0], from: -1, index: -1, owner: isRoot}
	var err error
	if b.many {
		r.reserve(b.value.Len())
		err = r.visitAll(root, b.value, b.pointer)
	} else {
		err = r.visit(root, b.value)
	}
	// Level by level and not by recursion: the rows may be a chain of a million, where each
	// holds the next.
	for done := 0; err == nil && done < len(r.structs); {
		end := len(r.structs)
		n := r.children(done, end)
		r.reserve(n)
		r.links = slices.Grow(r.links, n)
		for ; err == nil && done < end; done++ {
			err = r.follow(done)
		}
	}
	if err != nil {
		return err
	}
	for _, check := range []func(*rows) error{(*rows).checkSlices, (*rows).checkForeignKeys, (*rows).checkLinks, (*rows).checkSharedLinks, (*rows).setLevels} {
		if err := check(r); err != nil {
			return err
		}
	}
	return nil
}

// reserve makes room for n rows.
func (r *rows) reserve(n int) {
	r.structs, r.ids, r.nodes = slices.Grow(r.structs, n), slices.Grow(r.ids, n), slices.Grow(r.nodes, n)
}

// children counts the children in slices of the rows from first to end.
func (r *rows) children(first, end int) int {
	n := 0
	for i := first; i < end; i++ {
		relations := r.nodes[i].plan.relations
		for j := range relations {
			if o := &relations[j]; o.many {
				n += r.structs[i].FieldByIndex(o.index).Len()
			}
		}
	}
	return n
}

// follow visits the rows to which the relations of a row lead.
func (r *rows) follow(i int) error {
	t, row := r.nodes[i].table, r.structs[i]
	for j := range t.plan.relations {
		via := &t.plan.relations[j]
		n := node{table: t.related[j], from: i, via: via, index: -1}
		if via.belongs {
			n.owner = isLoose
		}
		f := row.FieldByIndex(via.index)
		var err error
		if via.many {
			err = r.visitAll(n, f, via.pointer)
		} else if !f.IsNil() {
			err = r.visit(n, f.Elem())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// visitAll visits the elements of a slice. n is what they have in common.
func (r *rows) visitAll(n node, slice reflect.Value, pointers bool) error {
	count := slice.Len()
	if v := &r.visited[n.firstOfType]; count > 0 && v.seen == nil {
		v.slices = append(v.slices, span{first: len(r.structs), count: count})
	}
	for i := range count {
		row := slice.Index(i)
		n.index = i
		if pointers {
			if row.IsNil() {
				return refuse(r.nodePath(n), nil, "it is nil")
			}
			row = row.Elem()
		}
		if err := r.visit(n, row); err != nil {
			return err
		}
	}
	return nil
}

// visit adds a row, unless it was met before, and links it to n.from.
func (r *rows) visit(n node, row reflect.Value) error {
	at := len(r.structs)
	if seen := r.visited[n.firstOfType].seen; seen != nil {
		ptr := row.UnsafeAddr()
		if first, ok := seen[ptr]; ok {
			at = first
		} else {
			seen[ptr] = at
		}
	}
	if n.via != nil && !n.via.belongs {
		n.owner = len(r.links)
	}
	if at < len(r.structs) {
		if err := r.visitAgain(at, n); err != nil {
			return err
		}
	} else {
		if missing := n.plan.missing(row); missing != "" {
			return refuse(r.nodePath(n), nil, "the embedded pointer %s is nil", missing)
		}
		r.structs, r.ids, r.nodes = append(r.structs, row), append(r.ids, n.plan.id(row)), append(r.nodes, n)
	}
	if n.via != nil {
		l := link{from: at, to: n.from, via: n.via}
		if n.via.belongs {
			l.from, l.to = n.from, at
		}
		l.fk = n.via.fk.in(r.structs[l.from])
		r.links = append(r.links, l)
	}
	return nil
}

// visitAgain accepts one more way to a row that was met before, or refuses it.
func (r *rows) visitAgain(row int, again node) error {
	known := &r.nodes[row]
	if known.owner != isLoose && again.owner != isLoose {
		return refuse(r.nodePath(again), nil, "it is the same struct as %s, and one row cannot be inserted twice", r.path(row))
	}
	if known.table != again.table {
		return refuse(r.nodePath(again), nil, "it is the same struct as %s, which goes into table %s and not into %s", r.path(row), known.name, again.name)
	}
	if known.owner == isLoose {
		known.owner = again.owner
	}
	return nil
}

// checkSlices refuses slices that share elements, for the types without a map of rows.
func (r *rows) checkSlices() error {
	for i, m := range r.visited {
		start := func(s span) uintptr { return r.structs[s.first].UnsafeAddr() }
		slices.SortStableFunc(m.slices, func(a, b span) int { return cmp.Compare(start(a), start(b)) })
		size := r.tables[i].plan.typ.Size()
		for i := range max(len(m.slices), 1) - 1 {
			a, b := m.slices[i], m.slices[i+1]
			if apart := (start(b) - start(a)) / size; apart < uintptr(a.count) {
				first, again := a.first+int(apart), b.first
				if a.first > b.first {
					first, again = again, first
				}
				return r.visitAgain(first, r.nodes[again])
			}
		}
	}
	return nil
}

// parentLink returns the link from a row to the parent that holds it, or nil.
func (r *rows) parentLink(row int) *link {
	if owner := r.nodes[row].owner; owner >= 0 {
		return &r.links[owner]
	}
	return nil
}

// sets reports whether a link sets a foreign key of a row.
func (r *rows) sets(row int, fk *column) bool {
	if l := r.parentLink(row); l != nil && l.via.fk == fk {
		return true
	}
	return slices.ContainsFunc(r.nodes[row].plan.relations, func(o relation) bool {
		return o.belongs && o.fk == fk && !r.structs[row].FieldByIndex(o.index).IsNil()
	})
}

// checkLinks refuses foreign keys that contradict the row to which they refer.
func (r *rows) checkLinks() error {
	for _, l := range r.links {
		name := "the parent that holds it"
		if l.via.belongs {
			name = l.via.field
			if parent := r.parentLink(l.from); parent != nil && parent.via.fk == l.via.fk && parent.to != l.to {
				return refuse(r.path(l.from), ErrForeignKey, "%s is for the key of the parent that holds it, and %s is another row", l.via.fk.field, name)
			}
		}
		id, _ := l.via.fk.key.Key(l.fk)
		if id == 0 || !l.via.fk.key.Fits(id) {
			continue // checkKeys refuses what does not fit
		}
		if key := *r.ids[l.to]; key != id {
			has := "has key " + key.String()
			if key == 0 {
				has = "has no key yet"
			}
			return refuse(r.path(l.from), ErrForeignKey, "%s is %d, and %s %s", l.via.fk.field, id, name, has)
		}
	}
	return nil
}

// checkSharedLinks refuses rows that have one foreign key in memory, behind the same embedded
// pointer, and refer to different rows. The last link would win, and the rows before it would
// be stored under the key of another parent.
func (r *rows) checkSharedLinks() error {
	shares := func(t *table) bool { return len(t.plan.embedded) > 0 }
	if !slices.ContainsFunc(r.tables, shares) {
		return nil
	}
	first := map[uintptr]link{} // by the address of a shared foreign key
	share := func(row int, fk *column, l link) error {
		return refuse(r.path(row), ErrForeignKey, "it shares %s with %s, which refers to another row", fk.field, r.path(l.from))
	}
	for _, l := range r.links {
		if !l.via.fk.shared {
			continue
		}
		if other, ok := first[l.fk.UnsafeAddr()]; !ok {
			first[l.fk.UnsafeAddr()] = l
		} else if other.to != l.to {
			return share(l.from, l.via.fk, other)
		}
	}
	for i, row := range r.structs { // a row without a link of its own
		p := r.nodes[i].plan
		for _, j := range p.foreign {
			if fk := &p.columns[j]; fk.shared && !r.sets(i, fk) {
				if l, ok := first[fk.in(row).UnsafeAddr()]; ok {
					return share(i, fk, l)
				}
			}
		}
	}
	return nil
}

// pathSteps is how many fields a path names at either end.
const pathSteps = 16

// nodePath names the row in a node: "shop.Order[3].Items[0]". A path of very many fields is
// shortened in the middle.
func (r *rows) nodePath(n node) string {
	var steps []string // the last one first
	for {
		step := n.plan.typ.String()
		if n.via != nil {
			step = "." + n.via.field
		}
		if n.index >= 0 {
			step += "[" + strconv.Itoa(n.index) + "]"
		}
		steps = append(steps, step)
		if n.via == nil {
			break
		}
		n = r.nodes[n.from]
	}
	slices.Reverse(steps)
	if more := len(steps) - 1 - 2*pathSteps; more > 0 {
		steps = slices.Replace(steps, 1+pathSteps, 1+pathSteps+more, fmt.Sprintf(".(%d more)", more))
	}
	return strings.Join(steps, "")
}

// link sets all foreign keys to the keys that the rows have now. It runs again after an upsert,
// which changes keys to those of the stored rows.
func (r *rows) link() {
	for _, l := range r.links {
		key := *r.ids[l.to]
		if id, _ := l.via.fk.key.Key(l.fk); id != key {
			l.via.fk.key.Set(l.fk, key)
		}
	}
}
