package gormplugin

import (
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/snowkey/snowkey/types"
)

const (
	// The setting in which GORM keeps what a statement has saved already. It is set when
	// GORM creates an association, and not when a caller creates.
	savedAssociations = "gorm:saved_association_map"
	// The setting in which a statement keeps its creation.
	creationSetting = "snowkey:creation"
)

// A creation is what the plugin knows of one create statement. The first callback makes it,
// and the others reuse it.
type creation struct {
	in     *installation
	stmt   *gorm.Statement // the owner: GORM copies settings to the statements of associations
	model  *model
	plan   *plan
	nested bool              // the statement saves an association of another
	fresh  []types.Snowflake // the keys that were assigned

	// Hooks may change these. See fill.
	rows    rows
	columns []column // those of plan.columns that the statement writes
	selection

	kind kind // decided by ensure

	// sent holds what the statement writes to columns, row by row. It is nil where nothing
	// changes the keys in memory.
	sent    []cell
	exact   bool           // RowsAffected is the number of rows that RETURNING gave
	hidden  bool           // the upsert, from GORM: see countReturned
	dropped *clause.Clause // the upsert that is not sent: see dropUpsert
}

// fill gives the rows of the statement their keys, and returns its creation. It returns nil if the
// plugin fills and checks nothing in the model, or after an error, which it adds to db.
func (in *installation) fill(db *gorm.DB) *creation {
	stmt := db.Statement
	if db.Error != nil || stmt.Schema == nil {
		return nil
	}
	v, _ := stmt.Settings.Load(creationSetting)
	c, _ := v.(*creation)
	if c == nil || c.stmt != stmt {
		m := in.model(stmt)
		p := m.plan()
		if p.err != nil || len(p.columns)+len(p.checked)+len(p.required) == 0 {
			_ = db.AddError(p.err)
			return nil
		}
		_, nested := stmt.Settings.Load(savedAssociations)
		c = &creation{in: in, stmt: stmt, model: m, plan: p, nested: nested}
		stmt.Settings.Store(creationSetting, c)
	}
	if err := c.fill(); err != nil {
		_ = db.AddError(err)
		return nil
	}
	return c
}

// choose leaves to columns those that the statement writes.
//
// It selects the primary key if that was neither selected nor omitted: a row without a key
// cannot be stored, or SQLite would store it under a key that the caller does not see.
// Other columns are filled only if they are written.
func (c *creation) choose() {
	c.selection = selectionOf(c.stmt, true)
	c.columns = nil
	for _, key := range c.plan.columns {
		name := key.field.DBName
		if _, named := c.selected[name]; !named && c.restricted && key.field.PrimaryKey {
			// Clipped, because the session of the statement may share the array.
			c.stmt.Selects = append(slices.Clip(c.stmt.Selects), name)
			c.selected[name] = true
		}
		if c.writes(name) {
			c.columns = append(c.columns, key)
		}
	}
}

// A selection is what a statement writes of a model, by the names of columns and associations.
// The zero selection is all of them.
type selection struct {
	selected   map[string]bool // the result of Statement.SelectAndOmitColumns
	restricted bool
}

func selectionOf(stmt *gorm.Statement, create bool) (s selection) {
	s.selected, s.restricted = stmt.SelectAndOmitColumns(create, !create)
	return s
}

// writes reports whether the statement writes the column or association called name.
func (s *selection) writes(name string) bool {
	on, named := s.selected[name]
	return on || !named && !s.restricted
}

// record keeps what the statement is going to write.
func (c *creation) record() {
	c.sent = make([]cell, 0, c.rows.len()*len(c.columns))
	for i := range c.rows.len() {
		for k := range c.columns {
			c.sent = append(c.sent, c.columns[k].get(c.stmt.Context, c.rows.at(i)))
		}
	}
}

// sentAt returns what was sent for row i in columns[k]. It is not present for an expression
// in a map.
func (c *creation) sentAt(i, k int) cell { return c.sent[i*len(c.columns)+k] }

// restore sets the keys in memory to those that were sent. GORM fills rows by position from
// RETURNING and LastInsertId, even where the database has left rows out.
func (c *creation) restore() {
	for i := range c.rows.len() {
		for k := range c.columns {
			if v := c.sentAt(i, k); v.present {
				c.columns[k].put(c.stmt.Context, c.rows.at(i), v)
			}
		}
	}
}

// dedupe removes repeated pointers from the slice of an association. GORM makes that slice,
// and repeats a row without a key to which several others point. An upsert of its children
// would then update one row twice, which PostgreSQL refuses.
//
// The slice of a caller is left alone; if it repeats a row, the database refuses the row.
func (c *creation) dedupe() {
	v := c.stmt.ReflectValue
	if v.Kind() != reflect.Slice || v.Type().Elem().Kind() != reflect.Pointer {
		return
	}
	// A new slice, because GORM may still read its own.
	list, seen := reflect.MakeSlice(v.Type(), 0, v.Len()), make(map[uintptr]bool, v.Len())
	for i := range v.Len() {
		if p := v.Index(i); !seen[p.Pointer()] {
			seen[p.Pointer()] = true
			list = reflect.Append(list, p)
		}
	}
	if list.Len() < v.Len() {
		c.stmt.Dest, c.stmt.ReflectValue = list.Interface(), list
	}
}

// assign is the first create callback. It assigns a key to every row that lacks one. It
// does not follow associations, because GORM creates them with statements of their own,
// which have this callback too.
func (in *installation) assign(db *gorm.DB) {
	if in.plugin.supply.Sharded() {
		in.placeCreate(db)
	}
	c := in.fill(db)
	// A row that got its keys just now is not repeated.
	if c != nil && c.nested && len(c.fresh) < c.rows.len()*len(c.plan.columns) {
		c.dedupe()
	}
}

// fill assigns the missing keys, all or none, and refuses rows that cannot be stored.
//
// It runs before the hooks and after them, also for a model without hooks: other plugins' callbacks
// run in between, and GORM does not report them; so do the hooks of rows that these belong to. To
// read a row again takes some 40 ns, of the 3,000 that GORM takes for it.
func (c *creation) fill() (err error) {
	if c.rows, err = rowsOf(c.stmt); err != nil || c.rows.len() == 0 {
		if len(c.plan.columns) == 0 {
			return nil // rows that need no key are GORM's business
		}
		return err
	}
	if c.columns = c.plan.columns; len(c.stmt.Selects)+len(c.stmt.Omits) > 0 {
		c.choose()
	}
	ctx, missing := c.stmt.Context, 0
	for i := range c.rows.len() {
		r := c.rows.at(i)
		for k := range c.plan.checked {
			column := &c.plan.checked[k]
			if value := column.impossible(ctx, r); value != nil && c.writes(column.field.DBName) {
				return outOfRange(c.rows.path(c.stmt.Schema, i), column, value)
			}
		}
		for k := range c.columns {
			if c.columns[k].empty(ctx, r) {
				missing++
			}
		}
	}
	if missing == 0 {
		return nil
	}
	if c.rows.fixed {
		return unaddressable(c.stmt.Schema)
	}
	p, ids := c.in.plugin, make([]types.Snowflake, missing)
	if err := p.supply.Take(ctx, ids); err != nil {
		return takeError(missing, c.stmt.Schema.Name, err)
	}
	var g *graph // of the rows, if keys have shards
	if p.supply.Sharded() {
		if s, ok := ctx.Value(scopeKey{}).(*scope); ok {
			g = s.graph
			g.startAt(ids[0])
		}
	}
	next := 0
	for i := range c.rows.len() {
		r := c.rows.at(i)
		for k := range c.columns {
			// Checked again, because one pointer may be in the slice twice.
			if c.columns[k].empty(ctx, r) {
				if g != nil {
					ids[next] = g.onShard(ids[next], c.stmt.Schema, r)
				}
				c.columns[k].put(ctx, r, c.columns[k].of(ids[next]))
				next++
			}
		}
	}
	c.fresh = append(ids[:next], c.fresh...)
	return nil
}
