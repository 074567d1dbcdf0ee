package sqlxhelper

import (
	"fmt"
	"strconv"
	"strings"
)

// The texts are put together here and go to the driver as they are. None passes
// through sqlx's Named, In or Rebind: their parsers take a colon, a question
// mark or a closing parenthesis inside quotes for theirs, and for some texts
// insert the first of many rows and report success.

// insertHead returns `INSERT INTO "table" ("a", "b") VALUES `. The names have
// passed tableProblem and nameProblem.
func (d Dialect) insertHead(table string, columns []column) (string, error) {
	t := d.traits()
	if len(columns) > t.maxBinds {
		return "", fmt.Errorf("%w: %d columns for table %q, %s binds at most %d values", ErrArgument, len(columns), table, t.name, t.maxBinds)
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
	return string(append(b, ") VALUES "...)), nil
}

// insertText appends the placeholders of so many rows to a head.
func (d Dialect) insertText(head string, columns, rows int) string {
	t := d.traits()
	width := len("?, ")
	if t.numbered {
		width = len("$65535, ")
	}
	b := make([]byte, 0, len(head)+rows*(columns*width+len("(), ")))
	b = append(b, head...)
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

// A division says how many rows go into each statement: full statements of
// chunk rows, then one for each number in tail.
type division struct {
	chunk, full int
	tail        []int
}

func (v division) statements() int { return v.full + len(v.tail) }

// divide cuts rows of so many columns into statements. A chunk binds no more
// than traits.binds values, or it is a single row, of which insertHead has seen
// that it is within maxBinds.
func (d Dialect) divide(columns, rows int) division {
	t := d.traits()
	chunk := max(1, t.binds/columns)
	v := division{chunk: chunk, full: rows / chunk}
	rest := rows % chunk
	if t.ladder > 0 && rest > t.ladder {
		v.tail = append(v.tail, rest-rest%t.ladder)
		rest %= t.ladder
	}
	if rest > 0 {
		v.tail = append(v.tail, rest)
	}
	return v
}
