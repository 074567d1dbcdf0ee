package sqlxhelper

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/outcome"
	"github.com/snowkey/snowkey/internal/base/readback"
	"github.com/snowkey/snowkey/types"
)

// resolve gives every row of an upsert the key of the stored row, and its children after it.
// affected is the count of the statements.
func (a *attempt) resolve(ctx context.Context, s session, l *load, affected int64) error {
	inserted := int64(-1)
	if l.upsert.nothing && a.dialect.CountsInserts {
		if inserted = affected; inserted == int64(len(l.rows)) {
			return nil // all of them
		}
	}
	key := l.key.name
	target := readback.KeyOf(l.upsert.names...)
	rows := &sentRows{l: l}
	sent := &readback.Statement{
		Dialect: a.dialect.Dialect, Table: a.dialect.Quote(l.name), Names: l.upsert.names, Columns: []string{key},
		Primary: []string{key}, Target: &target, Inserted: inserted, Quote: a.dialect.Quote,
		Key: func(stored any) (any, error) {
			id, null, err := l.key.key.Scan(stored)
			if null && err == nil {
				err = types.ErrNull
			}
			return int64(id), err
		},
		Query: func(t *readback.Text, scan func(*sql.Rows) error) error {
			if rows.err != nil {
				return a.rowError(l, rows.at, rows.field, rows.err)
			}
			return a.query(ctx, s, l, t.String(), t.Args, scan)
		},
	}
	found, err := readback.Find(sent, rows)
	if err != nil {
		return err
	}
	for i, f := range found {
		if f.Key == nil {
			return a.unresolved(l, i, l.upsert.problem(sent, f))
		}
	}
	return a.replaceKeys(l, found)
}

// sentRows are the rows of an upsert as package readback sees them.
type sentRows struct {
	l     *load
	at    int // the row with err
	field string
	err   error // of a Value method
}

func (r *sentRows) Len() int { return len(r.l.rows) }

func (r *sentRows) Key(row int) (key any, fresh bool) {
	return int64(*r.l.plan.id(r.l.rows[row])), r.l.fresh[row]
}

// Value returns the argument for a column.
func (r *sentRows) Value(row int, column string) (any, readback.Known) {
	for i := range r.l.columns {
		if c := &r.l.columns[i]; c.name == column {
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
	names := u.list()
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
func (a *attempt) replaceKeys(l *load, stored []readback.Found) error {
	changed, last := false, types.Snowflake(0)
	for i, row := range l.rows {
		key, _ := stored[i].Key.(int64)
		if id := l.plan.id(row); int64(*id) != key {
			a.replaced = append(a.replaced, replacedKey{id, *id})
			*id, changed = types.Snowflake(key), true
		} else if l.fresh[i] {
			last = *id
		}
	}
	if !changed {
		return nil
	}
	if a.inserted == nil {
		a.inserted = map[*load]types.Snowflake{}
	}
	a.inserted[l] = last
	if err := a.follow(l); err != nil {
		return err
	}
	a.link()
	return nil
}

// A replacedKey is a key in memory and its value before resolve.
type replacedKey struct {
	id  *types.Snowflake
	was types.Snowflake
}

// restoreKeys undoes resolve. The rows with those keys were rolled back, or others may delete
// them before the next attempt.
func (a *attempt) restoreKeys() {
	for _, r := range slices.Backward(a.replaced) { // a key may have changed twice
		*r.id = r.was
	}
	if a.replaced != nil {
		a.link()
	}
}

func (w *writer) unresolved(l *load, row int, problem string) error {
	return w.rowError(l, row, "", fmt.Errorf("%w: %s", ErrUnresolved, problem))
}

// query runs a SELECT and calls scan for each row.
func (a *attempt) query(ctx context.Context, s session, l *load, text string, args []any, scan func(*sql.Rows) error) (err error) {
	defer func() {
		if err != nil {
			a.stale = a.stale || dialect.StalePlan(err)
			err = fmt.Errorf("sqlxhelper: read back from %s: %w", l.name, err)
		}
	}()
	if err := ctx.Err(); err != nil {
		return err
	}
	return outcome.Do(ctx, s.cancels, func() error {
		return dialect.Each(a.dialect.sends(ctx), s.db, func(rows *sql.Rows) error {
			if s.cancels < outcome.CancelsStatements && ctx.Err() != nil {
				return ctx.Err() // the caller may have returned, and own what scan changes
			}
			return scan(rows)
		}, text, args...)
	})
}
