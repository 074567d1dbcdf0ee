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
	default:
		_, _ = fmt.Fprintln(os.Stderr, "import:", err)
		os.Exit(1)
	}
}

// errUsage stands for flags that are wrong. What is wrong is on stderr already.
var errUsage = errors.New("bad usage")

// run is the whole program, with everything that a test wants to hand in.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	flags := flag.NewFlagSet("import", flag.ContinueOnError)
	flags.SetOutput(stderr)
	folder := flags.String("data", "", "load customers.csv, products.csv, orders.csv and order-details.csv from `folder` (default: files that are made up for the run)")
	rows := flags.Int("rows", 500_000, "make up so many order lines, and some orders, where there is no -data; the `number` is 1 to 100000000")
	path := flags.String("db", "import.db", "load into this SQLite `file`; created if it is not there, added to if it is")
	worker := flags.Int64("worker", 1, "worker `number` in the keys; processes that write to one database need different ones")
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
		if *folder, err = makeFolder(*rows); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(*folder)) }()
		source = thousands(int64(*rows)) + " made-up order lines"
	}

	start, steps := time.Now(), []step(nil)
	l := &loader{
		files:  os.DirFS(*folder),
		keys:   keys,
		helper: sqlxhelper.New(keys),
		bar:    newBar(stderr, time.Now),
		now:    time.Now,
	}
	err = inDatabase(ctx, *path, func(db *sqlx.DB) (err error) {
		steps, err = l.load(ctx, db)
		return err
	})
	if err != nil {
		// A row is refused before the commit, so there is no doubt.
		if bad := (*rowError)(nil); errors.As(err, &bad) {
			_, _ = fmt.Fprintln(stderr, "Stopped at a bad row. Nothing was loaded.")
		}
		return interrupted(ctx, err)
	}
	return printReport(stdout, source, *path, steps, time.Since(start))
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
