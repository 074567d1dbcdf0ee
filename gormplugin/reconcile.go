package gormplugin

import (
	"fmt"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// ensure runs between the hooks and the insert. It assigns the keys that a hook
// removed and prepares [installation.reconcile].
func (in *installation) ensure(db *gorm.DB) {
	c := in.fill(db)
	if c == nil || c.rows.len() == 0 {
		return
	}
	err := c.keyless()
	if err == nil && len(c.columns) > 0 {
		err = c.prepare(db)
	}
	_ = db.AddError(err)
}

// prepare records what is sent, if the database may change the keys in memory. It
// asks for the stored keys where one statement can do both.
func (c *creation) prepare(db *gorm.DB) error {
	u, ok := upsertOf(c.stmt)
	// CreateClauses may still make it an upsert. GORM also numbers maps from
	// LastInsertId if it takes the key for a counted one.
	if !ok && len(c.stmt.Schema.CreateClauses) == 0 && (c.rows.maps == nil || !c.columns[0].field.HasDefaultValue) {
		return nil
	}
	if err := c.refuseRewrite(db, u); err != nil {
		return err
	}
	if err := c.record(); err != nil {
		return err
	}
	if u.updates(c.stmt) && c.rows.maps == nil && canReturn(c.stmt) && !c.keyKnown(u) {
		c.returned = c.returnColumns()
	}
	return nil
}

// refuseRewrite returns [ErrKeyRewrite] if u writes the key that is sent over that of
// the stored row. It does not if u recognizes the row by that key.
func (c *creation) refuseRewrite(db *gorm.DB, u upsert) error {
	for _, set := range u.conflict.DoUpdates {
		value, ok := set.Value.(clause.Column)
		if !ok || value.Table != "excluded" {
			continue
		}
		for _, key := range c.columns {
			if !key.field.PrimaryKey || set.Column.Name != key.field.DBName {
				continue
			}
			same, err := c.recognizes(db, u, key)
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

// recognizes reports whether u recognizes stored rows by key. MySQL goes by every
// unique key of the table, whatever the statement names. A dry run asks the database
// nothing and believes the model.
func (c *creation) recognizes(db *gorm.DB, u upsert, key column) (bool, error) {
	if !slices.Contains(u.target(c.model.schema), key.field.DBName) {
		return false, nil
	}
	if db.Name() != mysqlName {
		return true, nil
	}
	if db.DryRun {
		return len(c.model.indexes()) == 0, nil
	}
	uniques, err := (&reread{creation: c, db: db}).storedUniques()
	return len(uniques) == 1, err
}

// keyKnown reports whether a stored row that u meets can only have the key in memory,
// as far as the model tells. Then the key is part of what u recognizes the row by.
func (c *creation) keyKnown(u upsert) bool {
	return u.plain && len(c.columns) == 1 &&
		slices.Contains(u.target(c.stmt.Schema), c.columns[0].field.DBName) &&
		(c.stmt.Dialector.Name() != mysqlName || len(c.model.indexes()) == 0)
}

// reconcile runs between the insert and the associations that need the keys. After
// an upsert no stored row may have the key in memory. It sets that key to the one of
// the stored row, or to zero.
func (in *installation) reconcile(db *gorm.DB) {
	v, ok := db.Statement.Settings.LoadAndDelete(creationSetting)
	if !ok || db.Error != nil || db.DryRun {
		return
	}
	if c, _ := v.(*creation); c.stmt == db.Statement && len(c.sent) > 0 {
		_ = db.AddError(c.reconcile(db))
	}
}

func (c *creation) reconcile(db *gorm.DB) (err error) {
	if c.rows, err = rowsOf(c.stmt); err != nil {
		return err
	}
	if c.rows.len()*len(c.columns) != len(c.sent) {
		return nil // GORM has replaced the rows by those that RETURNING * gave
	}
	u, isUpsert := upsertOf(c.stmt)
	complete := db.RowsAffected == int64(c.rows.len())
	if complete && c.returned {
		return nil
	}
	c.restore()
	if !isUpsert || complete && u.countsInserts(c.stmt) {
		return nil
	}
	if c.keyKnown(u) {
		same, err := c.recognizes(db, u, c.columns[0])
		if same || err != nil {
			return err
		}
	}
	return (&reread{creation: c, db: db, upsert: u}).run()
}
