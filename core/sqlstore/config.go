package sqlstore

import (
	"log/slog"

	"github.com/snowkey/snowkey/internal/base/dialect"
)

// A Dialect is the SQL that a database speaks. The zero value is invalid, because a guess from
// the driver's type would be wrong for the first wrapper around it.
type Dialect = dialect.Dialect

// The dialects.
const (
	// SQLite is SQLite 3.16 or newer; serials need 3.35.
	SQLite = dialect.SQLite
	// PostgreSQL is PostgreSQL 9.6 or newer, with any driver.
	PostgreSQL = dialect.PostgreSQL
	// MySQL is MySQL 5.7 and MariaDB 10.3, or newer, and TiDB. Dolt is refused, see [ErrDolt].
	MySQL = dialect.MySQL
)

// A Config says where a Store keeps its rows. The zero value lacks the Dialect.
type Config struct {
	// Dialect is the SQL that the database speaks. It must be set.
	Dialect Dialect

	// Table is the table of the Store. Its name is letters, digits and _, with a schema and a dot
	// before it if need be, and is short enough for 63 bytes with the longest suffix that the
	// Store adds to it for a further table. Case matters where the database lets it. Defaults to
	// DefaultTable of the Store's package.
	//
	// Without a schema, the Store's first operation finds the table as its connection does, by
	// search_path or the default database, and it remains that table. The Store does not create it
	// while another schema has one of its name, see [ErrOtherSchema].
	Table string

	// AllowFUSE lets a SQLite file be on FUSE. Set it only if no other host shares that file
	// system, its locks work, and it keeps what it has synced. Defaults to false, because sshfs
	// and many others are FUSE.
	AllowFUSE bool

	// Logger gets warnings about settings of the pool, the server and the file system that put
	// the rows at risk, each once per Store. Defaults to slog.Default().
	Logger *slog.Logger
}
