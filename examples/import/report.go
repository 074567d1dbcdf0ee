package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// printReport prints what was loaded and how fast. One write gives one error for a
// full disk or a closed pipe.
func printReport(out io.Writer, source, file string, steps []step, took time.Duration) error {
	var text strings.Builder
	fmt.Fprintf(&text, "Loaded %s into %s, in one transaction:\n\n", source, file)
	table := tabwriter.NewWriter(&text, 0, 0, 3, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(table, "\trows\tseconds\trows/s\t")
	all := step{name: "in all", took: took}
	for _, s := range steps {
		all.rows += s.rows
	}
	for _, s := range append(steps, all) {
		rows, rate := "", ""
		if s.rows > 0 {
			rows, rate = thousands(int64(s.rows)), perSecond(s.rows, s.took)
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%.2f\t%s\t\n", s.name, rows, s.took.Seconds(), rate)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(out, text.String())
	return err
}
