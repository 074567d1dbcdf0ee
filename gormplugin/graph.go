package gormplugin

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"
)

// Assign gives a key to every row of a graph that lacks one, and sets the foreign
// keys between the rows, without any SQL. The tables can then be inserted in one
// statement each, those first that others refer to:
//
//	err := plugin.Assign(ctx, db, orders)
//	…
//	bare := db.Omit(clause.Associations).Session(&gorm.Session{}) // or the second Create has the model of the first
//	err = errors.Join(
//		bare.Create(customers).Error,
//		bare.Create(orders).Error,
//		bare.Create(items).Error, // every items[i].OrderID is set
//	)
//
// A plain Create of the graph needs no Assign: it does the same on its way. Assign
// is for those who insert table by table, who want to know the keys first, or who
// send the rows elsewhere. A Create of the graph after Assign keeps what is there.
// Do not Save it: with a key that is set, Save takes the row for one that is
// stored already, and stores its children before it.
//
// value is a pointer to a struct, or a slice of structs or of pointers to them, or
// a pointer to such a slice or array. The graph is what GORM would create of it:
// all that its associations lead to, of every kind, embedded ones included. Two
// ways to one struct are one row with one key. Cycles end, and no depth is too
// deep. What db says of Select, Omit, Table and conditions does not count; it
// gives the models and their names, and the plugin need not be installed on it.
//
// Which columns get keys is said in the package comment. Keys that are set are
// kept. Those that are assigned increase along every slice, and those of rows that are
// referred to are smaller than those of the rows that refer to them; where both cannot
// be, as in a slice in which a row belongs to a later one, the second holds. The two
// ends of a many-to-many have no order. As far as that allows, the items of the first
// order come before those of the second.
//
// A foreign key is overwritten by the key of the row that is there, as in a Create:
// if there are several, by that of the last has-one or has-many, and by that of a
// belongs-to before it. A polymorphic type is set with it. Both are left as they are if
// the association is empty, and if the key that they refer to is zero because the
// database or a hook is going to fill it. A pointer is not written through but
// replaced, since it may point to the key of another row.
//
// A many-to-many has no foreign key in memory. Its join rows, also those of a model
// set by SetupJoinTable, exist only while GORM creates them; they get their keys
// from the plugin then. Insert both ends, then the join rows, either as a slice of
// the join model, or by GORM along with the owners, for which Omit("Labels.*") says
// that the labels themselves are stored already.
//
// All missing keys come from the source in one call of Fill, where it has one, and
// either all of them are assigned or none: after an error no field of the graph has
// changed. The errors: [ErrNoSource], [ErrBadKey] and what the source returns;
// a [ModelError]; gorm.ErrInvalidDB; gorm.ErrInvalidValue for a nil pointer, and for
// a struct or an array of structs by value; gorm.ErrInvalidData, with the path, for a
// nil element of a slice, and for what is no graph of structs, such as maps; what GORM
// says of a model that it cannot parse, or of a foreign key of a type of your own
// that does not accept the key; the error that db has already.
//
// Safe for concurrent use on graphs that share no row.
func (p *Plugin) Assign(ctx context.Context, db *gorm.DB, value any) error {
	switch {
	case p == nil || isNil(p.src):
		return ErrNoSource
	case db == nil || db.Config == nil:
		return fmt.Errorf("gormplugin: Assign: %w", gorm.ErrInvalidDB)
	case db.Error != nil:
		return db.Error
	}
	g := &graph{ctx: ctx, db: db, models: map[*schema.Schema]*vertex{}, settled: map[*schema.Schema]bool{}, at: map[identity]int{}}
	if err := g.start(value); err != nil {
		return err
	}
	if err := g.walk(); err != nil {
		return err
	}
	return g.assign(p.src)
}

// A graph is the rows that hang together, and how. It is made for one call: what
// is learned of a model costs less than what a database takes to store one row of
// it.
type graph struct {
	ctx     context.Context
	db      *gorm.DB
	models  map[*schema.Schema]*vertex
	rows    []graphRow // in the order in which they were found
	settled map[*schema.Schema]bool
	lists   int // slices looked into
	at      map[identity]int
	edges   []edge

	fallible bool     // a foreign key may refuse its value
	changes  []change // what to undo then
}

// A graphRow is a struct, which is addressable, and the first way to it.
type graphRow struct {
	fields reflect.Value
	model  *vertex
	from   int // the row from which it was found; -1 for none
	by     *branch
	index  int // the place in a slice; -1 for none
	list   int // the slice in which it was seen last, by number; 0 for none
}

// An identity tells structs apart. A struct and its first field have one address.
type identity struct {
	address uintptr
	model   *vertex
}

// An edge is an order of two rows: the second refers to the first, by a foreign
// key, or, without a branch, stands behind it in a slice.
type edge struct {
	first, second int
	by            *branch
}

// A vertex is a model in the graph.
type vertex struct {
	schema   *schema.Schema
	columns  []column
	branches []*branch
}

// A branch is a relation, seen from the model that declares it.
type branch struct {
	rel    *schema.Relationship
	field  column  // the association
	target *vertex // nil until a row of it is found
	links  []link  // none for a many-to-many, whose foreign keys are in its join table
}

// start finds the rows that were passed to Assign.
func (g *graph) start(value any) error {
	v := reflect.ValueOf(value)
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	t := reflect.TypeOf(value)
	switch v.Kind() {
	case reflect.Invalid:
		return fmt.Errorf("gormplugin: Assign of %T, which is nil: %w", value, gorm.ErrInvalidValue)
	case reflect.Struct:
		t = v.Type()
	case reflect.Slice, reflect.Array:
		for t = v.Type().Elem(); t.Kind() == reflect.Pointer; {
			t = t.Elem()
		}
	}
	if t.Kind() != reflect.Struct {
		return fmt.Errorf("gormplugin: Assign of %T, which is no struct and no slice of them: %w", value, gorm.ErrInvalidData)
	}
	m, err := g.vertexOf(t)
	if err != nil {
		return err
	}
	if v.Kind() == reflect.Struct {
		_, err = g.add(graphRow{fields: v, model: m, from: -1, index: -1})
		return err
	}
	return g.addAll(v, graphRow{model: m, from: -1})
}

// vertexOf returns the model of type t, which is a struct.
//
// GORM's Parse waits until a model that is being parsed is complete. The schemas
// in a relation may not be so yet, if another goroutine meets them first as well;
// therefore each goes by here before it is looked into.
func (g *graph) vertexOf(t reflect.Type) (*vertex, error) {
	stmt := &gorm.Statement{DB: g.db}
	if err := stmt.Parse(reflect.New(t).Interface()); err != nil {
		return nil, fmt.Errorf("gormplugin: Assign: %w", err)
	}
	s := stmt.Schema
	if m := g.models[s]; m != nil {
		return m, nil
	}
	if err := settle(g.db, s, g.settled); err != nil {
		return nil, fmt.Errorf("gormplugin: Assign: %w", err)
	}
	s.Relationships.Mux.RLock()
	p := newPlan(s)
	s.Relationships.Mux.RUnlock()
	if p.err != nil {
		return nil, p.err
	}
	m := &vertex{schema: s, columns: p.columns}
	rels := &s.Relationships
	for _, rel := range slices.Concat(rels.BelongsTo, rels.HasOne, rels.HasMany, rels.Many2Many) {
		if !rel.Field.Creatable {
			continue // GORM does not store it with the row either
		}
		m.branches = append(m.branches, &branch{rel: rel, field: newColumn(rel.Field, integer)})
	}
	g.models[s] = m
	return m, nil
}

// reach makes b ready for rows of its target.
func (g *graph) reach(b *branch) error {
	if b.target != nil {
		return nil
	}
	target, err := g.vertexOf(b.rel.FieldSchema.ModelType)
	if err != nil {
		return err
	}
	b.target = target
	if b.rel.Type == schema.Many2Many {
		return nil
	}
	for _, ref := range b.rel.References {
		l := newLink(ref)
		g.fallible = g.fallible || !l.direct
		b.links = append(b.links, l)
	}
	return nil
}

// walk finds the rows to which associations lead. The list of rows is also the
// list of those to look into: recursion would let the length of a linked list
// decide over the stack.
func (g *graph) walk() error {
	for i := 0; i < len(g.rows); i++ {
		for _, b := range g.rows[i].model.branches {
			v, ok := b.value(g.ctx, g.rows[i].fields)
			if !ok {
				continue
			}
			if err := g.reach(b); err != nil {
				return err
			}
			next := graphRow{fields: v, model: b.target, from: i, by: b, index: -1}
			if v.Kind() == reflect.Slice {
				if err := g.addAll(v, next); err != nil {
					return err
				}
				continue
			}
			other, err := g.add(next)
			if err != nil {
				return err
			}
			g.relate(i, other, b)
		}
	}
	return nil
}

// value returns the struct or the slice that the association holds, if it holds
// one. As in GORM, a struct by value that is zero is none.
func (b *branch) value(ctx context.Context, fields reflect.Value) (reflect.Value, bool) {
	if b.field.absent(ctx, row{fields: fields}) {
		return reflect.Value{}, false
	}
	v := b.field.field.ReflectValueOf(ctx, fields)
	if v.IsZero() {
		return v, false
	}
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	return v, v.IsValid()
}

// add adds a row, unless it is there, and returns its number.
func (g *graph) add(r graphRow) (int, error) {
	if !r.fields.CanAddr() {
		return 0, fmt.Errorf("gormplugin: Assign of %s by value, pass a pointer: %w", r.model.schema.Name, gorm.ErrInvalidValue)
	}
	key := identity{r.fields.UnsafeAddr(), r.model}
	i, ok := g.at[key]
	if !ok {
		i = len(g.rows)
		g.at[key] = i
		g.rows = append(g.rows, r)
	}
	return i, nil
}

// addAll adds the elements of list, to which r is the way.
func (g *graph) addAll(list reflect.Value, r graphRow) error {
	g.rows = slices.Grow(g.rows, list.Len())
	g.lists++
	before := -1
	for r.index = range list.Len() {
		r.fields = list.Index(r.index)
		for r.fields.Kind() == reflect.Pointer {
			r.fields = r.fields.Elem()
		}
		switch r.fields.Kind() {
		case reflect.Struct:
		case reflect.Invalid:
			return fmt.Errorf("gormplugin: Assign: %s is nil: %w", g.path(r), gorm.ErrInvalidData)
		default: // a slice of slices, which GORM takes for a relation
			return fmt.Errorf("gormplugin: Assign: %s is a %s, and no struct: %w", g.path(r), r.fields.Type(), gorm.ErrInvalidData)
		}
		i, err := g.add(r)
		if err != nil {
			return err
		}
		if again := g.rows[i].list == g.lists; !again {
			if before >= 0 {
				g.edges = append(g.edges, edge{first: before, second: i})
			}
			before, g.rows[i].list = i, g.lists
		}
		if r.by != nil {
			g.relate(r.from, i, r.by)
		}
	}
	return nil
}

// relate notes that b leads from one row to another.
func (g *graph) relate(from, to int, b *branch) {
	switch b.rel.Type {
	case schema.BelongsTo:
		g.edges = append(g.edges, edge{first: to, second: from, by: b})
	case schema.HasOne, schema.HasMany:
		g.edges = append(g.edges, edge{first: from, second: to, by: b})
	}
}

// path returns the way to r, such as Order[2].Items[0]. Of a long one it leaves
// the middle out.
func (g *graph) path(r graphRow) string {
	const ends = 8
	var parts []string
	for {
		part := ""
		if r.index >= 0 {
			part = "[" + strconv.Itoa(r.index) + "]"
		}
		if r.from < 0 {
			parts = append(parts, r.model.schema.Name+part)
			break
		}
		parts = append(parts, r.by.rel.Name+part)
		r = g.rows[r.from]
	}
	if len(parts) > 2*ends {
		parts = slices.Replace(parts, ends, len(parts)-ends, "…")
	}
	slices.Reverse(parts)
	return strings.Join(parts, ".")
}

// assign assigns all that is missing, or nothing.
func (g *graph) assign(src Source) error {
	order := g.order()
	type slot struct {
		fields reflect.Value
		column *column
	}
	var missing []slot
	for _, i := range order {
		r := &g.rows[i]
		for c := range r.model.columns {
			if column := &r.model.columns[c]; column.empty(g.ctx, row{fields: r.fields}) {
				missing = append(missing, slot{r.fields, column})
			}
		}
	}
	if len(missing) > 0 {
		ids, err := reserve(g.ctx, src, len(missing))
		if err != nil {
			return fmt.Errorf("gormplugin: %d keys for a graph of %s: %w", len(missing), g.rows[0].model.schema.Name, err)
		}
		for i, m := range missing {
			g.remember(m.column.field, m.fields)
			m.column.assign(g.ctx, row{fields: m.fields}, ids[i])
		}
	}
	return g.connect(order)
}

// connect sets the foreign keys. In this order each key is final before it is
// copied, also one that is a foreign key itself.
func (g *graph) connect(order []int) error {
	starts, edges := g.edgesBy(func(e edge) int { return e.second })
	turn := make([]int, len(order))
	for n, i := range order {
		turn[i] = n
	}
	// Where references go in a circle, one of them is to a row that comes later, and
	// whose key may still get a part from a row before it: those wait for the rest.
	for _, late := range []bool{false, true} {
		for _, i := range order {
			// A row of which it is said twice what it belongs to has the last word:
			// GORM saves what a row belongs to just before the row.
			for _, last := range []bool{false, true} {
				for _, n := range edges[starts[i]:starts[i+1]] {
					e := &g.edges[n]
					if e.by == nil || (e.by.rel.Type == schema.BelongsTo) != last || (turn[e.first] > turn[i]) != late {
						continue
					}
					if err := g.link(e); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// link copies what an edge says to the foreign keys at its end.
func (g *graph) link(e *edge) error {
	from, to := g.rows[e.first].fields, g.rows[e.second].fields
	for i := range e.by.links {
		l := &e.by.links[i]
		if l.from.field == nil && !e.by.known(g.ctx, from) {
			continue
		}
		g.remember(l.to.field, to)
		if err := l.copy(g.ctx, from, to); err != nil {
			g.undo()
			return fmt.Errorf("gormplugin: %s.%s: %w", l.to.field.Schema.Name, l.to.field.Name, err)
		}
	}
	return nil
}

// known reports whether the struct from has the key that b refers to, without which
// a polymorphic type would name the table of nothing. Like GORM it takes an empty type
// for none.
func (b *branch) known(ctx context.Context, from reflect.Value) bool {
	for i := range b.links {
		switch l := &b.links[i]; {
		case l.from.field == nil && l.value == "":
			return false
		case l.from.field != nil && !l.zero && l.from.empty(ctx, row{fields: from}):
			return false
		}
	}
	return true
}

// order returns the numbers of the rows as they were found, but for those that have
// to stand behind another: one to which they refer, or the one before them in a
// slice. If that goes in circles it lets go of the slice, and then of what was found
// last.
func (g *graph) order() []int {
	starts, edges := g.edgesBy(func(e edge) int { return e.first })
	instarts, inedges := g.edgesBy(func(e edge) int { return e.second })
	type wait struct {
		rows, neighbours int // to come before it
		placed           bool
	}
	waits := make([]wait, len(g.rows))
	for _, e := range g.edges {
		switch {
		case e.by == nil:
			waits[e.second].neighbours++
		case e.first != e.second:
			waits[e.second].rows++
		}
	}
	var ready, free queue // free: these wait for neighbours alone; some are placed by now
	settle := func(i int) {
		switch w := &waits[i]; {
		case w.placed || w.rows > 0:
		case w.neighbours > 0:
			free.push(i)
		default:
			w.placed = true
			ready.push(i)
		}
	}
	for i := range waits {
		settle(i)
	}
	order := make([]int, 0, len(g.rows))
	// What the oldest row waits for, what that waits for, and so on. It is kept from one
	// circle to the next: a list that is linked both ways has one at each of its rows.
	var path []int
	on := make([]bool, len(g.rows)) // the path
	push := func(i int) { path, on[i] = append(path, i), true }
	pop := func() { path, on[path[len(path)-1]] = path[:len(path)-1], false }
	for oldest := 0; len(order) < len(g.rows); {
		for len(ready) == 0 { // all that are left wait for one another
			i := oldest
			if len(free) > 0 {
				i = free.pop()
			} else if waits[oldest].placed {
				oldest++
				continue
			} else {
				// Only circles are left. Not every row that waits is in one: back along
				// what the oldest waits for, until a row comes again.
				for len(path) > 0 && waits[path[len(path)-1]].placed {
					pop()
				}
				if len(path) == 0 {
					push(oldest)
				}
				for {
					last := path[len(path)-1]
					for _, n := range inedges[instarts[last]:instarts[last+1]] {
						if e := &g.edges[n]; e.by != nil && e.first != last && !waits[e.first].placed {
							i = e.first
							break
						}
					}
					if on[i] {
						break
					}
					push(i)
				}
				for on[i] {
					pop()
				}
			}
			if w := &waits[i]; !w.placed {
				w.placed = true
				ready.push(i)
			}
		}
		i := ready.pop()
		order = append(order, i)
		for _, n := range edges[starts[i]:starts[i+1]] {
			e := &g.edges[n]
			switch w := &waits[e.second]; {
			case e.by == nil:
				w.neighbours--
			case e.first != e.second:
				w.rows--
			}
			settle(e.second)
		}
	}
	return order
}

// A queue is a heap of numbers, the smallest first.
type queue []int

func (q *queue) push(n int) {
	list := append(*q, n)
	for i := len(list) - 1; i > 0 && list[(i-1)/2] > list[i]; i = (i - 1) / 2 {
		list[(i-1)/2], list[i] = list[i], list[(i-1)/2]
	}
	*q = list
}

func (q *queue) pop() int {
	list := *q
	first, last := list[0], len(list)-1
	list[0] = list[last]
	list = list[:last]
	for i := 0; ; {
		next := 2*i + 1
		if next+1 < len(list) && list[next+1] < list[next] {
			next++
		}
		if next >= len(list) || list[i] <= list[next] {
			break
		}
		list[i], list[next] = list[next], list[i]
		i = next
	}
	*q = list
	return first
}

// edgesBy returns the numbers of the edges, in order, grouped by the row at one
// end: those of row i are list[starts[i]:starts[i+1]].
func (g *graph) edgesBy(end func(edge) int) (starts, list []int) {
	starts = make([]int, len(g.rows)+2)
	for _, e := range g.edges {
		starts[end(e)+2]++
	}
	for i := 2; i < len(starts); i++ {
		starts[i] += starts[i-1]
	}
	list = make([]int, len(g.edges))
	for n, e := range g.edges {
		at := &starts[end(e)+1]
		list[*at] = n
		*at++
	}
	return starts[:len(g.rows)+1], list
}

// A change is what a place held before.
type change struct{ place, old reflect.Value }

// remember notes what field f of a struct holds, if it may have to be undone.
func (g *graph) remember(f *schema.Field, v reflect.Value) {
	if !g.fallible {
		return
	}
	note := func() {
		old := reflect.New(v.Type()).Elem()
		old.Set(v)
		g.changes = append(g.changes, change{v, old})
	}
	for _, i := range f.StructField.Index {
		if i >= 0 {
			v = v.Field(i)
			continue
		}
		if v = v.Field(-i - 1); v.IsNil() { // an embedded pointer
			break
		}
		v = v.Elem()
	}
	for note(); v.Kind() == reflect.Pointer && !v.IsNil(); note() {
		v = v.Elem()
	}
}

// undo takes back what was remembered.
func (g *graph) undo() {
	for _, c := range slices.Backward(g.changes) {
		c.place.Set(c.old)
	}
}

// A link is a foreign key and what it refers to.
type link struct {
	from   column // the key; without a field for a polymorphic type
	to     column // the foreign key
	value  string // the polymorphic type
	direct bool   // it is copied here; else by GORM, which may not be able to
	zero   bool   // whether zero is a key like others
}

func newLink(ref *schema.Reference) link {
	kind, known := kindOf(ref.ForeignKey.IndirectFieldType)
	known = known && ref.ForeignKey.Serializer == nil
	l := link{to: newColumn(ref.ForeignKey, kind)}
	if ref.PrimaryKey == nil {
		l.value, l.direct = ref.PrimaryValue, known && kind == text
		return l
	}
	fromKind, fromKnown := kindOf(ref.PrimaryKey.IndirectFieldType)
	l.from = newColumn(ref.PrimaryKey, fromKind)
	l.direct = known && fromKnown && ref.PrimaryKey.Serializer == nil && (kind == text) == (fromKind == text)
	// A part of a key, such as a tenant, may well be zero.
	l.zero = !ref.PrimaryKey.HasDefaultValue && (!ref.PrimaryKey.PrimaryKey || len(ref.PrimaryKey.Schema.PrimaryFields) > 1)
	return l
}

// copy sets the foreign key in the struct to from the struct from.
func (l *link) copy(ctx context.Context, from, to reflect.Value) error {
	if l.from.field == nil {
		if !l.direct {
			l.detach(ctx, to)
			return l.to.field.Set(ctx, to, l.value)
		}
		l.detach(ctx, to)
		l.to.reach(ctx, row{fields: to}).SetString(l.value)
		return nil
	}
	if !l.zero && l.from.empty(ctx, row{fields: from}) {
		return nil
	}
	if !l.direct {
		v, _ := l.from.field.ValueOf(ctx, from)
		if at := reflect.Indirect(reflect.ValueOf(v)); at.IsValid() && l.from.field.Serializer == nil {
			v = at.Interface() // the value, and not the parent's own pointer
		}
		l.detach(ctx, to)
		return l.to.field.Set(ctx, to, v)
	}
	// The way of [column.get] and [column.put] without boxing a number: this
	// runs for every row.
	var key reflect.Value
	if !l.from.absent(ctx, row{fields: from}) {
		key = l.from.field.ReflectValueOf(ctx, from)
	}
	for key.Kind() == reflect.Pointer {
		key = key.Elem()
	}
	place := l.to.field.ReflectValueOf(ctx, to)
	if !key.IsValid() || l.from.kind == nullable && !key.Field(1).Bool() {
		place.SetZero()
		return nil
	}
	if place.Kind() == reflect.Pointer && !place.IsNil() {
		if l.to.normal(place) == l.from.normal(key) {
			return nil
		}
		place.SetZero() // reach makes another
	}
	switch place = l.to.reach(ctx, row{fields: to}); l.from.kind {
	case text:
		place.SetString(key.String())
	case unsigned:
		l.to.number(place, int64(key.Uint()))
	case nullable:
		l.to.number(place, key.Field(0).Int())
	default:
		l.to.number(place, key.Int())
	}
	return nil
}

// detach takes away the pointer that a foreign key is, if it is one: what it leads
// to may be another row's key.
func (l *link) detach(ctx context.Context, to reflect.Value) {
	if place := l.to.field.ReflectValueOf(ctx, to); place.Kind() == reflect.Pointer {
		place.SetZero()
	}
}
