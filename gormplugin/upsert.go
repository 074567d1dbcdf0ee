package gormplugin

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/readback"
)

// conflictClause is the name of the clause of an upsert.
const conflictClause = "ON CONFLICT"

// A kind says how the keys of the rows that a statement stores, or meets, become known.
type kind int

const (
	inserts kind = iota // no upsert: a row is stored under the key that was sent, or not at all
	byKey               // a stored row that an upsert meets has the key that was sent
	returns             // RETURNING gives the keys, in order, if it gives one for each row
	looksUp             // the stored rows have to be looked up
)

// An upsert is what a statement does with stored rows that conflict with its own.
type upsert struct {
	c            *creation
	kind         kind // not returns, see prepare
	conflict     clause.OnConflict
	isGormClause bool // the clause is GORM's own, so conflict says everything
	namesKey     bool // the clause names the key, which is all that the plugin fills
	ignores      bool // there is no clause but a modifier, as in INSERT IGNORE
	replaces     bool // the modifier is another one, as in INSERT OR REPLACE
}

// upsert returns the upsert that the statement is by the clauses that it has. If it is none, its
// kind is inserts.
func (c *creation) upsert() upsert {
	u := upsert{c: c}
	if on, ok := c.stmt.Clauses[conflictClause]; ok && on.Expression != nil {
		u.kind = looksUp
		u.conflict, u.isGormClause = on.Expression.(clause.OnConflict)
		u.namesKey = u.isGormClause && len(c.columns) == 1 && slices.Contains(u.target(), c.columns[0].field.DBName)
		if u.namesKey && !c.in.traits.OnDuplicateKey {
			u.kind = byKey
		}
		return u
	}
	if insert, _ := c.stmt.Clauses["INSERT"].Expression.(clause.Insert); insert.Modifier != "" {
		u.kind = looksUp
		u.ignores, u.replaces = true, !strings.HasSuffix(strings.ToUpper(strings.TrimSpace(insert.Modifier)), "IGNORE")
	}
	return u
}

// updates reports whether every row that is sent becomes or updates exactly one stored row,
// so that RETURNING gives one row for each, in order. GORM turns an UpdateAll without a
// column to update into DO NOTHING.
func (u upsert) updates() bool {
	stmt := u.c.stmt
	switch {
	case !u.isGormClause || len(u.conflict.Where.Exprs) > 0:
		return false
	case u.c.in.traits.OnDuplicateKey, !u.conflict.DoNothing && len(u.conflict.DoUpdates) > 0:
		return true
	case u.conflict.DoNothing || !u.conflict.UpdateAll:
		return false
	}
	selected, restricted := stmt.SelectAndOmitColumns(true, true)
	return slices.ContainsFunc(stmt.Schema.Fields, func(f *schema.Field) bool {
		on, named := selected[f.DBName]
		return f.DBName != "" && !f.PrimaryKey && (!f.HasDefaultValue || f.DefaultValueInterface != nil) && f.AutoCreateTime == 0 &&
			(on || !named && !restricted)
	})
}

// target returns the columns that the upsert names to recognize a stored row by. GORM adds
// the primary key to UpdateAll just before the insert, and leaves the columns out where a
// constraint is named.
func (u upsert) target() []string {
	switch {
	case u.conflict.OnConstraint != "":
		return nil
	case len(u.conflict.Columns) == 0 && u.conflict.UpdateAll:
		return u.c.stmt.Schema.PrimaryFieldDBNames
	}
	names := make([]string, 0, len(u.conflict.Columns))
	for _, c := range u.conflict.Columns {
		names = append(names, c.Name)
	}
	return names
}

// countsInserts reports whether RowsAffected is the number of inserted rows. With RETURNING and a
// slice, GORM counts the slice, unless the count is exact. A statement that replaces also counts
// rows that it has removed again.
func (u upsert) countsInserts() bool {
	_, returning := u.c.stmt.Clauses["RETURNING"]
	return (u.ignores && !u.replaces || u.isGormClause && u.conflict.DoNothing) &&
		(u.c.exact || !(returning && canReturn(u.c.stmt))) && u.c.in.traits.CountsInserts
}

// canReturn reports whether GORM writes RETURNING for stmt.
func canReturn(stmt *gorm.Statement) bool { return slices.Contains(stmt.BuildClauses, "RETURNING") }

// ensure is the callback between the hooks and the insert. It assigns the keys that a hook
// has removed, refuses rows without a key, and prepares an upsert for reconcile.
func (in *installation) ensure(db *gorm.DB) {
	in.identify(db)
	c := in.fill(db)
	if c == nil || c.rows.len() == 0 {
		return
	}
	var err error
	if c.plan.shard != nil && len(c.fresh) > 0 && in.plugin.supply.Sharded() {
		err = c.follow()
	}
	if err == nil {
		err = c.keyless()
	}
	if err == nil && len(c.columns) > 0 {
		u := c.upsert()
		c.kind = u.kind
		if !in.traits.OnDuplicateKey || !c.dropUpsert(u) {
			err = c.prepare(u)
		}
	}
	_ = db.AddError(err)
}

// dropUpsert makes the statement a plain INSERT and reports whether it has. It does if all
// keys are fresh, and the upsert is not meant for a unique key but goes by every one of the
// table: the rows can then only meet others by a unique key that the model does not declare.
// Nearly no table has one, and if it does, the database refuses the INSERT, and upsertAgain
// sends the upsert. A row that is stored is therefore stored under its key, whatever indexes
// the table has got since.
//
// The new rows that GORM saves with others are such rows: children under an upsert that names
// the key, and rows of a belongs-to or a many-to-many under a DO NOTHING. A DO NOTHING of the
// caller is left alone, because the caller expects to meet rows.
func (c *creation) dropUpsert(u upsert) bool {
	if !u.namesKey && !(c.nested && u.isGormClause && u.conflict.DoNothing && len(c.columns) == 1) || c.rows.maps != nil || len(c.fresh) < c.rows.len() || c.stmt.DryRun ||
		len(c.stmt.Schema.CreateClauses) > 0 || len(c.model.indexes()) > 0 || c.model.meetsUndeclared.Load() {
		return false
	}
	for i := range c.rows.len() {
		if c.columns[0].get(c.stmt.Context, c.rows.at(i)) != c.columns[0].of(c.fresh[i]) {
			return false
		}
	}
	conflict := c.stmt.Clauses[conflictClause]
	c.dropped = &conflict
	delete(c.stmt.Clauses, conflictClause)
	return true
}

// upsertAgain puts back what dropUpsert has removed. If the database has refused the rows, and
// undone the INSERT, it sends the upsert. From then on no upsert of the model is dropped,
// because the refusal is one more statement, and leaves locks by which two transactions can
// deadlock.
func (c *creation) upsertAgain(db *gorm.DB) {
	c.stmt.Clauses[conflictClause] = *c.dropped
	c.dropped = nil
	if !dialect.DuplicateKey(db.Error) && !errors.Is(db.Error, gorm.ErrDuplicatedKey) {
		return
	}
	c.model.meetsUndeclared.Store(true)
	db.Error = nil
	c.stmt.SQL.Reset()
	c.stmt.Vars = nil
	if err := c.prepare(c.upsert()); err != nil {
		_ = db.AddError(err)
		return
	}
	db.Callback().Create().Get(anchorCreate)(db)
}

// prepare records what is sent, if the database may change the keys in memory, and makes the
// statement return the stored keys where it can.
func (c *creation) prepare(u upsert) error {
	s, maps := c.stmt.Schema, c.rows.maps != nil
	final := len(s.CreateClauses) == 0 // GORM adds these later, and they may change the kind
	// GORM numbers maps from LastInsertId if it takes the key for a counted one.
	if final && u.kind == inserts && !(maps && c.columns[0].field.HasDefaultValue) {
		return nil
	}
	if u.kind != byKey {
		if err := c.refuseRewrite(u); err != nil {
			return err
		}
	}
	if c.rows.fixed {
		return unaddressable(s) // GORM's RETURNING would panic as well
	}
	_, returning := c.stmt.Clauses["RETURNING"]
	if final && u.kind == byKey && !maps && !returning && len(s.FieldsWithDefaultDBValue) == 0 {
		return nil // GORM writes nothing to the rows
	}
	c.record()
	if u.kind == looksUp && u.updates() && !maps && canReturn(c.stmt) && c.returnColumns() {
		c.kind = returns
	}
	if u.isGormClause && u.conflict.DoNothing {
		c.countReturned(u)
	}
	return nil
}

// A hiddenConflict is a DO NOTHING that GORM does not take for one.
type hiddenConflict struct{ clause.OnConflict }

// countReturned makes RowsAffected of a DO NOTHING what it is without the plugin, if GORM
// reads a key of the plugin by RETURNING, because it takes the key for a counted one. GORM
// fills the rows of a slice that have no key, in order, and counts those that have one as if
// they had been returned. With the keys of the plugin these are all.
//
// If nothing else is returned, the clause is hidden from GORM until reconcile, so that it
// counts what is returned. Otherwise the keys are not returned, and GORM goes by the rest.
func (c *creation) countReturned(u upsert) {
	stmt := c.stmt
	_, hasReturning := stmt.Clauses["RETURNING"]
	if !c.in.traits.CountsInserts || c.rows.maps != nil || hasReturning || !canReturn(stmt) {
		return
	}
	if c.rows.structs.Kind() == reflect.Struct {
		c.exact = true
		return
	}
	keys, others := 0, []clause.Column(nil)
	for _, f := range stmt.Schema.FieldsWithDefaultDBValue {
		switch {
		case slices.ContainsFunc(c.columns, func(c column) bool { return c.field == f }):
			keys++
		case f.Readable:
			others = append(others, clause.Column{Name: f.DBName})
		}
	}
	switch {
	case keys > 0 && len(others) > 0:
		stmt.AddClause(clause.Returning{Columns: others})
	case keys > 0:
		c.exact, c.hidden = true, true
		on := stmt.Clauses[conflictClause]
		on.Expression = hiddenConflict{u.conflict}
		stmt.Clauses[conflictClause] = on
	}
}

// reveal undoes what countReturned has hidden, unless the model has put another clause in
// its place by CreateClauses.
func (c *creation) reveal() {
	on := c.stmt.Clauses[conflictClause]
	conflict, ok := on.Expression.(hiddenConflict)
	if c.exact, c.hidden = ok, ok; ok {
		on.Expression = conflict.OnConflict
		c.stmt.Clauses[conflictClause] = on
	}
}

// recount sets RowsAffected, which is the number of returned rows, to what GORM would have
// counted without the plugin: it passes over the rows whose key was set, and counts them.
func (c *creation) recount() {
	fresh, n := c.freshRows(), 0
	for range c.stmt.RowsAffected {
		for n < len(fresh) && !fresh[n] {
			n++
		}
		n = min(n+1, len(fresh))
	}
	c.stmt.RowsAffected = int64(n)
	if c.stmt.Result != nil {
		c.stmt.Result.RowsAffected = int64(n)
	}
}

// refuseRewrite returns [ErrKeyRewrite] if u would write the key that is sent over the
// stored row's key. It does not if u recognizes the stored row by that key.
func (c *creation) refuseRewrite(u upsert) error {
	for _, set := range u.conflict.DoUpdates {
		value, ok := set.Value.(clause.Column)
		if !ok || value.Table != "excluded" {
			continue
		}
		for _, key := range c.columns {
			if !key.field.PrimaryKey || set.Column.Name != key.field.DBName {
				continue
			}
			same, err := c.recognizes(u, key)
			if err != nil {
				return err
			}
			if !same {
				return fmt.Errorf("%w: %s.%s", ErrKeyRewrite, key.field.Schema.Name, key.field.Name)
			}
		}
	}
	return nil
}

// recognizes reports whether u recognizes stored rows by key alone. Where an upsert goes by
// every unique key, the table must have no other; a dry run believes the model and does not
// ask the catalog.
func (c *creation) recognizes(u upsert, key column) (bool, error) {
	if !slices.Contains(u.target(), key.field.DBName) {
		return false, nil
	}
	if !c.in.traits.OnDuplicateKey {
		return true, nil
	}
	if c.stmt.DryRun {
		return len(c.model.indexes()) == 0, nil
	}
	n, err := readback.UniqueKeys(c.asSent(u))
	return n == 1, err
}

// returnColumns makes the statement return the columns that the plugin fills, and reports
// whether it will. It also names the columns that the database fills, for which GORM asks
// only if there is no RETURNING clause.
//
// It leaves a statement alone whose RowsAffected would change: GORM counts the rows that are
// returned. Callers do not see RowsAffected of an association.
func (c *creation) returnColumns() bool {
	stmt := c.stmt
	current, hasReturning := stmt.Clauses["RETURNING"]
	returning, known := current.Expression.(clause.Returning)
	if hasReturning && !known || slices.ContainsFunc(c.columns, func(c column) bool { return !c.field.Readable }) {
		return false
	}
	list := slices.Clone(returning.Columns)
	named := func(name string) bool {
		return slices.ContainsFunc(list, func(c clause.Column) bool { return c.Name == name })
	}
	if hasReturning && (len(list) == 0 || named("*")) {
		return true
	}
	if !hasReturning {
		for _, f := range stmt.Schema.FieldsWithDefaultDBValue {
			if f.Readable {
				list = append(list, clause.Column{Name: f.DBName})
			}
		}
	}
	if len(list) == 0 && c.in.traits.OnDuplicateKey && !c.nested {
		return false
	}
	for _, column := range c.columns {
		if !named(column.field.DBName) {
			list = append(list, clause.Column{Name: column.field.DBName})
		}
	}
	current.Name, current.Expression = "RETURNING", clause.Returning{Columns: list}
	stmt.Clauses["RETURNING"] = current
	return true
}

// reconcile is the callback between the insert and the associations that need the keys.
// After an upsert the key in memory may be stored nowhere. reconcile sets it to the key of
// the stored row, or to zero.
func (in *installation) reconcile(db *gorm.DB) {
	v, ok := db.Statement.Settings.LoadAndDelete(creationSetting)
	if !ok {
		return
	}
	c, _ := v.(*creation)
	if c.stmt != db.Statement {
		return
	}
	if c.dropped != nil {
		c.upsertAgain(db)
	}
	if c.hidden {
		c.reveal()
	}
	if db.Error != nil || db.DryRun {
		return
	}
	if len(c.sent) > 0 {
		_ = db.AddError(c.reconcile())
	}
	if db.Error != nil {
		return
	}
	if r := in.plugin.recordOf(db.Statement.ConnPool); r != nil {
		in.note(c, r)
	}
	if c.hidden {
		c.recount()
	}
}

func (c *creation) reconcile() (err error) {
	if c.rows, err = rowsOf(c.stmt); err != nil {
		return err
	}
	u := c.upsert() // as GORM has completed it
	complete := c.stmt.RowsAffected == int64(c.rows.len())
	returned := complete && c.kind == returns
	if !returned && len(c.stmt.Schema.CreateClauses) > 0 {
		c.kind = u.kind // GORM has added them since
	}
	if returned {
		return nil
	}
	if c.rows.len()*len(c.columns) != len(c.sent) {
		return nil // GORM has replaced the rows by those that RETURNING * gave
	}
	c.restore()
	if c.kind == inserts || c.kind == byKey || complete && u.countsInserts() {
		return nil
	}
	return c.resolve(u)
}
