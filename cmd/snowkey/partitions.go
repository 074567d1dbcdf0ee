package main

import (
	"bufio"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/snowkey/snowkey/core/keysql"
)

var partitions = command{
	name:    "partitions",
	summary: "divide a table by the time of its keys",
	args:    "table period | table from until | maintain table | convert table by | partman table from",
	most:    3,
	words:   []string{"maintain", "convert", "partman"},
	flags:   "dialect every zone column layout bits epoch unit ahead keep drop db apply yes",
	text: `Prints the statements that make the partitions of a span of time, which is written as for snowkey range, on PostgreSQL, MySQL and MariaDB. They have no gap and no overlap, and their names sort. With -db, those that the table has are left out, and with -apply the statements are run, after a question.

    snowkey partitions -dialect postgres -every month orders 2026-05 2027 | psql
    snowkey partitions -db postgres://shop@db/shop -apply -every month \
      orders 2026-05 2027

On PostgreSQL the table is one that was made with PARTITION BY RANGE (id), and partitions that are there stay. On MySQL the first run divides the table, which copies it, and a last partition, pmax, holds the keys after the others. Every unique index must contain the key.

maintain makes the partition of now and -ahead more, and lists those that are older than the last -keep. Their rows are removed with -drop alone. Run it by the clock, more often than the partitions ahead last; when there is nothing to do, it does nothing. It needs -db.

    snowkey partitions -apply -yes -every month -ahead 3 -keep 24 \
      maintain orders

convert gives partitions to a table of PostgreSQL that has none, while programs read and write it. The table becomes the first partition, until the end of the period that contains a time, and the last statement has to be run before that period ends. A period that has ended, or has keys after it, is refused. On MySQL the form without a word does it.

    snowkey partitions -dialect postgres -every month -ahead 3 \
      convert orders $(date +%Y)-12

partman prints the statement that hands a table to the extension pg_partman from a time on: hours, days or weeks in UTC.

A run that ends in the middle says what was done, and the same command goes on. -apply shows what takes it back.`,
	run: func(ctx context.Context, o *options, out *bufio.Writer, args []string) error {
		c, err := o.keyColumn()
		if err != nil {
			return err
		}
		word := ""
		if len(args) > 0 && strings.Contains(" maintain convert partman ", " "+args[0]+" ") {
			word, args = args[0], args[1:]
		}
		want := map[string]int{"maintain": 1, "convert": 2, "partman": 2}[word]
		if !o.every.chosen || want > 0 && len(args) != want || want == 0 && len(args) < 2 {
			return usagef("want -every, and one of %s", "table period, table from until, maintain table, convert table by, partman table from")
		}
		zone := cmp.Or(o.zone, time.UTC)
		p, err := c.Partitions(args[0], o.every.value, zone)
		if err != nil {
			return usageError{err}
		}
		var from, until time.Time
		switch word {
		case "maintain":
		case "":
			from, until, err = spanOf(args[1:], time.Now().In(zone))
		default:
			from, until, err = readTime(args[1], time.Now().In(zone))
		}
		if err != nil {
			return usageError{err}
		}
		switch word {
		case "convert":
			// The first moment of a period is in that period.
			if o.undo, err = p.Unconvert(from); err != nil {
				return usageError{err}
			}
			return o.finish(ctx, out)(p.Convert(from, o.ahead))
		case "partman":
			text, err := p.Partman(from, o.ahead)
			return o.finish(ctx, out)([]string{text}, err)
		case "":
			if _, err := o.locate(); errors.Is(err, errNoDatabase) {
				return o.finish(ctx, out)(p.Create(nil, from, until))
			}
		}
		// What these refuse without partitions is refused before anything is sent.
		if word == "" {
			_, err = p.Create(nil, from, until)
		} else {
			_, err = p.Maintain(nil, time.Now(), o.ahead, o.keep)
		}
		if err != nil {
			return usageError{err}
		}
		d, err := o.open(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = d.Close() }()
		existing, err := d.partitions(ctx, p)
		if err != nil {
			return err
		}
		if word == "" {
			return o.finishOn(ctx, out, d)(p.Create(existing, from, until))
		}
		plan, err := p.Maintain(existing, time.Now(), o.ahead, o.keep)
		if err != nil {
			return usageError{err}
		}
		for _, name := range plan.Old {
			if _, err := fmt.Fprintf(out, "-- old: %s\n", name); err != nil {
				return err
			}
		}
		if o.drop {
			o.undo = cmp.Or(undo(plan.Create), "-- nothing") + ";\n-- Rows that are removed are gone"
			plan.Create = append(plan.Create, plan.Drop...)
		}
		return o.finishOn(ctx, out, d)(plan.Create, nil)
	},
}

// partitions returns what the catalog says of the partitions of a table.
func (d *database) partitions(ctx context.Context, p keysql.Partitions) (all []keysql.Existing, err error) {
	err = d.each(ctx, func(rows *sql.Rows) error {
		var e keysql.Existing
		err := rows.Scan(&e.Name, &e.From, &e.Until)
		all = append(all, e)
		return err
	}, p.Existing())
	return all, err
}
