//go:build unix

package chaos

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
)

// Table returns results as a table for people, by store.
func Table(results []Result) string {
	results = slices.SortedStableFunc(slices.Values(results), func(a, b Result) int { return strings.Compare(a.Store, b.Store) })
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "store\tfence\tIDs\tduplicates\ttakeovers\tlosses\trestarts\tstops\tforgotten")
	for _, r := range results {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\n",
			r.Store, r.Rules, r.IDs, r.Duplicates, r.Takeovers, r.Losses, r.Restarts, r.Stops, r.Forgotten)
	}
	_ = w.Flush() // a strings.Builder takes all
	return b.String()
}
