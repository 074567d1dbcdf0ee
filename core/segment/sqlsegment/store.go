package sqlsegment

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/sqlrow"
)

// A Dialect is the SQL that a database speaks. The zero value is none of them.
type Dialect = dialect.Dialect

// The dialects.
const (
	// SQLite is SQLite 3.16 or newer.
	SQLite = dialect.SQLite
	// PostgreSQL is PostgreSQL 9.6 or newer, by any driver.
	PostgreSQL = dialect.PostgreSQL
	// MySQL is MySQL 5.7 and MariaDB 10.3, or newer. Dolt is refused, see ErrDolt.
	MySQL = dialect.MySQL
)

// DefaultTable is the table if Config.Table is empty.
const DefaultTable = "snowkey_segments"

// The errors of this package, for errors.Is. Those of package segment come as they are.
var (
	// ErrNoTable means that the table is missing. The error names the statement that
	// makes it.
	ErrNoTable = errors.New("table missing")

	// ErrSchema means that the table has other columns than those of this package, or one
	// that does not keep what is written to it. Then nothing was changed.
	ErrSchema = errors.New("unexpected table schema")

	// ErrReadOnly means that the database takes no writes.
	ErrReadOnly = sqlrow.ErrReadOnly

	// ErrDolt means that the server is Dolt, which commits both of two transactions that
	// make the same change to a row. Ranges would be given twice.
	ErrDolt = sqlrow.ErrDolt

	// ErrNotDurable means that the SQLite database would forget what it acknowledges: it
	// is in memory, has no journal, is on a file system that other hosts may share, or
	// has a second path, by a hard link or a mount of the file itself.
	ErrNotDurable = sqlrow.ErrNotDurable

	// ErrReplaced means that the SQLite file or its write-ahead log was removed or
	// replaced while the process ran. Restart the process.
	ErrReplaced = sqlrow.ErrReplaced
)

// A Config says where and how the rows are kept.
type Config struct {
	// Dialect is the SQL that the database speaks. It must be set.
	Dialect Dialect

	// Table is the table with one row per tag. The name is letters, digits and _, at
	// most 63 of them. A schema and a dot may be before it. Defaults to DefaultTable.
	Table string

	// AllowFUSE lets an SQLite file be on FUSE. Set it only if no other host shares
	// that file system, its locks work, and it keeps what it has synced.
	AllowFUSE bool

	// Logger gets warnings about the server and the file system. Each comes
	// once per Store. Defaults to slog.Default().
	Logger *slog.Logger
}

// A Store keeps the rows in a table. New makes it; the zero value has no database. It
// is safe for concurrent use and must not be copied.
type Store struct {
	rows   *sqlrow.DB
	config sqlrow.Config
	table  string // as configured
	log    *slog.Logger
	text   texts
	pooled sync.Once // warned of the pool
}

var _ interface {
	segment.Store
	segment.Lister
	segment.Keeper
	segment.Freezer
} = (*Store)(nil)

// New returns a Store on db. It does no I/O and does not take db over. If an argument is
// wrong the error is a [*core.ValueError].
func New(db *sql.DB, c Config) (*Store, error) {
	if db == nil {
		return nil, invalid("db", "nil", "an open *sql.DB")
	}
	if !c.Dialect.Valid() {
		return nil, invalid("Config.Dialect", c.Dialect, "SQLite, PostgreSQL or MySQL")
	}
	if c.Table == "" {
		c.Table = DefaultTable
	}
	if want, ok := sqlrow.CheckTable(c.Table, 0); !ok {
		return nil, invalid("Config.Table", strconv.Quote(c.Table[:min(len(c.Table), 64)]), want)
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	s := &Store{table: c.Table, log: c.Logger, text: textsOf(c.Dialect, c.Table), config: sqlrow.Config{
		Dialect:   c.Dialect,
		Table:     c.Table,
		AllowFUSE: c.AllowFUSE,
		Verdict:   definite,
		Warn: func(ctx context.Context, risk string, args ...any) {
			c.Logger.WarnContext(ctx, "sqlsegment: the database may forget ranges. Numbers may then repeat. Change that.", append([]any{"risk", risk}, args...)...)
		},
		Now: time.Now,
	}}
	s.rows = sqlrow.New(db, s.config)
	return s, nil
}

func invalid(name string, value any, want string) error {
	return &core.ValueError{Package: "sqlsegment", Name: name, Value: fmt.Sprint(value), Want: want}
}

// definite reports whether err was decided from what was read, and not by the database.
func definite(err error) bool {
	for _, kind := range []error{segment.ErrNoTag, segment.ErrExhausted, segment.ErrStride, errThere} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return errors.As(err, new(*core.ValueError))
}

var errThere = errors.New("the row is there already")

// explain returns the error of an operation whose transaction has failed with err.
func (s *Store) explain(name string, err error) error {
	switch {
	case err == nil:
		return nil
	case definite(err), errors.Is(err, sqlrow.ErrCommit), dialect.BadConnection(err):
	case dialect.NoTable(err):
		err = fmt.Errorf("%w: call CreateTables, or run %s; (%w)", ErrNoTable, s.text.create, err)
	case dialect.NoColumn(err):
		err = fmt.Errorf("%w: want that of %s; for Leaf's own table run AlterLeaf; (%w)", ErrSchema, s.text.create, err)
	}
	return fmt.Errorf("sqlsegment: %s: table %s: %w", name, s.table, err)
}

// A change is a row before and after an operation.
type change struct{ before, after segment.Row }

// change replaces the row of a tag by what f makes of it. The row is locked from the
// reading to COMMIT. f may run several times.
func (s *Store) change(ctx context.Context, name, tag string, f func(segment.Row) (segment.Row, error)) (change, error) {
	if err := segment.CheckTag(tag); err != nil {
		return change{}, err
	}
	done, err := sqlrow.Do(ctx, s.rows, func(t *sqlrow.Tx) (change, error) {
		before, err := s.find(ctx, t, tag)
		if err != nil {
			return change{}, err
		}
		row, err := f(before)
		if err != nil || row == before {
			return change{before, row}, err
		}
		// The comparison of all that the row counts with is for databases whose lock is not
		// one: behind a proxy that sends reads to a replica, say.
		result, err := t.Exec(ctx, s.text.update, row.Next, stride(row), row.Offset, row.Version, tag, before.Next, stride(before), before.Version)
		if err != nil {
			return change{}, err
		}
		if n, err := result.RowsAffected(); err != nil || n != 1 {
			return change{}, errors.Join(sqlrow.ErrConflict, err)
		}
		return change{before, row}, s.stored(ctx, t, row)
	})
	return done, s.explain(name, err)
}

// stored reads a row back that was written, and returns an error unless it is there as it
// was written. Without strict mode MySQL stores the greatest number that the column holds in
// place of a greater one. Each Take would then begin there again. PostgreSQL and SQLite
// refuse such a number, so they need no statement more.
func (s *Store) stored(ctx context.Context, t *sqlrow.Tx, row segment.Row) error {
	if s.config.Dialect != dialect.MySQL {
		return nil
	}
	got, err := s.find(ctx, t, row.Tag)
	if err != nil {
		return err
	}
	for _, c := range []struct {
		name      string
		got, want int64
	}{
		{"max_id", got.Next, row.Next},
		{"step", got.Step, row.Step},
		{"stride", stride(got), stride(row)},
		{"number_offset", got.Offset, row.Offset},
		{"version", got.Version, row.Version},
	} {
		if c.got != c.want {
			return fmt.Errorf("%w: %w", ErrSchema, invalid("column "+c.name, c.got, fmt.Sprintf("%d, which was written: make it a BIGINT, and set a strict sql_mode", c.want)))
		}
	}
	return nil
}

// Take implements segment.Store.
func (s *Store) Take(ctx context.Context, t segment.Take) (segment.Range, error) {
	if s.rows.Single() {
		if t.Waited {
			return segment.Range{}, fmt.Errorf("%w; tag %s", segment.ErrOneConnection, t.Tag)
		}
		s.pooled.Do(func() {
			s.log.WarnContext(ctx, "sqlsegment: the pool has one connection; a transaction that holds it gets no range, and fails when it needs a number. Give the segments a pool of their own.", "table", s.table)
		})
	}
	done, err := s.change(ctx, "take", t.Tag, func(r segment.Row) (segment.Row, error) {
		r, _, err := r.Take(t)
		return r, err
	})
	if err != nil {
		return segment.Range{}, err
	}
	// Once more, on the same row: what the transaction found must not be written to a
	// variable from within, since Do may have left it behind.
	_, got, err := done.before.Take(t)
	return got, err
}

// GiveBack implements segment.Store.
func (s *Store) GiveBack(ctx context.Context, g segment.GiveBack) error {
	_, err := s.change(ctx, "give back", g.Tag, func(r segment.Row) (segment.Row, error) { return r.GiveBack(g), nil })
	return err
}

// Raise implements segment.Keeper. It sees to it that max_id is at least next.
func (s *Store) Raise(ctx context.Context, tag string, next int64) (segment.Row, error) {
	done, err := s.change(ctx, "raise", tag, func(r segment.Row) (segment.Row, error) { return r.Raise(next), nil })
	return done.after, err
}

// RaiseAbove sees to it that every number from now on is above n, such as the greatest
// key of a table that is to get its numbers here.
func (s *Store) RaiseAbove(ctx context.Context, tag string, n int64) (segment.Row, error) {
	done, err := s.change(ctx, "raise", tag, func(r segment.Row) (segment.Row, error) { return r.Raise(r.After(n)), nil })
	return done.after, err
}

// Freeze implements segment.Freezer.
func (s *Store) Freeze(ctx context.Context, tag string) (segment.Row, error) {
	done, err := s.change(ctx, "freeze", tag, func(r segment.Row) (segment.Row, error) { return r.Freeze(), nil })
	return done.after, err
}

// Thaw implements segment.Freezer.
func (s *Store) Thaw(ctx context.Context, to segment.Row) error {
	_, err := s.change(ctx, "thaw", to.Tag, func(r segment.Row) (segment.Row, error) { return r.Thaw(to) })
	return err
}

// Create implements segment.Keeper.
func (s *Store) Create(ctx context.Context, r segment.Row) error {
	if err := r.Check(); err != nil {
		return err
	}
	_, err := sqlrow.Do(ctx, s.rows, func(t *sqlrow.Tx) (done struct{}, err error) {
		switch _, err := s.find(ctx, t, r.Tag); {
		case err == nil:
			return done, fmt.Errorf("tag %s: %w", r.Tag, errThere)
		case !errors.Is(err, segment.ErrNoTag):
			return done, err
		}
		if _, err = t.Exec(ctx, s.text.insert, r.Tag, r.Next, r.Step, r.Description, stride(r), r.Offset, r.Version); err != nil {
			return done, err
		}
		return done, s.stored(ctx, t, r)
	})
	return s.explain("create", err)
}

// Rows implements segment.Lister. The rows are sorted by tag.
func (s *Store) Rows(ctx context.Context) ([]segment.Row, error) {
	rows, err := sqlrow.Do(ctx, s.rows, func(t *sqlrow.Tx) ([]segment.Row, error) { return s.read(ctx, t, s.text.rows) })
	return rows, s.explain("rows", err)
}

// CreateTables makes the table, unless it is there. Any number of processes may do so at
// the same time.
func (s *Store) CreateTables(ctx context.Context) error {
	_, err := sqlrow.Do(ctx, s.rows, func(t *sqlrow.Tx) (done struct{}, err error) {
		_, err = t.Exec(ctx, s.text.create)
		return done, err
	})
	if err != nil {
		return s.explain("create table", err)
	}
	_, err = s.Rows(ctx) // which looks at the columns of a table that was there
	return err
}
