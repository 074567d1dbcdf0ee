package gormplugin

import (
	"errors"
	"fmt"
	"strings"

	"github.com/snowkey/snowkey/internal/base/outcome"
	"github.com/snowkey/snowkey/internal/base/readback"
)

// The errors of a statement, for errors.Is.
var (
	// ErrUnresolved means that an upsert met a stored row that cannot be identified, and
	// that associations need its key. The error is an [*UnresolvedError].
	ErrUnresolved = errors.New("gormplugin: stored row not found")
	// ErrKeyRewrite means that an upsert would overwrite the key of a stored row, to which
	// other rows may refer.
	ErrKeyRewrite = errors.New("gormplugin: upsert would rewrite the primary key of a stored row")
	// ErrNoKey means that a row would be stored under the key 0 or NULL. The error names the
	// row.
	ErrNoKey = errors.New("gormplugin: row without a key")
	// ErrShard means that the shard of a row that gets a key is not certain: the field with the
	// tag snowkey:"shard" is 0, or is on another shard than the row's parent, or than the context
	// asks for. The error names the row, the field and the shards.
	ErrShard = errors.New("gormplugin: no single shard for a row")
)

// The errors of [InTx], for errors.Is.
var (
	// ErrCommitUnknown means that it is not known whether the transaction of InTx is committed: the
	// answer was lost, and the database could not be made to tell. The error is an
	// [*UnknownError], which has the keys to look for before the program does the same again with
	// new ones. It is also that of package sqlxhelper.
	ErrCommitUnknown = outcome.ErrCommitUnknown
	// ErrTxBroken means that MySQL or MariaDB has ended the transaction of InTx, or may have, by a
	// deadlock or a lock that was not granted in time, and that fn has gone on. Return the error of
	// the database at once, so that fn runs again.
	ErrTxBroken = errors.New("gormplugin: transaction no longer usable, roll it back")
	// ErrInTransaction means that InTx was given a transaction, in which it cannot begin another
	// one. For a savepoint call the method Transaction.
	ErrInTransaction = errors.New("gormplugin: the db is inside a transaction already")
)

// An UnknownError matches [ErrCommitUnknown]. Its field Rows has one [StoredRow] of each table that
// the plugin has filled: all rows of the transaction are stored if one of these is, and none
// otherwise. Rows is empty if there are none. Its field Err, which it wraps, is the driver's error,
// and the context's if that has ended.
type UnknownError = outcome.UnknownError

// A StoredRow identifies a row to look for, by the fields Table, Column, which is the primary key,
// and Key, a types.Snowflake.
type StoredRow = outcome.StoredRow

// A ModelError says why a model cannot work, see [Filled]. Every create of the model returns
// it before any SQL runs, and [Plugin.Verify] returns those of all models.
type ModelError struct {
	Model  string // the Go type
	Field  string // a field of the model; empty if it has none to name
	Reason string // what is wrong and what to do
	is     error
}

func (e *ModelError) Error() string {
	return "gormplugin: " + strings.TrimSuffix(e.Model+"."+e.Field, ".") + ": " + e.Reason
}

// Unwrap returns [ErrUnfilled] in an error of [Plugin.Verify] about a key that the plugin does
// not fill, or nil.
func (e *ModelError) Unwrap() error { return e.is }

// An UnresolvedError says which row of an upsert met a stored row that cannot be identified,
// and why. It matches [ErrUnresolved].
//
// DO UPDATE without a condition identifies the stored row by RETURNING on PostgreSQL and
// SQLite. RowsAffected stays what it is without the plugin: GORM counts the rows that
// RETURNING gives where MariaDB counts otherwise, so there the plugin uses RETURNING only for
// associations, whose count callers do not see, and for statements that return rows anyway.
//
// After other upserts, SELECTs on the same connection look for the rows that RowsAffected and the
// target leave in doubt: usually one of the catalog, and one per unique key and 128 to 10,000 rows.
// On MySQL and MariaDB they lock the rows, as the insert has done. A stored row is found by what its
// column stores of the value, such as a time without its last digits. The plugin never guesses: a
// row that matches none of the stored rows with certainty, for one of the reasons of [Reason], is
// unresolved.
type UnresolvedError struct {
	Model  string // the Go type
	Row    int    // the index of the row in its statement
	Reason Reason
	Key    string // the unique key that is the reason, if it is one and has a name

	// For ReasonType, the column and its type as the catalog of the database writes it.
	Column, Type string
}

func (e *UnresolvedError) Error() string {
	return fmt.Sprintf("%v: %s at index %d was not inserted, and associations need its key; %s", ErrUnresolved, e.Model, e.Row, e.reason())
}

func (e *UnresolvedError) reason() string {
	switch e.Reason {
	case ReasonType:
		return fmt.Sprintf("column %q of unique key %q has the type %s, which compares such a value otherwise than it stores it", e.Column, e.Key, e.Type)
	case ReasonExpression:
		return fmt.Sprintf("unique key %q is on an expression or a generated column, or is an exclusion constraint; name a unique key of columns as the conflict target", e.Key)
	case ReasonTwoRows:
		return "it equals two stored rows, in different unique keys; name one of these as the conflict target"
	case ReasonHidden:
		return "row level security hides the row, or it has other unique values by now; let a policy for SELECT show it, or name a conflict target that includes the tenant"
	default:
		return "the stored row may have other unique values by now: the table was changed meanwhile, a trigger has changed or refused the row, or a later row of the statement updates a unique column"
	}
}

// Unwrap returns [ErrUnresolved].
func (e *UnresolvedError) Unwrap() error { return ErrUnresolved }

// A Reason says why the stored row that an upsert met cannot be identified.
type Reason uint8

// The reasons of an [UnresolvedError].
const (
	// ReasonType means that a column of a unique key has a type that compares the value
	// otherwise than it stores it. MySQL and MariaDB do that for SET, FLOAT(M,D), DOUBLE(M,D), a
	// two-digit YEAR, the text '6.4' in an integer column, a text with more than 30 digits on a
	// side of the point, gorm.Expr, and unique keys on the first characters of a text in
	// collations where ß equals ss.
	ReasonType Reason = Reason(readback.ReasonType)
	// ReasonExpression means that the row may have met a stored row by a unique key that is
	// not made of columns compared for equality: an index on an expression or a generated
	// column, or an exclusion constraint. It does not apply if the upsert names other columns
	// as its target, except on MySQL, which ignores the target.
	ReasonExpression Reason = Reason(readback.ReasonExpression)
	// ReasonStale means that the unique values of the stored row cannot be relied on. Either
	// no stored row has them, because the row was changed meanwhile, or a trigger has changed or
	// refused the new row. Or, on MySQL and MariaDB, the statement updates columns of unique
	// keys (Save of a slice, UpdateAll), and a later row of the statement may have changed them
	// again; a table with one unique key, and rows without preset keys, are not affected.
	ReasonStale Reason = Reason(readback.ReasonStale)
	// ReasonTwoRows means that the row equals one stored row in one unique key, and another
	// stored row in another.
	ReasonTwoRows Reason = Reason(readback.ReasonTwoRows)
	// ReasonHidden means ReasonStale on a table of PostgreSQL with row level security, which may
	// hide the stored row from the user.
	ReasonHidden Reason = ReasonTwoRows + 1
)
