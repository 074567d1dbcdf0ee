package sqlxhelper

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"slices"
)

// values is the way by INSERT … VALUES, which can carry every row.
type values struct {
	*writer
	*load
	*fullChunk
	first int   // the row with which args begins
	args  []any // of the statement that is next
}

// A fullChunk is the statement for full chunks, if there are two of them.
type fullChunk struct {
	stmt  *sql.Stmt
	asked bool // whether to prepare it, which takes a query on MySQL
}

// take collects the values of the rows that make the next statement.
func (v *values) take(first int) (int, error) {
	v.first = first
	chunk := v.dialect.chunk(len(v.columns))
	most := v.dialect.step(min(len(v.rows)-first, chunk), chunk)
	v.args = slices.Grow(v.args[:0], most*len(v.columns))
	n, size := 0, 0
	for ; n < most; n++ {
		before := len(v.args)
		var err error
		if v.args, err = v.arguments(v.args, v.load, first+n, v.columns); err != nil {
			return 0, err
		}
		for _, value := range v.args[before:] {
			size += sizeOf(value)
		}
		if n > 0 && size > v.dialect.bytes {
			break // this row comes first in the next statement
		}
	}
	n = v.dialect.step(n, chunk)
	v.args = v.args[:n*len(v.columns)]
	return n, nil
}

// send sends the rows that were taken.
func (v *values) send(ctx context.Context, s session) (int, driver.Result, error) {
	ctx = v.dialect.sends(ctx)
	n, chunk := len(v.args)/len(v.columns), v.dialect.chunk(len(v.columns))
	if !v.asked && len(v.rows)-v.first >= 2*chunk {
		v.asked = true
		if w := v.writer; w.prepares(ctx, s) {
			var err error
			prepare := func() (*sql.Stmt, error) { return s.db.PrepareContext(ctx, w.valuesText(v.load, chunk)) }
			if v.stmt, err = answered(ctx, s.heeds, prepare, func(stmt *sql.Stmt) { _ = stmt.Close() }); err != nil {
				return n, nil, fmt.Errorf("prepare: %w", err)
			}
		}
	}
	var result sql.Result
	var err error
	if v.stmt != nil && n == chunk {
		stmt, args := v.stmt, v.args
		result, err = answered(ctx, s.heeds, func() (sql.Result, error) { return stmt.ExecContext(ctx, args...) }, nil)
	} else {
		result, err = execute(ctx, s.heeds, s.db, v.valuesText(v.load, n), v.args...)
	}
	return n, result, err
}

// valuesText returns the statement for n rows.
func (w *writer) valuesText(l *load, n int) string {
	return w.dialect.insertText(l.head, len(l.columns), n) + l.tail
}

// check finds the row that is to blame.
func (v *values) check(ctx context.Context, s session, err error) error {
	if err == nil {
		return nil
	}
	return v.narrow(v.dialect.sends(ctx), s, v.load, v.bound(v.load, err))
}

// close closes the prepared statement. What it could report is that the connection
// is gone, which the next statement or the commit reports. MySQL's protocol has no
// answer to it, so it does not wait for one.
func (f *fullChunk) close() {
	if f.stmt != nil {
		_ = f.stmt.Close()
	}
}

// prepares reports whether to prepare a statement that is sent more than once.
func (w *writer) prepares(ctx context.Context, s session) bool {
	if !w.dialect.inlines {
		return w.dialect.prepares
	}
	yes, err := answered(ctx, s.heeds, func() (bool, error) {
		var inlined bool
		err := scalar(ctx, s.db, &inlined, "SELECT ? + 0.2 = 0.3", 0.1)
		return err == nil && !inlined, nil
	}, nil)
	return err == nil && yes // or the next statement fails as well
}

// arguments appends what is bound for columns of a row. Its error names the field.
func (w *writer) arguments(args []any, l *load, row int, columns []column) ([]any, error) {
	for i := range columns {
		value, err := l.argument(&columns[i], row)
		if err != nil {
			return nil, w.rowError(l, row, columns[i].field, err)
		}
		args = append(args, value)
	}
	return args, nil
}
