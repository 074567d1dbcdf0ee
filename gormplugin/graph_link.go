package gormplugin

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"gorm.io/gorm/schema"
)

// connect sets the foreign keys. In this order each key is final before it is copied,
// even one that is a foreign key itself.
func (g *graph) connect(order []int) error {
	turn := make([]int, len(order))
	for n, i := range order {
		turn[i] = n
	}
	// In a circle one reference is to a row that comes later. Part of that row's key may
	// still come from a row before it, so such references are copied last.
	for _, late := range []bool{false, true} {
		for _, i := range order {
			// A belongs-to is copied after a has-one or has-many, as in GORM, which saves
			// what a row belongs to just before the row.
			for _, last := range []bool{false, true} {
				for _, n := range g.in.of(i) {
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

// link copies the keys of an edge to the foreign keys at its end.
func (g *graph) link(e *edge) error {
	from, to := row{fields: g.rows[e.first].fields}, row{fields: g.rows[e.second].fields}
	for i := range e.by.links {
		l := &e.by.links[i]
		if l.from.field == nil && !e.by.known(g.ctx, from) {
			continue
		}
		g.remember(l.to.field, to.fields)
		if err := l.copy(g.ctx, from, to); err != nil {
			g.undo()
			return fmt.Errorf("gormplugin: %s.%s: %w", l.to.field.Schema.Name, l.to.field.Name, err)
		}
	}
	return nil
}

// known reports whether from has the key that b refers to. Without one, the
// polymorphic type is not set either. As in GORM, an empty type is none.
func (b *branch) known(ctx context.Context, from row) bool {
	for i := range b.links {
		switch l := &b.links[i]; {
		case l.from.field == nil && l.value == "":
			return false
		case l.from.field != nil && !l.zero && l.from.empty(ctx, from):
			return false
		}
	}
	return true
}

// A link is a foreign key and what it refers to.
type link struct {
	from   column // the key; without a field for a polymorphic type
	to     column // the foreign key
	value  string // the polymorphic type
	direct bool   // the foreign key is a cell like the key; else GORM copies, which may fail
	zero   bool   // zero is a key like others
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

// copy sets the foreign key in the struct to from the struct from. A pointer is
// replaced, because it may point to another row's key.
func (l *link) copy(ctx context.Context, from, to row) error {
	if l.from.field != nil && !l.zero && l.from.empty(ctx, from) {
		return nil
	}
	key := cell{text: l.value, present: true}
	if l.from.field != nil {
		key = l.from.get(ctx, from)
	}
	if place := l.to.place(ctx, to.fields); place.Kind() == reflect.Pointer {
		if l.direct && l.to.get(ctx, to) == key {
			return nil
		}
		place.SetZero()
	}
	if l.direct {
		l.to.put(ctx, to, key)
		return nil
	}
	var v any = l.value
	if l.from.field != nil {
		v, _ = l.from.field.ValueOf(ctx, from.fields)
		if at := reflect.Indirect(reflect.ValueOf(v)); at.IsValid() && l.from.field.Serializer == nil {
			v = at.Interface() // the value, and not the parent's own pointer
		}
	}
	return l.to.field.Set(ctx, to.fields, v)
}

// A change is the old value of a place.
type change struct{ place, old reflect.Value }

// remember keeps the value of field f of a struct, if a later error may undo it.
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

// undo restores what was remembered.
func (g *graph) undo() {
	for _, c := range slices.Backward(g.changes) {
		c.place.Set(c.old)
	}
}
