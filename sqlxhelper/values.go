package sqlxhelper

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/snowkey/snowkey/internal/pgtext"
)

// insertValues writes the rows of a load from first on by INSERT … VALUES, in
// chunks. It looks at ctx before every statement.
func (w *writer) insertValues(ctx context.Context, s session, l *load, first int) error {
	during := w.dialect.sends(ctx)
	chunk := w.dialect.chunk(len(l.columns))
	if !s.inTx && len(l.rows) > chunk {
		return errSeveral
	}
	text := func(n int) string { return w.dialect.insertText(l.head, len(l.columns), n) + l.tail }
	var stmt *sql.Stmt // for full chunks, if there are two of them
	if len(l.rows)-first >= 2*chunk && w.prepares(during, s) {
		var err error
		if stmt, err = s.db.PrepareContext(during, text(chunk)); err != nil {
			return fmt.Errorf("sqlxhelper: insert into %s: prepare %d rows: %w", l.table, chunk, err)
		}
	}
	defer func() {
		if stmt != nil {
			// What it could report is that the connection is gone, which the
			// next statement or the commit reports.
			_ = stmt.Close()
		}
	}()
	args := arguments{writer: w, load: l, next: first}
	for first < len(l.rows) {
		rest := len(l.rows) - first
		if err := ctx.Err(); err != nil {
			return w.sent(l, first, min(rest, chunk), nil, err)
		}
		fit, err := args.fit(w.dialect.step(min(rest, chunk), chunk))
		if err != nil {
			return err
		}
		n := w.dialect.step(fit, chunk)
		if !s.inTx && n < rest {
			return errSeveral
		}
		var result sql.Result
		if n == chunk && stmt != nil {
			result, err = stmt.ExecContext(during, args.of(n)...)
		} else {
			result, err = s.db.ExecContext(during, text(n), args.of(n)...)
		}
		if err = w.sent(l, first, n, result, err); err != nil {
			return w.narrow(during, s, l, w.bound(l, err))
		}
		args.drop(n)
		first += n
	}
	return nil
}

// prepares reports whether to prepare a statement that is sent more than once. It
// must not change how values are sent. All rows go as the driver sends a single
// one, without preparing.
//
//   - Drivers for SQLite have one way.
//   - On PostgreSQL pgx has several modes, and keeps by itself prepared what the
//     mode allows.
//   - On MySQL a driver may write values into the text (interpolateParams). The
//     server then takes 2.5 for a decimal, and for a double otherwise. A query
//     tells which it was: 0.1 + 0.2 is 0.3 in decimals, and not in doubles.
func (w *writer) prepares(ctx context.Context, s session) bool {
	switch w.dialect.Dialect {
	case SQLite:
		return true
	case MySQL:
		var decimal bool
		rows, err := s.db.QueryContext(ctx, "SELECT ? + 0.2 = 0.3", 0.1)
		if err != nil {
			return false // the next statement fails as well
		}
		defer func() { _ = rows.Close() }() // where Scan has failed
		return rows.Next() && rows.Scan(&decimal) == nil && rows.Err() == nil && !decimal
	}
	return false
}

// arguments are the values of the rows of a load that come next, row by row. The
// values of each row are read once.
type arguments struct {
	*writer
	*load
	values []any
	sizes  []int // by row: estimated bytes
	next   int   // the row that comes after those in values
}

// fit collects the values of up to n rows. It returns how many of them make a
// statement that is not too large, at least one.
func (a *arguments) fit(n int) (int, error) {
	if a.values == nil {
		a.values = make([]any, 0, n*len(a.columns))
		a.sizes = make([]int, 0, n)
	}
	total, limit := 0, a.dialect.bytes
	for i := range n {
		if i == len(a.sizes) {
			size := 0
			for c := range a.columns {
				value, err := a.columns[c].argument(a.load.rows[a.next])
				if err != nil {
					return 0, a.valueError(a.load, a.next, &a.columns[c], err)
				}
				if a.dialect.micros {
					value = pgtext.Truncate(value)
				}
				a.values = append(a.values, value)
				size += sizeOf(value)
			}
			a.sizes = append(a.sizes, size)
			a.next++
		}
		if total += a.sizes[i]; i > 0 && total > limit {
			return i, nil
		}
	}
	return n, nil
}

// of returns the values of the first n rows.
func (a *arguments) of(n int) []any { return a.values[:n*len(a.columns)] }

// drop forgets the first n rows.
func (a *arguments) drop(n int) {
	a.values = a.values[:copy(a.values, a.values[n*len(a.columns):])]
	a.sizes = a.sizes[:copy(a.sizes, a.sizes[n:])]
}

// valueError names the row and the field of a value that could not be read.
func (w *writer) valueError(l *load, row int, c *column, err error) error {
	e := &InsertError{Table: l.table, First: row, Last: row, Rows: len(l.rows), Field: c.field, Err: err}
	w.blame(e, l, row)
	return e
}
