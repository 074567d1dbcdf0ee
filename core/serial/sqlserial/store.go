package sqlserial

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/internal/tables"
	"github.com/snowkey/snowkey/core/serial"
	"github.com/snowkey/snowkey/core/sqlstore"
)

// DefaultTable is the table if Config.Table is empty.
const DefaultTable = "snowkey_counters"

// A Store keeps the counters. New creates it; the zero value has no database. It is safe for
// concurrent use and must not be copied.
//
// A series is the Series itself where its definition matters, in [Store.Define] and
// [Store.NextIn], and Series.Name everywhere else. The latter calls know the series that this
// Store has defined.
type Store struct {
	db     *tables.DB[texts]
	known  sync.Map // name to *validSeries, whose definition equals the stored one
	warned sync.Map // name to true: the warning that its definition has changed was logged
}

type tx = tables.Tx[texts]

var _ serial.Store = (*Store)(nil)

// New returns a Store on db. It does no I/O and does not take db over. A wrong argument is a
// [*core.ValueError].
//
// Config.Table has one row per series and period. Two more tables have one row per series, and
// one per [Event]. By default the three are snowkey_counters, snowkey_series and
// snowkey_counter_events. Beside a Config.Table of another name, the two are called like it with
// _series and _events appended.
func New(db *sql.DB, c sqlstore.Config) (*Store, error) {
	d, err := tables.Open(db, c, tables.Kind[texts]{
		Package:  "sqlserial",
		Names:    []string{DefaultTable, "snowkey_series", "snowkey_counter_events"},
		Suffixes: []string{"_series", "_events"},
		Create:   create,
		Text:     textsOf,
		Definite: definite,
	})
	if err != nil {
		return nil, err
	}
	return &Store{db: d}, nil
}

func invalid(name, value, want string) error {
	return &core.ValueError{Package: "sqlserial", Name: name, Value: value, Want: want}
}

// definite reports whether err was decided from what a transaction has read.
func definite(err error) bool {
	for _, kind := range []error{
		serial.ErrNoSeries, serial.ErrDefinition, serial.ErrSeriesFull, serial.ErrPeriodClosed, serial.ErrPeriodOpen, serial.ErrCounted, serial.ErrBackdated, serial.ErrMeets, sqlstore.ErrSchema,
	} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return errors.As(err, new(*core.ValueError))
}

// explain returns the error of an operation on a series.
func (s *Store) explain(operation, series string, err error) error {
	if err == nil {
		return nil
	}
	if series != "" {
		series = " series " + series + ":"
	}
	return fmt.Errorf("sqlserial: %s:%s %w", operation, series, err)
}

// Table returns the full name of the Store's table of counters, with the schema or database that all operations
// use. The first call of any asks the database, unless Config.Table names the schema.
func (s *Store) Table(ctx context.Context) (string, error) {
	all, err := s.db.Find(ctx)
	if err != nil {
		return "", s.explain("table", "", err)
	}
	return all.Names[0], nil
}

// Statements returns the statements that create the tables, for those who run their migrations
// themselves. None ends in a semicolon. They name the schema of
// Config.Table, or none, and then make the tables in the schema of whoever runs them.
func (s *Store) Statements() []string { return s.db.Statements() }

// CreateTables creates the tables unless they exist. Any number of processes may call it at the
// same time.
func (s *Store) CreateTables(ctx context.Context) error {
	return s.explain("create tables", "", s.db.CreateTables(ctx, func(ctx context.Context, t *tx) error {
		for i, columns := range []string{"series, period, last, closed", "series, definition, last_date", "series, period, position, what, happened, last, reason"} {
			if err := t.Columns(ctx, i, columns); err != nil {
				return err
			}
		}
		return nil
	}))
}
