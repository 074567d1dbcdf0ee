package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/examples/internal/csvload"
)

func main() { csvload.Main("orders", run) }

// run is the whole program, with everything that a test wants to hand in.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	flags := flag.NewFlagSet("orders", flag.ContinueOnError)
	flags.SetOutput(stderr)
	folder := flags.String("data", "", `read customers.csv, products.csv, orders.csv and
order-details.csv from this `+"`folder`"+` (default: a built-in
sample)`)
	path := flags.String("db", "orders.db", `write to this SQLite `+"`file`"+`; it is created if it is not there,
and a run adds an import to those in it`)
	worker := flags.Int64("worker", 1, `worker `+"`number`"+` in the keys; processes that write at the same
time need different ones`)
	if err := csvload.ParseFlags(flags, args, func() string { return "" }); err != nil {
		return err
	}
	defer func() {
		if err != nil && ctx.Err() != nil { // whatever the drivers returned
			err = csvload.ErrInterrupted
		}
	}()

	data, err := openData(*folder)
	if err != nil {
		return err
	}

	// One generator for the whole program, made once at the start. It needs a
	// worker number that no other running process has. It guesses nothing from
	// the host. There is no server to ask, so keys cost no round trip.
	keys, err := core.New(core.Config{Worker: core.StaticWorker(*worker)})
	if err != nil {
		return err
	}
	// Closing must work after Ctrl-C too, hence WithoutCancel.
	defer func() { err = errors.Join(err, keys.Close(context.WithoutCancel(ctx))) }()

	db, err := openDatabase(ctx, *path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	writers, err := newWriters(ctx, db, keys)
	if err != nil {
		return fmt.Errorf("%s: %w", *path, err)
	}
	if err := importAll(ctx, data, writers, stdout, stderr); err != nil {
		return err
	}
	checked, err := verifyAll(ctx, db, writers, data)
	if ctx.Err() != nil {
		_, _ = fmt.Fprintln(stderr, "Stopped. All orders are written and stay. They are not verified.")
	}
	if err != nil {
		return fmt.Errorf("verifying %s: %w", *path, err)
	}
	return report(stdout, data, *path, writers, checked, keys.Layout())
}

// newWriters prepares both stores.
func newWriters(ctx context.Context, db *sql.DB, keys *core.Generator) ([]*writer, error) {
	viaGORM, err := newGORMStore(ctx, db, keys)
	if err != nil {
		return nil, fmt.Errorf("GORM: %w", err)
	}
	viaSqlx, err := newSqlxStore(ctx, db, keys)
	if err != nil {
		return nil, fmt.Errorf("sqlx: %w", err)
	}
	return []*writer{{store: viaGORM, keys: keys}, {store: viaSqlx, keys: keys}}, nil
}

// importAll writes the data order by order, each through every store. The first
// error ends it, and stderr is told what stays.
func importAll(ctx context.Context, d *dataset, writers []*writer, stdout, stderr io.Writer) (err error) {
	terminal := csvload.IsTerminal(stdout)
	defer func() {
		if terminal && len(d.orders) > 0 {
			_, _ = fmt.Fprint(stdout, "\r\x1b[K") // return, erase to the end of the line
		}
		if err == nil {
			return
		}
		var stay []string
		for _, w := range writers {
			stay = append(stay, fmt.Sprintf("%d through %s", w.written, w.name()))
		}
		_, _ = fmt.Fprintf(stderr, "Stopped. Of %d orders, %s are written and stay. No part of another is.\n",
			len(d.orders), strings.Join(stay, " and "))
	}()

	for _, w := range writers {
		if err := w.begin(ctx, d); err != nil {
			return fmt.Errorf("%s: %w", w.name(), err)
		}
	}
	for i, o := range d.orders {
		for _, w := range writers {
			if err := w.order(ctx, o); err != nil {
				return fmt.Errorf("%s: order %d: %w", w.name(), o.Number, err)
			}
		}
		if terminal && (i+1)*100/len(d.orders) != i*100/len(d.orders) { // a percent more
			_, _ = fmt.Fprintf(stdout, "\rwriting order %d of %d", i+1, len(d.orders))
		}
	}
	for _, w := range writers {
		now := time.Now().UTC()
		w.imp.FinishedAt = &now
		w.imp.Orders, w.imp.Lines, w.imp.Total = d.totals.orders, d.totals.lines, d.totals.total
		if err := w.finish(ctx, &w.imp); err != nil {
			return fmt.Errorf("%s: %w", w.name(), err)
		}
	}
	return nil
}
