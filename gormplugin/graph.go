package gormplugin

import (
	"context"
	"fmt"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"
)

// Assign gives a key to every row of a graph that lacks one and sets the foreign keys
// between the rows. It runs no SQL. Most callers should use a plain Create of the
// graph instead, which does the same. Use Assign to insert each table with one
// statement, to know the keys first, or to send the rows elsewhere:
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
// A Create after Assign keeps the keys. Do not use Save: it takes a row with a key for
// a stored one, and stores its children first.
//
// value is a pointer to a struct, or a slice of structs or of pointers to them, or a
// pointer to such a slice or array. The graph is what GORM would create of it, with
// all associations. Two ways to one struct are one row with one key. Cycles and deep
// graphs are allowed. db gives the models and their names. Its Select, Omit, Table and
// conditions are ignored, and the plugin need not be installed on it.
//
// The package comment says which columns get keys. Keys that are set are kept. New keys
// obey two rules:
//   - A row has a larger key than the rows that it refers to.
//   - Keys increase along every slice, where the first rule allows it.
//
// As far as they allow, the items of the first order come before those of the second.
// The two ends of a many-to-many have no order.
//
// A foreign key is overwritten by the key of the row that is there, as in a Create. If
// there are several such rows, a belongs-to wins, then the last has-one or has-many. A
// polymorphic type is set with it. Both are left alone if the association is empty.
// They are also left alone if the key that they refer to is zero because the database
// or a hook fills it. A pointer is replaced and not written through, since it may
// point to another row's key.
//
// A many-to-many has no foreign key in memory. GORM makes the join rows while it creates
// them, and the plugin fills their keys then. Insert both ends first. Then insert the
// join rows as a slice of the join model. Or let GORM do it with the owners and
// Omit("Labels.*"), which says that the labels are stored already.
//
// All missing keys come from the source in one call of Fill, where it has one. After an
// error no field of the graph has changed. Errors:
//   - [ErrNoSource], [ErrBadKey] and the errors of the source.
//   - [ModelError], and GORM's error for a model that it cannot parse.
//   - gorm.ErrInvalidDB, and the error that db has already.
//   - gorm.ErrInvalidValue for a nil pointer, or a struct or array of structs by value.
//   - gorm.ErrInvalidData for a nil element of a slice, with its path, and for a value
//     that is no graph of structs, such as a map.
//   - types.ErrRange for a key or foreign key below zero, with its path.
//   - GORM's error for a foreign key of your own type that refuses the key.
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
	g := &graph{ctx: ctx, db: db, models: map[*schema.Schema]*vertex{}, at: map[identity]int{}}
	if err := g.start(value); err != nil {
		return err
	}
	if err := g.walk(); err != nil {
		return err
	}
	if err := g.check(); err != nil {
		return err
	}
	return g.assign(p.src)
}

// A graph is the rows of one call of Assign and how they refer to each other.
type graph struct {
	ctx    context.Context
	db     *gorm.DB
	models map[*schema.Schema]*vertex
	rows   []graphRow // in the order in which they were found
	lists  int        // how many slices were read
	at     map[identity]int
	edges  []edge
	in     edgeGroups // by the second row

	fallible bool     // a foreign key may refuse its value
	changes  []change // what to undo then
}

// A graphRow is an addressable struct and the first way that leads to it.
type graphRow struct {
	fields reflect.Value
	model  *vertex
	from   int // the row from which it was found; -1 for none
	by     *branch
	index  int // in a slice; -1 for none
	list   int // the number of the last slice that held it; 0 for none
}

// An identity tells structs apart. A struct and its first field have one address.
type identity struct {
	address uintptr
	model   *vertex
}

// An edge says that the first row comes before the second. With a branch, the second
// refers to the first by a foreign key. Without one, it follows it in a slice.
type edge struct {
	first, second int
	by            *branch
}

// A vertex is a model in the graph.
type vertex struct {
	schema   *schema.Schema
	columns  []column
	checked  []column // see plan
	branches []*branch
}

// A branch is a relation, seen from the model that declares it.
type branch struct {
	rel    *schema.Relationship
	field  column  // the association
	target *vertex // nil until a row of it is found
	links  []link  // none for a many-to-many, whose foreign keys are in its join table
}

// check does as [creation.check]. Foreign keys that Assign would overwrite count as well,
// because a Create checks them before it does.
func (g *graph) check() error {
	for i := range g.rows {
		r := &g.rows[i]
		for c := range r.model.checked {
			column := &r.model.checked[c]
			if value := column.impossible(g.ctx, row{fields: r.fields}); value != nil {
				return outOfRange(g.path(*r), column, value)
			}
		}
	}
	return nil
}

// assign assigns all missing keys, or none, and sets the foreign keys.
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
			m.column.put(g.ctx, row{fields: m.fields}, m.column.of(ids[i]))
		}
	}
	return g.connect(order)
}
