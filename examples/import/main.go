package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/examples/internal/csvload"
	"github.com/snowkey/snowkey/sqlxhelper"
)

func main() { csvload.Main("import", run) }

// errInterrupted is the error after Ctrl-C, whatever the database returned.
var errInterrupted = fmt.Errorf("%w, nothing was loaded", csvload.ErrInterrupted)

// options are the flags.
type options struct {
	folder, file string
	rows         int
	worker       int64
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("import", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.folder, "data", "", `load customers.csv, products.csv, orders.csv and
order-details.csv from this `+"`folder`"+` (default: made-up rows, with
numbers above those in the database)`)
	flags.IntVar(&o.rows, "rows", 500_000, `without -data, make up this `+"`number`"+` of order lines, and
what belongs to them; 1 to 100000000`)
	flags.StringVar(&o.file, "db", "import.db", `load into this SQLite `+"`file`"+`; it is created if it is not
there. Rows are added to those in it, and a row of -data
that is there already ends the load`)
	flags.Int64Var(&o.worker, "worker", 1, `worker `+"`number`"+` in the keys; processes that write to one
database need different ones`)
	err = csvload.ParseFlags(flags, args, func() (problem string) {
		if o.rows < 1 || o.rows > 100_000_000 {
			problem = fmt.Sprintf("-rows %d: want a number from 1 to 100000000", o.rows)
		}
		flags.Visit(func(f *flag.Flag) {
			if f.Name == "rows" && o.folder != "" {
				problem = "-rows is for files that are made up, and -data names a folder: want one of them"
			}
		})
		return problem
	})
	return o, err
}

// run is the whole program, with everything that a test wants to hand in.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	source := thousands(int64(o.rows)) + " made-up order lines"
	if o.folder != "" {
		source = o.folder
		// Before the database is opened, whose lock may take time.
		if _, err := size(os.DirFS(o.folder)); err != nil {
			return fmt.Errorf("-data %s: %w", o.folder, err)
		}
	}

	// One generator for the whole program. It needs a worker number that no other
	// running process has. The generator guesses nothing from the host.
	keys, err := core.New(core.Config{Worker: core.StaticWorker(o.worker)})
	if err != nil {
		return err
	}
	// Cleaning up must work after Ctrl-C too, hence WithoutCancel.
	defer func() { err = errors.Join(err, keys.Close(context.WithoutCancel(ctx))) }()

	start := time.Now()
	var steps []step
	err = inDatabase(ctx, o.file, func(db *sqlx.DB) (err error) {
		l := &loader{keys: keys, helper: sqlxhelper.New(keys), bar: newBar(stderr, time.Now), now: time.Now}
		steps, err = l.loadFolder(ctx, db, o)
		return err
	})
	// ErrCommitUnknown: the rows may be in the database, and its error says so.
	if err != nil && ctx.Err() != nil && !errors.Is(err, sqlxhelper.ErrCommitUnknown) {
		return errInterrupted
	}
	if err != nil {
		// A row is refused before the commit, so there is no doubt.
		if bad := (*csvload.RowError)(nil); errors.As(err, &bad) {
			_, _ = fmt.Fprintln(stderr, "Stopped at a bad row. Nothing was loaded.")
		}
		return err
	}
	return printReport(stdout, source, o.file, steps, time.Since(start))
}
