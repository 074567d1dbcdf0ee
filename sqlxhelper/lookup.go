package sqlxhelper

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"math/bits"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/outcome"
	"github.com/snowkey/snowkey/types"
)

// resolve gives every row of an upsert the key of the stored row, and its children after it.
// err is the error of the statements.
//
// Their answers do not tell. MySQL counts two for an update, and its count of other rows
// depends on the connection; RETURNING has no order on PostgreSQL and no rows for DO NOTHING,
// and MySQL lacks it. The rows are therefore looked up.
//
// The first look is by the keys that this call has assigned. Nothing else uses them, so a
// stored row with one is the row that was inserted. A key that the caller has set proves
// nothing, because the stored row with that target may have another. Rows with such keys, and
// rows that were not inserted, are looked up by the target. The database compares, because only
// it knows its collations and the precision of its columns. A row that is not found but had a
// key is looked up by that key. It has been inserted, because otherwise a stored row would
// equal it in the target; this happens if the target has a NULL.
func (w *writer) resolve(ctx context.Context, s session, l *load, err error) error {
	if err != nil {
		return l.upsert.explained(err)
	}
	if l.upsert.nothing && !w.dialect.onDuplicateKey && l.affected == int64(len(l.rows)) {
		return nil // all of them were inserted
	}
	stored := make([]types.Snowflake, len(l.rows)) // zero: not found
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
			return w.unresolved(l, i, w.missing(ctx, s, l))
		}
	}
	return w.replaceKeys(l, stored)
}

// missing says that no row is found for one that was not inserted. On PostgreSQL the stored row may
// be one that the user must not see.
func (w *writer) missing(ctx context.Context, s session, l *load) string {
	problem, secured := "no stored row has its "+l.upsert.names(), false
	if w.dialect.Dialect == PostgreSQL {
		err := w.query(ctx, s, l, "SELECT pg_catalog.row_security_active(CAST(pg_catalog.to_regclass($1) AS OID))", []any{w.dialect.Quote(l.name)},
			func(rows *sql.Rows) error { return rows.Scan(&secured) })
		if err == nil && secured {
			problem += " that this user sees: row level security may hide it; let a policy for SELECT show it, or name a target that includes the tenant"
		}
	}
	return problem
}

// replaceKeys sets the keys of the rows of l, and the foreign keys of their children, which also
// follow the stored row to its shard.
func (w *writer) replaceKeys(l *load, stored []types.Snowflake) error {
	changed := false
	for i, row := range l.rows {
		if id := l.plan.id(row); *id != stored[i] {
			w.replaced = append(w.replaced, replacedKey{id, *id})
			*id, changed, l.fresh[i] = stored[i], true, false
		}
	}
	if !changed {
		return nil
	}
	if err := w.follow(l); err != nil {
		return err
	}
	w.all.link()
	return nil
}

// A replacedKey is a key in memory and its value before resolve.
type replacedKey struct {
	id  *types.Snowflake
	was types.Snowflake
}

// restoreKeys undoes resolve. The rows with those keys were rolled back, or others may delete
// them before the next attempt.
func (w *writer) restoreKeys() {
	for _, r := range slices.Backward(w.replaced) { // a key may have changed twice
		*r.id = r.was
	}
	if w.replaced != nil {
		w.replaced = nil
		w.all.link()
	}
}

func (w *writer) unresolved(l *load, row int, problem string) error {
	return w.rowError(l, row, "", fmt.Errorf("%w: %s", ErrUnresolved, problem))
}

// findByKey sets the stored key of the rows in list whose key is stored.
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

// findByTarget sets the stored key of the rows in list that equal a stored row in the target.
// It is an error if one equals several, as without the unique index, which a MySQL statement
// does not name.
//
// The values are compared in the form that the column stores: a DECIMAL(10,2) keeps 1.23 of
// 1.234. For that, the types of the columns are read in the transaction of the upsert, which
// keeps others from changing them. They are not cached, because with an outdated type a row
// would get another one's key. Where databases compare as they store, this is done only for
// rows of which none or several are found as they were sent.
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

// compareTarget is findByTarget with one form of the values for each column of the target, or
// without. several maps the rows that equal more than one stored row to the key of the second.
func (w *writer) compareTarget(ctx context.Context, s session, l *load, list []int, stored []types.Snowflake, forms []storedForm) (several map[int]types.Snowflake, err error) {
	key := w.dialect.Quote(l.plan.columns[l.plan.key].name)
	from := ", " + key + " FROM " + w.dialect.Quote(l.name) + " WHERE "
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
			// The last row fills up the number; asking for it twice does no harm.
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

// nullTarget reports whether a row has NULL in the target, and so equals no other.
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

// A storedForm is how a column compares values, and its type.
type storedForm struct {
	dialect.Form
	typ string
}

// storedForms returns the form of each column of the target, or nil if all of them compare any
// value as they store it.
func (w *writer) storedForms(ctx context.Context, s session, l *load) ([]storedForm, error) {
	var text string
	var args []any
	switch w.dialect.Dialect {
	case PostgreSQL:
		text = "SELECT attname, pg_catalog.format_type(atttypid, atttypmod), NULL FROM pg_catalog.pg_attribute WHERE attrelid = pg_catalog.to_regclass($1) AND attnum > 0"
		args = []any{w.dialect.Quote(l.name)}
	case MySQL: // which, unlike the catalog, shows temporary tables
		text = "SHOW FULL COLUMNS FROM " + w.dialect.Quote(l.name)
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

// keysPerQuery bounds the keys in one statement. Old versions of SQLite take 999 values.
const keysPerQuery = 512

// fewSizes returns the power of two, at most most, to which n values are filled up. It keeps
// the number of texts small, each of which pgx keeps prepared on the server.
func fewSizes(n, most int) int { return min(1<<bits.Len(uint(n-1)), most) }

// byKeys selects the key and fields of the rows stored under the keys of at, and calls scan for
// each. With lock, they may be rows of others.
func (w *writer) byKeys(ctx context.Context, s session, l *load, at map[types.Snowflake][]int, fields []destination, lock bool, scan func(*sql.Rows) error) error {
	key, of := w.dialect.Quote(l.plan.columns[l.plan.key].name), ""
	if w.dialect.nameIsText {
		of = w.dialect.Quote(l.name) + "."
	}
	names := []string{key}
	for _, f := range fields {
		names = append(names, of+w.dialect.Quote(f.name))
	}
	head := "SELECT " + strings.Join(names, ", ") + " FROM " + w.dialect.Quote(l.name) + " WHERE " + key + " IN ("
	end := ")"
	if lock {
		end += w.dialect.forUpdate
	}
	// In order, for the index and for readers of logs.
	for chunk := range slices.Chunk(slices.Sorted(maps.Keys(at)), keysPerQuery) {
		args := make([]any, fewSizes(len(chunk), keysPerQuery))
		marks := make([]string, len(args))
		for i := range args {
			args[i], marks[i] = int64(chunk[min(i, len(chunk)-1)]), w.dialect.Placeholder(i+1)
		}
		if err := w.query(ctx, s, l, head+strings.Join(marks, ", ")+end, args, scan); err != nil {
			return err
		}
	}
	return nil
}

// query runs a SELECT and calls scan for each row.
func (w *writer) query(ctx context.Context, s session, l *load, text string, args []any, scan func(*sql.Rows) error) (err error) {
	defer func() {
		if err != nil {
			w.stale = w.stale || dialect.StalePlan(err)
			err = fmt.Errorf("sqlxhelper: read back from %s: %w", l.name, err)
		}
	}()
	if err := ctx.Err(); err != nil {
		return err
	}
	return outcome.Do(ctx, s.cancels, func() error {
		return outcome.Each(w.dialect.sends(ctx), s.db, func(rows *sql.Rows) error {
			if s.cancels < outcome.CancelsStatements && ctx.Err() != nil {
				return ctx.Err() // the caller may have returned, and own what scan changes
			}
			return scan(rows)
		}, text, args...)
	})
}
