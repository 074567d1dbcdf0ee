package gormplugin

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/snowkey/snowkey/types"
)

// The tag `snowkey:"shard"` of the field with the key whose shard a row is on.
const (
	shardTag   = "snowkey"
	shardValue = "shard"
)

// nowhere is the shard of a row of which no shard is known.
const nowhere = -1

// planShard sets the columns of p that say on which shard a row is. It returns what is wrong
// with the tag.
func (k policy) planShard(s *schema.Schema, p *plan) (wrong []error) {
	if f := s.PrioritizedPrimaryField; f != nil && !k.unsharded && k.key(f) {
		kind, _ := kindOf(f.IndirectFieldType)
		c := newColumn(f, kind)
		p.key = &c
	} else if len(p.columns) > 0 {
		p.key = &p.columns[0]
	}
	for _, f := range s.Fields {
		if f.Tag.Get(shardTag) != shardValue || s.FieldsByName[f.Name] != f {
			continue
		}
		reason := ""
		switch kind, _ := kindOf(f.IndirectFieldType); {
		case k.unsharded:
			reason = "needs a source whose keys have shards, such as a core.Generator with Layout.ShardBits"
		case p.key == nil:
			reason = "needs a key that the plugin assigns: types.Snowflake, types.ID, or an integer with WithIntegerKeys"
		case !numeric(f):
			reason = fmt.Sprintf("does not accept the type %s, which holds no key; use types.Snowflake, types.ID, a nullable form of them, or a 64-bit integer", f.FieldType)
		case p.shard != nil:
			reason = fmt.Sprintf("is also that of %s; a row follows one field", p.shard.field.Name)
		default:
			c := newColumn(f, kind)
			p.shard = &c
			continue
		}
		wrong = append(wrong, &ModelError{Model: s.String(), Field: f.Name, Reason: `the tag snowkey:"shard" ` + reason})
	}
	return wrong
}

// The placing of a graph says on which shards its rows are. It is empty without shards.
type placing struct {
	wish   int64   // the shard that the context asks for, or nowhere
	places []place // of each row
	next   int64   // the shard to choose next
	trail  []int   // the rows on the way of shardOf
	update bool    // the rows of the statement are stored already
	owner  *column // in join rows of a many-to-many: the foreign key of the row that has it

	// What was walked, to do it again.
	value reflect.Value
	of    *schema.Schema
	first *selection // of what the statement saves; nil for all
}

// A place is what the shard of a row depends on, beside the row and the way to it.
type place struct {
	parent    int       // the row whose has-one or has-many it is in, or -1
	by        *relation // that association
	target    int       // the row that its tagged field is going to refer to, or -1
	shard     int64     // for a row without a key: what was chosen for it, or nowhere
	onTrail   bool
	selection *selection // of what is saved with it; nil for all
}

// place notes a way r to row i.
func (g *graph) place(i int, r graphRow) {
	if i == len(g.places) {
		s := g.first
		if r.by != nil {
			s = g.places[r.from].selection.below(g.db, r.by)
		}
		g.places = append(g.places, place{parent: -1, target: -1, shard: nowhere, selection: s})
	}
	switch {
	case r.by == nil:
	case r.by.Type == schema.HasOne, r.by.Type == schema.HasMany:
		// The last parent wins, as it does for the foreign key.
		g.places[i].parent, g.places[i].by = r.from, r.by
	case r.by.placed:
		g.places[r.from].target = i
	}
}

// saves reports whether the association rel is saved with row i.
func (g *graph) saves(i int, rel *relation) bool {
	return g.places == nil || g.places[i].selection == nil || g.places[i].selection.writes(rel.Name)
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

// shardIn returns the shard of the key that r has in c, or nowhere if there is none.
func (p *Plugin) shardIn(ctx context.Context, c *column, r row) int64 {
	if c == nil {
		return nowhere
	}
	v := c.get(ctx, r)
	id := types.Snowflake(v.number)
	if c.kind == text && v.present {
		id, _ = types.Parse(v.text)
	}
	if id <= 0 {
		return nowhere
	}
	return id.Int64() & p.mask
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

// lead returns the shard of row i if the row says it, or else the row that it follows, or -1.
// This is the rule of the package comment.
func (g *graph) lead(i int) (shard int64, leader int) {
	m, p := g.rows[i].model.plan, &g.places[i]
	if s := g.shardIn(i, m.key); s != nowhere {
		return s, -1
	}
	if p.target >= 0 && g.leads(p.target, i) {
		return nowhere, p.target
	}
	if p.target < 0 && !p.inherits() {
		if s := g.shardIn(i, m.shard); s != nowhere {
			return s, -1
		}
	}
	if p.parent >= 0 {
		return nowhere, p.parent
	}
	return g.shardIn(i, g.owner), g.rows[i].from
}

// inherits reports whether the tagged field is the foreign key of the parent.
func (p *place) inherits() bool { return p.parent >= 0 && p.by.placed }

// leads reports whether row t, which the tagged field of row i is going to refer to, does not
// just follow row i itself.
func (g *graph) leads(t, i int) bool {
	m, p, from := g.rows[t].model.plan, &g.places[t], g.rows[t].from
	if p.parent >= 0 {
		from = p.parent
	}
	return from != i || p.target >= 0 || g.shardIn(t, m.key) != nowhere || g.shardIn(t, m.shard) != nowhere
}

// shardOf returns the shard of row i. A row that follows no other is on the shard that the
// context asks for. If it asks for none, shardOf chooses the next one for it, and remembers it
// for those that follow; or, without choose, returns a number below nowhere that only they have.
//
// Shards that are chosen follow that of the first key, each as far from the one before as those of
// core.Generator are. The keys of these rows themselves have the rows of the graph between them, and
// orders with 7 items would all be on one shard of 8.
func (g *graph) shardOf(i int, choose bool) int64 {
	g.trail = g.trail[:0]
	shard, leader := g.lead(i)
	for shard == nowhere {
		p := &g.places[i]
		g.trail, p.onTrail = append(g.trail, i), true
		last := leader < 0 || g.places[leader].onTrail // which is a circle
		switch {
		case p.shard != nowhere && (last || g.shardIn(leader, g.rows[leader].model.plan.key) == nowhere):
			shard = p.shard
		case !last:
			i = leader
			shard, leader = g.lead(i)
		case g.wish != nowhere:
			shard = g.wish
		case choose:
			shard, g.next = g.next, (g.next+((g.plugin.mask+1)*5/8|1))&g.plugin.mask
		case leader < 0:
			shard = nowhere - 1 - int64(i)
		default: // the same number wherever the circle is entered
			shard = nowhere - 1 - int64(slices.Min(g.trail[slices.Index(g.trail, leader):]))
		}
	}
	for _, i := range g.trail {
		if g.places[i].onTrail = false; choose {
			g.places[i].shard = shard
		}
	}
	return shard
}

// lay returns id, which is for row r of the model s, on the shard of the row.
func (g *graph) lay(id types.Snowflake, s *schema.Schema, r row) types.Snowflake {
	if i, ok := g.find(s, r); ok {
		id = g.plugin.onShard(id, g.shardOf(i, true))
	}
	return id
}

// find returns the number of row r of the model s.
func (g *graph) find(s *schema.Schema, r row) (int, bool) {
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
	for i := range g.places {
		if err := g.checkShard(i); err != nil {
			return err
		}
	}
	return nil
}

func (g *graph) checkShard(i int) error {
	r, p := &g.rows[i], &g.places[i]
	tag := r.model.plan.shard
	fields := rowOf(r.fields)
	if tag == nil || g.update && r.from < 0 || !slices.ContainsFunc(r.model.plan.columns, func(c column) bool { return c.empty(g.ctx, fields) }) {
		return nil // its shard is another row's, or it gets no key
	}
	if p.target < 0 && !p.inherits() && g.shardIn(i, tag) == nowhere {
		if v := tag.read(g.ctx, fields); v.IsValid() && !(isNullType(v.Type()) && !v.Field(1).Bool()) {
			return fmt.Errorf("%w: %s.%s is %v, want the key whose shard the row is on; set it, or make the field one that can be NULL", ErrShard, g.path(*r), tag.field.Name, v)
		}
	}
	var other int64
	child := p.parent >= 0
	switch {
	case child && !p.inherits():
		other = g.shardOf(p.parent, false)
	case !child && r.from < 0 && g.owner == nil && g.wish != nowhere:
		other = g.wish
	default:
		return nil
	}
	shard := g.shardOf(i, false)
	if shard == other {
		return nil
	}
	whose := "the context"
	if child {
		whose = "its parent " + g.path(g.rows[p.parent])
	}
	return fmt.Errorf("%w: %s is on %s by %s, and on %s by %s", ErrShard, g.path(*r), shardName(shard), tag.field.Name, shardName(other), whose)
}

func shardName(shard int64) string {
	if shard < 0 {
		return "one that is still to be chosen"
	}
	return "shard " + strconv.FormatInt(shard, 10)
}

// A scope is what a statement leaves in its context for the statements that save associations.
// GORM hands on the context to all of these, settings to none that saves join rows.
type scope struct {
	graph *graph
	of    *schema.Schema // of the statement
}

type scopeKey struct{}

// graphIn returns the graph of which a statement with ctx saves rows, or nil if keys have no
// shards.
func graphIn(ctx context.Context, p *Plugin) *graph {
	if p.shards == nil {
		return nil
	}
	if s, ok := ctx.Value(scopeKey{}).(*scope); ok {
		return s.graph
	}
	return nil
}

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

// place finds the graph of which the statement saves the rows in v, and refuses rows whose shard
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
			for _, i := range list {
				if err := outer.graph.checkShard(i); err != nil {
					return err
				}
			}
			stmt.Context = context.WithValue(stmt.Context, scopeKey{}, &scope{outer.graph, stmt.Schema})
			return nil
		}
	}
	in.model(stmt) // settles it
	g, err := newGraph(stmt.Context, db, in.plugin, func(s *schema.Schema) *plan { return in.settled(s, db.NamingStrategy).plan() })
	if err != nil {
		return err
	}
	if g.update = update; len(stmt.Selects)+len(stmt.Omits) > 0 {
		first := selectionOf(stmt, !update)
		g.first = &first
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
				kind, _ := kindOf(ref.ForeignKey.IndirectFieldType)
				c := newColumn(ref.ForeignKey, kind)
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
			if n, ok := g.find(s, rows.at(i)); ok {
				list = append(list, n)
			}
		}
		if len(list) == rows.len() {
			return list, nil
		}
		if again {
			return nil, nil
		}
		g.rows, g.places, g.edges = nil, nil, nil
		clear(g.at)
		if err := g.walk(g.value, g.of); err != nil {
			return nil, err
		}
	}
}

// follow moves the new keys of rows to the shard of the tagged field, if that has changed since:
// the row that it refers to was found stored, or a hook has set the field.
func (c *creation) follow(p *Plugin) {
	if p.shards == nil || c.plan.shard == nil || len(c.fresh) == 0 {
		return
	}
	ctx := c.stmt.Context
	for i := range c.rows.len() {
		r := c.rows.at(i)
		shard := p.shardIn(ctx, c.plan.shard, r)
		for k := range c.columns {
			column := &c.columns[k]
			if is := p.shardIn(ctx, column, r); shard == nowhere || is == nowhere || is == shard {
				continue
			}
			key := column.get(ctx, r)
			if n := slices.IndexFunc(c.fresh, func(id types.Snowflake) bool { return column.of(id) == key }); n >= 0 {
				c.fresh[n] = p.onShard(c.fresh[n], shard)
				column.put(ctx, r, column.of(c.fresh[n]))
			}
		}
	}
}
