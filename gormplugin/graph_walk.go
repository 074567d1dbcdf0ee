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
	if !v.IsValid() {
		return fmt.Errorf("gormplugin: Assign of %T, that is nil; pass a pointer to a struct or a slice: %w", value, gorm.ErrInvalidValue)
	}
	t := v.Type()
	if t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
		for t = t.Elem(); t.Kind() == reflect.Pointer; {
			t = t.Elem()
		}
	}
	if t.Kind() != reflect.Struct {
		return fmt.Errorf("gormplugin: Assign of %T; pass a pointer to a struct, or a slice of structs or of pointers: %w", value, gorm.ErrInvalidData)
	}
	stmt := &gorm.Statement{DB: g.db}
	err := stmt.Parse(reflect.New(t).Interface())
	if err == nil {
		err = settle(g.db, stmt.Schema)
	}
	if err != nil {
		return fmt.Errorf("gormplugin: Assign: %w", err)
	}
	m, err := g.vertexOf(stmt.Schema)
	if err != nil {
		return err
	}
	return g.addAll(v, graphRow{model: m, from: -1})
}

// vertexOf returns the model of s. [settle] has completed s.
func (g *graph) vertexOf(s *schema.Schema) (*vertex, error) {
	if m := g.models[s]; m != nil {
		return m, nil
	}
	s.Relationships.Mux.RLock()
	p := newPlan(s)
	s.Relationships.Mux.RUnlock()
	if p.err != nil {
		return nil, p.err
	}
	m := &vertex{schema: s, columns: p.columns, checked: p.checked}
	for _, rel := range relationships(s) {
		if !rel.Field.Creatable {
			continue // GORM does not store it with the row either
		}
		b := &branch{rel: rel, field: newColumn(rel.Field, integer)}
		m.branches = append(m.branches, b)
		if rel.Type == schema.Many2Many {
			continue
		}
		for _, ref := range rel.References {
			l := newLink(ref)
			g.fallible = g.fallible || !l.direct
			b.links = append(b.links, l)
		}
	}
	g.models[s] = m
	return m, nil
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
			if b.target == nil {
				var err error
				if b.target, err = g.vertexOf(b.rel.FieldSchema); err != nil {
					return err
				}
			}
			if err := g.addAll(v, graphRow{model: b.target, from: i, by: b}); err != nil {
				return err
			}
		}
	}
	return nil
}

// value returns the struct or slice in the association, if there is one. As in GORM,
// a zero struct by value is none.
func (b *branch) value(ctx context.Context, fields reflect.Value) (reflect.Value, bool) {
	if b.field.absent(ctx, fields) {
		return reflect.Value{}, false
	}
	v := b.field.place(ctx, fields)
	if v.IsZero() {
		return v, false
	}
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	return v, v.IsValid()
}

// addAll adds a struct, or the elements of a slice. r is the way to it.
func (g *graph) addAll(v reflect.Value, r graphRow) error {
	if v.Kind() == reflect.Struct {
		r.fields, r.index = v, -1
		_, err := g.add(r)
		return err
	}
	g.rows = slices.Grow(g.rows, v.Len())
	g.lists++
	before := -1
	for r.index = range v.Len() {
		r.fields = v.Index(r.index)
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
	}
	return nil
}

// add adds a row, unless the graph has it, and the edge to it. It returns its number.
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
	switch {
	case r.by == nil || r.by.rel.Type == schema.Many2Many:
	case r.by.rel.Type == schema.BelongsTo:
		g.edges = append(g.edges, edge{first: i, second: r.from, by: r.by})
	default: // has one, has many
		g.edges = append(g.edges, edge{first: r.from, second: i, by: r.by})
	}
	return i, nil
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
