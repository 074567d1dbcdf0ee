package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
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
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if !o.json {
		_, _ = fmt.Fprintln(t, strings.Join(names, "\t"))
	}
	for _, row := range rows {
		var cells []string
		for i, cell := range row {
			switch {
			case o.json && cell != "":
				text, err := json.Marshal(cell)
				if err != nil {
					return err
				}
				cells = append(cells, fmt.Sprintf("%q:%s", names[i], text))
			case !o.json && cell == "":
				cells = append(cells, "-")
			case !o.json:
				cells = append(cells, fmt.Sprint(cell))
			}
		}
		if o.json {
			_, _ = fmt.Fprintf(out, "{%s}\n", strings.Join(cells, ","))
		} else {
			_, _ = fmt.Fprintln(t, strings.Join(cells, "\t"))
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return out.Flush()
}
