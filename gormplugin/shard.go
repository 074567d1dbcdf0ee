package gormplugin

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/snowkey/snowkey/internal/base/placement"
	"github.com/snowkey/snowkey/types"
)

// The tag `snowkey:"shard"` of the field with the key whose shard a row is on.
const (
	shardTag   = "snowkey"
	shardValue = "shard"
)

// planShard sets the columns of p that say on which shard a row is. It returns what is wrong
// with the tag.
func (k policy) planShard(s *schema.Schema, p *plan) (wrong []error) {
	if f := s.PrioritizedPrimaryField; f != nil && !k.unsharded && k.key(f) {
		c := newColumn(f)
		p.key = &c
	} else if len(p.columns) > 0 {
		p.key = &p.columns[0]
	}
	for _, f := range s.Fields {
		if f.Tag.Get(shardTag) != shardValue || s.FieldsByName[f.Name] != f {
			continue
		}
		reason := ""
		switch {
		case k.unsharded:
			reason = "needs a source whose keys have shards, such as a core.Generator with Layout.ShardBits"
		case p.key == nil:
			reason = "needs a key that the plugin assigns: types.Snowflake, types.ID, or an integer with WithIntegerKeys"
		case !numeric(f):
			reason = fmt.Sprintf("does not accept the type %s, which holds no key; use types.Snowflake, types.ID, a nullable form of them, or a 64-bit integer", f.FieldType)
		case p.shard != nil:
			reason = fmt.Sprintf("is also that of %s; a row follows one field", p.shard.field.Name)
		default:
			c := newColumn(f)
			p.shard = &c
			continue
		}
		wrong = append(wrong, &ModelError{Model: s.String(), Field: f.Name, Reason: `the tag snowkey:"shard" ` + reason})
	}
	return wrong
}

// A sharding says on which shards the rows of a graph are. It is empty without shards.
type sharding struct {
	wish    int64           // the shard that the context asks for, or placement.None
	routes  []route         // to each row
	depends []placement.Row // on what its shard depends
	spots   []placement.Spot
	chosen  []int64 // by Spot.Of, the shards that were chosen; nil before the first
	next    int64   // the shard to choose next
	update  bool    // the rows of the statement are stored already
	owner   *column // in join rows of a many-to-many: the foreign key of the row that has it

	// What was walked, to do it again.
	value reflect.Value
	of    *schema.Schema
	saved *selection // by the statement; nil for all
}

// A route is what the walk knows of a row beside the first way to it.
type route struct {
	parent    int        // the row whose has-one or has-many it is in, or -1
	by        *relation  // that association
	target    int        // the row that its tagged field is going to refer to, or -1
	selection *selection // of what is saved with it; nil for all
}

// addRoute notes r, a way to row i.
func (g *graph) addRoute(i int, r graphRow) {
	if i == len(g.routes) {
		s := g.saved
		if r.by != nil {
			s = g.routes[r.from].selection.below(g.db, r.by)
		}
		g.routes = append(g.routes, route{parent: -1, target: -1, selection: s})
	}
	switch {
	case r.by == nil:
	case r.by.Type == schema.HasOne, r.by.Type == schema.HasMany:
		// The last parent wins, as it does for the foreign key.
		g.routes[i].parent, g.routes[i].by = r.from, r.by
	case r.by.setsShard:
		g.routes[r.from].target = i
	}
}

// saves reports whether the association rel is saved with row i.
func (g *graph) saves(i int, rel *relation) bool {
	return g.routes == nil || g.routes[i].selection == nil || g.routes[i].selection.writes(rel.Name)
}

// below returns what is saved of the rows in rel, as GORM passes it on.
func (s *selection) below(db *gorm.DB, rel *relation) *selection {
	if s == nil {
		return nil
	}
	stmt := &gorm.Statement{DB: db, Schema: rel.FieldSchema, Table: rel.FieldSchema.Table}
	for name, on := range s.selected {
		switch column, ok := strings.CutPrefix(name, rel.Name+"."); {
		case !ok || column == "":
		case on:
			stmt.Selects = append(stmt.Selects, column)
		default:
			stmt.Omits = append(stmt.Omits, column)
		}
	}
	if len(stmt.Selects)+len(stmt.Omits) == 0 {
		if !s.restricted {
			return nil
		}
		stmt.Omits = []string{clause.Associations}
	}
	next := selectionOf(stmt, true)
	return &next
}

// shardIn returns the shard of the key that r has in c, or placement.None if there is none.
func (p *Plugin) shardIn(ctx context.Context, c *column, r row) int64 {
	if c == nil {
		return placement.None
	}
	v := c.get(ctx, r)
	id := v.number
	if c.key.Text() && v.present {
		id, _ = types.Parse(v.text)
	}
	if id == 0 {
		return placement.None
	}
	return p.supply.Shard(id)
}

// shardIn returns the shard of the key that row i has in c.
func (g *graph) shardIn(i int, c *column) int64 {
	return g.plugin.shardIn(g.ctx, c, rowOf(g.rows[i].fields))
}

// rowOf returns the row in v, a struct or a map.
func rowOf(v reflect.Value) row {
	if v.Kind() == reflect.Map {
		return row{values: v.Interface().(map[string]any)}
	}
	return row{fields: v}
}

// dependsOn returns on what the shard of row i depends, by the values that the rows have now.
func (g *graph) dependsOn(i int) placement.Row {
	if shard := g.shardIn(i, g.rows[i].model.plan.key); shard != placement.None {
		return placement.At(shard)
	}
	return g.lead(i)
}

// lead is dependsOn without the key of row i.
func (g *graph) lead(i int) placement.Row {
	by := &g.routes[i]
	r := placement.Row{Shard: placement.None, Target: by.target, Parent: by.parent, From: g.rows[i].from, Wish: placement.None}
	switch {
	case by.target < 0 && !by.inherits():
		r.Shard = g.shardIn(i, g.rows[i].model.plan.shard)
	case by.target >= 0 && by.inherits():
		r.Parent = -1 // a belongs-to wins the field, and this row is not the parent's
	}
	switch {
	case r.From >= 0:
	case g.owner == nil:
		r.Wish = g.wish
	case r.Shard == placement.None: // else a join row is where its field says, wherever its owner is
		if r.Wish = g.shardIn(i, g.owner); r.Wish == placement.None {
			r.Wish = g.wish
		}
	}
	return r
}

// inherits reports whether the tagged field is the foreign key of the parent.
func (r *route) inherits() bool { return r.parent >= 0 && r.by.setsShard }

// resolve finds the spots of the rows.
func (g *graph) resolve() {
	if !g.plugin.supply.Sharded() {
		return
	}
	g.depends = slices.Grow(g.depends[:0], len(g.rows))
	for i := range g.rows {
		g.depends = append(g.depends, g.dependsOn(i))
	}
	g.spots = placement.Resolve(g.depends)
}

// mayHaveMoved reports whether row i may be elsewhere than [graph.resolve] has found, because a
// row that it follows turned out to be stored, or a hook has set a field.
func (g *graph) mayHaveMoved(i int) bool {
	is, was := g.dependsOn(i), &g.depends[i]
	if is.Shard != was.Shard && is.Shard != g.shardOf(i) {
		return true
	}
	for _, l := range [...]int{was.Target, was.Parent, was.From} {
		if l < 0 {
			continue
		}
		if shard := g.shardIn(l, g.rows[l].model.plan.key); shard != placement.None && shard != g.shardOf(l) {
			return true
		}
	}
	return false
}

// shardOf returns the shard of row i, or placement.None if it is still to be chosen.
func (g *graph) shardOf(i int) int64 {
	s := g.spots[i]
	if s.Of >= 0 && g.chosen != nil {
		return g.chosen[s.Of]
	}
	return s.Shard
}

// chooseShard returns the shard of row i. It chooses one for it, and for those that follow it, if it
// follows no other and the context asks for none.
//
// Shards that are chosen follow that of the first key in turn. The keys of these rows themselves
// have the rows of the graph between them, and orders with 7 items would all be on one shard of 8.
func (g *graph) chooseShard(i int) int64 {
	shard, of := g.shardOf(i), g.spots[i].Of
	if shard != placement.None {
		return shard
	}
	if g.chosen == nil {
		g.chosen = slices.Repeat([]int64{placement.None}, len(g.spots))
	}
	shard, g.next = g.next, g.plugin.supply.Step(g.next)
	g.chosen[of] = shard
	return shard
}

// startAt begins the turn of the shards for new keys with that of id.
func (g *graph) startAt(id types.Snowflake) { g.next = g.plugin.supply.Shard(id) }

// onShard returns id, which is for row r of the model s, on the shard of the row.
func (g *graph) onShard(id types.Snowflake, s *schema.Schema, r row) types.Snowflake {
	if i, ok := g.rowNumber(s, r); ok {
		id = g.plugin.supply.On(g.chooseShard(i), id)
	}
	return id
}

// rowNumber returns the number of row r of the model s.
func (g *graph) rowNumber(s *schema.Schema, r row) (int, bool) {
	v := r.fields
	if r.values != nil {
		v = reflect.ValueOf(r.values)
	}
	key, ok := identify(v, g.models[s])
	if !ok {
		return 0, false
	}
	i, ok := g.at[key]
	return i, ok
}

// checkShards returns [ErrShard] for the first of rows whose shard is not certain.
func (g *graph) checkShards() error {
	for i := range g.spots {
		if err := g.checkShard(i); err != nil {
			return err
		}
	}
	return nil
}

func (g *graph) checkShard(i int) error {
	r, by := &g.rows[i], &g.depends[i]
	tag := r.model.plan.shard
	fields := rowOf(r.fields)
	if tag == nil || g.update && r.from < 0 || !slices.ContainsFunc(r.model.plan.columns, func(c column) bool { return c.empty(g.ctx, fields) }) {
		return nil // its shard is another row's, or it gets no key
	}
	if by.Shard == placement.None && by.Target < 0 && !g.routes[i].inherits() {
		if v := tag.value(g.ctx, fields); v != nil {
			return fmt.Errorf("%w: %s.%s is %v, want the key whose shard the row is on; set it, or make the field one that can be NULL", ErrShard, g.path(*r), tag.field.Name, v)
		}
	}
	return g.refuse(placement.ConflictOf(g.depends, g.spots, i))
}

// refuse returns [ErrShard] for a row on two shards, and nil without one.
func (g *graph) refuse(c *placement.Conflict) error {
	if c == nil {
		return nil
	}
	whose := "the context"
	if c.Parent >= 0 {
		whose = "its parent " + g.path(g.rows[c.Parent])
	}
	r := g.rows[c.Row]
	return fmt.Errorf("%w: %s is on %s by %s, and on %s by %s", ErrShard, g.path(r), c.At, r.model.plan.shard.field.Name, c.Other, whose)
}

// A scope is what a statement leaves in its context for the statements that save associations.
// GORM hands on the context to all of these, settings to none that saves join rows.
type scope struct {
	graph *graph
	of    *schema.Schema // of the statement
}

type scopeKey struct{}

// placeCreate places the rows of a create, before any SQL.
func (in *installation) placeCreate(db *gorm.DB) {
	if db.Error != nil || db.Statement.Schema == nil {
		return
	}
	rows, err := rowsOf(db.Statement)
	if err != nil || rows.len() == 0 {
		return // fill or GORM reports it
	}
	v := rows.structs
	if rows.maps != nil {
		v = reflect.ValueOf(rows.maps)
	}
	_ = db.AddError(in.place(db, v, false))
}

// placeUpdate places the rows that an update is going to create with its associations.
func (in *installation) placeUpdate(db *gorm.DB) {
	if v := db.Statement.ReflectValue; db.Error == nil && db.Statement.Schema != nil && hasStructs(v) {
		_ = db.AddError(in.place(db, v, true))
	}
}

// hasStructs reports whether v is a struct, or a slice or an array of them or of pointers to
// them, none of them nil.
func hasStructs(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Struct:
		return true
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if reflect.Indirect(v.Index(i)).Kind() != reflect.Struct {
				return false
			}
		}
		return true
	}
	return false
}

// place finds the graph to which the rows in v belong, and refuses rows whose shard
// is not certain. The statement of a caller walks the graph; those that save associations look
// their rows up in it.
func (in *installation) place(db *gorm.DB, v reflect.Value, update bool) error {
	stmt := db.Statement
	outer, _ := stmt.Context.Value(scopeKey{}).(*scope)
	_, nested := stmt.Settings.Load(savedAssociations)
	if outer != nil && nested {
		list, err := outer.graph.rowsIn(stmt.Schema, v)
		if err != nil {
			return err
		}
		if list != nil {
			if slices.ContainsFunc(list, outer.graph.mayHaveMoved) {
				outer.graph.resolve()
			}
			for _, i := range list {
				if err := outer.graph.checkShard(i); err != nil {
					return err
				}
			}
			stmt.Context = context.WithValue(stmt.Context, scopeKey{}, &scope{outer.graph, stmt.Schema})
			return nil
		}
	}
	in.model(stmt) // and its relations are parsed
	g, err := newGraph(stmt.Context, db, in)
	if err != nil {
		return err
	}
	if g.update = update; len(stmt.Selects)+len(stmt.Omits) > 0 {
		first := selectionOf(stmt, !update)
		g.saved = &first
	}
	if outer != nil && !nested {
		g.owner = outer.joins(stmt.Schema)
	}
	if !v.CanAddr() && v.Kind() != reflect.Slice { // the caller's copy, but what it refers to is not
		addressable := reflect.New(v.Type()).Elem()
		addressable.Set(v)
		v = addressable
	}
	g.value, g.of = v, stmt.Schema
	if err := g.walk(v, stmt.Schema); err != nil {
		return err
	}
	g.resolve()
	stmt.Context = context.WithValue(stmt.Context, scopeKey{}, &scope{g, stmt.Schema})
	return g.checkShards()
}

// joins returns the foreign key of a join row of the model s to the row that has the association
// which the statement saves, or nil if s is no such model.
func (o *scope) joins(s *schema.Schema) *column {
	key := o.graph.planOf(o.of).key
	for _, rel := range o.of.Relationships.Many2Many {
		for _, ref := range rel.References {
			if rel.JoinTable.ModelType == s.ModelType && ref.OwnPrimaryKey && key != nil && ref.PrimaryKey == key.field {
				c := newColumn(ref.ForeignKey)
				return &c
			}
		}
	}
	return nil
}

// rowsIn returns the numbers of the rows in v, which are of the model s, or nil if the graph does
// not have all of them. It walks the graph once more before it says so, because hooks add rows.
func (g *graph) rowsIn(s *schema.Schema, v reflect.Value) (list []int, err error) {
	rows := rows{structs: v}
	for again := false; ; again = true {
		list = list[:0]
		for i := range rows.len() {
			if n, ok := g.rowNumber(s, rows.at(i)); ok {
				list = append(list, n)
			}
		}
		if len(list) == rows.len() {
			return list, nil
		}
		if again {
			return nil, nil
		}
		g.rows, g.routes, g.chosen = nil, nil, nil
		clear(g.at)
		if err := g.walk(g.value, g.of); err != nil {
			return nil, err
		}
		g.resolve()
	}
}

// follow moves the new keys of rows to the shard of the tagged field, if that has changed since:
// the row that it refers to was found stored, or a hook has set the field. It refuses a row whose
// parent, or whose context, is on another shard.
func (c *creation) follow() error {
	p, ctx := c.in.plugin, c.stmt.Context
	move := func(r row, shard int64) {
		for j := range c.columns {
			column := &c.columns[j]
			if n := c.freshKey(column, r); n >= 0 {
				c.fresh[n] = p.supply.On(shard, c.fresh[n])
				column.put(ctx, r, column.of(c.fresh[n]))
			}
		}
	}
	var (
		g      *graph // nil: a hook has exchanged the context
		leads  []placement.Row
		unsent []int
		moved  []row
	)
	if s, ok := ctx.Value(scopeKey{}).(*scope); ok {
		g = s.graph
	}
	for i := range c.rows.len() {
		r := c.rows.at(i)
		tag, key := p.shardIn(ctx, c.plan.shard, r), p.shardIn(ctx, c.plan.key, r)
		if tag == placement.None || tag == key || key != placement.None && c.freshKey(c.plan.key, r) < 0 {
			continue
		}
		n, known := -1, false
		if g != nil {
			n, known = g.rowNumber(c.stmt.Schema, r)
		}
		if !known { // and so nothing is known that refers to it
			move(r, tag)
			continue
		}
		lead := g.lead(n)
		lead.Shard = tag // whichever row was to set the field
		leads, unsent, moved = append(leads, lead), append(unsent, n), append(moved, r)
	}
	if len(moved) == 0 {
		return nil
	}
	rows := slices.Clone(g.depends)
	for k, n := range unsent {
		rows[n] = leads[k]
	}
	shards, conflict := placement.Follow(rows, unsent, func(i int) int64 { return g.shardIn(i, g.rows[i].model.plan.key) })
	for k, shard := range shards {
		move(moved[k], shard)
	}
	return g.refuse(conflict)
}

// freshKey returns the index in c.fresh of the key that r has in a column, or -1 if the caller
// has set it.
func (c *creation) freshKey(column *column, r row) int {
	key := column.get(c.stmt.Context, r)
	return slices.IndexFunc(c.fresh, func(id types.Snowflake) bool { return column.of(id) == key })
}
