package sqlxhelper

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/snowkey/snowkey/internal/base/dialect"
)

// An upsert is a conflict applied to a table.
type upsert struct {
	names   []string // of the target
	nothing bool     // DO NOTHING
}

// apply finds the columns among those that are written to t, and sets its upsert.
func (c *conflict) apply(d *traits, t *table) error {
	option := "OnConflictUpdate"
	switch c.action {
	case fail:
		if c.target != nil {
			return fmt.Errorf("%w: ConflictTarget without OnConflictDoNothing or OnConflictUpdate", ErrArgument)
		}
		return nil
	case doNothing:
		option = "OnConflictDoNothing"
	}
	if len(c.target) == 0 {
		return fmt.Errorf("%w: %s without a target; name the columns of a unique index of table %q, by ConflictTarget", ErrArgument, option, t.name)
	}
	target, err := t.writtenColumns("conflict target", c.target)
	if err != nil {
		return err
	}
	update, err := t.writtenColumns(option, c.update)
	if err != nil {
		return err
	}
	if c.action == doUpdate && len(update) == 0 {
		return fmt.Errorf("%w: OnConflictUpdate names no column", ErrArgument)
	}
	key := t.key.name
	for _, name := range c.update {
		if name == key {
			return fmt.Errorf("%w: OnConflictUpdate: %q is the primary key of %v, to which other rows refer", ErrArgument, key, t.plan.typ)
		}
		if slices.Contains(c.target, name) {
			return fmt.Errorf("%w: OnConflictUpdate: %q is in the conflict target", ErrArgument, name)
		}
	}
	t.upsert, t.tail = &upsert{c.target, c.action == doNothing}, d.conflictText(key, target, update)
	return nil
}

// writtenColumns returns the columns that an option names. All must be columns that are
// written.
func (t *table) writtenColumns(option string, names []string) ([]column, error) {
	found := make([]column, len(names))
	for i, name := range names {
		j := slices.IndexFunc(t.columns, func(c column) bool { return c.name == name })
		switch {
		case t.plan.indexOf(name) < 0 && strings.ContainsAny(name, "( "):
			return nil, fmt.Errorf("%w: %s: %q is an expression, and only columns can be named; let the column compare so by its collation or type, or store the value of the expression in a column with a unique index", ErrArgument, option, name)
		case t.plan.indexOf(name) < 0:
			return nil, fmt.Errorf("%w: %s: %v has no field for column %q", ErrArgument, option, t.plan.typ, name)
		case j < 0:
			return nil, fmt.Errorf("%w: %s: column %q of %v is not written", ErrArgument, option, name, t.plan.typ)
		case slices.Contains(names[:i], name):
			return nil, fmt.Errorf("%w: %s: column %q twice", ErrArgument, option, name)
		}
		found[i] = t.columns[j]
	}
	return found, nil
}

// conflictText returns what follows the values, which is DO NOTHING without columns to update.
// The names have passed the checks of insertHead.
func (t *traits) conflictText(key string, target, update []column) string {
	if !t.OnDuplicateKey {
		text := " ON CONFLICT (" + t.names(target, "@", ", ") + ") DO "
		if len(update) == 0 {
			return text + "NOTHING"
		}
		return text + "UPDATE SET " + t.names(update, "@ = excluded.@", ", ")
	}
	// INSERT IGNORE does not serve for DO NOTHING, because it also ignores cut values, NULLs
	// and missing parents. VALUES(c) is deprecated in MySQL 8 in favour of an alias of the row,
	// which neither MySQL 5.7 nor MariaDB has.
	//
	// MySQL takes every unique index for a conflict. It would update a stored row that has
	// nothing to do with the target, or drop the new row for it, and the row that is found by
	// the target afterwards could even be a third one. Therefore the first assignment compares
	// the stored row with the one that was sent, by the collation and in the precision of the
	// columns. If they differ, ~0 + 1 is error 1690 in any SQL mode, and the statement is
	// undone. Otherwise ~0 + 0 keeps the key; it is not a constant that an optimizer could
	// compute ahead. IS NOT TRUE holds for NULL as well.
	k := t.Quote(key)
	text := " ON DUPLICATE KEY UPDATE " + k + " = IF(~0 + ((" + t.names(target, "@ = VALUES(@)", " AND ") + ") IS NOT TRUE), " + k + ", " + k + ")"
	if len(update) > 0 {
		text += ", " + t.names(update, "@ = VALUES(@)", ", ")
	}
	return text
}

// explained adds to an error of the statement what it means in an upsert.
func (u *upsert) explained(err error) error {
	var e *InsertError
	switch {
	case u == nil || !errors.As(err, &e):
	case dialect.OutOfRange(err): // see conflictText
		e.Err = fmt.Errorf("%w: a row is like a stored one in another unique index than that on %s: %w", ErrUnresolved, u.list(), e.Err)
	case dialect.NoTarget(err):
		e.Err = fmt.Errorf("the conflict target is %s; want a unique index on exactly these columns, without expressions and without WHERE: %w", u.list(), e.Err)
	}
	return err
}

// list returns the names of the target, for errors.
func (u *upsert) list() string { return strings.Join(u.names, ", ") }
