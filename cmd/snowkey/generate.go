package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/types"
)

var generate = command{
	name:    "generate",
	summary: "make new keys",
	args:    "[count]",
	most:    1,
	flags:   "worker datacenter form layout bits shard-bits epoch unit",
	text: `Writes new keys, one per line: one, or as many as count says. They increase, and no key is written twice. With -shard-bits their shards are spread evenly.

    snowkey generate -worker 1023
    snowkey generate -worker 1023 -form base62 1000000 > keys

Nothing but the worker number keeps the keys of two programs apart. Two that run at the same time with one number, of this command or of any other program, repeat each other's keys, and so may one that starts after the clock was set back. Set a number aside for it that no lease gives out.

Ctrl-C ends it after a whole line. With many keys it shows on a terminal how far it is.`,
	run: func(ctx context.Context, o *options, out *bufio.Writer, args []string) error {
		l, err := o.keyLayout()
		if err != nil {
			return err
		}
		count := int64(1)
		if len(args) == 1 {
			if count, err = strconv.ParseInt(args[0], 10, 64); err != nil || count < 1 {
				return usagef("count %.64q: want a number from 1", args[0])
			}
		}
		worker, err := strconv.ParseInt(o.worker, 10, 64)
		if err != nil {
			return usagef("-worker %.64q: want a number from 0 to %d that no other running program has, because two with one number repeat keys", o.worker, int64(1)<<l.WorkerBits-1)
		}
		keys, err := core.New(core.Config{Layout: l, Datacenter: o.datacenter, Worker: core.StaticWorker(worker)})
		if errors.As(err, new(*core.ValueError)) {
			return usageError{err}
		}
		if err != nil {
			return err
		}
		write := types.Snowflake.String
		if o.form.chosen {
			write = o.form.value.write
		}
		return writeKeys(ctx, keys, count, write, out)
	},
}

// writeKeys writes whole lines, and shows how far it is where that does not disturb them.
func writeKeys(ctx context.Context, keys *core.Generator, count int64, write func(types.Snowflake) string, out *bufio.Writer) error {
	p := newProgress(count, "keys")
	defer p.clear()
	ids := make([]types.Snowflake, 1000)
	for left := count; left > 0; {
		ids = ids[:min(int64(len(ids)), left)]
		err := keys.Fill(ctx, ids)
		if ctx.Err() != nil {
			return fmt.Errorf("%w after %d of %d keys", errInterrupted, count-left, count)
		}
		if err != nil {
			return err
		}
		for _, id := range ids {
			if _, err := fmt.Fprintln(out, write(id)); err != nil {
				return err
			}
		}
		left -= int64(len(ids))
		if !isTerminal(os.Stdout) { // where it would be among the keys
			p.show(count - left)
		}
	}
	return nil
}
