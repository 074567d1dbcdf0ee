package gormplugin

import (
	"fmt"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

// An upsert is what a statement says about rows that are there already.
type upsert struct {
	conflict clause.OnConflict
	plain    bool // whether conflict is all there is to know
	ignores  bool // no such clause, but a modifier, as in INSERT IGNORE
}

// upsertOf returns the upsert of stmt, if it is one.
func upsertOf(stmt *gorm.Statement) (upsert, bool) {
	if c, ok := stmt.Clauses["ON CONFLICT"]; ok && c.Expression != nil {
		conflict, known := c.Expression.(clause.OnConflict)
		return upsert{conflict: conflict, plain: known}, true
	}
	if c, ok := stmt.Clauses["INSERT"]; ok {
		if insert, known := c.Expression.(clause.Insert); known && insert.Modifier != "" {
			return upsert{ignores: true}, true
		}
	}
	return upsert{}, false
}

// updates reports whether every row that is sent ends up in, or updates, exactly
// one stored row, so that RETURNING gives one row for each, in order.
func (u upsert) updates() bool {
	return u.plain && !u.conflict.DoNothing && len(u.conflict.Where.Exprs) == 0 &&
		(u.conflict.UpdateAll || len(u.conflict.DoUpdates) > 0)
}

// target returns the columns by which the upsert recognizes a stored row, as far
// as it says. GORM adds the primary key to UpdateAll just before the insert.
func (u upsert) target(s *schema.Schema) []string {
	if len(u.conflict.Columns) == 0 && u.conflict.UpdateAll && u.conflict.OnConstraint == "" {
		return s.PrimaryFieldDBNames
	}
	names := make([]string, 0, len(u.conflict.Columns))
	for _, c := range u.conflict.Columns {
		names = append(names, c.Name)
	}
	return names
}

// The names of GORM's dialectors whose ways with an upsert matter.
const (
	mysqlName    = "mysql"
	postgresName = "postgres"
	sqliteName   = "sqlite"
)

// ensure runs between the hooks and the insert: it assigns keys that a hook
// took away, and prepares [installation.reconcile].
func (in *installation) ensure(db *gorm.DB) {
	stmt := db.Statement
	if db.Error != nil || stmt.Schema == nil {
		return
	}
	fresh, err := in.fill(stmt)
	if err != nil {
		_ = db.AddError(err)
		return
	}
	m := in.model(stmt)
	columns := written(stmt, m.plan().columns)
	if len(columns) == 0 {
		return
	}
	all, err := rowsOf(stmt)
	if err != nil || all.len() == 0 {
		_ = db.AddError(err)
		return
	}
	u, ok := upsertOf(stmt)
	// CreateClauses may yet make it an upsert. And GORM numbers maps from
	// LastInsertId, also those that have a key, if it thinks that the database counts.
	if !ok && len(stmt.Schema.CreateClauses) == 0 && (all.maps == nil || !columns[0].field.HasDefaultValue) {
		return
	}
	if err = rewritesKey(db, m, u, columns); err != nil {
		_ = db.AddError(err)
		return
	}
	// Where a hook has made an upsert of it, nothing was stored by assign; then
	// the strict answer is the safe one.
	state := &creation{nested: true}
	if v, found := stmt.Settings.Load(creationSetting); found {
		state, _ = v.(*creation)
	}
	state.fresh = append(state.fresh, fresh...)
	state.active = columns
	state.sent = make([]any, 0, all.len()*len(columns))
	for i := range all.len() {
		if !all.settable(i) {
			_ = db.AddError(unaddressable(stmt.Schema)) // also where GORM's RETURNING would panic
			return
		}
		for c := range columns {
			state.sent = append(state.sent, columns[c].get(stmt.Context, all.at(i)))
		}
	}
	stmt.Settings.Store(creationSetting, state)
	unreadable := slices.ContainsFunc(columns, func(c column) bool { return !c.field.Readable })
	if u.updates() && all.maps == nil && !unreadable && !state.keyKnown(stmt, m, u) {
		returnColumns(stmt, columns)
	}
}

// rewritesKey returns an error if u writes the key of the row that is sent over
// that of the row that is stored. It does not if the row is recognized by that key.
func rewritesKey(db *gorm.DB, m *model, u upsert, columns []column) error {
	for _, set := range u.conflict.DoUpdates {
		value, ok := set.Value.(clause.Column)
		if !ok || value.Table != "excluded" {
			continue
		}
		for _, c := range columns {
			if !c.field.PrimaryKey || set.Column.Name != c.field.DBName {
				continue
			}
			same := slices.Contains(u.target(m.schema), c.field.DBName)
			if same && db.Name() == mysqlName {
				var err error
				if same, err = m.uniqueByKeyAlone(db); err != nil {
					return err
				}
			}
			if !same {
				return fmt.Errorf("%w: %s.%s", ErrKeyRewrite, c.field.Schema.Name, c.field.Name)
			}
		}
	}
	return nil
}

// uniqueByKeyAlone reports whether the table has no unique key but the primary one. A
// dry run, which asks the database nothing, believes the model.
func (m *model) uniqueByKeyAlone(db *gorm.DB) (bool, error) {
	if db.DryRun {
		return len(m.indexes()) == 0, nil
	}
	uniques, err := (&reread{db: db, model: m}).storedUniques()
	return len(uniques) == 1, err
}

// keyKnown reports whether a stored row that the upsert meets can only be one
// with the key in memory: the key is part of what it is recognized by. MySQL
// goes by every unique key, whatever the statement names.
func (s *creation) keyKnown(stmt *gorm.Statement, m *model, u upsert) bool {
	return u.plain && len(s.active) == 1 &&
		slices.Contains(u.target(stmt.Schema), s.active[0].field.DBName) &&
		(stmt.Dialector.Name() != mysqlName || len(m.indexes()) == 0)
}

// returnColumns makes stmt return columns; a dialect that cannot leaves the
// clause out. GORM asks for the columns that the database fills only if nobody
// asked for any, so these are asked for as well.
func returnColumns(stmt *gorm.Statement, columns []column) {
	c, asked := stmt.Clauses["RETURNING"]
	returning, known := c.Expression.(clause.Returning)
	if asked && (!known || everything(returning)) {
		return
	}
	list := slices.Clone(returning.Columns)
	if !asked {
		for _, f := range stmt.Schema.FieldsWithDefaultDBValue {
			if f.Readable {
				list = append(list, clause.Column{Name: f.DBName})
			}
		}
	}
	for _, column := range columns {
		if !returns(list, column.field.DBName) {
			list = append(list, clause.Column{Name: column.field.DBName})
		}
	}
	c.Name, c.Expression = "RETURNING", clause.Returning{Columns: list}
	stmt.Clauses["RETURNING"] = c
}

func everything(r clause.Returning) bool {
	return len(r.Columns) == 0 || returns(r.Columns, "*")
}

func returns(list []clause.Column, name string) bool {
	return slices.ContainsFunc(list, func(c clause.Column) bool { return c.Name == name })
}

// returned reports whether the insert of stmt returned columns into the rows,
// one for one.
func returned(stmt *gorm.Statement, columns []column) bool {
	r, ok := returningOf(stmt)
	if !ok {
		return false
	}
	for _, c := range columns {
		if !c.field.Readable || !everything(r) && !returns(r.Columns, c.field.DBName) {
			return false
		}
	}
	return true
}

func returningOf(stmt *gorm.Statement) (clause.Returning, bool) {
	c, ok := stmt.Clauses["RETURNING"]
	if !ok || !slices.Contains(stmt.BuildClauses, "RETURNING") {
		return clause.Returning{}, false
	}
	r, ok := c.Expression.(clause.Returning)
	return r, ok
}

// reconcile runs between the insert and the associations that need the keys of
// the rows. After an upsert the key in memory may be that of no row: it makes it
// that of the stored row, or zero.
func (in *installation) reconcile(db *gorm.DB) {
	stmt := db.Statement
	v, ok := stmt.Settings.LoadAndDelete(creationSetting)
	if !ok || db.Error != nil || db.DryRun {
		return
	}
	state, _ := v.(*creation)
	if len(state.sent) == 0 {
		return // nothing to fill, see ensure
	}
	all, err := rowsOf(stmt)
	if err != nil || all.len()*len(state.active) != len(state.sent) {
		return // GORM has replaced the rows by those that RETURNING * gave
	}
	u, isUpsert := upsertOf(stmt)
	complete := db.RowsAffected == int64(all.len())
	if complete && u.updates() && all.maps == nil && returned(stmt, state.active) {
		return
	}
	// GORM fills rows by position from RETURNING and from LastInsertId, also
	// where rows were left out: none of that is to be believed.
	for i := range all.len() {
		for c := range state.active {
			if v := state.at(i, c); v != nil { // else it is an expression in a map
				state.active[c].put(stmt.Context, all.at(i), v)
			}
		}
	}
	if !isUpsert || complete && countsInserts(stmt, u) {
		return
	}
	m := in.model(stmt)
	if state.keyKnown(stmt, m, u) {
		alone := true
		if db.Name() == mysqlName {
			if alone, err = m.uniqueByKeyAlone(db); err != nil {
				_ = db.AddError(err)
			}
		}
		if alone || err != nil {
			return
		}
	}
	r := reread{db: db, model: m, upsert: u, creation: state, rows: all}
	if err = r.run(); err != nil {
		_ = db.AddError(err)
	}
}

// countsInserts reports whether RowsAffected is the number of rows inserted. It
// is not on MySQL, where it depends on a setting of the connection, nor with
// RETURNING and a slice, where GORM counts the slice.
func countsInserts(stmt *gorm.Statement, u upsert) bool {
	_, returning := returningOf(stmt)
	name := stmt.Dialector.Name()
	return (u.ignores || u.plain && u.conflict.DoNothing) && !returning && (name == sqliteName || name == postgresName)
}
