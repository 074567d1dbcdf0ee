package gormplugin

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"
)

// start adds the rows that were passed to Assign.
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
	schemas, wrong := parse(g.db, []any{reflect.New(t).Interface()})
	if len(wrong) > 0 {
		return wrong[0]
	}
	return g.walk(v, schemas[0])
}

// modelOf returns the model of s, whose relations are parsed, see [awaitParsed].
func (g *graph) modelOf(s *schema.Schema) (*graphModel, error) {
	if m := g.models[s]; m != nil {
		return m, nil
	}
	p := g.planOf(s)
	if p.err != nil {
		return nil, p.err
	}
	m := &graphModel{schema: s, plan: p}
	for _, rel := range relationships(s) {
		if rel.Field.Creatable { // otherwise GORM does not store it with the row either
			r := newRelation(rel)
			r.setsShard = rel.Type == schema.BelongsTo && r.sets(p.shard)
			m.relations = append(m.relations, r)
		}
	}
	g.models[s] = m
	return m, nil
}

// walk adds the rows of v, which are of the model s, and the rows of their associations. It
// appends to the list that it reads, because recursion would need a stack as deep as a linked
// list is long.
func (g *graph) walk(v reflect.Value, s *schema.Schema) error {
	m, err := g.modelOf(s)
	if err != nil {
		return err
	}
	if err := g.addAll(v, graphRow{model: m, from: -1}); err != nil {
		return err
	}
	for i := 0; i < len(g.rows); i++ {
		if g.rows[i].fields.Kind() == reflect.Map {
			continue // GORM saves no associations of it
		}
		for _, rel := range g.rows[i].model.relations {
			if !g.saves(i, rel) {
				continue
			}
			v, ok := rel.value(g.ctx, g.rows[i].fields)
			if !ok {
				continue
			}
			if rel.target == nil {
				if rel.target, err = g.modelOf(rel.FieldSchema); err != nil {
					return err
				}
				rel.setsShard = rel.setsShard || rel.Type != schema.BelongsTo && rel.sets(rel.target.plan.shard)
			}
			if err := g.addAll(v, graphRow{model: rel.target, from: i, by: rel}); err != nil {
				return err
			}
		}
	}
	return nil
}

// addAll adds a struct, or the elements of a slice. r is the way to it.
func (g *graph) addAll(v reflect.Value, r graphRow) error {
	if v.Kind() == reflect.Struct || v.Kind() == reflect.Map {
		r.fields, r.index = v, -1
		return g.add(r)
	}
	g.rows = slices.Grow(g.rows, v.Len())
	for r.index = range v.Len() {
		r.fields = v.Index(r.index)
		for r.fields.Kind() == reflect.Pointer {
			r.fields = r.fields.Elem()
		}
		switch r.fields.Kind() {
		case reflect.Struct, reflect.Map:
		case reflect.Invalid:
			return fmt.Errorf("gormplugin: %s is nil: %w", g.path(r), gorm.ErrInvalidData)
		default: // a slice of slices, which GORM takes for a relation
			return fmt.Errorf("gormplugin: %s is a %s, not a struct: %w", g.path(r), r.fields.Type(), gorm.ErrInvalidData)
		}
		if err := g.add(r); err != nil {
			return err
		}
	}
	return nil
}

// add adds a row, unless the graph has it, and the edge to it.
func (g *graph) add(r graphRow) error {
	key, ok := identify(r.fields, r.model)
	if !ok {
		return fmt.Errorf("gormplugin: Assign of %s by value, pass a pointer: %w", r.model.schema.Name, gorm.ErrInvalidValue)
	}
	i, ok := g.at[key]
	if !ok {
		i = len(g.rows)
		g.at[key] = i
		g.rows = append(g.rows, r)
	}
	if r.by != nil && r.by.Type != schema.Many2Many {
		g.connect(r.from, i, r.by)
	}
	if g.plugin.supply.Sharded() {
		g.addRoute(i, r)
	}
	return nil
}

// identify returns the identity of a row of m. A struct by value has none.
func identify(v reflect.Value, m *graphModel) (identity, bool) {
	switch {
	case v.Kind() == reflect.Map:
		return identity{v.Pointer(), m}, true
	case v.CanAddr():
		return identity{v.UnsafeAddr(), m}, true
	}
	return identity{}, false
}

// path returns the way to r, such as Order[2].Items[0], without the middle of a long one.
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
		parts = append(parts, r.by.Name+part)
		r = g.rows[r.from]
	}
	if len(parts) > 2*ends {
		parts = slices.Replace(parts, ends, len(parts)-ends, "…")
	}
	slices.Reverse(parts)
	return strings.Join(parts, ".")
}
