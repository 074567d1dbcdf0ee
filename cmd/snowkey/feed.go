package main

import (
	"bufio"
	"context"
	"fmt"

	"github.com/snowkey/snowkey/core/feed"
	"github.com/snowkey/snowkey/types"
)

var feeds = command{
	name:    "feed",
	summary: "say whether a table with a feed went back, and acknowledge it",
	args:    "table | acknowledge table key",
	most:    3,
	words:   []string{"acknowledge"},
	flags:   "db yes",
	text: `Says whether the database has gone back since programs read the new rows of a table with package feed: by a restore, or by a failover that lost commits. All of them then get feed.ErrWentBack. On PostgreSQL the table has its schema.

    snowkey feed -db postgres://shop@db/shop public.orders

acknowledge lets them go on from where they are. Before, compare the rows from the key on that is shown with what they have read: some may be gone, and others may have come below their positions.

    snowkey feed acknowledge public.orders 312345678901234567`,
	run: func(ctx context.Context, o *options, out *bufio.Writer, args []string) error {
		var key types.Snowflake
		acknowledge := len(args) == 3 && args[0] == "acknowledge"
		if acknowledge {
			var err error
			if key, err = read(args[2]); err != nil {
				return usageError{err}
			}
			args = args[1:2]
		}
		if len(args) != 1 {
			return usagef("want table, or acknowledge table key")
		}
		d, err := o.open(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = d.Close() }()
		f, err := feed.New(feed.Config{DB: d.DB, Dialect: d.dialect, Table: args[0], Reader: "snowkey"})
		if err != nil {
			return usageError{err}
		}
		from, err := f.WentBack(ctx)
		switch {
		case err != nil:
			return d.hide(err)
		case from == 0:
			_, err = fmt.Fprintf(out, "%s has not gone back since it was last acknowledged\n", args[0])
			return err
		}
		if _, err := fmt.Fprintf(out, "%s went back to the key %d\n", args[0], from); err != nil || !acknowledge {
			return err
		}
		if err := out.Flush(); err != nil {
			return err
		}
		if err := o.confirm(ctx, fmt.Sprintf("Has everything that was read from the key %d on been compared with the rows that %s has now? All its readers go on from where they are.", key, args[0])); err != nil {
			return err
		}
		if err := f.Acknowledge(ctx, key); err != nil {
			return d.hide(err)
		}
		_, err = fmt.Fprintln(out, "acknowledge: done")
		return err
	},
}
