package sqlsegment

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/internal/tables"
	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/sqlrow"
)

// DefaultTable is the table if Config.Table is empty.
const DefaultTable = "snowkey_segments"

// A Store keeps the rows in a table. New creates it; the zero value has no database. It is safe for
// concurrent use and must not be copied.
type Store struct {
	db      *tables.DB[texts]
	columns sync.Map // Column to string: its table in full, quoted
}

type tx = tables.Tx[texts]

var _ interface {
	segment.Store
	segment.Lister
	segment.Keeper
	segment.Freezer
} = (*Store)(nil)

// New returns a Store on db. It does no I/O and does not take db over. A wrong argument is a
// [*core.ValueError].
func New(db *sql.DB, c sqlstore.Config) (*Store, error) {
	d, err := tables.Open(db, c, tables.Kind[texts]{Package: "sqlsegment", Names: []string{DefaultTable}, Create: create, Text: textsOf, Definite: definite})
	if err != nil {
		return nil, err
	}
	return &Store{db: d}, nil
}

func invalid(name string, value any, want string) error {
	return &core.ValueError{Package: "sqlsegment", Name: name, Value: fmt.Sprint(value), Want: want}
}

// definite reports whether err was decided from what a transaction has read.
func definite(err error) bool {
	for _, kind := range []error{segment.ErrNoTag, segment.ErrExhausted, segment.ErrStride, errThere} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return errors.As(err, new(*core.ValueError))
}

var errThere = errors.New("the row exists")

// explain returns the error of an operation whose transaction has failed with err.
func (s *Store) explain(name string, err error) error {
	if err == nil {
		return nil
	}
	if errors.As(err, new(*sqlstore.TableError)) && errors.Is(err, sqlstore.ErrSchema) {
		err = fmt.Errorf("%w; for Leaf's own table run the statements of AlterLeaf", err)
	}
	return fmt.Errorf("sqlsegment: %s: table %s: %w", name, s.db.Names()[0], err)
}

// A change is a row before and after an operation.
type change struct{ before, after segment.Row }

// change replaces the row of a tag by the result of f. The row is locked from the read to COMMIT. f
// may run several times.
func (s *Store) change(ctx context.Context, name, tag string, f func(segment.Row) (segment.Row, error)) (change, error) {
	if err := (segment.Row{Tag: tag, Step: 1, Stride: 1}).Validate(); err != nil {
		return change{}, err
	}
	done, err := tables.Do(ctx, s.db, func(t *tx) (change, error) {
		before, err := s.find(ctx, t, tag)
		if err != nil {
			return change{}, err
		}
		row, err := f(before)
		if err != nil || row == before {
			return change{before, row}, err
		}
		// The UPDATE compares what was read, because the lock does not hold if a proxy has sent the
		// read to a replica.
		result, err := t.Exec(ctx, t.Text.update, row.Next, stride(row), row.Offset, row.Version, tag, before.Next, stride(before), before.Version)
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

// stored reads back a row on MySQL and returns an error unless it is stored as written. Without strict
// mode MySQL stores the greatest number that the column holds in place of a greater one, and each
// Take would then begin there again. PostgreSQL and SQLite refuse such a number.
func (s *Store) stored(ctx context.Context, t *tx, row segment.Row) error {
	if s.db.Dialect != dialect.MySQL {
		return nil
	}
	return t.Reread(ctx, func() error { return s.compare(ctx, t, row) })
}

func (s *Store) compare(ctx context.Context, t *tx, row segment.Row) error {
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
			return fmt.Errorf("%w: %w", sqlstore.ErrSchema, invalid("column "+c.name, c.got, fmt.Sprintf("%d, which was written: make it a BIGINT, and set a strict sql_mode", c.want)))
		}
	}
	return nil
}

// Take implements segment.Store.
func (s *Store) Take(ctx context.Context, t segment.Take) (segment.Range, error) {
	if t.Waited && s.db.Single() {
		return segment.Range{}, fmt.Errorf("%w; tag %s", segment.ErrOneConnection, t.Tag)
	}
	s.db.WarnOfPool(ctx)
	done, err := s.change(ctx, "take", t.Tag, func(r segment.Row) (segment.Row, error) {
		r, _, err := r.Take(t)
		return r, err
	})
	if err != nil {
		return segment.Range{}, err
	}
	// The range is computed again from the same row, because a transaction that Do may have left
	// behind must not write to a variable of this call.
	_, got, err := done.before.Take(t)
	return got, err
}

// GiveBack implements segment.Store.
func (s *Store) GiveBack(ctx context.Context, g segment.GiveBack) error {
	_, err := s.change(ctx, "give back", g.Tag, func(r segment.Row) (segment.Row, error) { return r.GiveBack(g), nil })
	return err
}

// Raise implements segment.Keeper: max_id is then at least next.
func (s *Store) Raise(ctx context.Context, tag string, next int64) (segment.Row, error) {
	done, err := s.change(ctx, "raise", tag, func(r segment.Row) (segment.Row, error) { return r.Raise(next), nil })
	return done.after, err
}

// RaiseAbove raises the row so that every number from now on is greater than n, such as the greatest
// key of a table that will get its keys from this row.
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
	if err := r.Validate(); err != nil {
		return err
	}
	_, err := tables.Do(ctx, s.db, func(t *tx) (done struct{}, err error) {
		switch _, err := s.find(ctx, t, r.Tag); {
		case err == nil:
			return done, fmt.Errorf("tag %s: %w", r.Tag, errThere)
		case !errors.Is(err, segment.ErrNoTag):
			return done, err
		}
		if _, err = t.Exec(ctx, t.Text.insert, r.Tag, r.Next, r.Step, r.Description, stride(r), r.Offset, r.Version); err != nil {
			return done, err
		}
		return done, s.stored(ctx, t, r)
	})
	return s.explain("create", err)
}

// Rows implements segment.Lister. The rows are sorted by tag.
func (s *Store) Rows(ctx context.Context) ([]segment.Row, error) {
	rows, err := tables.Do(ctx, s.db, func(t *tx) ([]segment.Row, error) { return s.read(ctx, t, t.Text.rows) })
	return rows, s.explain("rows", err)
}

// Table returns the full name of the Store's table, with the schema or database that all operations
// use. The first call of any asks the database, unless Config.Table names the schema.
func (s *Store) Table(ctx context.Context) (string, error) {
	all, err := s.db.Find(ctx)
	if err != nil {
		return "", s.explain("table", err)
	}
	return all.Names[0], nil
}

// Statements returns the statement that creates the table, for those who run their
// migrations themselves. It does not end in a semicolon. It names the schema of
// Config.Table, or none, and then makes the table in the schema of whoever runs it.
func (s *Store) Statements() []string { return s.db.Statements() }

// CreateTables creates the table unless it exists. Any number of processes may call it at the same
// time.
func (s *Store) CreateTables(ctx context.Context) error {
	return s.explain("create tables", s.db.CreateTables(ctx, func(ctx context.Context, t *tx) error {
		_, err := s.read(ctx, t, t.Text.rows)
		return err
	}))
}
