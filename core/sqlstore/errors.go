package sqlstore

import (
	"errors"
	"fmt"
	"strings"

	"github.com/snowkey/snowkey/internal/base/sqlrow"
)

// The errors of a Store that come from its database, for errors.Is.
var (
	// ErrNoTable means that a table is missing. The error is a [*TableError].
	ErrNoTable = errors.New("table missing")

	// ErrSchema means that a table has other columns than the Store needs, belongs to another
	// version of the package, or has a column that truncates what is written to it, as MySQL
	// does without strict mode. Nothing was written.
	ErrSchema = errors.New("unexpected table schema")

	// ErrOtherSchema means that another schema of PostgreSQL, or another database of MySQL, has a
	// table of the Store's name. The Store then does not create its own, because two tables would
	// give the same numbers twice. The error names both. Set Config.Table to one of them, with its
	// schema.
	ErrOtherSchema = errors.New("another schema has a table of this name")

	// ErrReadOnly means that the database takes no writes. It is a replica, a file without write
	// permission, or a connection that was made read-only.
	ErrReadOnly = sqlrow.ErrReadOnly

	// ErrDolt means that the server is Dolt, which commits both of two transactions that make
	// the same change to a row. Numbers would repeat. It is permanent.
	ErrDolt = sqlrow.ErrDolt

	// ErrNotDurable means that the SQLite database would forget what it acknowledges. It is in
	// memory, has no journal on disk, is on a file system that other hosts may share, where
	// SQLite's locks do not work, or has a second path, by a hard link or a mount of the file
	// itself. It is permanent.
	ErrNotDurable = sqlrow.ErrNotDurable

	// ErrReplaced means that the SQLite file is no longer the one of the Store's first operation,
	// or its write-ahead log no longer the one of the connection, because it was removed or
	// moved, or another file was put in its place. Connections that were open before still write
	// into the old file, which no other process reads, so the Store refuses every further
	// operation. Restart the process.
	ErrReplaced = sqlrow.ErrReplaced
)

// A TableError says that the tables are not those that a Store needs. Nothing was written.
type TableError struct {
	Tables     []string // their names, with the schema as soon as it is known
	Kind       error    // ErrNoTable or ErrSchema
	Err        error    // what the database answered, or what is wrong
	Statements []string // that create the tables
}

func (e *TableError) Error() string {
	remedy := "call CreateTables, or run"
	if errors.Is(e.Kind, ErrSchema) {
		remedy = "want the tables of"
	}
	return fmt.Sprintf("%v: %s: %v: %s\n%s;", e.Kind, strings.Join(e.Tables, ", "), e.Err, remedy, strings.Join(e.Statements, ";\n"))
}

// Unwrap returns Kind and Err.
func (e *TableError) Unwrap() []error { return []error{e.Kind, e.Err} }
