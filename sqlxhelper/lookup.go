package sqlxhelper

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/outcome"
	"github.com/snowkey/snowkey/internal/base/readback"
	"github.com/snowkey/snowkey/types"
)

// resolve gives every row of an upsert the key of the stored row, and its children after it.
// err is the error of the statements.
func (w *writer) resolve(ctx context.Context, s session, l *load, err error) error {
	if err != nil {
		return l.upsert.explained(err)
	}
	inserted := int64(-1)
	if l.upsert.nothing && !w.dialect.onDuplicateKey {
		if inserted = l.affected; inserted == int64(len(l.rows)) {
			return nil // all of them
		}
	}
	key := l.plan.columns[l.plan.key].name
	target := readback.KeyOf(l.upsert.columns()...)
	rows := &sentRows{l: l}
	sent := &readback.Statement{
		Dialect: w.dialect.Dialect, Table: w.dialect.Quote(l.name), Names: l.upsert.columns(), Columns: []string{key},
		Primary: []string{key}, Target: &target, Inserted: inserted, Quote: w.dialect.Quote,
		Key: func(stored any) (any, error) {
			var id types.Snowflake
			err := id.Scan(stored)
			return int64(id), err
		},
		Query: func(t *readback.Text, scan func(*sql.Rows) error) error {
			if rows.err != nil {
				return w.rowError(l, rows.at, rows.field, rows.err)
			}
			return w.query(ctx, s, l, t.String(), t.Args, scan)
		},
	}
	found, err := readback.Find(sent, rows)
	if err != nil {
		return err
	}
	for i, f := range found {
		if f.Key == nil {
			return w.unresolved(l, i, l.upsert.problem(sent, f))
		}
	}
	return w.replaceKeys(l, found)
}

// sentRows are the rows of an upsert as package readback sees them.
type sentRows struct {
	l     *load
	at    int // the row with err
	field string
	err   error // of a Value method
}

// Len returns the number of rows.
func (r *sentRows) Len() int { return len(r.l.rows) }

// Key returns the key of a row, and whether the call has assigned it.
func (r *sentRows) Key(row int) (key any, fresh bool) {
	return int64(*r.l.plan.id(r.l.rows[row])), r.l.fresh[row]
}

// Value returns the argument for a column of the target.
func (r *sentRows) Value(row int, column string) (any, readback.Known) {
	for i := range r.l.upsert.target {
		if c := &r.l.upsert.target[i]; strings.EqualFold(c.name, column) {
			v, err := c.argument(r.l.rows[row])
			if err != nil {
				r.at, r.field, r.err = row, c.field, err
			}
			return v, readback.Sent
		}
	}
	return nil, readback.Nothing
}

// problem says why the stored row of a row is not known.
func (u *upsert) problem(s *readback.Statement, f readback.Found) string {
	names := u.names()
	switch {
	case f.Reason == readback.ReasonType:
		return fmt.Sprintf("column %q has the type %s, which compares such a value otherwise than it stores it", f.Column, f.Type)
	case f.Reason == readback.ReasonTwoRows:
		return fmt.Sprintf("the stored rows %d and %d both have its %s", f.Two[0], f.Two[1], names)
	case readback.Hides(s):
		return "no stored row has its " + names + " that this user sees: row level security may hide it; let a policy for SELECT show it, or name a target that includes the tenant"
	default:
		return "no stored row has its " + names
	}
}

// replaceKeys sets the keys of the rows of l, and the foreign keys of their children, which also
// follow the stored row to its shard.
func (w *writer) replaceKeys(l *load, stored []readback.Found) error {
	changed := false
	for i, row := range l.rows {
		key, _ := stored[i].Key.(int64)
		if id := l.plan.id(row); int64(*id) != key {
			w.replaced = append(w.replaced, replacedKey{id, *id})
			*id, changed, l.fresh[i] = types.Snowflake(key), true, false
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
	for chunk := range slices.Chunk(slices.Sorted(maps.Keys(at)), readback.KeysPerQuery) {
		args := make([]any, readback.FewSizes(len(chunk), readback.KeysPerQuery))
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
