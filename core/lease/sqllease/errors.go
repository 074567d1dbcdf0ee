package sqllease

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/snowkey/snowkey/core/lease"
)

// The errors of this package, for errors.Is. Those of package lease come as they are;
// those of the driver and the context are wrapped.
var (
	// ErrReadOnly means that the database takes no writes. It is a replica, a file
	// without write permission, or a connection that was made read-only. Leases need
	// the primary.
	ErrReadOnly = errors.New("the database is read-only; leases need the primary, writable")

	// ErrNoTable means that a table is missing. The error is a *TableError, which
	// has the statements to create it.
	ErrNoTable = errors.New("table missing")

	// ErrSchema means that a table is there, but is of another version of the package
	// or somebody else's. The error is a *TableError.
	ErrSchema = errors.New("table of another form")

	// ErrNotDurable means that the SQLite database would forget leases. It is in
	// memory, has no journal on disk, or is on a file system that other hosts may
	// share. SQLite's locks do not work on the last.
	ErrNotDurable = errors.New("the database does not keep what it acknowledges")
)

// A TableError says that the tables are not those that this package needs.
// Nothing was written.
type TableError struct {
	Table      string   // as in Config.Table
	Problem    string   // what is wrong, in words or those of the database
	Statements []string // that create the tables
	Kind       error    // ErrNoTable or ErrSchema
}

func (e *TableError) Error() string {
	if errors.Is(e.Kind, ErrNoTable) {
		return fmt.Sprintf("sqllease: table %s or %s%s is missing (%s): call CreateTables, or run: %s;",
			e.Table, e.Table, metaSuffix, e.Problem, strings.Join(e.Statements, "; "))
	}
	return fmt.Sprintf("sqllease: table %s or %s%s is not of this version, or not a table of leases: %s: want that of: %s;",
		e.Table, e.Table, metaSuffix, e.Problem, strings.Join(e.Statements, "; "))
}

// Unwrap returns e.Kind.
func (e *TableError) Unwrap() error { return e.Kind }

// Is reports whether target is lease.ErrPermanent.
func (e *TableError) Is(target error) bool { return target == lease.ErrPermanent }

// credentials are the places where drivers and their wrappers put a password into an
// error: a URL, a key with a value, and the DSN of the MySQL driver. A password that
// was not escaped is torn. If it has a space, net/url quotes the whole URL; if it has a
// slash, net/url takes what is before the slash for a port. lib/pq takes what is after
// a space for a key.
var credentials = regexp.MustCompile(`(?i)` +
	`(parse "[^\s/:@"]*://[^\s/:@"]*:)(?:[^"\\]|\\.)*@|` +
	`(invalid port )"(?:[^"\\]|\\.)*"|` +
	`(missing "=" after )"(?:[^"\\]|\\.)*"|` +
	`(://[^\s/:@]*:)\S*@|` +
	`((?:pass(?:word|wd)?|pwd)["']?\s*[=:]\s*)(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s&;,]+)|` +
	`([^\s:"'` + "`" + `]+:)\S*@(?:tcp|unix)`)

// A redacted error has the text of another without the passwords in it. The Store
// never sees the DSN, so it knows them by where they stand.
type redacted struct {
	text string
	err  error
}

func (e *redacted) Error() string { return e.text }
func (e *redacted) Unwrap() error { return e.err }

func redact(err error) error {
	text := err.Error()
	clean := credentials.ReplaceAllStringFunc(text, func(found string) string {
		if found == "password: YES)" || found == "password: NO)" { // MySQL: whether one was sent
			return found
		}
		return credentials.ReplaceAllString(found, "$1$2$3$4$5$6***")
	})
	if clean != text {
		return &redacted{clean, err}
	}
	return err
}

// withCause adds the context's error where the driver has reported the end of
// ctx in words of its own.
func withCause(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil && !errors.Is(err, cause) {
		return &caused{err, cause}
	}
	return err
}

type caused struct{ err, cause error }

func (e *caused) Error() string   { return e.cause.Error() + ": " + e.err.Error() }
func (e *caused) Unwrap() []error { return []error{e.cause, e.err} }
