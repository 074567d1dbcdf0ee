package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/snowkey/snowkey/core"
)

// report writes what the program tells at its end. One write gives one error for a
// full disk or a closed pipe.
func report(out io.Writer, d *dataset, file string, writers []*writer, v verified, layout core.Layout) error {
	var text strings.Builder
	fmt.Fprintf(&text, "Wrote %s to %s,\neach order with its lines in one transaction:\n\n", d.source, file)

	const row = "  %-5v  %9v  %8v  %6v  %5v  %12v  %18v\n"
	fmt.Fprintf(&text, row, "", "customers", "products", "orders", "lines", "line total", "import")
	sums := []any{len(d.customers), len(d.products), d.totals.orders, d.totals.lines, d.totals.total}
	fmt.Fprintf(&text, row, slices.Concat([]any{"input"}, sums, []any{""})...)
	for _, w := range writers {
		// The same numbers again, because verification has just shown that.
		fmt.Fprintf(&text, row, slices.Concat([]any{w.name()}, sums, []any{w.imp.ID})...)
	}

	fmt.Fprint(&text, "\nRead back through both libraries and verified:\n\n")
	fmt.Fprint(&text, "  ok  every customer, product, order and line is what the input says\n",
		"  ok  every foreign key leads to the right row\n  ok  totals are exact, in decimal arithmetic\n")
	fmt.Fprintf(&text, "  ok  %d keys in the file, earlier runs included, no two alike\n", v.keys)
	fmt.Fprintf(&text, "  ok  all finished imports in the file are complete (%s)\n", v.finished)

	if v.example != nil {
		fmt.Fprintf(&text, "\nOrder %d as JSON, read through GORM. Keys are strings, because JavaScript\nwould round the numbers. The total is without freight:\n\n", v.example.Number)
		order, err := json.MarshalIndent(v.example, "  ", "  ")
		if err != nil {
			return err
		}
		parts := layout.Parts(v.example.ID)
		fmt.Fprintf(&text, "  %s\n\nIts key, taken apart. Its time may be some milliseconds ahead of the clock:\n\n", order)
		fmt.Fprintf(&text, "  key         %d\n  time        %s\n  datacenter  %d\n  worker      %d\n  sequence    %d\n",
			v.example.ID, parts.Time.UTC().Format("2006-01-02 15:04:05.000 MST"), parts.Datacenter, parts.Worker, parts.Sequence)
	}
	_, err := io.WriteString(out, text.String())
	return err
}
