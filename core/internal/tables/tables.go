// Package tables opens the database of a store of leases, segments or serials, creates its tables
// and explains the errors of its transactions.
package tables

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/sqlrow"
)

// A Kind is what a package keeps in its tables.
type Kind struct {
	// Package is the name that errors begin with.
	Package string

	// Names are the tables if Config.Table is empty. If it names another first table, the names
	// of the others are that name with Suffixes, one for each further table.
	Names, Suffixes []string

	// Create returns the statements that create the tables of these names.
	Create func(d sqlstore.Dialect, names []string) []string

	// Definite reports whether an error of a transaction was decided from what it has read, and
	// does not come from the database.
	Definite func(error) bool

	// Now is the clock of SQLite. Defaults to time.Now.
	Now func() time.Time
}

// A DB is the database of a Store. It is safe for concurrent use.
type DB struct {
	*sqlrow.DB
	Dialect sqlstore.Dialect
	Names   []string // of the tables
	Log     *slog.Logger

	kind       Kind
	config     sqlrow.Config
	statements []string
	pool       sync.Once // its warning
}

// Open returns the database of a Store. It does no I/O and does not take pool over. A nil pool and
// a wrong Config are a [*core.ValueError].
func Open(pool *sql.DB, c sqlstore.Config, kind Kind) (*DB, error) {
	refuse := func(name, value, want string) (*DB, error) {
		return nil, &core.ValueError{Package: kind.Package, Name: name, Value: value, Want: want}
	}
	if pool == nil {
		return refuse("db", "nil", "an open *sql.DB")
	}
	if !c.Dialect.Valid() {
		return refuse("Config.Dialect", c.Dialect.String(), "SQLite, PostgreSQL or MySQL")
	}
	longest := 0
	for _, suffix := range kind.Suffixes {
		longest = max(longest, len(suffix))
	}
	if c.Table == "" {
		c.Table = kind.Names[0]
	}
	if want, ok := sqlrow.CheckTable(c.Table, longest); !ok {
		return refuse("Config.Table", strconv.Quote(c.Table[:min(len(c.Table), 64)]), want)
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if kind.Now == nil {
		kind.Now = time.Now
	}
	d := &DB{Dialect: c.Dialect, Names: kind.names(c.Table), Log: c.Logger, kind: kind}
	d.statements = kind.Create(c.Dialect, d.Names)
	d.config = sqlrow.Config{
		Dialect:   c.Dialect,
		Table:     c.Table,
		AllowFUSE: c.AllowFUSE,
		Verdict:   d.definite,
		Warn: func(ctx context.Context, risk string, args ...any) {
			c.Logger.WarnContext(ctx, "sqlstore: the database may forget what it has acknowledged; numbers may then repeat. Change what risk names, or for leases turn on the loss guard.",
				append([]any{"table", c.Table, "risk", risk}, args...)...)
		},
		Now: kind.Now,
	}
	d.DB = sqlrow.New(pool, d.config)
	return d, nil
}

// names returns the tables beside the first one, and that one itself.
func (k Kind) names(first string) []string {
	names := []string{first}
	schema := strings.TrimSuffix(first, k.Names[0])
	standard := strings.HasSuffix(first, k.Names[0]) && (schema == "" || strings.HasSuffix(schema, "."))
	for i, suffix := range k.Suffixes {
		if standard {
			names = append(names, schema+k.Names[i+1])
		} else {
			names = append(names, first+suffix)
		}
	}
	return names
}

// On returns the rows of another table, which [sqlrow.CheckTable] has passed, in another database
// of the same dialect.
func (d *DB) On(pool *sql.DB, table string) *sqlrow.DB {
	c := d.config
	c.Table = table
	return sqlrow.New(pool, c)
}

// WarnOfPool logs once that a pool has one connection, which the program's transactions hold too.
// It is called by operations, because a program may size its pool after it has made a Store.
func (d *DB) WarnOfPool(ctx context.Context) {
	if d.Single() {
		d.pool.Do(func() {
			d.Log.WarnContext(ctx, "sqlstore: the pool has one connection; the Store waits while a transaction of the program holds it, and that transaction fails if it needs a number. Give the Store a pool of its own.",
				"table", d.Names[0])
		})
	}
}

// Do is [sqlrow.Do] with [DB.Explain].
func Do[T any](ctx context.Context, d *DB, body func(*sqlrow.Tx) (T, error)) (T, error) {
	result, err := sqlrow.Do(ctx, d.DB, body)
	return result, d.Explain(err)
}

// Explain returns a [*sqlstore.TableError] for an error of the database that means one, and err
// otherwise.
func (d *DB) Explain(err error) error {
	switch {
	case err == nil, d.definite(err), errors.Is(err, sqlrow.ErrCommit), dialect.BadConnection(err):
	case dialect.NoTable(err):
		return d.tableError(sqlstore.ErrNoTable, err)
	case dialect.NoColumn(err):
		return d.WrongSchema(err)
	}
	return err
}

func (d *DB) definite(err error) bool {
	return errors.As(err, new(*sqlstore.TableError)) || d.kind.Definite(err)
}

// WrongSchema returns a [*sqlstore.TableError] that matches [sqlstore.ErrSchema].
func (d *DB) WrongSchema(problem error) error { return d.tableError(sqlstore.ErrSchema, problem) }

func (d *DB) tableError(kind, err error) error {
	return &sqlstore.TableError{Tables: d.Names, Kind: kind, Err: err, Statements: d.Statements()}
}

// Statements returns the statements that create the tables. None ends in a semicolon.
func (d *DB) Statements() []string { return slices.Clone(d.statements) }

// CreateTables creates the tables unless they exist. Any number of processes may do so at the
// same time. check examines the tables by statements that only read; if it finds them in order,
// no right to create tables is needed.
func (d *DB) CreateTables(ctx context.Context, check func(context.Context, *sqlrow.Tx) error) error {
	look := func() error {
		_, err := Do(ctx, d, func(t *sqlrow.Tx) (done struct{}, err error) { return done, check(ctx, t) })
		return err
	}
	if err := look(); !errors.Is(err, sqlstore.ErrNoTable) {
		return err
	}
	if _, err := Do(ctx, d, func(t *sqlrow.Tx) (done struct{}, err error) {
		for _, text := range d.statements {
			if _, err := t.Exec(ctx, text); err != nil {
				return done, err
			}
		}
		return done, nil
	}); err != nil {
		return err
	}
	return look()
}

// Columns returns an error unless a table has columns, which are separated by commas.
func Columns(ctx context.Context, t *sqlrow.Tx, d sqlstore.Dialect, table, columns string) error {
	return t.Each(ctx, func(func(...any) error) error { return nil }, "SELECT "+columns+" FROM "+sqlrow.Quote(d, table)+" WHERE 1 = 0")
}
