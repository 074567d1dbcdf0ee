package main

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strings"
)

// parts are the expressions that there are.
var parts = []string{"time", "datacenter", "worker", "sequence", "text", "uuid"}

var sqlText = command{
	name:    "sql",
	summary: "print SQL that takes keys apart",
	args:    "[time | datacenter | worker | sequence | text | uuid]",
	most:    1,
	words:   parts,
	flags:   "dialect column layout bits epoch unit",
	text: `Prints the expressions of a database for a column of keys, each after its name, or only the one that is named. They may stand in a list of columns, in GROUP BY and ORDER BY, and in a view. text is for JSON, whose readers change the last digits of a number.

    snowkey sql -dialect postgresql
    psql -c "SELECT $(snowkey sql -dialect postgresql time), * FROM orders"

For a condition on the time, use snowkey range: one on these expressions reads the whole table.`,
	run: func(_ context.Context, o *options, out *bufio.Writer, args []string) error {
		c, err := o.keyColumn()
		if err != nil {
			return err
		}
		texts := []string{c.Time(), c.Datacenter(), c.Worker(), c.Sequence(), c.Text(), c.UUID()}
		if len(args) == 0 {
			for i, name := range parts {
				_, err = fmt.Fprintf(out, "%-11s %s\n", name, texts[i])
			}
			return err
		}
		at := slices.Index(parts, args[0])
		if at < 0 {
			return usagef("no expression %.64q: want one of %s", args[0], strings.Join(parts, ", "))
		}
		_, err = fmt.Fprintln(out, texts[at])
		return err
	},
}
