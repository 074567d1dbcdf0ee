package sqlxhelper

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/outcome"
)

// located returns the [*InsertError] of a statement with n rows of l, from l.rows[first] on.
func (w *writer) located(l *load, first, n int, err error) error {
	e := &InsertError{Table: l.name, First: first, Last: first + n - 1, Rows: len(l.rows), Row: -1, Err: err}
	if n == 1 && dialect.RowFault(err) {
		w.blame(e, l, first)
	}
	w.failed = l
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
	e.Row, e.Path, e.Key = row, w.all.path(l.index(row)), *l.plan.id(l.rows[row])
}

// candidate returns the row that PostgreSQL may mean when it names the values of a violated
// key, or the whole row. It proves nothing, because the values may belong to another table, or
// to what a trigger has made of another row.
func candidate(l *load, first, n int, err error) (row int, ok bool) {
	for e := range dialect.Tree(err) {
		detail := dialect.Text(e, "Detail")
		switch state := dialect.Of(e).State; state {
		case "23505", "23503": // unique_violation, foreign_key_violation
			return byValues(l, first, n, detail, state == "23503")
		case "23502", "23514": // not_null_violation, check_violation
			return byKey(l, first, n, detail)
		}
	}
	return 0, false
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

// byValues finds the row with the values in "Key (a, b)=(1, x) already exists.". If several
// rows have them, it returns none, unless each of these is wrong: then it returns the first.
func byValues(l *load, first, n int, detail string, each bool) (row int, ok bool) {
	_, rest, found := strings.Cut(detail, "(")
	names, values, also := strings.Cut(rest, ")=(")
	end := strings.LastIndexByte(values, ')')
	if !found || !also || end < 0 {
		return 0, false
	}
	values = values[:end]
	var columns []*column
	for name := range strings.SplitSeq(names, ", ") {
		i := slices.IndexFunc(l.columns, func(c column) bool { return c.name == strings.Trim(name, `"`) })
		if i < 0 {
			return 0, false // an expression, or a column that the database fills
		}
		columns = append(columns, &l.columns[i])
	}
	for i := first; i < first+n; i++ {
		var have strings.Builder
		for c, column := range columns {
			text, known := l.text(column, i)
			if !known {
				return 0, false
			}
			if c > 0 {
				have.WriteString(", ")
			}
			have.WriteString(text)
		}
		if have.String() != values {
			continue
		}
		if ok {
			return 0, false
		}
		row, ok = i, true
		if each {
			break
		}
	}
	return row, ok
}

// byKey finds the row of "Failing row contains (1, x, …)." by its key. Another column may
// contain the key of another row, and therefore the foreign keys have to be there too. If
// several rows match, it returns none.
func byKey(l *load, first, n int, detail string) (row int, ok bool) {
	_, values, found := strings.Cut(detail, "(")
	if !found {
		return 0, false
	}
	said := map[string]bool{}
	for value := range strings.SplitSeq(strings.TrimRight(values, ")."), ", ") {
		said[value] = true
	}
	for i := first; i < first+n; i++ {
		if !said[l.plan.id(l.rows[i]).String()] {
			continue
		}
		other := slices.ContainsFunc(l.columns, func(c column) bool {
			if !c.key.Holds() {
				return false
			}
			id, null := c.key.Key(c.in(l.rows[i]))
			return !null && !said[id.String()]
		})
		if other {
			continue
		}
		if ok {
			return 0, false
		}
		row, ok = i, true
	}
	return row, ok
}

// text returns a column of a row as messages show it. For some types the database chooses the
// text, and known is false.
func (l *load) text(c *column, row int) (text string, known bool) {
	v, err := l.argument(c, row)
	if err != nil {
		return "", false
	}
	if v, err = driver.DefaultParameterConverter.ConvertValue(v); err != nil {
		return "", false
	}
	switch v := v.(type) {
	case nil:
		return "\x00", true // unlike any text of PostgreSQL, since NULL violates no key
	case int64:
		return strconv.FormatInt(v, 10), true
	case string:
		return v, true
	}
	return "", false
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

// narrow finds the row for which SQLite or MySQL has refused a statement of several. There the
// statement is undone and the transaction goes on, so that parts of it can be sent again, the
// first half first. A half that fails is undone and halved again. A half that succeeds stays,
// because the row may have failed for one before it in the same statement. This takes two
// statements for each doubling of the rows, all of which are rolled back with the call.
//
// After an error of two kinds of SQLite constraints nothing is sent again: ON CONFLICT ROLLBACK
// ends the whole transaction, and what is sent then would be stored; ON CONFLICT FAIL keeps the
// rows before the bad one, which would then be duplicates of themselves.
//
// A row counts only if it fails alone with exactly the error of the statement. narrow returns
// the error of the statement in any case.
func (w *writer) narrow(ctx context.Context, s session, l *load, err error) error {
	var e *InsertError
	if !s.inTx || !w.dialect.continues || !unblamed(ctx, err, &e) || !w.undone(ctx, s, l) {
		return err
	}
	send := func(first, n int) error {
		return w.sendAgain(ctx, s.db, l, first, n)
	}
	undone := func() bool { return w.undone(ctx, s, l) }
	first, found := bisect(e.First, e.Last-e.First+1, send, undone)
	if !found {
		return err
	}
	last := send(first, 1)
	if last == nil || withoutRow(last) != withoutRow(e.Err) || !undone() {
		return err
	}
	if isForeignKey(last) && first < e.Last && send(first+1, e.Last-first) != nil {
		return err
	}
	w.blame(e, l, first)
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
	_, err := outcome.Exec(ctx, w.cancels, db, w.valuesText(l, n), args...)
	return err
}

// unblamed reports whether err is an InsertError for the fault of an unknown row, and sets e to
// it.
func unblamed(ctx context.Context, err error, e **InsertError) bool {
	return errors.As(err, e) && (*e).Row < 0 && dialect.RowFault(err) && ctx.Err() == nil
}

// bisect narrows n rows, from first on, to the one for which send fails. found is false if send
// has failed for another reason.
func bisect(first, n int, send func(first, n int) error, undone func() bool) (row int, found bool) {
	for n > 1 {
		half := n / 2
		switch failed := send(first, half); {
		case failed == nil:
			first, n = first+half, n-half
		case dialect.RowFault(failed) && undone():
			n = half
		default:
			return 0, false
		}
	}
	return first, true
}

// atRow matches the row number at the end of an error of MySQL, which is a row of the statement
// or of one that a trigger runs.
var atRow = regexp.MustCompile(` at row [+-]?\d+$`)

func withoutRow(err error) string { return atRow.ReplaceAllString(err.Error(), "") }

// isForeignKey reports whether SQLite says that a parent is missing. SQLite checks when a
// statement ends, and has one error for all foreign keys. A row that refers to a later one
// fails alone without being to blame; it is to blame if the rest succeeds without it.
func isForeignKey(err error) bool {
	const code = 19 | 3<<8 // SQLITE_CONSTRAINT_FOREIGNKEY
	for a := range dialect.Answers(err) {
		if a.Code == code {
			return true
		}
	}
	return false
}

// undone reports whether the statement that has just failed is undone, and nothing else with
// it.
func (w *writer) undone(ctx context.Context, s session, l *load) bool {
	if !w.dialect.partial {
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

// narrowAlone is narrow for a single statement without a transaction. It works in a transaction
// that is rolled back.
func (w *writer) narrowAlone(ctx context.Context, c conn, err error) error {
	var e *InsertError
	if !w.dialect.continues || !unblamed(ctx, err, &e) {
		return err
	}
	w.database(c).Undone(ctx, func(tx outcome.Tx) { _ = w.narrow(ctx, session{tx.(*sqlx.Tx), true, w.cancels}, &w.loads[0], err) })
	return err
}

// prove finds the row for which PostgreSQL has refused a statement, after the call is undone.
// The server names the values of a key or of a row, and candidate guesses which row has them.
// The proof is that this row, sent alone, is refused in the same words.
//
// It returns the error of the call in any case, with ErrTxBroken if prove has cost the
// transaction.
func (w *writer) prove(ctx context.Context, c conn, err error) error {
	var e *InsertError
	if w.dialect.continues || !errors.As(err, &e) || e.Row >= 0 || w.failed == nil || ctx.Err() != nil || errors.Is(err, ErrTxBroken) {
		return err
	}
	l := w.failed
	row, ok := candidate(l, e.First, e.Last-e.First+1, e.Err)
	if !ok {
		return err
	}
	send := func(db statementer) error {
		if refused := w.sendAgain(ctx, db, l, row, 1); refused != nil && words(refused) == words(e.Err) {
			w.blame(e, l, row)
		}
		return errUndo
	}
	if c.pool != nil {
		w.database(c).Undone(ctx, func(tx outcome.Tx) { _ = send(tx.(*sqlx.Tx)) })
		return err
	}
	if again := inSavepoint(ctx, c.db, c.cancels, savepointName, func() error { return send(c.db) }); errors.Is(again, ErrTxBroken) {
		return fmt.Errorf("%w; then %w", err, again)
	}
	return err
}

// words returns what PostgreSQL reports: the message, the values, and the place.
func words(err error) [3]string {
	for e := range dialect.Tree(err) {
		if dialect.Of(e).State != "" {
			return [3]string{e.Error(), dialect.Text(e, "Detail"), dialect.Text(e, "Where")}
		}
	}
	return [3]string{}
}
