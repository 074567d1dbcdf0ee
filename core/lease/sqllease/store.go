package sqllease

import (
	"context"
	"database/sql"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/internal/filesystem"
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
	db      *sql.DB
	dialect Dialect
	table   string // as configured
	log     *slog.Logger
	text    texts
	now     func() time.Time // the clock of SQLite
	file    databaseFile     // of SQLite
	left    atomic.Int32     // calls under way that nobody waits for

	poolWarning, serverWarning sync.Once
}

var (
	_ lease.Store  = (*Store)(nil)
	_ lease.Lister = (*Store)(nil)
	_ lease.Fencer = (*Store)(nil)
)

// New returns a Store on db. It does no I/O and does not take db over. The caller
// closes db after the last lease. If an argument is wrong the error is a
// [*lease.ValueError].
func New(db *sql.DB, c Config) (*Store, error) {
	if db == nil {
		return nil, &lease.ValueError{Package: "sqllease", Name: "New(db)", Value: "nil", Want: "an open *sql.DB"}
	}
	if !c.Dialect.Valid() {
		return nil, &lease.ValueError{Package: "sqllease", Name: "Config.Dialect", Value: c.Dialect.String(), Want: "SQLite, PostgreSQL or MySQL"}
	}
	if c.Table == "" {
		c.Table = DefaultTable
	}
	if err := checkTable(c.Table); err != nil {
		return nil, err
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return &Store{
		db:      db,
		dialect: c.Dialect,
		table:   c.Table,
		log:     c.Logger,
		text:    textsOf(c.Dialect, c.Table),
		now:     time.Now,
		file: databaseFile{log: c.Logger, suits: func(path string) (string, error) {
			return filesystem.Check(path, c.AllowFUSE)
		}},
	}, nil
}

// warnOfPool logs once that a pool of one connection is shared with everything else
// that the program does. New does not do it, since a program may size its pool after
// it.
func (s *Store) warnOfPool(ctx context.Context) {
	if s.db.Stats().MaxOpenConnections != 1 {
		return
	}
	s.poolWarning.Do(func() {
		s.log.WarnContext(ctx, "sqllease: the pool has one connection; a transaction of the program that is longer than the reserved window stops the IDs. Give the leases a pool of their own.", "table", s.table)
	})
}

// warnOfServer logs once that the server may forget what it acknowledges.
func (s *Store) warnOfServer(ctx context.Context, setting, value, want string) {
	s.serverWarning.Do(func() {
		s.log.WarnContext(ctx, "sqllease: a crash of the database server may lose acknowledged writes, and IDs may then repeat. Change the setting, or turn on the loss guard.", "setting", setting, "value", value, "want", want)
	})
}
