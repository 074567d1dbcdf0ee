// Package tables opens the database of a store of leases, segments or serials, finds and creates its
// tables, and explains the errors of its transactions.
package tables

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/sqlrow"
)

// A Kind is what a package keeps in its tables, with statements T.
type Kind[T any] struct {
	// Package is the name that errors begin with.
	Package string

	// Names are the tables if Config.Table is empty. If it names another first table, the names
	// of the others are that name with Suffixes, one for each further table.
	Names, Suffixes []string

	// Create returns the statements that create the tables, whose names are quoted.
	Create func(d sqlstore.Dialect, names []string) []string

	// Text returns the statements that use the tables, whose names are quoted.
	Text func(d sqlstore.Dialect, names []string) T

	// Definite reports whether an error of a transaction was decided from what it has read, and
	// does not come from the database.
	Definite func(error) bool

	// Now is the clock of SQLite. Defaults to time.Now.
	Now func() time.Time
}

// A DB is the database of a Store. It is safe for concurrent use.
type DB[T any] struct {
	*sqlrow.DB
	Dialect sqlstore.Dialect
	Log     *slog.Logger

	kind   Kind[T]
	config sqlrow.Config
	named  *Tables[T]                // as Config.Table names them
	found  atomic.Pointer[Tables[T]] // with their schema, once it is known; see place.go
	pool   sync.Once                 // its warning
}

// Tables are the tables of a Store.
type Tables[T any] struct {
	Names      []string // for people
	Text       T
	schema     string // "": not known yet
	quoted     []string
	statements []string // that create them
}

// Open returns the database of a Store. It does no I/O and does not take pool over. A nil pool and
// a wrong Config are a [*core.ValueError].
func Open[T any](pool *sql.DB, c sqlstore.Config, kind Kind[T]) (*DB[T], error) {
	refuse := func(name, value, want string) (*DB[T], error) {
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
	d := &DB[T]{Dialect: c.Dialect, Log: c.Logger, kind: kind}
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
	d.named = d.in(sqlrow.NameOf(c.Dialect, c.Table).Schema)
	if d.named.schema != "" {
		d.found.Store(d.named)
	}
	return d, nil
}

// in returns the tables in a schema.
func (d *DB[T]) in(schema string) *Tables[T] {
	t := Tables[T]{schema: schema}
	names := d.kind.Names
	if first := d.first(); first != names[0] {
		names = []string{first}
		for _, suffix := range d.kind.Suffixes {
			names = append(names, first+suffix)
		}
	}
	for _, name := range names {
		full := sqlrow.Name{Schema: schema, Table: name}
		t.Names, t.quoted = append(t.Names, full.String()), append(t.quoted, full.Quote(d.Dialect))
	}
	t.Text, t.statements = d.kind.Text(d.Dialect, t.quoted), d.kind.Create(d.Dialect, t.quoted)
	return &t
}

// Names returns the names of the tables for people, in full once they are found.
func (d *DB[T]) Names() []string { return d.known().Names }

func (d *DB[T]) known() *Tables[T] {
	if found := d.found.Load(); found != nil {
		return found
	}
	return d.named
}

// On returns the rows of another table, which [sqlrow.CheckTable] has passed, in another database
// of the same dialect.
func (d *DB[T]) On(pool *sql.DB, table string) *sqlrow.DB {
	c := d.config
	c.Table = table
	return sqlrow.New(pool, c)
}

// WarnOfPool logs once that a pool has one connection, which the program's transactions hold too.
// It is called by operations, because a program may size its pool after it has made a Store.
func (d *DB[T]) WarnOfPool(ctx context.Context) {
	if d.Single() {
		d.pool.Do(func() {
			d.Log.WarnContext(ctx, "sqlstore: the pool has one connection; the Store waits while a transaction of the program holds it, and that transaction fails if it needs a number. Give the Store a pool of its own.",
				"table", d.Names()[0])
		})
	}
}

// A Tx is a transaction on the tables, which it names in full.
type Tx[T any] struct {
	*sqlrow.Tx
	*Tables[T]
}

// Do is [sqlrow.Do] with [DB.Explain].
func Do[T, R any](ctx context.Context, d *DB[T], body func(*Tx[T]) (R, error)) (R, error) {
	return run(ctx, d, sqlrow.Do[R], body)
}

// Look is [sqlrow.Look] with [DB.Explain].
func Look[T, R any](ctx context.Context, d *DB[T], body func(*Tx[T]) (R, error)) (R, error) {
	return run(ctx, d, sqlrow.Look[R], body)
}

// LookAt is [sqlrow.LookAt] with [DB.Explain].
func LookAt[T, R any](ctx context.Context, d *DB[T], body func(*Tx[T]) (R, error)) (R, error) {
	return run(ctx, d, sqlrow.LookAt[R], body)
}

func run[T, R any](ctx context.Context, d *DB[T], how func(context.Context, *sqlrow.DB, func(*sqlrow.Tx) (R, error)) (R, error), body func(*Tx[T]) (R, error)) (result R, err error) {
	all, err := d.Find(ctx)
	if err != nil {
		return result, err
	}
	result, err = how(ctx, d.DB, func(t *sqlrow.Tx) (R, error) { return body(&Tx[T]{t, all}) })
	return result, d.Explain(err)
}

// Explain returns a [*sqlstore.TableError] for an error of the database that means one, and err
// otherwise.
func (d *DB[T]) Explain(err error) error {
	switch {
	case err == nil, d.definite(err), errors.Is(err, sqlrow.ErrCommit), dialect.BadConnection(err):
	case dialect.NoTable(err):
		return d.known().missing(err)
	case dialect.NoColumn(err):
		return d.WrongSchema(err)
	}
	return err
}

func (d *DB[T]) definite(err error) bool {
	return errors.As(err, new(*sqlstore.TableError)) || errors.Is(err, sqlstore.ErrOtherSchema) || d.kind.Definite(err)
}

// WrongSchema returns a [*sqlstore.TableError] that matches [sqlstore.ErrSchema].
func (d *DB[T]) WrongSchema(problem error) error {
	return d.known().tableError(sqlstore.ErrSchema, problem)
}

// missing returns a [*sqlstore.TableError] that matches [sqlstore.ErrNoTable].
func (t *Tables[T]) missing(err error) error { return t.tableError(sqlstore.ErrNoTable, err) }

func (t *Tables[T]) tableError(kind, err error) error {
	return &sqlstore.TableError{Tables: t.Names, Kind: kind, Err: err, Statements: slices.Clone(t.statements)}
}

// Named returns the tables as Config.Table names them.
func (d *DB[T]) Named() *Tables[T] { return d.named }

// Statements returns the statements that create the tables. None ends in a semicolon.
func (d *DB[T]) Statements() []string { return slices.Clone(d.named.statements) }

// Columns returns an error unless a table of t, which is named by its index, has columns, which are
// separated by commas.
func (t *Tx[T]) Columns(ctx context.Context, index int, columns string) error {
	return t.Each(ctx, func(func(...any) error) error { return nil }, "SELECT "+columns+" FROM "+t.quoted[index]+" WHERE 1 = 0")
}
