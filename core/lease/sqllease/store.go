package sqllease

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/snowkey/snowkey/core/internal/tables"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/sqlrow"
)

// DefaultTable is where leases are kept if Config.Table is empty.
const DefaultTable = "snowkey_leases"

// A Store keeps leases in a SQL database. It is a [leasestore.Store], a [leasestore.Lister], a
// [leasestore.Fencer] and a [leasestore.History]; the package comment says what it guarantees. Make it with [New], since the
// zero Store has no database. It is safe for concurrent use and must not be copied.
//
// Besides the errors of leasestore.Store, its methods return those of package sqlstore, those of
// the driver and the error of ctx. After an error of sqlstore nothing was claimed.
type Store struct {
	*leasestore.RegisterStore
	register *register
}

var _ leasestore.Catalog = (*Store)(nil) // beside what a RegisterStore is

// New returns a Store on db. It does no I/O. The caller keeps db and closes it after the last
// lease. If an argument is wrong the error is a [*core.ValueError].
//
// Config.Table has one row per worker number. A second table, with _meta after its name, has
// one row per space, and a third, with _past, one per worker number for past holders.
func New(db *sql.DB, c sqlstore.Config) (*Store, error) {
	r := newRegister()
	d, err := tables.Open(db, c, tables.Kind[texts]{
		Package:  "sqllease",
		Names:    []string{DefaultTable, DefaultTable + metaSuffix, DefaultTable + historySuffix},
		Suffixes: []string{metaSuffix, historySuffix},
		Create:   create,
		Text:     textsOf,
		Definite: func(err error) bool { return errors.Is(err, leasestore.ErrLayout) },
		Now:      r.clock,
	})
	if err != nil {
		return nil, leasestore.Permanent(err)
	}
	r.db = d
	return &Store{leasestore.FromRegister(r), r}, nil
}

// replaced is the reason of a lease that is lost together with its SQLite file.
const replaced leasestore.Reason = "the database file or its write-ahead log was removed or replaced while the process ran"

// Renew implements [leasestore.Store]. If the SQLite file was replaced, the lease is lost.
func (s *Store) Renew(ctx context.Context, r leasestore.Renewal) (leasestore.Reply, error) {
	reply, err := s.RegisterStore.Renew(ctx, r)
	return reply, lostFile(err, r.Lost)
}

// Release implements [leasestore.Store]. If the SQLite file was replaced, the lease is lost.
func (s *Store) Release(ctx context.Context, r leasestore.Release) error {
	return lostFile(s.RegisterStore.Release(ctx, r), r.Lost)
}

func lostFile(err error, lost func(leasestore.Reason) *leasestore.LostError) error {
	if errors.Is(err, sqlstore.ErrReplaced) && !errors.Is(err, sqlrow.ErrCommit) { // nothing was written
		return fmt.Errorf("%w: %w", lost(replaced), err)
	}
	return err
}

// Fence implements [leasestore.Fencer], in one transaction: row by row, a large space would take
// minutes on SQLite.
func (s *Store) Fence(ctx context.Context, f leasestore.Fencing) error {
	if err := f.Space.Validate(); err != nil {
		return err
	}
	r := s.register
	if err := r.Make(ctx, f.Space); err != nil {
		return err
	}
	_, err := tables.Do(ctx, r.db, func(t *tx) (sql.Result, error) {
		return t.Exec(ctx, t.Text.fence, f.Nonce, int64(f.Until), int64(f.Until), f.Space.Namespace, f.Space.Datacenter)
	})
	return explain("fence", err)
}

// Table returns the full name of the Store's table, with the schema or database that all operations
// use. The first call of any asks the database, unless Config.Table names the schema.
func (s *Store) Table(ctx context.Context) (string, error) {
	all, err := s.register.db.Find(ctx)
	if err != nil {
		return "", explain("table", err)
	}
	return all.Names[0], nil
}

// Spaces implements [leasestore.Catalog].
func (s *Store) Spaces(ctx context.Context) ([]leasestore.Space, error) {
	r := s.register
	spaces, err := tables.Look(ctx, r.db, func(t *tx) (spaces []leasestore.Space, err error) {
		err = t.See(ctx, func(scan func(...any) error) error {
			var (
				namespace, layout            *string
				datacenter, version, workers *int64
			)
			if err := scan(&namespace, &datacenter, &layout, &version, &workers); err != nil || namespace == nil {
				return err
			}
			if *version != schemaVersion {
				return r.wrongVersion(*version)
			}
			spaces = append(spaces, leasestore.Space{Namespace: *namespace, Datacenter: *datacenter, Layout: *layout, Workers: *workers})
			return nil
		}, "m.namespace, m.datacenter, m.layout, m.schema_version, m.workers", t.Text.spaces)
		return spaces, err
	})
	return spaces, explain("list", err)
}

// explain returns the error of an operation, with its name.
func explain(name string, err error) error {
	switch {
	case err == nil, errors.Is(err, leasestore.ErrLayout):
		return err
	case errors.Is(err, sqlrow.ErrCommit), dialect.BadConnection(err):
	case dialect.Denied(err), errors.As(err, new(*sqlstore.TableError)), errors.Is(err, sqlstore.ErrNotDurable), errors.Is(err, sqlstore.ErrDolt), errors.Is(err, sqlstore.ErrOtherSchema):
		err = leasestore.Permanent(err)
	}
	return fmt.Errorf("sqllease: %s: %w", name, err)
}
