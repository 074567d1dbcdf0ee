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
	names := strings.Split(table, ".")
	for i := range columns {
		names = append(names, columns[i].name)
	}
	for _, name := range names {
		if err := t.checkLength(name); err != nil {
			return "", err
		}
	}
	return "INSERT INTO " + t.Quote(table) + " (" + t.list(columns, "@", ", ") + ")", nil
}

// list writes a form for each column. An @ in it stands for the quoted name.
func (t *traits) list(columns []column, form, separator string) string {
	parts := make([]string, len(columns))
	for i := range columns {
		parts[i] = strings.ReplaceAll(form, "@", t.Quote(columns[i].name))
	}
	return strings.Join(parts, separator)
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
