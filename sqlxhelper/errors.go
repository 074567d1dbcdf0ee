package sqlxhelper

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/snowkey/snowkey/internal/sqlerror"
	"github.com/snowkey/snowkey/internal/wait"
	"github.com/snowkey/snowkey/types"
)

// What the errors of this package match, for errors.Is. Errors of the database,
// of the source and of the context are wrapped and match as themselves.
var (
	// ErrArgument means that the method does not take such rows, for instance a
	// struct that is not behind a pointer. Or an option names what the rows do not
	// have.
	ErrArgument = errors.New("sqlxhelper: argument not usable")
	// ErrDB means that a [DB] is nil, or that it is neither a pool nor a
	// transaction, or both. Or the connection of [OnConn] is inside of a transaction.
	ErrDB = errors.New("sqlxhelper: database handle not usable")
	// ErrDriver means that the driver name is unknown. Use [RegisterDriver] or
	// [WithDialect].
	ErrDriver = errors.New("sqlxhelper: dialect not known")
	// ErrName means a table or column name that is not sent to a database.
	ErrName = errors.New("sqlxhelper: name not usable")
	// ErrSource means that a key was missing and the source gave none. There is no
	// source, or it returned a number below 1 without an error.
	ErrSource = errors.New("sqlxhelper: no key from the source")
	// ErrForeignKey means a foreign key that is not the key of the row's parent, or
	// of the row in a belongs_to field. Or it would be sent as zero, is negative, or is
	// shared with a row that needs another one. The error is a [*RowError].
	ErrForeignKey = errors.New("sqlxhelper: foreign key not usable")
	// ErrDuplicateKey means that another row has the same key, or the same value in
	// another unique index. The error is an [*InsertError].
	ErrDuplicateKey = errors.New("sqlxhelper: duplicate key")
	// ErrUnresolved means that a row of an upsert was not inserted and the stored
	// row cannot be identified. Or a row is not there to be read back. The error is
	// an [*InsertError], as a rule.
	ErrUnresolved = errors.New("sqlxhelper: stored row not found")
	// ErrTxBroken means that the transaction in which a call was made cannot go on.
	// It has ended, or its connection is gone, for instance because the context
	// ended during a statement. Roll the transaction back. If MySQL or SQLite has
	// ended it by itself, whatever is sent on it next is committed at once. The
	// error of the context is wrapped too, if it has ended.
	ErrTxBroken = errors.New("sqlxhelper: transaction no longer usable, roll it back")
	// ErrCommitUnknown means that it is not known whether a transaction is committed, of
	// [InTx] or of a call on a pool. Its answer is lost, and nothing that can be asked
	// proves either. The error is an
	// [*UnknownError], which has the keys to look for before you do anything again with
	// new ones.
	ErrCommitUnknown = errors.New("sqlxhelper: not known whether the transaction is committed")
)

// A PlanError says why no row of a struct type can be inserted. It depends on the
// type and the mapper of sqlx alone. So the first call with that type finds it,
// even for an empty slice. Nothing was assigned or sent. The types to which
// relations lead are looked at too, also by calls that do not follow them.
type PlanError struct {
	Type    reflect.Type // the struct type at fault: that of the rows, or one to which their relations lead
	Field   string       // the field, with the embedded structs that lead to it: "Base.ID"; "" if it is the type as a whole
	Problem string       // what is wrong, and what to write instead
}

func (e *PlanError) Error() string {
	name := e.Type.String()
	if e.Field != "" {
		name += "." + e.Field
	}
	return "sqlxhelper: " + name + ": " + e.Problem
}

// A RowError says which row of a call cannot be inserted, as far as that can be
// seen without a database. It is found before keys are assigned and before any SQL,
// and no row is changed. What the database or the Value method of a field refuses
// later is an [InsertError].
type RowError struct {
	Path    string // the row, by type, index and field: "shop.Order[3].Items[0]"
	Problem string // what is wrong
	Err     error  // matches ErrForeignKey, or types.ErrRange for a negative key, where it is one; else nil
}

func (e *RowError) Error() string { return "sqlxhelper: " + e.Path + ": " + e.Problem }

// Unwrap returns e.Err.
func (e *RowError) Unwrap() error { return e.Err }

// An InsertError says which rows the failed statement had, and which of them it
// failed for, if that is known. Keys and foreign keys are assigned by then and
// stay. The rows are not stored. Err is what the database, its driver, the context
// or the Value method of a field said.
//
// The row is known in three cases. The database refuses a row and the statement
// had no other. Or parts of the statement are sent again, in what is rolled back,
// and that row is refused by itself. Or PostgreSQL refuses a line of a COPY, or a
// value that could not be bound. Otherwise none is named: a full disk, a database that
// takes no writes, a cancelled statement and a lost connection are no row's fault.
type InsertError struct {
	Table       string          // the table, as it was named in the call or in the tag
	First, Last int             // the rows of the statement, counted from 0 among those of the table
	Rows        int             // how many rows of the call go into the table
	Row         int             // the row that is to blame, counted as First, or -1 if it is not known
	Path        string          // the same row by type, index and field: "shop.Order[3].Items[0]", or ""
	Field       string          // its field, if Err is about one value, or ""
	Key         types.Snowflake // its primary key, or 0
	Err         error
}

func (e *InsertError) Error() string {
	at := fmt.Sprintf("rows %d to %d of %d", e.First+1, e.Last+1, e.Rows)
	if e.Row >= 0 {
		at = e.Path
		if e.Field != "" {
			at += "." + e.Field
		}
		at += fmt.Sprintf(" (id %d)", e.Key)
	}
	return fmt.Sprintf("sqlxhelper: insert into %s, %s: %s", e.Table, at, strings.TrimPrefix(e.Err.Error(), "sqlxhelper: "))
}

// Unwrap returns e.Err.
func (e *InsertError) Unwrap() error { return e.Err }

// Is matches [ErrDuplicateKey].
func (e *InsertError) Is(target error) bool {
	return target == ErrDuplicateKey && sqlerror.DuplicateKey(e.Err)
}

// A CountError says that a statement succeeded, but did not insert the rows that it
// was given. A trigger may have suppressed some. The call is undone, with one
// exception. Several rows that went to a pool as a single statement, on PostgreSQL
// and MySQL, had no transaction around them. The rows that were counted are stored
// then.
type CountError struct {
	Table    string // the table, as it was named in the call or in the tag
	Rows     int64  // how many rows the statement was given
	Affected int64  // how many the database says it has inserted
}

func (e *CountError) Error() string {
	return fmt.Sprintf("sqlxhelper: insert into %s: %d rows affected, %d rows given", e.Table, e.Affected, e.Rows)
}

// An UnknownError matches [ErrCommitUnknown]. It wraps what the driver said instead of an
// answer, and the error of the context if that has ended.
type UnknownError struct {
	// Rows are one row of each table that was inserted into. All rows of the transaction
	// are stored if one of these is, and none otherwise. It is empty if no Helper has
	// inserted any.
	Rows []StoredRow
	Err  error
	why  error // why the rows prove nothing
}

// A StoredRow says where to look for a row.
type StoredRow struct {
	Table, Column string // Column is the primary key
	Key           types.Snowflake
}

func (e *UnknownError) Error() string {
	text := fmt.Sprintf("%v: %v; %v", ErrCommitUnknown, e.Err, e.why)
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

// unknown returns the error of a transaction of which err is all that was said. why is not
// wrapped: a timeout of a look is not the caller's.
func unknown(ctx context.Context, err, why error, proofs []proof) error {
	e := &UnknownError{Err: wait.Cause(ctx, err), why: why}
	for _, p := range proofs {
		e.Rows = append(e.Rows, StoredRow{p.table, p.column, p.key})
	}
	return e
}
