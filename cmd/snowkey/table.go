package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"
)

// writeTable writes the full name of the table of a store, above a list for people.
func (o *options) writeTable(ctx context.Context, out *bufio.Writer, store interface {
	Table(ctx context.Context) (string, error)
}) error {
	if o.json {
		return nil
	}
	table, err := store.Table(ctx)
	if err == nil {
		_, err = fmt.Fprintf(out, "table %s\n", table)
	}
	return err
}

// writeRows writes rows as a table, or each as an object of JSON, and all that was written before. An
// empty cell is "-" in the table, and not in the object.
func (o *options) writeRows(out *bufio.Writer, columns string, rows ...[]any) error {
	names := strings.Fields(columns)
	if !o.json {
		_, _ = out.WriteString(table(names, rows))
		return out.Flush()
	}
	for _, row := range rows {
		var cells []string
		for i, cell := range row {
			if cell == "" {
				continue
			}
			text, err := json.Marshal(cell)
			if err != nil {
				return err
			}
			cells = append(cells, fmt.Sprintf("%q:%s", names[i], text))
		}
		_, _ = fmt.Fprintf(out, "{%s}\n", strings.Join(cells, ","))
	}
	return out.Flush()
}

// maxWidth is how long a line for people is at most.
const maxWidth = 80

// table returns rows for people. If lines are too long, columns without a value are left out, and then
// those at the end follow their row, each with its name.
func table(names []string, rows [][]any) string {
	fits := func(text string) bool {
		for line := range strings.Lines(text) {
			if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > maxWidth {
				return false
			}
		}
		return true
	}
	var all, valued []int
	for i := range names {
		all = append(all, i)
		if slices.ContainsFunc(rows, func(row []any) bool { return row[i] != "" }) {
			valued = append(valued, i)
		}
	}
	text, most := aligned(names, all, rows), len(valued)
	if fits(text) {
		return text
	}
	for text = aligned(names, valued, rows); most > 1 && !fits(text); text = aligned(names, valued[:most], rows) {
		most--
	}
	lines := strings.SplitAfter(text, "\n")
	for i, row := range rows {
		var rest []string
		for _, c := range valued[most:] {
			if row[c] != "" {
				rest = append(rest, fmt.Sprint(names[c], " ", row[c]))
			}
		}
		if rest != nil {
			lines[i+1] += wrap(strings.Join(rest, ", "), "    ")
		}
	}
	return strings.Join(lines, "")
}

// aligned returns a line of names and one for each row, with some of the columns.
func aligned(names []string, columns []int, rows [][]any) string {
	var text strings.Builder
	t := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	line := func(cell func(column int) any) {
		for i, c := range columns {
			if i > 0 {
				_, _ = fmt.Fprint(t, "\t")
			}
			_, _ = fmt.Fprint(t, cell(c))
		}
		_, _ = fmt.Fprintln(t)
	}
	line(func(c int) any { return names[c] })
	for _, row := range rows {
		line(func(c int) any {
			if row[c] == "" {
				return "-"
			}
			return row[c]
		})
	}
	_ = t.Flush()
	return text.String()
}
