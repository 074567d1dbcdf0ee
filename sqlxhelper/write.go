package sqlxhelper

import (
	"context"
	"database/sql"
	"fmt"
	"reflect"

	"github.com/jmoiron/sqlx"
)

// A writer writes the groups of one call.
type writer struct {
	dialect Dialect
	groups  []group
	heads   []string // by group
}

// newWriter puts together what can fail without a database.
func newWriter(d Dialect, groups []group) (*writer, error) {
	w := &writer{dialect: d, groups: groups, heads: make([]string, len(groups))}
	for i, g := range groups {
		head, err := d.insertHead(g.table, g.plan.columns)
		if err != nil {
			return nil, err
		}
		w.heads[i] = head
	}
	return w, nil
}

// write sends all rows, or leaves none.
func (w *writer) write(ctx context.Context, c conn) error {
	if c.pool == nil {
		return inSavepoint(ctx, c.db, func() error { return w.insertAll(ctx, c.db, true) })
	}
	rows, statements := 0, 0
	for _, g := range w.groups {
		rows += len(g.rows)
		statements += w.dialect.divide(len(g.plan.columns), len(g.rows)).statements()
	}
	// One statement is a transaction by itself, and a transaction around it
	// would cost two more round trips. SQLite has no round trips, and a
	// statement there is not always all or nothing: a constraint that is declared
	// ON CONFLICT FAIL, or RAISE(FAIL) in a trigger, keeps the rows before.
	if statements == 1 && (rows == 1 || w.dialect != SQLite) {
		return w.insertAll(ctx, c.db, false)
	}
	return inTx(ctx, c.pool, nil, func(tx *sqlx.Tx) error { return w.insertAll(ctx, tx, true) })
}

// A statementer is the part of a [DB] that a writer needs.
type statementer interface {
	sqlx.ExecerContext
	sqlx.PreparerContext
}

// insertAll writes group by group.
func (w *writer) insertAll(ctx context.Context, db statementer, inTx bool) error {
	for i := range w.groups {
		if err := w.insert(ctx, db, inTx, w.groups[i], w.heads[i]); err != nil {
			return err
		}
	}
	return nil
}

// insert writes one group. It looks at ctx before every statement.
func (w *writer) insert(ctx context.Context, db statementer, inTx bool, g group, head string) error {
	columns := g.plan.columns
	v := w.dialect.divide(len(columns), len(g.rows))
	during := ctx
	if w.dialect == SQLite && inTx {
		// SQLite rolls back the whole transaction, and not the statement, when
		// an insert is interrupted, and the transaction may be the caller's. A
		// statement of one chunk is short, and waits for a lock no longer than
		// busy_timeout. mattn/go-sqlite3 also saves a goroutine per statement.
		during = context.WithoutCancel(ctx)
	}
	rest := g.rows
	args := make([]any, 0, min(v.chunk, len(rest))*len(columns))
	send := func(n int, exec func(args ...any) (sql.Result, error)) error {
		done := len(g.rows) - len(rest)
		fail := func(err error) error {
			return fmt.Errorf("sqlxhelper: insert into %s, rows %d to %d of %d: %w", g.table, done+1, done+n, len(g.rows), err)
		}
		if err := ctx.Err(); err != nil {
			return fail(err)
		}
		args = appendArguments(args[:0], columns, rest[:n])
		result, err := exec(args...)
		if err != nil {
			return fail(err)
		}
		affected, err := result.RowsAffected()
		if err != nil {
			return fail(err)
		}
		if affected != int64(n) {
			return &CountError{Table: g.table, Rows: int64(n), Affected: affected}
		}
		rest = rest[n:]
		return nil
	}
	exec := func(n int) error {
		text := w.dialect.insertText(head, len(columns), n)
		return send(n, func(args ...any) (sql.Result, error) { return db.ExecContext(during, text, args...) })
	}
	if v.full == 1 {
		if err := exec(v.chunk); err != nil {
			return err
		}
	}
	if v.full > 1 {
		stmt, err := db.PrepareContext(during, w.dialect.insertText(head, len(columns), v.chunk))
		if err != nil {
			return fmt.Errorf("sqlxhelper: insert into %s: prepare %d rows: %w", g.table, v.chunk, err)
		}
		// What it could report is that the connection is gone, which the next
		// statement or the commit reports.
		defer func() { _ = stmt.Close() }()
		for range v.full {
			if err := send(v.chunk, func(args ...any) (sql.Result, error) { return stmt.ExecContext(during, args...) }); err != nil {
				return err
			}
		}
	}
	for _, n := range v.tail {
		if err := exec(n); err != nil {
			return err
		}
	}
	return nil
}

// appendArguments appends the values of the rows, row by row.
func appendArguments(args []any, columns []column, rows []reflect.Value) []any {
	for _, row := range rows {
		for i := range columns {
			args = append(args, columns[i].argument(row))
		}
	}
	return args
}
