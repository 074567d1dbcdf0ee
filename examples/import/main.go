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
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/sqlxhelper"
)

func main() {
	// Ctrl-C ends ctx. The transaction is rolled back and the program leaves by
	// the front door. From then on Ctrl-C means what it always does, should that
	// take too long.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop)

	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage): // has been said, with the usage
		os.Exit(2)
	case errors.Is(err, errInterrupted):
		_, _ = fmt.Fprintln(os.Stderr, "import:", err)
		os.Exit(130) // what a shell reports for a program that Ctrl-C has ended
	default:
		_, _ = fmt.Fprintln(os.Stderr, "import:", err)
		os.Exit(1)
	}
}

// errUsage stands for flags that are wrong. What is wrong is on stderr already.
var errUsage = errors.New("bad usage")

// errInterrupted is the outcome after Ctrl-C, whatever the database said to it.
var errInterrupted = errors.New("interrupted, nothing was loaded")

// run is the whole program, with everything that a test wants to hand in.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	flags := flag.NewFlagSet("import", flag.ContinueOnError)
	flags.SetOutput(stderr)
	folder := flags.String("data", "", `load customers.csv, products.csv, orders.csv and
order-details.csv from this `+"`folder`"+` (default: made-up rows, with
numbers above those in the database)`)
	rows := flags.Int("rows", 500_000, `without -data, make up this `+"`number`"+` of order lines, and
what belongs to them; 1 to 100000000`)
	path := flags.String("db", "import.db", `load into this SQLite `+"`file`"+`; it is created if it is not
there. Rows are added to those in it, and a row of -data
that is there already ends the load`)
	worker := flags.Int64("worker", 1, `worker `+"`number`"+` in the keys; processes that write to one
database need different ones`)
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return errUsage
	}
	problem := ""
	switch {
	case flags.NArg() > 0:
		problem = "unexpected argument: " + strings.Join(flags.Args(), " ")
	case *rows < 1 || *rows > 100_000_000:
		problem = fmt.Sprintf("-rows %d: want a number from 1 to 100000000", *rows)
	}
	flags.Visit(func(f *flag.Flag) {
		if f.Name == "rows" && *folder != "" {
			problem = "-rows is for files that are made up, and -data names a folder: want one of them"
		}
	})
	if problem != "" {
		_, _ = fmt.Fprintln(stderr, problem)
		flags.Usage()
		return errUsage
	}

	if *folder != "" { // not after a minute's wait for the database
		if _, err := size(os.DirFS(*folder)); err != nil {
			return fmt.Errorf("-data %s: %w", *folder, err)
		}
	}

	// One generator for the whole program. It needs a worker number that no other
	// running process has; nothing is guessed from the host.
	keys, err := core.New(core.Config{Worker: core.StaticWorker(*worker)})
	if err != nil {
		return err
	}
	// Cleaning up must work after Ctrl-C too, hence WithoutCancel.
	defer func() { err = errors.Join(err, keys.Close(context.WithoutCancel(ctx))) }()

	source := *folder
	if *folder == "" {
		source = thousands(int64(*rows)) + " made-up order lines"
	}
	start, steps := time.Now(), []step(nil)
	err = inDatabase(ctx, *path, func(db *sqlx.DB) (err error) {
		if *folder == "" {
			order, product, err := lastNumbers(ctx, db)
			if err != nil {
				return err
			}
			if *folder, err = makeFolder(ctx, *rows, order, product); err != nil {
				return err
			}
			defer func() { err = errors.Join(err, os.RemoveAll(*folder)) }()
		}
		l := &loader{
			files:  os.DirFS(*folder),
			keys:   keys,
			helper: sqlxhelper.New(keys),
			bar:    newBar(stderr, time.Now),
			now:    time.Now,
		}
		steps, err = l.load(ctx, db)
		return err
	})
	// ErrCommitUnknown: the load may be there after all, and its error says so.
	if err != nil && ctx.Err() != nil && !errors.Is(err, sqlxhelper.ErrCommitUnknown) {
		return errInterrupted
	}
	if err != nil {
		// A row is refused before the commit, so there is no doubt.
		if bad := (*rowError)(nil); errors.As(err, &bad) {
			_, _ = fmt.Fprintln(stderr, "Stopped at a bad row. Nothing was loaded.")
		}
		return err
	}
	return printReport(stdout, source, *path, steps, time.Since(start))
}
