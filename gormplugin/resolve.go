package gormplugin

import (
	"database/sql"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/readback"
)

// resolve sets the keys of all rows of an upsert to those of the stored rows, or to zero.
func (c *creation) resolve(u upsert) error {
	c.selection = selectionOf(c.stmt, true)
	sent := c.asSent(u)
	found, err := readback.Find(sent, &sentRows{creation: c, assigned: c.freshRows(), named: map[string]bool{}})
	if err != nil {
		return err
	}
	for i, f := range found {
		switch {
		case f.Key != nil:
			for k, v := range f.Values {
				stored, err := c.columns[k].scan(v)
				if err != nil {
					return fmt.Errorf("gormplugin: read back %s.%s: %w", c.rows.path(c.stmt.Schema, i), c.columns[k].field.Name, err)
				}
				c.columns[k].put(c.stmt.Context, c.rows.at(i), stored)
			}
		case f.Reason != 0:
			if needed := c.forget(i); needed && err == nil { // of the first row alone, which asks once
				err = c.unresolved(sent, i, f)
			}
		}
	}
	return err
}

// asSent returns the statement as package readback sees it.
func (c *creation) asSent(u upsert) *readback.Statement {
	s := c.stmt.Schema
	b := c.builder()
	sent := &readback.Statement{
		Dialect:  c.in.traits.Dialect,
		Table:    c.table(),
		Names:    s.DBNames,
		Primary:  s.PrimaryFieldDBNames,
		Target:   c.target(u),
		Declared: c.model.indexes(),
		Inserted: -1,
		Unread:   !u.isGormClause,
		Ignores:  u.ignores,
		Replaces: u.replaces,
		Equal:    c.equal,
		Quote:    func(name string) string { return c.stmt.Quote(clause.Column{Name: name}) },
		Key: func(stored any) (any, error) {
			key, err := c.columns[0].scan(stored)
			return key.value(c.columns[0].key), err
		},
		Query: c.query,
		Bind: func(t *readback.Text, v any) {
			if isSQL(v) {
				write(b, t, func() { b.AddVar(b, v) })
				return
			}
			b.Vars = t.Args
			b.AddVar(t, v)
			t.Args = b.Vars
		},
	}
	for _, column := range c.columns {
		sent.Columns = append(sent.Columns, column.field.DBName)
	}
	if u.countsInserts() {
		sent.Inserted = c.stmt.RowsAffected
	}
	for _, set := range u.conflict.DoUpdates {
		value, ok := set.Value.(clause.Column)
		sent.Updates = append(sent.Updates, readback.Update{
			Column: set.Column.Name, Same: ok && value.Table == "excluded" && value.Name == set.Column.Name,
		})
	}
	return sent
}

// target returns the unique key that an upsert names to recognize a stored row by, or nil if it goes
// by all. It is hidden if it does not consist of columns of the model.
func (c *creation) target(u upsert) *readback.Key {
	names := u.target()
	switch {
	case c.in.traits.OnDuplicateKey:
		return nil
	case u.conflict.OnConstraint != "":
		return &readback.Key{Name: u.conflict.OnConstraint}
	case len(names) == 0:
		return nil
	}
	for n, name := range names {
		f := c.stmt.Schema.LookUpField(name)
		if f == nil {
			return &readback.Key{Hidden: true}
		}
		names[n] = f.DBName
	}
	key := readback.KeyOf(names...)
	if where := u.conflict.TargetWhere; len(where.Exprs) > 0 {
		b := c.builder()
		key.Where = func(t *readback.Text) { write(b, t, func() { where.Build(b) }) }
	}
	return &key
}

// builder returns a statement of the same table, in which GORM writes SQL.
func (c *creation) builder() *gorm.Statement {
	from := c.stmt
	return &gorm.Statement{
		DB:        from.DB.Session(&gorm.Session{NewDB: true}),
		Table:     from.Table,
		TableExpr: from.TableExpr,
		Schema:    from.Schema,
		Context:   from.Context,
		Clauses:   map[string]clause.Clause{},
	}
}

// write adds to t what build writes in b.
func write(b *gorm.Statement, t *readback.Text, build func()) {
	b.SQL.Reset()
	b.Vars = t.Args
	build()
	t.Args = b.Vars
	t.WriteString(b.SQL.String())
}

// table returns the table of the insert, as SQL.
func (c *creation) table() string {
	table := clause.Table{Name: clause.CurrentTable}
	if insert, known := c.stmt.Clauses["INSERT"].Expression.(clause.Insert); known && insert.Table.Name != "" {
		table = insert.Table
	}
	b := c.builder()
	b.WriteQuoted(table)
	return b.SQL.String()
}

// query runs a SELECT and calls scan for each row. It uses the connection or pool of the insert and
// not GORM's callbacks, in which dbresolver may choose a replica that does not have the row yet.
func (c *creation) query(t *readback.Text, scan func(*sql.Rows) error) (err error) {
	db, ctx := c.stmt.DB, c.stmt.Context
	begin, count := time.Now(), int64(0)
	text, vars := t.String(), t.Args
	defer func() {
		if err != nil {
			err = fmt.Errorf("gormplugin: read back the keys of %s: %w", c.stmt.Schema.Name, err)
		}
		db.Logger.Trace(ctx, begin, func() (string, int64) {
			if filter, ok := db.Logger.(gorm.ParamsFilter); ok {
				text, vars = filter.ParamsFilter(ctx, text, vars...)
			}
			return db.Dialector.Explain(text, vars...), count
		}, err)
	}()
	return dialect.Each(ctx, c.stmt.ConnPool, func(rows *sql.Rows) error {
		count++
		return scan(rows)
	}, text, vars...)
}

// isSQL reports whether GORM writes SQL for v.
func isSQL(v any) bool {
	switch v.(type) {
	case clause.Expression, clause.Interface, gorm.Valuer:
		return true
	default:
		return false
	}
}

// sentRows are the rows of an upsert as package readback sees them.
type sentRows struct {
	*creation
	assigned []bool          // for each row, whether its key is fresh
	named    map[string]bool // of maps: whether any row names a column
}

// Len returns the number of rows.
func (r *sentRows) Len() int { return r.rows.len() }

// Key returns the key of row i as it was sent, and whether it is fresh. A key that is an expression
// is not known.
func (r *sentRows) Key(i int) (key any, fresh bool) {
	return r.sentAt(i, 0).value(r.columns[0].key), r.assigned[i]
}

// Value returns what row i has sent for a column. The statement may leave the column out, and so it
// does if the field is zero and the database has a default that GORM does not set.
func (r *sentRows) Value(i int, column string) (any, readback.Known) {
	f := r.stmt.Schema.FieldsByDBName[column]
	if f == nil || !r.writesField(f) {
		return nil, readback.Nothing
	}
	switch v, named, zero := r.value(i, f); {
	case zero && f.HasDefaultValue && f.DefaultValueInterface == nil:
		return nil, readback.Nothing
	case !named && !r.names(f):
		return nil, readback.Nothing
	case isSQL(v):
		return v, readback.SQL
	default:
		return v, readback.Sent
	}
}

// writesField reports whether the statement writes a field. Select leaves the times of structs in,
// but for those that have a default of the database.
func (r *sentRows) writesField(f *schema.Field) bool {
	if r.writes(f.DBName) {
		return true
	}
	_, named := r.selected[f.DBName]
	byDatabase := f.HasDefaultValue && f.DefaultValueInterface == nil
	return !named && !byDatabase && r.rows.maps == nil && (f.AutoCreateTime > 0 || f.AutoUpdateTime > 0)
}

// names reports whether one of the maps names f, so that GORM sends NULL for the others.
func (r *sentRows) names(f *schema.Field) bool {
	named, known := r.named[f.DBName]
	if !known {
		named = slices.ContainsFunc(r.rows.maps, func(m map[string]any) bool { _, _, ok := mapField(m, f); return ok })
		r.named[f.DBName] = named
	}
	return named
}

// value returns what row i has for f, and whether the row names f, as every struct does, and has zero.
func (c *creation) value(i int, f *schema.Field) (v any, named, zero bool) {
	row := c.rows.at(i)
	if row.values != nil {
		_, v, named = mapField(row.values, f)
		return v, named, false
	}
	v, zero = f.ValueOf(c.stmt.Context, row.fields)
	return v, true, zero
}

// equal reports whether two rows have the same in all columns.
func (c *creation) equal(i, j int) bool {
	return !slices.ContainsFunc(c.stmt.Schema.DBNames, func(name string) bool {
		f := c.stmt.Schema.FieldsByDBName[name]
		v, _, _ := c.value(i, f)
		w, _, _ := c.value(j, f)
		return !reflect.DeepEqual(v, w)
	})
}

// freshRows returns for each row whether the plugin has assigned its key in columns[0].
func (c *creation) freshRows() []bool {
	list, next := make([]bool, c.rows.len()), 0
	var set map[cell]bool
	for i := range list {
		sent := c.sentAt(i, 0)
		if next < len(c.fresh) && sent == c.columns[0].of(c.fresh[next]) { // nearly always
			list[i] = true
			next += len(c.columns)
			continue
		}
		if set == nil {
			set = make(map[cell]bool, len(c.fresh))
			for _, id := range c.fresh {
				set[c.columns[0].of(id)] = true
			}
		}
		list[i] = set[sent]
	}
	return list
}

// forget sets the keys of row i to zero, and reports whether associations need them.
func (c *creation) forget(i int) (needed bool) {
	row := c.rows.at(i)
	needed = c.nested || c.associationsFollow(row) // before its values are gone
	for k := range c.columns {
		c.columns[k].put(c.stmt.Context, row, cell{})
	}
	return needed
}

// unresolved returns the error for row i, whose keys associations need.
func (c *creation) unresolved(s *readback.Statement, i int, why readback.Found) error {
	reason := Reason(why.Reason)
	if reason == ReasonStale && readback.Hides(s) {
		reason = ReasonHidden
	}
	return &UnresolvedError{Model: c.stmt.Schema.Name, Row: i, Reason: reason, Key: why.Unique, Column: why.Column, Type: why.Type}
}

// associationsFollow reports whether GORM will create rows that refer to row.
func (c *creation) associationsFollow(row row) bool {
	if row.values != nil {
		return false // GORM takes no associations from maps
	}
	for _, rel := range dependents(c.stmt.Schema) {
		if !c.writes(rel.Name) {
			continue
		}
		if _, zero := rel.Field.ValueOf(c.stmt.Context, row.fields); !zero {
			return true
		}
	}
	return false
}

// declaredKeys returns the unique keys that the tags of s declare, without the primary key. It
// parses the model a second time, because Schema.ParseIndexes writes to the fields, and those of s
// are shared.
func declaredKeys(s *schema.Schema, namer schema.Namer) []readback.Key {
	var list []readback.Key
	for _, name := range s.DBNames {
		if f := s.FieldsByDBName[name]; f.Unique && (!f.PrimaryKey || len(s.PrimaryFields) > 1) {
			list = append(list, readback.KeyOf(name))
		}
	}
	own, err := schema.ParseWithSpecialTableName(reflect.New(s.ModelType).Interface(), &sync.Map{}, namer, s.Table)
	if err != nil {
		return list
	}
	for _, index := range own.ParseIndexes() {
		if !strings.EqualFold(index.Class, "UNIQUE") {
			continue
		}
		key := readback.Key{Name: index.Name}
		if index.Where != "" {
			key.Where = func(t *readback.Text) { t.WriteString(index.Where) }
		}
		for _, option := range index.Fields {
			f := s.FieldsByDBName[option.DBName]
			key.Hidden = key.Hidden || f == nil || option.Expression != ""
			key.Columns = append(key.Columns, readback.Column{Name: option.DBName, Collate: option.Collate, Prefix: option.Length})
		}
		list = append(list, key)
	}
	return list
}
