package gormplugin

import (
	"context"
	"fmt"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/snowkey/snowkey/internal/base/roworder"
	"github.com/snowkey/snowkey/types"
)

// Assign gives a key to every row of a graph that lacks one, and sets the foreign keys
// between the rows, without running SQL. Most callers should use a plain Create of the
// graph, which does the same. Use Assign to insert each table with one statement, to know
// the keys first, or to send the rows elsewhere:
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
// A Create after Assign keeps the keys. Do not use Save, which takes a row with a key for a
// stored one and stores its children first.
//
// value is a pointer to a struct, a slice of structs or of pointers to them, or a pointer
// to such a slice or array. The graph is what GORM would create of it, with all
// associations. A struct that is reached in two ways is one row with one key. Cycles and
// deep graphs are allowed. db gives the models and their names; its Select, Omit, Table and
// conditions are ignored, and the plugin need not be installed on it.
//
// [Filled] says which columns get keys. Keys that are set are kept. A new key is larger
// than the keys of the rows that its row refers to, unless these refer back to it. Otherwise
// keys increase in the order in which the rows are found: along every slice, and those of the
// items of the first order before those of the second.
//
// A foreign key is overwritten by the key of the row in the association, as in a Create. If
// several rows claim it, a belongs-to wins, then the last has-one or has-many. A
// polymorphic type is set with it. Both are left alone if the association is empty, or if
// the key that they refer to is zero because the database or a hook fills it. A pointer is
// replaced and not written through, because it may point to another row's key.
//
// A many-to-many has no foreign key in memory. GORM makes the join rows while it creates
// them, and the plugin fills their keys then. Insert both ends first, and then the join
// rows as a slice of the join model. Or let GORM make them with the owners and
// Omit("Labels.*"), which says that the labels are stored already.
//
// All missing keys come from the source in one call of Fill, if it has one. After an error
// no field of the graph has changed, unless it is the last of these:
//
//   - [ErrNoSource], [ErrWideKey], [ErrBadKey] and the errors of the source.
//   - [ModelError], and GORM's error for a model that it cannot parse.
//   - gorm.ErrInvalidDB, and the error that db has already.
//   - gorm.ErrInvalidValue for a nil pointer, or a struct or array of structs by value.
//   - gorm.ErrInvalidData for a nil element of a slice, with its path, and for a value that is
//     no graph of structs, such as a map.
//   - types.ErrRange for a key or foreign key below zero, with its path.
//   - GORM's error for a foreign key of your own type that refuses the key.
//
// Assign is safe for concurrent use on graphs that share no row.
func (p *Plugin) Assign(ctx context.Context, db *gorm.DB, value any) error {
	switch err := p.unusable(); {
	case err != nil:
		return err
	case db == nil || db.Config == nil || db.Dialector == nil:
		return fmt.Errorf("gormplugin: Assign: %w", gorm.ErrInvalidDB)
	case db.Error != nil:
		return db.Error
	}
	g, err := newGraph(ctx, db, &installation{plugin: p, policy: p.policy(db)})
	if err != nil {
		return err
	}
	if err := g.start(value); err != nil {
		return err
	}
	if err := g.check(); err != nil {
		return err
	}
	return g.assign()
}

// A graph holds the rows of one call of Assign and how they refer to each other.
type graph struct {
	ctx    context.Context
	db     *gorm.DB
	in     *installation
	plugin *Plugin
	models map[*schema.Schema]*graphModel
	rows   []graphRow // in the order in which they were found
	at     map[identity]int

	sharding
}

func newGraph(ctx context.Context, db *gorm.DB, in *installation) (*graph, error) {
	g := &graph{ctx: ctx, db: db, in: in, plugin: in.plugin, models: map[*schema.Schema]*graphModel{}, at: map[identity]int{}}
	if !g.plugin.supply.Sharded() {
		return g, nil
	}
	var err error
	if g.wish, err = g.plugin.supply.Wish(ctx); err != nil {
		return nil, fmt.Errorf("gormplugin: the context: %w", err)
	}
	return g, nil
}

// planOf returns the plan of a model whose relations are parsed.
func (g *graph) planOf(s *schema.Schema) *plan {
	return g.in.modelOf(s, g.db.NamingStrategy).plan()
}

// A graphRow is an addressable struct and the first way that leads to it.
type graphRow struct {
	fields reflect.Value
	model  *graphModel
	from   int // the row from which it was found; -1 for none
	by     *relation
	index  int // in a slice; -1 for none
	edges  []edge
}

// An identity tells structs apart, since a struct and its first field have one address.
type identity struct {
	address uintptr
	model   *graphModel
}

// An edge says that a row refers to parent.
type edge struct {
	parent int
	by     *relation
}

// connect adds the edge of a relation, which is not many-to-many, from row from to row to.
func (g *graph) connect(from, to int, by *relation) {
	parent, child := from, &g.rows[to]
	if by.Type == schema.BelongsTo {
		parent, child = to, &g.rows[from]
	}
	child.edges = append(child.edges, edge{parent, by})
}

// A graphModel is a model of the graph.
type graphModel struct {
	schema    *schema.Schema
	plan      *plan
	relations []*relation // those that GORM stores with a row
}

// check is the check of [creation.fill] for a graph. It also checks the foreign keys that Assign would
// overwrite, because a Create checks them before it overwrites them.
func (g *graph) check() error {
	for i := range g.rows {
		r := &g.rows[i]
		for c := range r.model.plan.checked {
			column := &r.model.plan.checked[c]
			if value := column.impossible(g.ctx, row{fields: r.fields}); value != nil {
				return outOfRange(g.path(*r), column, value)
			}
		}
	}
	g.resolve()
	return g.checkShards()
}

// assign assigns all missing keys, or none, and links the rows.
func (g *graph) assign() error {
	order := g.order()
	type slot struct {
		row    int
		column *column
	}
	var missing []slot
	for _, i := range order {
		r := &g.rows[i]
		for c := range r.model.plan.columns {
			if column := &r.model.plan.columns[c]; column.empty(g.ctx, row{fields: r.fields}) {
				missing = append(missing, slot{i, column})
			}
		}
	}
	if len(missing) > 0 {
		ids := make([]types.Snowflake, len(missing))
		if err := g.plugin.supply.Take(g.ctx, ids); err != nil {
			return takeError(len(missing), "a graph of "+g.rows[0].model.schema.Name, err)
		}
		g.startAt(ids[0])
		for n, m := range missing {
			if g.plugin.supply.Sharded() {
				ids[n] = g.plugin.supply.On(g.chooseShard(m.row), ids[n])
			}
			m.column.put(g.ctx, row{fields: g.rows[m.row].fields}, m.column.of(ids[n]))
		}
	}
	return g.link(order)
}

// order returns the rows as they were found, but the parents of each row, and their parents, before
// it. This holds for every row that is not in a circle with its parent.
func (g *graph) order() []int {
	return roworder.ParentsFirst(len(g.rows), func(row int, yield func(parent int)) {
		for _, e := range g.rows[row].edges {
			yield(e.parent)
		}
	})
}

// link sets the foreign keys. In its order each key is final before it is copied, even one
// that is a foreign key itself.
func (g *graph) link(order []int) error {
	turn := make([]int, len(order))
	for n, i := range order {
		turn[i] = n
	}
	// In a circle, one foreign key refers to a row that comes later. Part of that row's key
	// may still come from a row before it, so such foreign keys are set last.
	for _, late := range []bool{false, true} {
		for _, i := range order {
			// A belongs-to is copied after a has-one or has-many, as in GORM, which saves
			// what a row belongs to just before the row.
			for _, last := range []bool{false, true} {
				for _, e := range g.rows[i].edges {
					if (e.by.Type == schema.BelongsTo) != last || (turn[e.parent] > turn[i]) != late {
						continue
					}
					if err := g.linkEdge(i, e); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// linkEdge sets the foreign keys of row i to the key of the parent.
func (g *graph) linkEdge(i int, e edge) error {
	parent, child := row{fields: g.rows[e.parent].fields}, row{fields: g.rows[i].fields}
	for k := range e.by.foreignKeys {
		fk := &e.by.foreignKeys[k]
		if fk.key.field == nil && !e.by.known(g.ctx, parent) {
			continue
		}
		if err := fk.link(g.ctx, parent, child); err != nil {
			return fmt.Errorf("gormplugin: %s.%s: %w", fk.column.field.Schema.Name, fk.column.field.Name, err)
		}
	}
	return nil
}
