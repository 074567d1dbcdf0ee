package sqlxhelper

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// located makes an [*InsertError] of what the database said to a statement with
// n rows of l, from l.rows[first] on.
func (w *writer) located(l *load, first, n int, err error) error {
	e := &InsertError{Table: l.table, First: first, Last: first + n - 1, Rows: len(l.rows), Row: -1, Err: err}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return e // no row's fault
	}
	if n == 1 {
		w.blame(e, l, first)
	}
	w.failed = l
	return e
}

// blame sets the row of e.
func (w *writer) blame(e *InsertError, l *load, row int) {
	e.Row, e.Path, e.Key = row, w.path(l, row), *l.plan.id(l.rows[row])
}

// path names a row of a load. It is for errors: it looks at all rows. Two may have
// one address, if one is a struct in the other, but not two of one type.
func (w *writer) path(l *load, row int) string {
	at := l.rows[row].Addr().Pointer()
	for i, row := range w.rows.structs {
		if n := w.rows.node(i); n.plan == l.plan && row.Addr().Pointer() == at {
			return w.rows.path(n)
		}
	}
	return fmt.Sprintf("%v[%d]", l.plan.typ, row)
}

// candidate returns the row that PostgreSQL may speak of, when it says the values
// of a violated key, or the whole row. It proves nothing: the values may be those
// of another table, or of what a trigger has made of another row.
func candidate(l *load, first, n int, err error) (row int, ok bool) {
	for e := range tree(err) {
		detail := stringField(e, "Detail")
		switch state := answerOf(e).state; state {
		case "23505", "23503": // unique_violation, foreign_key_violation
			return byValues(l, first, n, detail, state == "23503")
		case "23502", "23514": // not_null_violation, check_violation
			return byKey(l, first, n, detail)
		}
	}
	return 0, false
}

// copied finds the row of a COPY that failed: PostgreSQL says the line. If it
// says more than one, the others are of what a trigger does, or of a value.
func (w *writer) copied(l *load, err error) error {
	var e *InsertError
	if !errors.As(err, &e) || e.Row >= 0 {
		return err
	}
	table := l.table[strings.LastIndexByte(l.table, '.')+1:]
	for said := range tree(e.Err) {
		where := stringField(said, "Where")
		if line, found := copyLine(where, table); found && line <= e.Last-e.First+1 && strings.Count(where, "COPY ") == 1 {
			w.blame(e, l, e.First+line-1)
		}
	}
	return err
}

// stringField returns a field of the struct that err is, or "".
func stringField(err error, name string) string {
	if f := field(reflect.Indirect(reflect.ValueOf(err)), name); f.IsValid() && f.Kind() == reflect.String {
		return f.String()
	}
	return ""
}

// copyLine reads the number in "COPY orders, line 17, column sku: …", whatever
// the language of the server calls a line.
func copyLine(where, table string) (line int, found bool) {
	rest, found := strings.CutPrefix(where, "COPY "+table+", ")
	if !found {
		return 0, false
	}
	_, rest, _ = strings.Cut(rest, " ")
	end := 0
	for end < len(rest) && rest[end] >= '0' && rest[end] <= '9' {
		end++
	}
	line, err := strconv.Atoi(rest[:end])
	return line, err == nil && line > 0
}

// byValues finds the row with the values in "Key (a, b)=(1, x) already exists.".
// If several have them, it may be any, unless each of them is wrong: then it is
// the first.
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
			return 0, false // an expression, or what the database has filled in
		}
		columns = append(columns, &l.columns[i])
	}
	for i := first; i < first+n; i++ {
		var have strings.Builder
		for c, column := range columns {
			text, known := column.text(l.rows[i])
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

// byKey finds the row of "Failing row contains (1, x, …).", whose values come in
// the order of the table: by its key, and as another column may have the key of
// another row, by its foreign keys too. If it may be several, it is none.
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
			if !c.holdsKey() {
				return false
			}
			id, null := c.foreignKey(l.rows[i])
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

// text returns what the column of a row looks like in a message. It is not known
// of types whose looks are the database's choice.
func (c *column) text(row reflect.Value) (text string, known bool) {
	v, err := c.argument(row)
	if err != nil {
		return "", false
	}
	if v, err = driver.DefaultParameterConverter.ConvertValue(v); err != nil {
		return "", false
	}
	switch v := v.(type) {
	case nil:
		return "\x00", true // like no text that PostgreSQL says: NULL violates no key
	case int64:
		return strconv.FormatInt(v, 10), true
	case string:
		return v, true
	}
	return "", false
}

// bound finds the row and the field of a value that could not be bound in a
// statement of VALUES: the driver or PostgreSQL says which of all the values.
func (w *writer) bound(l *load, err error) error {
	var e *InsertError
	if !errors.As(err, &e) {
		return err
	}
	at, found := 0, false
	for said := range tree(e.Err) {
		if found {
			break // what is within may be anybody's text
		}
		for i, place := range []struct {
			text, lead string
		}{
			{said.Error(), "failed to encode args["}, // pgx, counting from 0
			{said.Error(), "sql: converting argument $"},
			{stringField(said, "Where"), "unnamed portal parameter $"}, // for values that were sent as text
		} {
			if server := answerOf(said) != (answer{}); server != (i == 2) || i == 2 && !strings.HasPrefix(place.text, place.lead) {
				continue // the text of a server may be that of a trigger
			}
			_, rest, ok := strings.Cut(place.text, place.lead)
			if end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' }); end >= 0 {
				rest = rest[:end]
			}
			if n, failed := strconv.Atoi(rest); ok && failed == nil {
				at, found = n-min(i, 1), true
			}
		}
	}
	if found && at >= 0 && at < (e.Last-e.First+1)*len(l.columns) {
		e.Field = l.columns[at%len(l.columns)].field
		w.blame(e, l, e.First+at/len(l.columns))
	}
	return err
}
