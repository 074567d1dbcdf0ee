package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/types"
)

// A report is what the program tells at its end.
type report struct {
	data    *dataset
	file    string
	writers []*writer
	checked verified
	layout  core.Layout
}

// print writes the report. One write gives one error for a full disk or a closed
// pipe.
func (r *report) print(out io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "Wrote %s to %s,\neach order with its lines in one transaction:\n\n", r.data.source, r.file)

	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(name string, cells ...any) {
		_, _ = fmt.Fprintf(table, "  %-5s\t%v\t%v\t%v\t%v\t%v\t%v\t\n", append([]any{name}, cells...)...)
	}
	customers, products := len(r.data.customers), len(r.data.products)
	row("", "customers", "products", "orders", "lines", "line total", "import")
	row("input", customers, products, r.data.totals.orders, r.data.totals.lines, r.data.totals.total, "")
	for _, s := range r.writers {
		// The same numbers again, because verification has just shown that.
		row(s.name(), customers, products, r.data.totals.orders, r.data.totals.lines, r.data.totals.total, s.imp.ID)
	}
	if err := table.Flush(); err != nil {
		return err
	}

	var finished []string
	for i, s := range r.writers {
		finished = append(finished, fmt.Sprintf("%s %d", s.name(), r.checked.finished[i]))
	}
	fmt.Fprint(&text, "\nRead back through both libraries and verified:\n\n")
	for _, line := range []string{
		"every customer, product, order and line is what the input says",
		"every foreign key leads to the right row",
		"totals are exact, in decimal arithmetic",
		fmt.Sprintf("%d keys in the file, earlier runs included, no two alike", r.checked.keys),
		fmt.Sprintf("all finished imports in the file are complete (%s)", strings.Join(finished, ", ")),
	} {
		fmt.Fprintf(&text, "  ok  %s\n", line)
	}

	if r.checked.example != nil {
		fmt.Fprintf(&text, "\nOrder %d as JSON, read through GORM. Keys are strings, because JavaScript\nwould round the numbers. The total is without freight:\n\n", r.checked.example.Number)
		order, err := json.MarshalIndent(r.checked.example, "  ", "  ")
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "  %s\n\nIts key, taken apart. Its time may be some milliseconds ahead of the clock:\n\n", order)
		r.decode(&text, r.checked.example.ID)
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// decode shows what is in a key, from its bits alone. The time may be some
// milliseconds in the future. A generator starts above every key of a run before
// it. It also takes numbers of the next milliseconds when it needs many at once.
func (r *report) decode(text *strings.Builder, id types.Snowflake) {
	parts := r.layout.Parts(id)
	fmt.Fprintf(text, "  key         %d\n", id)
	fmt.Fprintf(text, "  time        %s\n", parts.Time.UTC().Format("2006-01-02 15:04:05.000 MST"))
	fmt.Fprintf(text, "  datacenter  %d\n", parts.Datacenter)
	fmt.Fprintf(text, "  worker      %d\n", parts.Worker)
	fmt.Fprintf(text, "  sequence    %d\n", parts.Sequence)
}
