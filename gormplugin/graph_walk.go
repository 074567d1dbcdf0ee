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

// start finds the rows that were passed to Assign.
func (g *graph) start(value any) error {
	v := reflect.ValueOf(value)
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	t := reflect.TypeOf(value)
	switch v.Kind() {
	case reflect.Invalid:
		return fmt.Errorf("gormplugin: Assign of %T, that is nil; pass a pointer to a struct or a slice: %w", value, gorm.ErrInvalidValue)
	case reflect.Struct:
		t = v.Type()
	case reflect.Slice, reflect.Array:
		for t = v.Type().Elem(); t.Kind() == reflect.Pointer; {
			t = t.Elem()
		}
	}
	if t.Kind() != reflect.Struct {
		return fmt.Errorf("gormplugin: Assign of %T; pass a pointer to a struct, or a slice of structs or of pointers: %w", value, gorm.ErrInvalidData)
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
// GORM's Parse waits until the model is complete. The schema in a relation may not be,
// if another goroutine parses it. So each model is parsed here before it is used.
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
	for _, rel := range relationships(s) {
		if !rel.Field.Creatable {
			continue // GORM does not store it with the row either
		}
		m.branches = append(m.branches, &branch{rel: rel, field: newColumn(rel.Field, integer)})
	}
	g.models[s] = m
	return m, nil
}

// reach reads the target of b before its first row.
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

// walk finds the rows of associations. It appends to the list that it reads.
// Recursion would need a stack as deep as a linked list is long.
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

// value returns the struct or slice in the association, if there is one. As in GORM,
// a zero struct by value is none.
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

// add adds a row, unless the graph has it, and returns its number.
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

// addAll adds the elements of list. r is the way to it.
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
			return fmt.Errorf("gormplugin: Assign: %s is a %s, not a struct: %w", g.path(r), r.fields.Type(), gorm.ErrInvalidData)
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

// relate adds the edge of b from one row to another.
func (g *graph) relate(from, to int, b *branch) {
	switch b.rel.Type {
	case schema.BelongsTo:
		g.edges = append(g.edges, edge{first: to, second: from, by: b})
	case schema.HasOne, schema.HasMany:
		g.edges = append(g.edges, edge{first: from, second: to, by: b})
	}
}

// path returns the way to r, such as Order[2].Items[0]. It cuts the middle out of a
// long one.
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
