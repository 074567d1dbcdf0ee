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
	default:
		_, _ = fmt.Fprintln(os.Stderr, "orders:", err)
		os.Exit(1)
	}
}

// errUsage stands for flags that are wrong. What is wrong is on stderr already.
var errUsage = errors.New("bad usage")

// run is the whole program, with everything that a test wants to hand in.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	flags := flag.NewFlagSet("orders", flag.ContinueOnError)
	flags.SetOutput(stderr)
	folder := flags.String("data", "", "read customers.csv, products.csv, orders.csv and order-details.csv from `folder` (default: a built-in sample)")
	path := flags.String("db", "orders.db", "write to this SQLite `file`; created if it is not there, added to if it is")
	worker := flags.Int64("worker", 1, "worker `number` in the keys; processes that write at the same time need different ones")
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

	defer func() { err = interrupted(ctx, err) }()

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

	data, err := openData(*folder)
	if err != nil {
		return err
	}
	sum, err := importAll(ctx, data, stores, newProgress(stdout, len(data.orders)), stderr)
	if err != nil {
		return err
	}

	checked, err := verifyAll(ctx, db, stores, data)
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

// interrupted makes an error that came from the end of ctx say so. The drivers
// do not always: a statement after the rollback only knows that the transaction
// is over.
func interrupted(ctx context.Context, err error) error {
	cause := ctx.Err()
	if err == nil || cause == nil {
		return err
	}
	if errors.Is(err, cause) {
		return fmt.Errorf("interrupted: %w", err)
	}
	return fmt.Errorf("interrupted: %w: %w", cause, err)
}

// importAll writes the data through every store, order by order, so that at any
// time they are at most one order apart. The first error ends it; stderr is
// then told what stays.
func importAll(ctx context.Context, d *dataset, stores []store, p *progress, stderr io.Writer) (sum totals, err error) {
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
			return totals{}, fmt.Errorf("%s: %w", s.name(), err)
		}
	}
	for i := range d.orders {
		// The row is read before its transaction begins: nothing of a bad order
		// is ever sent, and a transaction lasts no longer than its SQL.
		o, err := d.order(i)
		if err != nil {
			return totals{}, err
		}
		total, fits := sum.total.plus(o.Total)
		if !fits {
			return totals{}, d.orders[i].order.errorf("with order %d the total of all orders is too large", o.Number)
		}
		for j, s := range stores {
			if err := s.write(ctx, o); err != nil {
				return totals{}, fmt.Errorf("%s: order %d: %w", s.name(), o.Number, err)
			}
			written[j]++
		}
		sum = totals{orders: sum.orders + 1, lines: sum.lines + int64(len(o.Lines)), total: total}
		p.show(i + 1)
	}
	for _, s := range stores {
		if err := s.finish(ctx, sum); err != nil {
			return totals{}, fmt.Errorf("%s: %w", s.name(), err)
		}
	}
	return sum, nil
}
