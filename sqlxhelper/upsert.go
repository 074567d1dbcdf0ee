package sqlxhelper

import (
	"context"
	"database/sql"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/types"
)

// An upsert is a conflict that fits a table.
type upsert struct {
	target  []column
	nothing bool   // DO NOTHING
	tail    string // what follows the values in a statement
}

// apply looks the columns up among those that are written to s, and sets its upsert.
func (c *conflict) apply(d *traits, s *station) error {
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
		return fmt.Errorf("%w: %s without a target; name the columns of a unique index of table %q, by ConflictTarget", ErrArgument, option, s.table)
	}
	target, err := s.writtenColumns("conflict target", c.target)
	if err != nil {
		return err
	}
	update, err := s.writtenColumns(option, c.update)
	if err != nil {
		return err
	}
	if c.action == doUpdate && len(update) == 0 {
		return fmt.Errorf("%w: OnConflictUpdate names no column", ErrArgument)
	}
	key := s.plan.columns[s.plan.key].name
	for _, name := range c.update {
		if name == key {
			return fmt.Errorf("%w: OnConflictUpdate: %q is the primary key of %v, to which other rows refer", ErrArgument, key, s.plan.typ)
		}
		if slices.Contains(c.target, name) {
			return fmt.Errorf("%w: OnConflictUpdate: %q is in the conflict target", ErrArgument, name)
		}
	}
	s.upsert = &upsert{target, c.action == doNothing, d.conflictText(key, target, update)}
	return nil
}

// writtenColumns returns the columns that an option names. All of them have to be
// written.
func (s *station) writtenColumns(option string, names []string) ([]column, error) {
	found := make([]column, len(names))
	for i, name := range names {
		j := slices.IndexFunc(s.columns, func(c column) bool { return c.name == name })
		switch {
		case s.plan.find(name) < 0:
			return nil, fmt.Errorf("%w: %s: %v has no field for column %q", ErrArgument, option, s.plan.typ, name)
		case j < 0:
			return nil, fmt.Errorf("%w: %s: column %q of %v is not written", ErrArgument, option, name, s.plan.typ)
		case slices.Contains(names[:i], name):
			return nil, fmt.Errorf("%w: %s: column %q twice", ErrArgument, option, name)
		}
		found[i] = s.columns[j]
	}
	return found, nil
}

// conflictText returns what follows the values. Without columns to update it is DO
// NOTHING. The names have passed the checks of insertHead.
func (t *traits) conflictText(key string, target, update []column) string {
	if !t.onDuplicateKey {
		text := " ON CONFLICT (" + t.list(target, "@", ", ") + ") DO "
		if len(update) == 0 {
			return text + "NOTHING"
		}
		return text + "UPDATE SET " + t.list(update, "@ = excluded.@", ", ")
	}
	// INSERT IGNORE will not do for DO NOTHING: it also ignores cut values, NULLs
	// and missing parents. VALUES(c) is deprecated in MySQL 8 for an alias of the
	// row. But neither MySQL 5.7 nor MariaDB has the alias.
	//
	// MySQL takes every unique index for a conflict. It would update a stored row
	// that has nothing to do with the target, or drop the new one for it. The row
	// that is found by the target afterwards could even be a third one. So the
	// first assignment compares the stored row with the row that was sent. It does
	// so by the collation and in the precision of the columns. If they differ,
	// ~0 + 1 is error 1690 in any SQL mode, and the statement is undone. Otherwise
	// ~0 + 0 keeps the key. It is not a constant, so no optimizer computes it ahead.
	// IS NOT TRUE holds for NULL as well.
	k := t.Quote(key)
	text := " ON DUPLICATE KEY UPDATE " + k + " = IF(~0 + ((" + t.list(target, "@ = VALUES(@)", " AND ") + ") IS NOT TRUE), " + k + ", " + k + ")"
	if len(update) > 0 {
		text += ", " + t.list(update, "@ = VALUES(@)", ", ")
	}
	return text
}

// explained says what an error of the statement means in an upsert.
func (u *upsert) explained(err error) error {
	if u != nil && dialect.OutOfRange(err) { // see conflictText
		return fmt.Errorf("%w: a row is like a stored one in another unique index than that on %s: %w", ErrUnresolved, u.names(), err)
	}
	return err
}

func (u *upsert) names() string {
	names := make([]string, len(u.target))
	for i, c := range u.target {
		names[i] = c.name
	}
	return strings.Join(names, ", ")
}

// upserts reports whether rows of the call may have been stored before it.
func (w *writer) upserts() bool {
	return slices.ContainsFunc(w.loads, func(l load) bool { return l.upsert != nil })
}

// looks reports whether the call selects rows after it has sent them.
func (w *writer) looks() bool {
	return w.upserts() || slices.ContainsFunc(w.loads, func(l load) bool { return l.read != nil })
}

// settle gives every row of an upsert the key of the stored row, and its
// children after it.
//
// The answer to the statement is of little use. MySQL counts two for an update, and
// its count of other rows depends on the connection. RETURNING has no order on
// PostgreSQL and no rows for DO NOTHING. MySQL does not have it. So the rows are
// looked up.
//
// First comes a look by the keys that this call assigned. Nobody else has them, so
// a row with one is the row that was inserted. A key that the caller had set proves
// nothing, because the stored row with that target may have another. Rows with such
// keys, and rows that were not inserted, are looked up by the target. The database
// compares. Only it knows its collations and the precision of its columns. A row
// that is not found and had a key is looked up by that key. It has been inserted,
// because otherwise a stored row would be like it in the target. That happens if it
// has NULL there.
func (w *writer) settle(ctx context.Context, s session, l *load) error {
	if l.upsert == nil {
		return nil
	}
	if l.upsert.nothing && !w.dialect.onDuplicateKey && l.affected == int64(len(l.rows)) {
		return nil // all of them were inserted
	}
	stored := make([]types.Snowflake, len(l.rows)) // 0: not found
	var fresh, set, others []int
	for i := range l.rows {
		if l.fresh[i] {
			fresh = append(fresh, i)
		} else {
			set = append(set, i)
		}
	}
	if err := w.findByKey(ctx, s, l, fresh, stored); err != nil {
		return err
	}
	for i := range l.rows {
		if stored[i] == 0 {
			others = append(others, i)
		}
	}
	if err := w.findByTarget(ctx, s, l, others, stored); err != nil {
		return err
	}
	set = slices.DeleteFunc(set, func(i int) bool { return stored[i] != 0 })
	if err := w.findByKey(ctx, s, l, set, stored); err != nil {
		return err
	}
	for _, i := range others {
		if stored[i] == 0 {
			return w.unresolved(l, i, "no stored row has its "+l.upsert.names())
		}
	}
	w.replaceKeys(l, stored)
	return nil
}

// replaceKeys sets the keys of the rows of l, and the foreign keys of their children.
func (w *writer) replaceKeys(l *load, stored []types.Snowflake) {
	changed := false
	for i, row := range l.rows {
		if id := l.plan.id(row); *id != stored[i] {
			w.replaced = append(w.replaced, replacedKey{id, *id})
			*id, changed, l.fresh[i] = stored[i], true, false
		}
	}
	if changed {
		w.walk.relink()
	}
}

// A replacedKey is a key in memory and what it was before settle.
type replacedKey struct {
	id  *types.Snowflake
	was types.Snowflake
}

// restoreKeys undoes what settle has done. The rows with those keys were rolled
// back, or others may delete them before the next attempt.
func (w *writer) restoreKeys() {
	for _, r := range w.replaced {
		*r.id = r.was
	}
	if w.replaced != nil {
		w.replaced = nil
		w.walk.relink()
	}
}

func (w *writer) unresolved(l *load, row int, problem string) error {
	return w.rowError(l, row, "", fmt.Errorf("%w: %s", ErrUnresolved, problem))
}

// findByKey sets the stored key of those rows in list whose key is stored.
func (w *writer) findByKey(ctx context.Context, s session, l *load, list []int, stored []types.Snowflake) error {
	at := make(map[types.Snowflake][]int, len(list))
	for _, i := range list {
		id := *l.plan.id(l.rows[i])
		at[id] = append(at[id], i)
	}
	var id types.Snowflake
	return w.byKeys(ctx, s, l, at, nil, false, func(rows *sql.Rows) error {
		if err := rows.Scan(&id); err != nil {
			return err
		}
		for _, i := range at[id] {
			stored[i] = id
		}
		return nil
	})
}

// lookupsPerQuery, divided by the columns of the target, bounds the rows that one
// statement looks up. SQLite takes 500 parts of a UNION.
const lookupsPerQuery = 128

// findByTarget sets the stored key of the rows in list that are like a stored one
// in the target. It is an error if one is like several. That happens without the
// unique index, which a MySQL statement does not name.
//
// The values are compared in the form that the column has stored: a DECIMAL(10,2) keeps
// 1.23 of 1.234. The types of the columns are read for that, in the transaction of the
// upsert, which keeps others from changing them. They are not remembered, since with the
// type of yesterday a row would get the key of another one. Where databases compare as they
// store, that is only for rows of which none or several are found as they were sent.
func (w *writer) findByTarget(ctx context.Context, s session, l *load, list []int, stored []types.Snowflake) (err error) {
	var several map[int]types.Snowflake
	again := list
	if w.dialect.Dialect != MySQL {
		if several, err = w.compareTarget(ctx, s, l, list, stored, nil); err != nil {
			return err
		}
		again = slices.DeleteFunc(slices.Clone(list), func(i int) bool {
			_, ambiguous := several[i]
			return !ambiguous && (stored[i] != 0 || w.nullTarget(l, i))
		})
	}
	if len(again) > 0 {
		forms, err := w.storedForms(ctx, s, l)
		if err != nil {
			return err
		}
		if forms != nil {
			for _, i := range again {
				stored[i] = 0
			}
			if several, err = w.compareTarget(ctx, s, l, again, stored, forms); err != nil {
				return err
			}
		}
	}
	for _, i := range list {
		if other, ambiguous := several[i]; ambiguous {
			return w.unresolved(l, i, fmt.Sprintf("the stored rows %d and %d both have its %s", stored[i], other, l.upsert.names()))
		}
	}
	return nil
}

// compareTarget is findByTarget with one form of the values for each column of the
// target, or without. several has the rows that are like more than one stored row, with
// the key of the second.
func (w *writer) compareTarget(ctx context.Context, s session, l *load, list []int, stored []types.Snowflake, forms []storedForm) (several map[int]types.Snowflake, err error) {
	key := w.dialect.Quote(l.plan.columns[l.plan.key].name)
	from := ", " + key + " FROM " + w.dialect.Quote(l.table) + " WHERE "
	open, end := "", w.dialect.forUpdate
	if end != "" {
		open, end = "(", end+")"
	}
	width := len(l.upsert.target)
	most := max(1, lookupsPerQuery/width)
	several = map[int]types.Snowflake{}
	for chunk := range slices.Chunk(list, most) {
		args := make([]any, 0, len(chunk)*width)
		queries := make([]string, fewSizes(len(chunk), most))
		for i := range queries {
			// The last row fills up the number. To ask for it twice does no harm.
			row := chunk[min(i, len(chunk)-1)]
			conditions := make([]string, width)
			for j, c := range l.upsert.target {
				value := w.dialect.Placeholder(len(args) + j + 1)
				if forms != nil && forms[j].SQL != "" {
					value = strings.Replace(forms[j].SQL, "?", value, 1)
				}
				conditions[j] = w.dialect.Quote(c.name) + " = " + value
			}
			if args, err = w.arguments(args, l, row, l.upsert.target); err != nil { // as they were sent
				return nil, err
			}
			for j, form := range forms {
				known := false
				if v := &args[len(args)-width+j]; form.Proves() {
					if *v, known = form.Value(*v); !known {
						return nil, w.unresolved(l, row, fmt.Sprintf("column %q has the type %s, which compares such a value otherwise than it stores it", l.upsert.target[j].name, form.typ))
					}
				}
			}
			queries[i] = open + "SELECT " + strconv.Itoa(i) + from + strings.Join(conditions, " AND ") + end
		}
		var i int
		var id types.Snowflake
		err := w.query(ctx, s, l, strings.Join(queries, " UNION ALL "), args, func(rows *sql.Rows) error {
			if err := rows.Scan(&i, &id); err != nil {
				return err
			}
			row := chunk[min(i, len(chunk)-1)]
			if stored[row] != 0 && stored[row] != id {
				several[row] = id
				return nil
			}
			stored[row] = id
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return several, nil
}

// nullTarget reports whether a row has NULL in the target, and so is like no other.
func (w *writer) nullTarget(l *load, row int) bool {
	args, err := w.arguments(nil, l, row, l.upsert.target)
	return err == nil && slices.ContainsFunc(args, func(v any) bool {
		switch f := reflect.ValueOf(v); f.Kind() {
		case reflect.Invalid:
			return true
		case reflect.Pointer, reflect.Slice:
			return f.IsNil()
		}
		return false
	})
}

// A storedForm is how a column is compared, and its type.
type storedForm struct {
	dialect.Form
	typ string
}

// storedForms returns the form of each column of the target, or nil if all of them compare
// any value as they store it.
func (w *writer) storedForms(ctx context.Context, s session, l *load) ([]storedForm, error) {
	var text string
	var args []any
	switch w.dialect.Dialect {
	case PostgreSQL:
		text = "SELECT attname, pg_catalog.format_type(atttypid, atttypmod), NULL FROM pg_catalog.pg_attribute WHERE attrelid = pg_catalog.to_regclass($1) AND attnum > 0"
		args = []any{w.dialect.Quote(l.table)}
	case MySQL: // unlike the catalog it shows temporary tables
		text = "SHOW FULL COLUMNS FROM " + w.dialect.Quote(l.table)
	default:
		return nil, nil
	}
	forms := make([]storedForm, len(l.upsert.target))
	err := w.query(ctx, s, l, text, args, func(rows *sql.Rows) error {
		names, err := rows.Columns()
		if err != nil {
			return err
		}
		var name, typ string
		var collation sql.NullString
		into := []any{&name, &typ, &collation}
		for range names[3:] {
			into = append(into, new(any))
		}
		if err := rows.Scan(into...); err != nil {
			return err
		}
		for j, c := range l.upsert.target {
			if c.name == name || w.dialect.Dialect == MySQL && strings.EqualFold(c.name, name) {
				forms[j] = storedForm{dialect.FormOf(w.dialect.Dialect, typ, collation.String), typ}
			}
		}
		return nil
	})
	return forms, err
}
