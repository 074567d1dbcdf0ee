package gormplugin

import (
	"fmt"

	"gorm.io/gorm"
)

// assign is the first create callback. It assigns a key to every row that lacks one.
// GORM creates associations with statements of their own, which have this callback
// too. So it does not look into the graph.
func (in *installation) assign(db *gorm.DB) {
	if c := in.fill(db); c != nil && c.nested {
		c.dedupe()
	}
}

// fill assigns the missing keys, all or none, unless a row cannot be stored.
func (c *creation) fill(src Source) error {
	if err := c.read(); err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return err
	}
	ctx, missing := c.stmt.Context, 0
	for i := range c.rows.len() {
		r := c.rows.at(i)
		for k := range c.columns {
			if c.columns[k].empty(ctx, r) {
				missing++
			}
		}
	}
	if missing == 0 {
		return nil
	}
	if !c.rows.settable(0) { // then no row is
		return unaddressable(c.stmt.Schema)
	}
	ids, err := reserve(ctx, src, missing)
	if err != nil {
		return fmt.Errorf("gormplugin: %d keys for %s: %w", missing, c.stmt.Schema.Name, err)
	}
	next := 0
	for i := range c.rows.len() {
		r := c.rows.at(i)
		for k := range c.columns {
			// Checked again, because one pointer may be in the slice twice.
			if c.columns[k].empty(ctx, r) {
				c.columns[k].put(ctx, r, c.columns[k].of(ids[next]))
				next++
			}
		}
	}
	c.fresh = append(ids[:next], c.fresh...)
	return nil
}
