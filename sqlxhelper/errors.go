package sqlxhelper

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/outcome"
	"github.com/snowkey/snowkey/types"
)

// Errors of this package match these for errors.Is. They also match errors of the database, of
// the source and of the context, which they wrap.
var (
	// ErrArgument means that the method does not accept such rows, for instance a struct that
	// is not behind a pointer, or that an option names something that the rows do not have.
	ErrArgument = errors.New("sqlxhelper: argument not usable")
	// ErrDB means that a [DB] is nil, that it is not exactly one of a pool and a transaction,
	// or that the connection of [OnConn] is inside a transaction.
	ErrDB = errors.New("sqlxhelper: database handle not usable")
	// ErrDriver means that the driver name is unknown. Use [RegisterDriver] or [WithDialect].
	ErrDriver = errors.New("sqlxhelper: dialect not known")
	// ErrName means a table or column name that cannot be sent to a database.
	ErrName = errors.New("sqlxhelper: name not usable")
	// ErrSource means that a key was missing and that there is no source, or that the source
	// returned a number below 1 without an error.
	ErrSource = errors.New("sqlxhelper: no key from the source")
	// ErrWideKey means that the source has keys of more than 53 bits, see [WithIntegerKeys].
	ErrWideKey = errors.New("sqlxhelper: the source has keys of more than 53 bits, which JavaScript rounds where a key is a number in JSON")
	// ErrForeignKey means a foreign key that differs from the key of the row's parent, or of
	// the row in a belongs_to field, that would be sent as zero, that its field cannot hold, or that is
	// shared with a row that needs another one. The error is a [*RowError].
	ErrForeignKey = errors.New("sqlxhelper: foreign key not usable")
	// ErrShard means that a row belongs on two shards, by its field with the tag snowkey:"shard"
	// and by its parent or the context, or that the field holds no key. The error is a
	// [*RowError].
	ErrShard = errors.New("sqlxhelper: shard not usable")
	// ErrDuplicateKey means that another row has the same key, or the same value in another
	// unique index. The error is an [*InsertError].
	ErrDuplicateKey = errors.New("sqlxhelper: duplicate key")
	// ErrUnresolved means that a row of an upsert was not inserted and the stored row cannot be
	// identified, or that a row to read back is missing. The error is usually an
	// [*InsertError].
	ErrUnresolved = errors.New("sqlxhelper: stored row not found")
	// ErrTxBroken means that the transaction in which a call was made cannot go on: it has
	// ended, or its connection is gone, for instance because the context ended during a
	// statement. Roll the transaction back. If MySQL or SQLite has ended it, the next statement
	// on it would be committed at once. If the context has ended, its error is wrapped too.
	ErrTxBroken = errors.New("sqlxhelper: transaction no longer usable, roll it back")
	// ErrCommitUnknown means that it is not known whether the transaction of [InTx], or of a
	// call on a pool, is committed: the answer was lost, and the database could not be made to
	// tell. The error is an [*UnknownError], which has the keys to look for before the program
	// does the same again with new ones.
	ErrCommitUnknown = outcome.ErrCommitUnknown
)

// A PlanError reports that no row of a struct type can be inserted. It depends only on the type
// and sqlx's mapper, so the first call with the type returns it, even for an empty slice,
// before anything is assigned or sent. The types to which relations lead are checked too, also
// by calls that do not follow them.
type PlanError struct {
	Type    reflect.Type // the struct type at fault: the rows' own, or one to which their relations lead
	Field   string       // the field, with the embedded structs that lead to it: "Base.ID"; "" for the type as a whole
	Problem string       // what is wrong, and what to write instead
}

func (e *PlanError) Error() string {
	name := e.Type.String()
	if e.Field != "" {
		name += "." + e.Field
	}
	return "sqlxhelper: " + name + ": " + e.Problem
}

// A RowError reports a row that cannot be inserted, as far as that is evident without a
// database. It is found before keys are assigned and before any SQL, and no row is changed. Only
// an upsert finds later that a stored row is on another shard than a child's tag says, and is
// undone.
// Later refusals, by the database or by the Value method of a field, are an [InsertError].
type RowError struct {
	Path    string // the row, by type, index and field: "shop.Order[3].Items[0]"
	Problem string // what is wrong
	Err     error  // matches ErrForeignKey, ErrShard, or types.ErrRange for a key that its field cannot hold; nil for any other problem
}

func (e *RowError) Error() string { return "sqlxhelper: " + e.Path + ": " + e.Problem }

// Unwrap returns e.Err.
func (e *RowError) Unwrap() error { return e.Err }

// An InsertError reports the rows of the failed statement and, if known, the row at fault. Keys
// and foreign keys are assigned by then and stay set. The rows are not stored. Err is the error
// of the database, its driver, the context or the Value method of a field.
//
// The row at fault is known if the statement had no other row, if PostgreSQL refuses a line of a
// COPY or a value that cannot be bound, and on SQLite, where parts of the statement are sent again
// in the transaction that is rolled back, and the row is refused by itself. For others see what Err
// says of the index and its values. Errors
// that no row causes, such as a full disk, a database that takes no writes, a cancelled
// statement and a lost connection, name none.
type InsertError struct {
	Table       string          // the table, as named in the call or in the tag
	First, Last int             // the rows of the statement, counted from 0 among those of the table
	Rows        int             // how many rows of the call go into the table
	Row         int             // the row at fault, counted as First, or -1 if it is not known
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
	return target == ErrDuplicateKey && dialect.DuplicateKey(e.Err)
}

// A CountError reports a statement that succeeded without inserting all the rows that it was
// given; a trigger may have suppressed some. The call is undone, unless several rows were sent
// to a pool as a single statement, on PostgreSQL and MySQL, without a transaction around it:
// then the rows that were counted are stored.
type CountError struct {
	Table    string // the table, as named in the call or in the tag
	Rows     int64  // the number of rows in the statement
	Affected int64  // the number of rows that the database reports as inserted
}

func (e *CountError) Error() string {
	return fmt.Sprintf("sqlxhelper: insert into %s: rows affected: %d, rows given: %d", e.Table, e.Affected, e.Rows)
}

// An UnknownError matches [ErrCommitUnknown]. Its field Rows has one [StoredRow] of each table that
// was inserted into: all rows of the transaction are stored if one of these is, and none
// otherwise. Rows is empty if no Helper has inserted any. Its field Err, which it wraps, is the
// driver's error, and the context's if that has ended.
type UnknownError = outcome.UnknownError

// A StoredRow identifies a row to look for, by the fields Table, Column, which is the primary key,
// and Key, a types.Snowflake.
type StoredRow = outcome.StoredRow
