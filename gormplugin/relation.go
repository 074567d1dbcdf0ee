package gormplugin

import (
	"context"
	"reflect"
	"slices"

	"gorm.io/gorm/schema"
)

// relationships returns the relations that s declares, embedded ones included.
func relationships(s *schema.Schema) []*schema.Relationship {
	rels := &s.Relationships
	return slices.Concat(rels.BelongsTo, rels.HasOne, rels.HasMany, rels.Many2Many)
}

// dependents returns the relations whose rows GORM creates after a row of s, with its key.
func dependents(s *schema.Schema) []*schema.Relationship {
	rels := &s.Relationships
	return slices.Concat(rels.HasOne, rels.HasMany, rels.Many2Many)
}

// A relation is an association of a model, as Assign follows it.
type relation struct {
	*schema.Relationship
	column      column       // the association
	target      *graphModel  // nil until a row of it is found
	foreignKeys []foreignKey // none for a many-to-many, whose foreign keys are in its join table
	setsShard   bool         // the field with the tag snowkey:"shard" is one of them
}

func newRelation(rel *schema.Relationship) *relation {
	r := &relation{Relationship: rel, column: associationColumn(rel.Field)}
	if rel.Type != schema.Many2Many {
		for _, ref := range rel.References {
			r.foreignKeys = append(r.foreignKeys, newForeignKey(ref))
		}
	}
	return r
}

// sets reports whether c is one of the foreign keys of the relation.
func (r *relation) sets(c *column) bool {
	return c != nil && slices.ContainsFunc(r.foreignKeys, func(fk foreignKey) bool { return fk.column.field == c.field })
}

// value returns the struct or slice in the association, if there is one. Like GORM, it takes
// a zero struct by value for none.
func (r *relation) value(ctx context.Context, fields reflect.Value) (reflect.Value, bool) {
	if r.column.deep && r.column.absent(ctx, fields) {
		return reflect.Value{}, false
	}
	v := r.column.locate(ctx, fields)
	if v.IsZero() {
		return v, false
	}
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	return v, v.IsValid()
}

// known reports whether parent has the key that the relation refers to. Without the key, a
// polymorphic type is not set either. Like GORM, known takes an empty type for none.
func (r *relation) known(ctx context.Context, parent row) bool {
	for i := range r.foreignKeys {
		if fk := &r.foreignKeys[i]; fk.key.field == nil && fk.value == "" || fk.missing(ctx, parent) {
			return false
		}
	}
	return true
}

// A foreignKey is a column of a child and what it refers to.
type foreignKey struct {
	key    column // of the parent; without a field for a polymorphic type
	column column // of the child
	value  string // the polymorphic type
	direct bool   // the two hold cells alike; otherwise GORM converts the value, which may fail
	zero   bool   // zero is a key like any other
}

func newForeignKey(ref *schema.Reference) foreignKey {
	fk := foreignKey{column: newColumn(ref.ForeignKey)}
	known := fk.column.key.Holds() && ref.ForeignKey.Serializer == nil
	if ref.PrimaryKey == nil {
		fk.value, fk.direct = ref.PrimaryValue, known && fk.column.key.Text()
		return fk
	}
	fk.key = newColumn(ref.PrimaryKey)
	fk.direct = known && fk.key.key.Holds() && ref.PrimaryKey.Serializer == nil && fk.column.key.Text() == fk.key.key.Text()
	// Part of a key, such as a tenant, may well be zero.
	fk.zero = !ref.PrimaryKey.HasDefaultValue && (!ref.PrimaryKey.PrimaryKey || len(ref.PrimaryKey.Schema.PrimaryFields) > 1)
	return fk
}

// missing reports whether parent lacks the key.
func (fk *foreignKey) missing(ctx context.Context, parent row) bool {
	switch {
	case fk.key.field == nil, fk.zero:
		return false
	case fk.key.key.Holds():
		return fk.key.empty(ctx, parent)
	default: // such as a UUID
		_, zero := fk.key.field.ValueOf(ctx, parent.fields)
		return zero
	}
}

// link sets the foreign key of child to the key of parent.
func (fk *foreignKey) link(ctx context.Context, parent, child row) error {
	if fk.missing(ctx, parent) {
		return nil
	}
	if fk.direct {
		key := cell{text: fk.value, present: true}
		if fk.key.field != nil {
			key = fk.key.get(ctx, parent)
		}
		if fk.column.get(ctx, child) != key {
			fk.column.put(ctx, child, key)
		}
		return nil
	}
	if f := fk.column.locate(ctx, child.fields); f.Kind() == reflect.Pointer {
		f.SetZero() // GORM would write through it, perhaps into another row's key
	}
	var v any = fk.value
	if fk.key.field != nil {
		v, _ = fk.key.field.ValueOf(ctx, parent.fields)
		if at := reflect.Indirect(reflect.ValueOf(v)); at.IsValid() && fk.key.field.Serializer == nil {
			v = at.Interface() // the value, and not the parent's own pointer
		}
	}
	return fk.column.field.Set(ctx, child.fields, v)
}
