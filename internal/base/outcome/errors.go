package outcome

import (
	"context"
	"errors"
	"fmt"

	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/wait"
	"github.com/snowkey/snowkey/types"
)

// ErrCommitUnknown is exported by the plugins, which say what it means.
var ErrCommitUnknown = errors.New("snowkey: not known whether the transaction is committed")

// An UnknownError matches [ErrCommitUnknown]. It wraps the driver's error and, if the context has
// ended, the context's.
type UnknownError struct {
	// Rows has one row of each table that was inserted into. All rows of the transaction are
	// stored if one of these is, and none otherwise. It is empty if no row is known to be inserted.
	Rows []StoredRow
	Err  error
	why  error  // why the rows prove nothing
	pkg  string // see Database.Package
}

// A StoredRow identifies a row to look for.
type StoredRow struct {
	Table, Column string // Column is the primary key
	Key           types.Snowflake
}

func (e *UnknownError) Error() string {
	text := ErrCommitUnknown.Error()
	if e.pkg != "" {
		text = e.pkg + ": not known whether the transaction is committed"
	}
	text = fmt.Sprintf("%s: %v; %v", text, e.Err, e.why)
	for i, r := range e.Rows {
		if i == 0 {
			text += "; all is stored if one of these is: "
		} else {
			text += ", "
		}
		text += fmt.Sprintf("%s %d of %s", r.Column, r.Key, r.Table)
	}
	return text
}

// Unwrap returns e.Err.
func (e *UnknownError) Unwrap() error { return e.Err }

// Is matches [ErrCommitUnknown].
func (e *UnknownError) Is(target error) bool { return target == ErrCommitUnknown }

// Unknown returns the error of a transaction with an unknown outcome. It does not wrap why,
// because the timeout of a look is not the caller's.
func (d *Database) Unknown(ctx context.Context, err, why error, proofs []Proof) error {
	e := &UnknownError{Err: wait.Cause(ctx, err), why: why, pkg: d.Package}
	for _, p := range proofs {
		e.Rows = append(e.Rows, StoredRow{p.Table, p.Column, p.Key})
	}
	return e
}

// A commitError is the error of a COMMIT.
type commitError struct {
	err error
	in  *Database
}

func (e *commitError) Error() string { return e.in.Package + ": commit: " + e.err.Error() }
func (e *commitError) Unwrap() error { return e.err }

// Is matches Database.Duplicate for a unique constraint that is checked at COMMIT.
func (e *commitError) Is(target error) bool {
	return target == e.in.Duplicate && dialect.DuplicateKey(e.err)
}

// AtCommit reports whether err comes from the COMMIT of a transaction.
func AtCommit(err error) bool {
	return errors.As(err, new(*commitError)) || errors.As(err, new(*UnknownError))
}

// Why it is unknown what became of a transaction.
var (
	ErrNoProof = errors.New("no row is known to be inserted that could tell")
	ErrOneConn = errors.New("there is no other connection to look for the rows")
	ErrOpen    = errors.New("the row is not there, and the transaction may still be open")
	errGone    = errors.New("the row is not there any more")
	// ErrUnknownDatabase is the error of a look at something that is not known to be a database, such
	// as a mock.
	ErrUnknownDatabase = errors.New("no known database")
	errPartial         = errors.New("WithPartialCommits is set, and so an error of a COMMIT proves nothing")
	// errEnded is for SQLite, where an error that the function has ignored may end the transaction.
	errEnded = errors.New("an error had ended the transaction, and the function went on: what came before is rolled back, and each statement after it is stored")
	// ErrEarlier says why memory and table may differ.
	ErrEarlier = errors.New("rows of an earlier run are stored after all: read them again, with all that the function took from the database")
)

// Why a missing row proves nothing.
var (
	ErrReplica   = errors.New("this server takes no writes, so it may not have the row yet")
	ErrServers   = errors.New("the row is not there, which proves nothing on this server: others may take writes")
	errElsewhere = errors.New("this server does not know the transaction: it is another one, or has crashed since")
	ErrHidden    = errors.New("the row is not there, which proves nothing: row level security, a rule, a view or an attached file may hide it")
	ErrNames     = errors.New("the row is not there, which proves nothing: another schema or database has a table of that name, which the transaction may have meant")
)
