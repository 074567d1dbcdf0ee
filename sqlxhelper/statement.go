package sqlxhelper

import (
	"fmt"
	"strconv"
	"strings"
)

// The texts are put together here and go to the driver as they are. None passes
// through sqlx's Named, In or Rebind. Their parsers misread a colon, a question
// mark or a closing parenthesis inside quotes. For some texts they insert the first
// of many rows and report success.

// insertHead returns `INSERT INTO "table" ("a", "b")`. The names have
// passed tableProblem and nameProblem.
func (t *traits) insertHead(table string, columns []column) (string, error) {
	if len(columns) > t.maxBinds {
		return "", fmt.Errorf("%w: %d columns for table %q, %v binds at most %d values", ErrArgument, len(columns), table, t, t.maxBinds)
	}
	b := []byte("INSERT INTO ")
	var err error
	for i, part := range strings.Split(table, ".") {
		if i > 0 {
			b = append(b, '.')
		}
		if b, err = t.appendQuoted(b, part); err != nil {
			return "", err
		}
	}
	for i := range columns {
		if i == 0 {
			b = append(b, " ("...)
		} else {
			b = append(b, ", "...)
		}
		if b, err = t.appendQuoted(b, columns[i].name); err != nil {
			return "", err
		}
	}
	return string(append(b, ')')), nil
}

// insertText appends VALUES with the placeholders of so many rows to a head.
func (t *traits) insertText(head string, columns, rows int) string {
	width := len("?, ")
	if t.numbered {
		width = len("$65535, ")
	}
	b := make([]byte, 0, len(head)+len(" VALUES ")+rows*(columns*width+len("(), ")))
	b = append(append(b, head...), " VALUES "...)
	bind := int64(0)
	for row := range rows {
		if row > 0 {
			b = append(b, ", "...)
		}
		b = append(b, '(')
		for col := range columns {
			if col > 0 {
				b = append(b, ", "...)
			}
			if t.numbered {
				bind++
				b = strconv.AppendInt(append(b, '$'), bind, 10)
			} else {
				b = append(b, '?')
			}
		}
		b = append(b, ')')
	}
	return string(b)
}

// chunk returns how many rows of so many columns a full statement has. It binds no
// more than traits.binds values, or it is a single row. insertHead has checked that
// a row is within maxBinds.
func (t *traits) chunk(columns int) int { return max(1, t.binds/columns) }

// step returns how many of the rows that fit into one statement are sent with
// it, so that there are few texts.
func (t *traits) step(fit, chunk int) int {
	if ladder := t.ladder; fit < chunk && ladder > 0 && fit > ladder {
		return fit - fit%ladder
	}
	return fit
}
