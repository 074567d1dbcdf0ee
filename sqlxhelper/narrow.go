package sqlxhelper

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/jmoiron/sqlx"
)

// narrow finds the row for which the database refused a statement of several, on
// SQLite and MySQL. There the statement is undone and the transaction goes on,
// so that parts of it can be sent again, half of it first: the half that fails
// is undone and cut in two, the half that does not stays, because the row may
// have failed for one before it in the same statement. That takes two statements
// for each doubling of the rows. All of it is rolled back with the call.
//
// SQLite has constraints that make an exception, and after these nothing is sent
// again. One that is declared ON CONFLICT ROLLBACK ends the whole transaction, and
// what was sent then would be stored; ON CONFLICT FAIL keeps the rows before the
// bad one, and they would be duplicates of themselves. And a row counts only if
// it fails as the statement did, to the letter.
//
// The error of the statement is returned, whatever happens here.
func (w *writer) narrow(ctx context.Context, s session, l *load, err error) error {
	var e *InsertError
	if !s.inTx || !errors.As(err, &e) || e.Row >= 0 || !rowFault(err) || ctx.Err() != nil || !w.undone(ctx, s, l) {
		return err
	}
	send := func(first, n int) error {
		args := arguments{writer: w, load: l, next: first}
		if fit, err := args.fit(n); err != nil || fit < n {
			return errSeveral // cannot be, for these rows were sent together
		}
		_, err := s.db.ExecContext(ctx, w.dialect.insertText(l.head, len(l.columns), n)+l.tail, args.of(n)...)
		return err
	}
	first, n := e.First, e.Last-e.First+1
	for n > 1 {
		half := n / 2
		switch failed := send(first, half); {
		case failed == nil:
			first, n = first+half, n-half
		case rowFault(failed) && w.undone(ctx, s, l):
			n = half
		default:
			return err
		}
	}
	if w.dialect == SQLite && refersAhead(l, first, e.Last) {
		return err
	}
	if last := send(first, 1); last != nil && last.Error() == e.Err.Error() {
		w.blame(e, l, first)
	}
	return err
}

// undone reports whether the statement that has just failed is undone, and nothing
// else with it.
func (w *writer) undone(ctx context.Context, s session, l *load) bool {
	if w.dialect != SQLite {
		return true
	}
	kept := 1
	err := w.query(ctx, s, l, "SELECT changes()", nil, func(rows *sql.Rows) error { return rows.Scan(&kept) })
	if err != nil || kept > 0 {
		return false
	}
	if _, err := s.db.ExecContext(ctx, "BEGIN"); err != nil {
		return true // there is a transaction
	}
	_, _ = s.db.ExecContext(ctx, "ROLLBACK")
	return false
}

// refersAhead reports whether a row may refer to one of those after it, up to
// last. SQLite looks at foreign keys when a statement ends, so that it could, and
// without them fails where it was not to blame.
func refersAhead(l *load, row, last int) bool {
	keys := map[string]bool{}
	for _, after := range l.rows[row+1 : last+1] {
		keys[l.plan.id(after).String()] = true
	}
	return slices.ContainsFunc(l.columns, func(c column) bool {
		text, known := c.text(l.rows[row])
		return known && keys[text]
	})
}

// narrowAlone does the same after a statement that was alone and so had no
// transaction, in one that is rolled back.
func (w *writer) narrowAlone(ctx context.Context, pool beginner, err error) error {
	var e *InsertError
	if w.dialect != MySQL || !errors.As(err, &e) || e.Row >= 0 || !rowFault(err) || ctx.Err() != nil {
		return err
	}
	_ = inTx(ctx, pool, nil, func(tx *sqlx.Tx) error {
		return w.narrow(ctx, session{tx, true}, &w.loads[0], err)
	})
	return err
}
