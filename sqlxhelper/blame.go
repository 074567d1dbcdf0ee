package sqlxhelper

import (
	"context"
	"database/sql"
	"errors"
	"regexp"
	"strconv"
	"strings"

	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/outcome"
)

// located returns the [*InsertError] of a statement with n rows of l, from l.rows[first] on.
func (w *writer) located(l *load, first, n int, err error) error {
	e := &InsertError{Table: l.name, First: first, Last: first + n - 1, Rows: len(l.rows), Row: -1, Err: err}
	if n == 1 && dialect.RowFault(err) {
		w.blame(e, l, first)
	}
	return e
}

// rowError returns the [*InsertError] of one row, or of a field of it.
func (w *writer) rowError(l *load, row int, field string, err error) error {
	e := &InsertError{Table: l.name, First: row, Last: row, Rows: len(l.rows), Field: field, Err: err}
	w.blame(e, l, row)
	return e
}

// blame sets the row of e.
func (w *writer) blame(e *InsertError, l *load, row int) {
	e.Row, e.Path, e.Key = row, w.path(l.index(row)), *l.plan.id(l.rows[row])
}

// copied finds the row of a COPY that failed. PostgreSQL names the line that it was at, also
// when that is not to blame, as in a COPY that is cancelled. If it names more than one COPY,
// the others belong to a trigger or to a value.
func (w *writer) copied(l *load, err error) error {
	var e *InsertError
	if !errors.As(err, &e) || e.Row >= 0 {
		return err
	}
	// COPY orders, line 17, column sku: … The word for line depends on the language of the
	// server.
	table := l.name[strings.LastIndexByte(l.name, '.')+1:]
	line := regexp.MustCompile(`^COPY ` + regexp.QuoteMeta(table) + `, [^ ]* (\d+)`)
	for said := range dialect.Tree(e.Err) {
		if !dialect.RowFault(said) {
			continue
		}
		where := dialect.Text(said, "Where")
		if n, found := number(line, where); found && 1 <= n && n <= e.Last-e.First+1 && strings.Count(where, "COPY ") == 1 {
			w.blame(e, l, e.First+n-1)
		}
	}
	return err
}

// number returns the number that form matches in a text.
func number(form *regexp.Regexp, text string) (n int, found bool) {
	match := form.FindStringSubmatch(text)
	if match == nil {
		return 0, false
	}
	n, err := strconv.Atoi(match[1])
	return n, err == nil
}

// The texts that number a value which could not be bound.
var (
	encodedArgument   = regexp.MustCompile(`failed to encode args\[(\d+)`) // by pgx, counted from 0
	convertedArgument = regexp.MustCompile(`sql: converting argument \$(\d+)`)
	portalParameter   = regexp.MustCompile(`^unnamed portal parameter \$(\d+)`) // by PostgreSQL, for a text
)

// bound finds the row and the field of a value that a VALUES statement could not bind, by the
// number in the error of the driver or PostgreSQL.
func (w *writer) bound(l *load, err error) error {
	var e *InsertError
	if !errors.As(err, &e) {
		return err
	}
	at, found := 0, false
	for said := range dialect.Tree(e.Err) {
		// A trigger may have written the text of a server, and anybody the text within. A
		// server also names the value that it was at when the statement was cancelled.
		if dialect.Of(said) != (dialect.Answer{}) {
			if !dialect.RowFault(said) {
				continue
			}
			at, found = number(portalParameter, dialect.Text(said, "Where"))
			at--
		} else if at, found = number(encodedArgument, said.Error()); !found {
			at, found = number(convertedArgument, said.Error())
			at--
		}
		if found {
			break
		}
	}
	if found && at >= 0 && at < (e.Last-e.First+1)*len(l.columns) {
		e.Field = l.columns[at%len(l.columns)].field
		w.blame(e, l, e.First+at/len(l.columns))
	}
	return err
}

// narrow finds the row for which SQLite has refused a statement of several, and names no index that
// would tell. The statement is undone and the transaction goes on, so that parts of it can be sent
// again, the first half first. A half that fails is undone and halved again. A half that succeeds
// stays, because the row may have failed for one before it in the same statement. This takes two
// statements for each doubling of the rows, and all are rolled back with the call. A server is
// asked nothing again, whose triggers would fire twice and may act beyond the transaction.
//
// After an error of two kinds of SQLite constraints nothing is sent again: ON CONFLICT ROLLBACK
// ends the whole transaction, and what is sent then would be stored; ON CONFLICT FAIL keeps the
// rows before the bad one, which would then be duplicates of themselves.
//
// A row counts only if it fails alone with exactly the error of the statement. narrow returns
// the error of the statement in any case.
func (a *attempt) narrow(ctx context.Context, s session, l *load, err error) error {
	var e *InsertError
	if !a.dialect.KeepsRows || !errors.As(err, &e) || e.Row >= 0 || !dialect.RowFault(err) || ctx.Err() != nil || !a.undone(ctx, s, l) {
		return err
	}
	row := e.First
	for n := e.Last - row + 1; n > 1; {
		half := n / 2
		switch failed := a.sendAgain(ctx, s.db, l, row, half); {
		case failed == nil:
			row, n = row+half, n-half
		case dialect.RowFault(failed) && a.undone(ctx, s, l):
			n = half
		default:
			return err
		}
	}
	last := a.sendAgain(ctx, s.db, l, row, 1)
	if last == nil || last.Error() != e.Err.Error() || !a.undone(ctx, s, l) {
		return err
	}
	// SQLite checks foreign keys when a statement ends, and has one error for all of them. A row
	// that refers to a later one fails alone without being to blame; it is to blame if the rest
	// succeeds without it.
	if dialect.NoParent(last) && row < e.Last && a.sendAgain(ctx, s.db, l, row+1, e.Last-row) != nil {
		return err
	}
	a.blame(e, l, row)
	return err
}

// sendAgain sends n rows in a statement of their own.
func (w *writer) sendAgain(ctx context.Context, db statementer, l *load, first, n int) error {
	var args []any
	for row := first; row < first+n; row++ {
		var err error
		if args, err = w.arguments(args, l, row, l.columns); err != nil {
			return err
		}
	}
	_, err := outcome.Exec(ctx, w.conn.cancels, db, w.dialect.insertText(l.table, n), args...)
	return err
}

// undone reports whether the statement that has just failed is undone, and nothing else with
// it.
func (a *attempt) undone(ctx context.Context, s session, l *load) bool {
	kept := 1
	err := a.query(ctx, s, l, "SELECT changes()", nil, func(rows *sql.Rows) error { return rows.Scan(&kept) })
	if err != nil || kept > 0 {
		return false
	}
	if _, err := s.db.ExecContext(ctx, "BEGIN"); err != nil {
		return true // there is a transaction
	}
	_, _ = s.db.ExecContext(ctx, "ROLLBACK")
	return false
}
