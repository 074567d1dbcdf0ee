package snowkey

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/sqllease"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/errtext"
	"github.com/snowkey/snowkey/internal/base/wait"
)

// A Config configures [Open]. The zero value serves most programs.
type Config struct {
	// Namespace names the set of keys in which no two may be equal. Programs that write to the
	// same tables have the same. It has 1..64 of the characters a-z A-Z 0-9 . _ -.
	//
	// Defaults to "default".
	Namespace string

	// Layout gives the bits of the keys their meaning. A namespace has one layout, and Open
	// refuses any other with a [*lease.LayoutError].
	//
	// Defaults to core.Default().
	Layout core.Layout

	// Region assigns the datacenter number of the keys, if programs of several regions, each with a
	// database of its own, make keys of one namespace. Layout then needs DatacenterBits.
	//
	// Defaults to nil: the datacenter is 0.
	Region *lease.Region

	// Dialect is the SQL that the database speaks, for one that Open does not recognize.
	//
	// Defaults to what the database says it is.
	Dialect sqlstore.Dialect

	// Table is the table of the leases, in a schema if need be. It has no effect on SQLite.
	// Programs that write to the same rows must use the same one, so name the schema if their
	// connections have different ones, as roles with schemas of their own have on PostgreSQL.
	//
	// Defaults to sqllease.DefaultTable, in the schema or database of the connection.
	Table string

	// LeaseFile is the SQLite file of the leases of a SQLite database, for one whose folder takes
	// no other files, as that of LiteFS. All processes that write to the database name one and the
	// same file, on a local disk. It has no effect on other databases and in memory.
	//
	// Defaults to the path of the database's file and "-leases".
	LeaseFile string

	// AcquireWait is how long Open waits for a worker number if none is free, as after a crash
	// of more than half of the processes. Negative: until ctx ends. To fail at once, set 1 ns.
	//
	// Defaults to the window in which the number of a killed process stays busy and 5 s more:
	// 15 s on SQLite and with 8 worker bits or fewer, 65 s otherwise.
	AcquireWait time.Duration

	// Logger is where the lease reports what happens to it, and its store warns of settings that
	// put the promise at risk. Where nothing is wrong, nothing is logged above level Debug.
	//
	// Defaults to slog.Default().
	Logger *slog.Logger
}

// Open returns a generator whose worker number no other process has, from a lease that is kept
// in the database behind db. It asks the database what it is, creates the table of the leases
// if there is none, and acquires the lease. Open does not take db over.
//
//	gen, err := snowkey.Open(ctx, db, snowkey.Config{})
//	…
//	defer gen.Close(ctx)
//	err = gormDB.Use(gormplugin.New(gen)) // or sqlxhelper.New(gen)
//
// [core.Generator.Close] gives the number back. Close the generator before db; in the other order
// Close returns an error, unless db is SQLite, and the number stays busy for up to a minute, as that
// of a process that was killed does. With 8 worker bits or fewer it is 10 s, so that restarts do not
// use up the few numbers. [core.Generator.Worker] returns the [*lease.Lease], for readiness probes and metrics.
//
// On SQLite the leases are in a SQLite file of their own beside the database, with its name and
// "-leases", which the driver of db opens, so that a long transaction of the program does not hold
// them up; the number of a process that was killed is busy for up to 10 s. A database in memory
// ends with the process, so its keys have a number that is free in this process, and no lease. A
// database whose file is not on this machine, or has a second path, is refused.
//
// If no number is free, Open waits for one, see Config.AcquireWait.
//
// Where the program may not create tables the error is a [*sqlstore.TableError], whose text has
// the statements for whoever may. Where another schema has the table, it is
// [sqlstore.ErrOtherSchema]. Where the tables are there and the program may only read them, the
// text of the error has the rights to grant. The other errors come from [lease.Acquire]. For other
// stores and other settings, call that function and core.New; docs/workers.md shows how.
func Open(ctx context.Context, db *sql.DB, c Config) (*core.Generator, error) {
	c.Namespace, c.Layout = cmp.Or(c.Namespace, "default"), cmp.Or(c.Layout, core.Default())
	gen, err := c.open(ctx, db)
	if err != nil {
		return nil, errtext.Prefix("snowkey: Open: ", "snowkey: ", err) // a ValueError begins so too
	}
	return gen, nil
}

func (c *Config) open(ctx context.Context, db *sql.DB) (*core.Generator, error) {
	if db == nil {
		return nil, &core.ValueError{Package: "snowkey", Name: "db", Value: "nil", Want: "an open *sql.DB"}
	}
	if err := c.Layout.Validate(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if c.Dialect == 0 {
		var err error
		if c.Dialect, err = dialect.Detect(ctx, db); err != nil {
			return nil, hint(ctx, db, err)
		}
	}
	if c.Dialect == sqlstore.SQLite {
		return c.onSQLite(ctx, db)
	}
	window := time.Minute
	if c.Layout.WorkerBits <= 8 {
		window = shortWindow
	}
	return c.onTables(ctx, db, window) // the store says itself that the pool is used up
}

// shortWindow is how much time is reserved where numbers are few, or the store is a file of this
// host, which is hardly ever away.
const shortWindow = 10 * time.Second

// onTables keeps the lease in tables of db, which it makes if need be.
func (c *Config) onTables(ctx context.Context, db *sql.DB, window time.Duration) (*core.Generator, error) {
	store, err := sqllease.New(db, sqlstore.Config{Dialect: c.Dialect, Table: c.Table, Logger: c.Logger})
	if err != nil {
		return nil, err
	}
	gen, err := c.leased(ctx, store, window)
	var missing *sqlstore.TableError
	if errors.As(err, &missing) && errors.Is(err, sqlstore.ErrNoTable) {
		// Not before, because a program that may not create tables may use those there are.
		refused := store.CreateTables(ctx)
		if errors.Is(refused, sqlstore.ErrOtherSchema) {
			return nil, refused
		}
		if refused != nil {
			return nil, &refusedError{missing, refused}
		}
		gen, err = c.leased(ctx, store, window)
	}
	if dialect.Denied(err) {
		table := cmp.Or(c.Table, sqllease.DefaultTable)
		err = fmt.Errorf("the program lacks a right to the tables %[1]s, %[1]s_meta and %[1]s_past of worker numbers: grant it SELECT, INSERT and UPDATE on all three (%[2]w)", table, err)
	}
	return gen, err
}

// A refusedError says why Open could not make the table of the leases, and who can.
type refusedError struct {
	missing *sqlstore.TableError
	refused error
}

func (e *refusedError) Error() string {
	return fmt.Sprintf("the database lacks the tables %s of worker numbers, and did not let Open create it (%v): let a user with the right to create tables run this once, and grant the program SELECT, INSERT and UPDATE on all of them\n%s;",
		strings.Join(e.missing.Tables, ", "), e.refused, strings.Join(e.missing.Statements, ";\n"))
}

func (e *refusedError) Unwrap() []error { return []error{e.missing, e.refused} }

// leased acquires a lease and makes its generator. Stores beside several SQLite files know
// nothing of each other, so a lease may have a number that this process has already. It is held
// until another one is acquired, which is therefore another number.
func (c *Config) leased(ctx context.Context, store lease.Store, window time.Duration) (gen *core.Generator, err error) {
	config := lease.Config{Namespace: c.Namespace, Layout: c.Layout, Region: c.Region, Window: window, Logger: c.Logger}
	var refused []*lease.Lease
	defer func() {
		for _, l := range refused {
			_ = l.Close(ctx) // at worst its number is busy for a window
		}
	}()
	for {
		l, err := lease.Acquire(ctx, store, config)
		// Only now may Acquire wait, because it would also wait for a store that cannot be
		// reached; and not for numbers that this process has itself.
		if errors.Is(err, lease.ErrNoFreeWorker) && len(refused) < 1<<c.Layout.WorkerBits {
			waits := config
			waits.AcquireWait = cmp.Or(c.AcquireWait, window+5*time.Second)
			l, err = lease.Acquire(ctx, store, waits)
		}
		if err != nil {
			return nil, err
		}
		if gen, err = core.New(core.Config{Layout: c.Layout, Datacenter: l.Status().Datacenter, Worker: l}); err == nil {
			return gen, nil
		}
		refused = append(refused, l)
		if !errors.Is(err, core.ErrWorkerInUse) {
			return nil, err
		}
	}
}

// hint says what a wait for a connection that ended with its context may mean.
func hint(ctx context.Context, db *sql.DB, err error) error {
	err = wait.Cause(ctx, err)
	if s := db.Stats(); s.MaxOpenConnections > 0 && s.InUse >= s.MaxOpenConnections && errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: all %d connections of the pool are in use; if this is in a transaction, call Open before it begins", err, s.MaxOpenConnections)
	}
	return err
}
