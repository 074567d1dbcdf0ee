package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/snowkey/snowkey/core/keysql"
)

// parts are the expressions that there are.
var parts = []string{"time", "datacenter", "worker", "sequence", "shard", "text", "uuid"}

var sqlText = command{
	name:    "sql",
	summary: "print SQL that takes keys apart",
	args:    "[expression | functions [schema] | view name table | default [schema] | require-key table]",
	most:    3,
	words:   append([]string{"functions", "view", "default", "require-key"}, parts...),
	flags:   "dialect column layout bits shard-bits epoch unit worker datacenter db apply yes",
	text: `Prints the expressions of a database for a column of keys, each after its name, or only the one that is named: time, datacenter, worker, sequence, shard (of -shard-bits), text or uuid. They may stand in a list of columns, in GROUP BY and ORDER BY, and in a view. text is for JSON, whose readers change the last digits of a number.

    snowkey sql -dialect postgresql
    psql -c "SELECT $(snowkey sql -dialect postgresql time), * FROM orders"

functions prints the statements that install id_time, id_worker, id_sequence, id_min and id_max on PostgreSQL, MySQL and MariaDB, in a schema if it is named. view prints those of a view of a table with the parts of its keys, also on SQLite. Run them again after a change: they replace what is there.

    snowkey sql -dialect postgresql functions | psql
    snowkey sql -dialect sqlite view orders_read orders | sqlite3 shop.db

default prints those of id_next() on PostgreSQL, a function for rows that people insert without a key. -worker names the number of its keys, which has to be retired before, so that no program gets it. On the other databases, require-key prints a trigger that refuses such rows.

    snowkey sql -dialect postgresql -worker 1023 default | psql
    psql -c 'ALTER TABLE orders ALTER COLUMN id SET DEFAULT public.id_next()'

With -apply the statements are run, after a question. -db then names the database, and -dialect is not needed. A run that ends in the middle says what was done, and the same command goes on; what takes it back is shown before.

For a condition on the time, use snowkey range or id_min: one on what these expressions return reads the whole table.`,
	run: func(ctx context.Context, o *options, out *bufio.Writer, args []string) error {
		c, err := o.keyColumn()
		if err != nil {
			return err
		}
		texts := []string{c.Time(), c.Datacenter(), c.Worker(), c.Sequence(), c.Shard(), c.Text(), c.UUID()}
		at := slices.Index(parts, strings.Join(args, " "))
		switch {
		case len(args) == 0:
			for i, name := range parts {
				if name == "shard" && o.shardBits == 0 {
					continue
				}
				_, err = fmt.Fprintf(out, "%-11s %s\n", name, texts[i])
			}
			return err
		case at >= 0:
			_, err = fmt.Fprintln(out, texts[at])
			return err
		case args[0] == "functions" && len(args) < 3:
			l, _ := o.keyLayout() // keyColumn has it
			return o.finish(ctx, out)(keysql.Functions(o.dialect.value, l, strings.Join(args[1:], "")))
		case args[0] == "view" && len(args) == 3:
			return o.finish(ctx, out)(c.View(args[1], args[2]))
		case args[0] == "default" && len(args) < 3:
			l, _ := o.keyLayout()
			worker, err := strconv.ParseInt(o.worker, 10, 64)
			if err != nil {
				return usagef("-worker %.64q: want the number of a retired worker", o.worker)
			}
			return o.finish(ctx, out)(keysql.Default(o.dialect.value, l, o.datacenter, worker, cmp.Or(strings.Join(args[1:], ""), "public")))
		case args[0] == "require-key" && len(args) == 2:
			return o.finish(ctx, out)(keysql.RequireKey(o.dialect.value, args[1], o.column))
		}
		return usagef("%.64q: want one of %s, or functions [schema], view name table, default [schema], or require-key table", args, strings.Join(parts, ", "))
	},
}
