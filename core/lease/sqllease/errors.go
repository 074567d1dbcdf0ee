package sqllease

import (
	"errors"
	"fmt"
	"strings"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/internal/base/sqlrow"
)

// The errors of this package, for errors.Is. Those of package lease come as they are.
// Those of the driver and the context are wrapped.
var (
	// ErrReadOnly means that the database takes no writes. It is a replica, a file
	// without write permission, or a connection that was made read-only. Leases need
	// the primary.
	ErrReadOnly = sqlrow.ErrReadOnly

	// ErrNoTable means that a table is missing. The error is a *TableError, which
	// has the statements to create it.
	ErrNoTable = errors.New("table missing")

	// ErrSchema means that a table is there, but is of another version of the package
	// or somebody else's. The error is a *TableError.
	ErrSchema = errors.New("unexpected table schema")

	// ErrDolt means that the server is Dolt, which commits both of two transactions that
	// make the same change to a row. Two processes could hold one worker number. It matches lease.ErrPermanent.
	ErrDolt = sqlrow.ErrDolt

	// ErrNotDurable means that the SQLite database would forget leases. It is in
	// memory, has no journal on disk, is on a file system that other hosts may share,
	// where SQLite's locks do not work, or has a second path, by a hard link or a mount
	// of the file itself. The error matches lease.ErrPermanent.
	ErrNotDurable = sqlrow.ErrNotDurable

	// ErrReplaced means that the SQLite file is no longer that of the first operation,
	// or its write-ahead log no longer that of the connection. It was removed or moved,
	// or another was put in its place. Connections that were open before still write
	// into the old one, which no other process reads. So the
	// Store refuses every operation from then on. A renewal or release gets a
	// [*lease.LostError] as well. Restart the process.
	ErrReplaced = sqlrow.ErrReplaced
)

// replaced is the reason of a lease that is lost by that.
const replaced lease.Reason = "the database file or its write-ahead log was removed or replaced while the process ran"

// A TableError says that the tables are not those that this package needs.
// Nothing was written.
type TableError struct {
	Table      string   // as in Config.Table
	Problem    string   // what is wrong, in words or those of the database
	Statements []string // that create the tables
	Kind       error    // ErrNoTable or ErrSchema
}

func (e *TableError) Error() string {
	problem, remedy := "is missing", "call CreateTables, or run"
	if !errors.Is(e.Kind, ErrNoTable) {
		problem, remedy = "has an unexpected schema", "want that of"
	}
	return fmt.Sprintf("sqllease: table %s or %s%s %s: %s: %s: %s;",
		e.Table, e.Table, metaSuffix, problem, e.Problem, remedy, strings.Join(e.Statements, "; "))
}

// Unwrap returns e.Kind.
func (e *TableError) Unwrap() error { return e.Kind }

// Is reports whether target is lease.ErrPermanent.
func (e *TableError) Is(target error) bool { return target == lease.ErrPermanent }
