package sqllease

import (
	"database/sql"
	"time"

	"github.com/snowkey/snowkey/core/internal/tables"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/sqlstore"
)

// DefaultTable is where leases are kept if Config.Table is empty.
const DefaultTable = "snowkey_leases"

// A Store keeps leases in a SQL database. It implements [lease.Store], [lease.Lister]
// and [lease.Fencer]. See the package comment for what it guarantees. Use [New]: the
// zero Store has no database. It is safe for concurrent use and must not be copied.
type Store struct {
	db   *tables.DB
	text texts
	now  func() time.Time // the clock of SQLite
}

var (
	_ lease.Store  = (*Store)(nil)
	_ lease.Lister = (*Store)(nil)
	_ lease.Fencer = (*Store)(nil)
)

// New returns a Store on db. It does no I/O and does not take db over. The caller
// closes db after the last lease. If an argument is wrong the error is a
// [*core.ValueError].
//
// Config.Table has one row per worker number. A second table, with _meta after its name, has
// one row per space.
func New(db *sql.DB, c sqlstore.Config) (*Store, error) {
	s := &Store{now: time.Now}
	d, err := tables.Open(db, c, tables.Kind{
		Package:  "sqllease",
		Names:    []string{DefaultTable, DefaultTable + metaSuffix},
		Suffixes: []string{metaSuffix},
		Create:   create,
		Definite: definite,
		Now:      func() time.Time { return s.now() },
	})
	if err != nil {
		return nil, lease.Permanent(err)
	}
	s.db, s.text = d, textsOf(d.Dialect, d.Names)
	return s, nil
}

// LosesWrites returns false: what a SQL database has acknowledged is durable, under the
// conditions of the package comment. If yours may forget it, turn on the loss guard.
func (s *Store) LosesWrites() bool { return false }
