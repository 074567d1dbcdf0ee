package sqllease

import (
	"context"
	"database/sql"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/sqlrow"
)

// A Dialect is the SQL that a database speaks. The zero value is none of them: a
// guess from the driver's type would be wrong for the first wrapper around it.
type Dialect = dialect.Dialect

// The dialects.
const (
	// SQLite is SQLite 3.16 or newer.
	SQLite = dialect.SQLite
	// PostgreSQL is PostgreSQL 9.6 or newer, by any driver.
	PostgreSQL = dialect.PostgreSQL
	// MySQL is MySQL 5.7 and MariaDB 10.3, or newer.
	MySQL = dialect.MySQL
)

// DefaultTable is where leases are kept if Config.Table is empty.
const DefaultTable = "snowkey_leases"

// A Config says where and how leases are kept.
type Config struct {
	// Dialect is the SQL that the database speaks. It must be set.
	Dialect Dialect

	// Table is the table with one row per worker number. A second one, with _meta after
	// its name, has one row per space. The name is letters, digits and _, at most 58 of
	// them. A schema and a dot may be before it. Case matters where the database lets
	// it. Defaults to DefaultTable.
	Table string

	// AllowFUSE lets an SQLite file be on FUSE. Set it if you know three things: no
	// other host shares that file system, its locks work, and it keeps what it has
	// synced. Defaults to false: sshfs and many others are FUSE, and IDs would repeat.
	AllowFUSE bool

	// Logger gets warnings about settings of the pool and the server, and about a file
	// system, that put leases at risk. Each comes once per Store. Defaults to
	// slog.Default().
	Logger *slog.Logger
}

// A Store keeps leases in a SQL database. It implements [lease.Store], [lease.Lister]
// and [lease.Fencer]. See the package comment for what it guarantees. Use [New]: the
// zero Store has no database. It is safe for concurrent use and must not be copied.
type Store struct {
	rows   *sqlrow.DB
	table  string // as configured
	log    *slog.Logger
	text   texts
	now    func() time.Time // the clock of SQLite
	pooled sync.Once        // warned of the pool
}

var (
	_ lease.Store  = (*Store)(nil)
	_ lease.Lister = (*Store)(nil)
	_ lease.Fencer = (*Store)(nil)
)

// New returns a Store on db. It does no I/O and does not take db over. The caller
// closes db after the last lease. If an argument is wrong the error is a
// [*core.ValueError].
func New(db *sql.DB, c Config) (*Store, error) {
	wrong := func(name, value, want string) (*Store, error) {
		return nil, &core.ValueError{Package: "sqllease", Name: name, Value: value, Want: want, Err: lease.ErrPermanent}
	}
	if db == nil {
		return wrong("New(db)", "nil", "an open *sql.DB")
	}
	if !c.Dialect.Valid() {
		return wrong("Config.Dialect", c.Dialect.String(), "SQLite, PostgreSQL or MySQL")
	}
	if c.Table == "" {
		c.Table = DefaultTable
	}
	if want, ok := sqlrow.CheckTable(c.Table, len(metaSuffix)); !ok {
		return wrong("Config.Table", strconv.Quote(c.Table[:min(len(c.Table), 64)]), want)
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	s := &Store{table: c.Table, log: c.Logger, text: textsOf(c.Dialect, c.Table), now: time.Now}
	s.rows = sqlrow.New(db, sqlrow.Config{
		Dialect:   c.Dialect,
		Table:     c.Table,
		AllowFUSE: c.AllowFUSE,
		Verdict:   definite,
		Warn: func(ctx context.Context, risk string, args ...any) {
			s.log.WarnContext(ctx, "sqllease: the database may forget leases. IDs may then repeat. Change that, or turn on the loss guard.", append([]any{"risk", risk}, args...)...)
		},
		Now: func() time.Time { return s.now() },
	})
	return s, nil
}

// LosesWrites returns false: what a SQL database has acknowledged is durable, under the
// conditions of the package comment. If yours may forget it, turn on the loss guard.
func (s *Store) LosesWrites() bool { return false }

// warnOfPool logs once that a pool of one connection is shared with everything else
// that the program does. New does not do it, since a program may size its pool after
// it.
func (s *Store) warnOfPool(ctx context.Context) {
	if s.rows.Single() {
		s.pooled.Do(func() {
			s.log.WarnContext(ctx, "sqllease: the pool has one connection; a transaction of the program that is longer than the reserved window stops the IDs. Give the leases a pool of their own.", "table", s.table)
		})
	}
}
