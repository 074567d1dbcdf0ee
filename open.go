package snowkey

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/filelease"
	"github.com/snowkey/snowkey/core/lease/sqllease"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/base/dialect"
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
	//
	// Defaults to sqllease.DefaultTable.
	Table string

	// Logger is where the lease reports what happens to it, and its store warns of settings that
	// put the promise at risk. Where nothing is wrong, nothing is logged above level Debug.
	//
	// Defaults to slog.Default().
	Logger *slog.Logger
}

// fileWindow is that of leases in files. It is below the permitted clock skew, so the number of
// a process that was killed is free at once.
const fileWindow = 4 * time.Second

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
// Close returns an error, and the number stays busy for up to a minute, as that of a process that
// was killed does. With 8 worker bits or fewer it is 10 s, so that restarts do not use up the few
// numbers. [core.Generator.Worker] returns the [*lease.Lease], for readiness probes and metrics.
//
// On SQLite the leases are files in a folder beside the database, with its name and "-leases",
// so that a long transaction of the program does not hold them up, and the number of a process
// that was killed is free at once. A database in memory ends with the process, so its keys have
// a number that is free in this process, and no lease.
//
// Where the program may not create tables the error is a [*sqlstore.TableError], whose text has
// the statements for whoever may. The other errors are those of [lease.Acquire]. For other
// stores and other settings, call that function and core.New; docs/workers.md shows how.
func Open(ctx context.Context, db *sql.DB, c Config) (*core.Generator, error) {
	if c.Namespace == "" {
		c.Namespace = "default"
	}
	if c.Layout == (core.Layout{}) {
		c.Layout = core.Default()
	}
	gen, err := c.open(ctx, db)
	if err != nil {
		return nil, fmt.Errorf("snowkey: Open: %w", err)
	}
	return gen, nil
}

func (c *Config) open(ctx context.Context, db *sql.DB) (*core.Generator, error) {
	if c.Dialect == 0 {
		var err error
		if c.Dialect, err = dialect.Detect(ctx, db); err != nil {
			return nil, hint(db, err)
		}
	}
	if c.Dialect == sqlstore.SQLite {
		return c.onSQLite(ctx, db)
	}
	store, err := sqllease.New(db, sqlstore.Config{Dialect: c.Dialect, Table: c.Table, Logger: c.Logger})
	if err != nil {
		return nil, err
	}
	gen, err := c.leased(ctx, store, 0)
	var missing *sqlstore.TableError
	if errors.As(err, &missing) && errors.Is(err, sqlstore.ErrNoTable) {
		// Not before, because a program that may not create tables may use those there are.
		if refused := store.CreateTables(ctx); refused != nil {
			missing.Err = refused
			return nil, missing
		}
		gen, err = c.leased(ctx, store, 0)
	}
	return gen, err // the store says itself that the pool is used up
}

// onSQLite keeps the lease beside the database's file.
func (c *Config) onSQLite(ctx context.Context, db *sql.DB) (*core.Generator, error) {
	var path sql.NullString
	if err := db.QueryRowContext(ctx, "SELECT file FROM pragma_database_list WHERE name = 'main'").Scan(&path); err != nil {
		return nil, hint(db, err)
	}
	// A driver's file system in memory has paths that are no files.
	if info, err := os.Stat(path.String); err != nil || !info.Mode().IsRegular() {
		return c.inMemory()
	}
	folder := path.String + "-leases" // SQLite has resolved links, so all processes find one folder
	if err := os.Mkdir(folder, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	store, err := filelease.New(folder, filelease.Config{Logger: c.Logger})
	if err != nil {
		return nil, err
	}
	return c.leased(ctx, store, fileWindow)
}

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

// inMemory makes a generator for a database that no other process can have.
func (c *Config) inMemory() (gen *core.Generator, err error) {
	if c.Region != nil {
		return nil, &core.ValueError{Package: "snowkey", Name: "Config.Region", Value: strconv.Quote(c.Region.Name), Want: "nil for a database in memory, which is no region's"}
	}
	for n := range int64(1) << c.Layout.WorkerBits {
		gen, err = core.New(core.Config{Layout: c.Layout, Worker: core.StaticWorker(n)})
		if !errors.Is(err, core.ErrWorkerInUse) {
			break
		}
	}
	return gen, err
}

// hint says what a wait for a connection that ended with its context may mean.
func hint(db *sql.DB, err error) error {
	if s := db.Stats(); err != nil && s.MaxOpenConnections > 0 && s.InUse >= s.MaxOpenConnections && errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: all %d connections of the pool are in use; if this is in a transaction, call Open before it begins", err, s.MaxOpenConnections)
	}
	return err
}
