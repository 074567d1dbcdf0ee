package main

import (
	"bufio"
	"cmp"
	"context"
	"time"
)

var partitions = command{
	name:    "partitions",
	summary: "print the statements that divide a table by the time of its keys",
	args:    "table period | table from until",
	most:    3,
	flags:   "dialect every zone column layout bits epoch unit",
	text: `Prints the statements that make the partitions of a span of time, which is written as for snowkey range, on PostgreSQL, MySQL and MariaDB. They have no gap and no overlap, and their names sort. Nothing is run.

    snowkey partitions -dialect postgresql -every month orders 2026-05 2027 | psql

On PostgreSQL the table is one that was made with PARTITION BY RANGE (id), and partitions that are there stay. On MySQL it has no partitions yet: the statement copies it, and a last partition, pmax, holds the keys after the others. Every unique index must contain the key.`,
	run: func(_ context.Context, o *options, out *bufio.Writer, args []string) error {
		c, err := o.keyColumn()
		if err != nil {
			return err
		}
		zone := cmp.Or(o.zone, time.UTC)
		if len(args) < 2 || !o.every.chosen {
			return usagef("want -every, a table, and a period or two times")
		}
		from, until, err := spanOf(args[1:], zone)
		if err != nil {
			return usageError{err}
		}
		p, err := c.Partitions(args[0], o.every.value, zone)
		if err != nil {
			return usageError{err}
		}
		return writeStatements(out)(p.Create(nil, from, until))
	},
}
