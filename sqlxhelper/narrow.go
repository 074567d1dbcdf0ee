package sqlxhelper

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

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
// it fails by itself as the statement did, to the letter.
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
	last := send(first, 1)
	if last == nil || withoutRow(last) != withoutRow(e.Err) || !w.undone(ctx, s, l) {
		return err
	}
	if foreignKey(last) && first < e.Last && send(first+1, e.Last-first) != nil {
		return err
	}
	w.blame(e, l, first)
	return err
}

// withoutRow returns the text of an error without the row that MySQL counts, at
// its end. That is one of the statement, or of one that a trigger runs.
func withoutRow(err error) string {
	text := err.Error()
	if i := strings.LastIndex(text, " at row "); i >= 0 {
		if _, failed := strconv.Atoi(text[i+len(" at row "):]); failed == nil {
			return text[:i]
		}
	}
	return text
}

// foreignKey reports whether SQLite says that a parent is missing. It looks when
// a statement ends, and says it of all foreign keys alike: a row may refer to one
// after it, and then fails without being to blame. It is if the rest goes without
// it.
func foreignKey(err error) bool {
	for a := range answers(err) {
		if a.code == sqliteForeignKey {
			return true
		}
	}
	return false
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

// errUndo undoes what prove has sent.
var errUndo = errors.New("undo")

// prove finds the row for which PostgreSQL refused a statement, when the call is
// undone. The server names the values of a key or of a row. Which row has them is
// a guess until that row is sent by itself, and refused in the same words.
//
// The error of the call is returned, whatever happens here, with ErrTxBroken if it
// has cost the transaction.
func (w *writer) prove(ctx context.Context, c conn, err error) error {
	var e *InsertError
	if w.dialect != PostgreSQL || !errors.As(err, &e) || e.Row >= 0 || w.failed == nil || ctx.Err() != nil || errors.Is(err, ErrTxBroken) {
		return err
	}
	l := w.failed
	row, ok := candidate(l, e.First, e.Last-e.First+1, e.Err)
	if !ok {
		return err
	}
	send := func(db statementer) error {
		args := arguments{writer: w, load: l, next: row}
		if _, err := args.fit(1); err != nil {
			return err
		}
		_, refused := db.ExecContext(ctx, w.dialect.insertText(l.head, len(l.columns), 1)+l.tail, args.of(1)...)
		if refused != nil && words(refused) == words(e.Err) {
			w.blame(e, l, row)
		}
		return errUndo
	}
	if c.pool != nil {
		_ = inTx(ctx, c.pool, nil, func(tx *sqlx.Tx) error { return send(tx) })
		return err
	}
	if again := inSavepoint(ctx, c.db, func() error { return send(c.db) }); errors.Is(again, ErrTxBroken) {
		return fmt.Errorf("%w; then %w", err, again)
	}
	return err
}

// words returns what PostgreSQL has said: the message, the values, and where it
// happened.
func words(err error) [3]string {
	for e := range tree(err) {
		if answerOf(e).state != "" {
			return [3]string{e.Error(), stringField(e, "Detail"), stringField(e, "Where")}
		}
	}
	return [3]string{}
}
