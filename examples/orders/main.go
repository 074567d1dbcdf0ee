package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/snowkey/snowkey/core"
)

func main() {
	// Ctrl-C ends ctx. Every statement runs under ctx, so the open transaction
	// is rolled back and the program leaves by the front door. From then on
	// Ctrl-C means what it always does, should that take too long.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop)

	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage): // has been said, with the usage
		os.Exit(2)
	case errors.Is(err, errInterrupted):
		_, _ = fmt.Fprintln(os.Stderr, "orders:", err)
		os.Exit(130) // what a shell reports for a program that Ctrl-C has ended
	default:
		_, _ = fmt.Fprintln(os.Stderr, "orders:", err)
		os.Exit(1)
	}
}

// errUsage stands for flags that are wrong. What is wrong is on stderr already.
var errUsage = errors.New("bad usage")

// errInterrupted is the outcome after Ctrl-C, whatever the drivers said to it. What
// stays in the file is on stderr already.
var errInterrupted = errors.New("interrupted")

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
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return errUsage
	}
	if flags.NArg() > 0 {
		_, _ = fmt.Fprintf(stderr, "unexpected argument: %s\n", strings.Join(flags.Args(), " "))
		flags.Usage()
		return errUsage
	}

	defer func() {
		if err != nil && ctx.Err() != nil {
			err = errInterrupted
		}
	}()

	// All input is checked before the database is touched: a bad row leaves nothing
	// behind.
	data, err := openData(*folder)
	if err != nil {
		return err
	}
	sum, err := data.check()
	if err != nil {
		return err
	}

	// One generator for the whole program, made once at the start. It needs a
	// worker number that no other running process has; nothing is guessed from
	// the host. There is no server to ask, so keys cost no round trip.
	keys, err := core.New(core.Config{Worker: core.StaticWorker(*worker)})
	if err != nil {
		return err
	}
	// Closing and cleaning up must work after Ctrl-C too, hence WithoutCancel.
	defer func() { err = errors.Join(err, keys.Close(context.WithoutCancel(ctx))) }()

	db, err := openDatabase(ctx, *path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	viaGORM, err := newGORMStore(ctx, db, keys)
	if err != nil {
		return fmt.Errorf("%s: GORM: %w", *path, err)
	}
	viaSqlx, err := newSqlxStore(ctx, db, keys)
	if err != nil {
		return fmt.Errorf("%s: sqlx: %w", *path, err)
	}
	stores := []store{viaGORM, viaSqlx}

	err = importAll(ctx, data, sum, stores, newProgress(stdout, len(data.orders)), stderr)
	if err != nil {
		return err
	}

	checked, err := verifyAll(ctx, db, stores, data)
	if ctx.Err() != nil {
		_, _ = fmt.Fprintln(stderr, "Stopped. All orders are written and stay. They are not verified.")
	}
	if err != nil {
		return fmt.Errorf("verifying %s: %w", *path, err)
	}
	result := &report{data: data, file: *path, total: sum, stores: stores, checked: checked, layout: keys.Layout()}
	if len(data.orders) > 0 {
		if result.example, err = viaGORM.first(ctx); err != nil {
			return fmt.Errorf("reading an order through GORM: %w", err)
		}
	}
	return result.print(stdout)
}

// importAll writes the data through every store, order by order, so that at any
// time they are at most one order apart. sum is what check has returned. The first
// error ends it; stderr is then told what stays.
func importAll(ctx context.Context, d *dataset, sum totals, stores []store, p *progress, stderr io.Writer) (err error) {
	written := make([]int, len(stores))
	defer func() {
		p.clear()
		if err == nil {
			return
		}
		var stay []string
		for i, s := range stores {
			stay = append(stay, fmt.Sprintf("%d through %s", written[i], s.name()))
		}
		_, _ = fmt.Fprintf(stderr, "Stopped. Of %d orders, %s are written and stay. Nothing of any other is.\n",
			len(d.orders), strings.Join(stay, " and "))
	}()

	for _, s := range stores {
		if err := s.begin(ctx, d); err != nil {
			return fmt.Errorf("%s: %w", s.name(), err)
		}
	}
	for i := range d.orders {
		// Read before the transaction begins, so that a transaction lasts no longer
		// than its SQL.
		o, err := d.order(i)
		if err != nil {
			return err
		}
		for j, s := range stores {
			if err := s.write(ctx, o); err != nil {
				return fmt.Errorf("%s: order %d: %w", s.name(), o.Number, err)
			}
			written[j]++
		}
		p.show(i + 1)
	}
	for _, s := range stores {
		if err := s.finish(ctx, sum); err != nil {
			return fmt.Errorf("%s: %w", s.name(), err)
		}
	}
	return nil
}
